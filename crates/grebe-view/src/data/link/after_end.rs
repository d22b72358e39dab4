//! Answers the viewers of an ended stream on its own thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, park, park_timeout};
use std::time::Duration;

use grebe_flow::monotonic_ns;

use super::{DataSide, ScopeLink, Viewers};

/// Answers all viewers of a scope after the end of its stream, until it is dropped. For front ends whose thread must
/// not wait for a picture, such as a server's.
#[derive(Debug)]
pub struct AfterEnd {
    is_dropped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ScopeLink {
    /// Starts a thread that answers all viewers of this scope after the end of its stream. Without it, the thread
    /// that takes a picture makes it. Call it before another viewer looks.
    ///
    /// # Errors
    /// If the system cannot start another thread.
    pub fn answer_after_end(&self) -> io::Result<AfterEnd> {
        let is_dropped = Arc::new(AtomicBool::new(false));
        let (viewers, ends) = (Arc::clone(&self.own.viewers), Arc::clone(&is_dropped));
        let thread = std::thread::Builder::new().name("grebe-ended".into());
        let thread = thread.spawn(move || answer(&viewers, &ends))?;
        *self.own.viewers.after_end() = Some(thread.thread().clone());
        self.own.viewers.hand_over();
        Ok(AfterEnd { is_dropped, thread: Some(thread) })
    }
}

impl Drop for AfterEnd {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic was already reported.
            let _ = thread.join();
        }
    }
}

fn answer(viewers: &Arc<Viewers>, is_dropped: &AtomicBool) {
    let mut side = DataSide { viewers: Arc::clone(viewers), ..DataSide::default() };
    let mut core = None;
    while !is_dropped.load(Ordering::Acquire) {
        if core.is_none() && viewers.is_handed_over.load(Ordering::Acquire) {
            core = viewers.parked().take();
            // This side does not know the present viewers yet.
            viewers.is_changed.store(true, Ordering::Release);
        }
        match &mut core {
            Some(core) => {
                side.answer_all(core, 0, monotonic_ns());
                // Also without a request: a viewer that held its lock just now is answered next time.
                park_timeout(LOOK_INTERVAL);
            }
            None => park(),
        }
    }
    *viewers.after_end() = None;
    viewers.is_handed_over.store(false, Ordering::Release);
    if let Some(core) = core {
        // From now on each viewer's own thread answers.
        side.park(core);
    }
}

const LOOK_INTERVAL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::data::feed::ScopeFeed;
    use crate::data::picture::Picture;
    use crate::data::viewport::Viewport;
    use crate::testing::sine_batch;

    fn picture(link: &ScopeLink) -> Picture {
        let began = Instant::now();
        loop {
            link.ask();
            if let Some(picture) = link.poll() {
                return picture;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "no picture comes");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn another_thread_answers_all_who_look_at_what_is_over() {
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        let after_end = link.answer_after_end().unwrap();
        let other = link.another();
        link.request(Viewport::latest(100));
        feed.ingest(&sine_batch(0, 1, 500, 1e3)).unwrap();
        assert_eq!(picture(&link).next_index, 500);
        feed.finish();
        assert!(
            !link.own.viewers.is_parked.load(Ordering::Acquire),
            "nobody computes a picture that takes one"
        );
        other.request(Viewport { is_exact: true, ..Viewport::latest(50) });
        let (one, exact) = (picture(&link), picture(&other));
        assert!(one.is_ended && exact.is_ended);
        assert_eq!((one.answers.unwrap().columns, exact.answers.unwrap().columns), (100, 50));
        // Samples, too.
        other.request_extract(10..20);
        let began = Instant::now();
        let extract = loop {
            match other.take_extract() {
                Some(extract) => break extract,
                None => assert!(began.elapsed() < Duration::from_secs(60), "no samples come"),
            }
        };
        assert_eq!(extract.len_samples(), 10);
        // Without it, each viewer's own thread answers again.
        drop(after_end);
        link.request(Viewport::latest(70));
        assert_eq!(link.poll().unwrap().answers.unwrap().columns, 70);
    }

    #[test]
    fn a_stream_that_was_over_before_is_answered_too() {
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        feed.ingest(&sine_batch(0, 1, 500, 1e3)).unwrap();
        feed.finish();
        let _after_end = link.answer_after_end().unwrap();
        let other = link.another();
        other.request(Viewport::latest(60));
        assert!(picture(&other).is_ended);
        assert!(!link.own.viewers.is_parked.load(Ordering::Acquire));
    }
}
