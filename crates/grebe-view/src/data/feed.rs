//! The data side of a scope: it takes batches, and makes at most sixty pictures per second.

use grebe_flow::{Context, Inputs, Outcome, Outputs, Stage, StageError, monotonic_ns};
use grebe_frame::Batch;
use grebe_scope::Error as ScopeError;

use crate::data::core::ScopeCore;
use crate::data::link::{DataSide, ScopeLink};
use crate::data::recording::Recording;

/// A scope that any thread can feed. [`ScopeStage`] is the same as a stage of a graph.
#[derive(Debug)]
pub struct ScopeFeed {
    /// `None` once the link owns it.
    core: Option<ScopeCore>,
    side: DataSide,
}

impl ScopeFeed {
    /// A scope whose history takes at most about `budget_bytes`, and the link for its front end.
    pub fn new(budget_bytes: usize) -> (ScopeFeed, ScopeLink) {
        let side = DataSide::default();
        let link = side.link();
        (ScopeFeed { core: Some(ScopeCore::new(budget_bytes)), side }, link)
    }

    /// Takes a batch. Makes a picture if a front end waits for one and its last is a sixtieth of a second old.
    ///
    /// # Errors
    /// [`ScopeError::Budget`] and [`ScopeError::OutOfMemory`], when a stream begins.
    pub fn ingest(&mut self, batch: &Batch) -> Result<(), ScopeError> {
        let now_ns = monotonic_ns();
        if let Some(core) = &mut self.core {
            core.ingest(batch, now_ns)?;
            self.side.note_news();
            self.side.answer_one(core, PICTURE_INTERVAL_NS, now_ns);
        }
        Ok(())
    }

    /// Makes a picture for each front end that waits for one. Call it while no data arrives.
    pub fn idle(&mut self) {
        if let Some(core) = &mut self.core {
            self.side.answer_all(core, PICTURE_INTERVAL_NS, monotonic_ns());
        }
    }

    /// Ends the stream: hands its history to the links, so that the front ends can still show it.
    pub fn finish(&mut self) {
        if let Some(mut core) = self.core.take() {
            core.end();
            self.side.park(core);
        }
    }
}

impl Drop for ScopeFeed {
    /// As [`finish`](ScopeFeed::finish), if the caller did not.
    fn drop(&mut self) {
        self.finish();
    }
}

/// A sink that shows its stream.
///
/// It never waits for its front end, so it keeps up with any stream that one core can reduce to columns. Give it a
/// `drop_oldest` queue, so that a slow scope does not delay the stream. After the end of the stream, the front end keeps
/// the history.
///
/// ```
/// use grebe_flow::{Graph, QueueOptions};
/// use grebe_view::ScopeStage;
/// # use grebe_flow::{Context, Inputs, Outcome, Outputs, Stage, StageError};
/// # struct Nothing;
/// # impl Stage for Nothing {
/// #     fn process(&mut self, _: &mut Inputs, _: &mut Outputs, _: &mut Context) -> Result<Outcome, StageError> {
/// #         Ok(Outcome::End)
/// #     }
/// # }
/// # let source = Nothing;
///
/// let (scope, link) = ScopeStage::new(256 << 20);
/// let mut graph = Graph::new();
/// let source = graph.add("source", source);
/// let scope = graph.add("scope", scope);
/// graph.connect(source, scope, QueueOptions::drop_oldest(64));
/// let running = graph.start()?;
/// // run_windows(vec![(link, options)]) goes here, on the main thread.
/// # drop(link);
/// running.stop()?;
/// # Ok::<(), grebe_flow::Error>(())
/// ```
#[derive(Debug)]
pub struct ScopeStage {
    feed: ScopeFeed,
}

impl ScopeStage {
    /// A scope whose history takes at most about `budget_bytes`, and the link for its front end.
    pub fn new(budget_bytes: usize) -> (ScopeStage, ScopeLink) {
        let (feed, link) = ScopeFeed::new(budget_bytes);
        (ScopeStage { feed }, link)
    }
}

impl Stage for ScopeStage {
    fn process(
        &mut self,
        input: &mut Inputs,
        _: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        self.feed.side.wake_with(|| ctx.waker());
        for _ in 0..BATCHES_PER_STEP {
            let Some(batch) = input.next() else {
                self.feed.idle();
                return Ok(Outcome::WantsInput);
            };
            self.feed.ingest(&batch)?;
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> Result<(), StageError> {
        self.feed.finish();
        Ok(())
    }
}

/// A scope of a recording of any size, as the only stage of a graph: it reads the samples that pictures need.
///
/// Its [`ScopeLink`] works as for a stream, but the whole recording is there from the start.
#[derive(Debug)]
pub struct RecordingScope {
    core: ScopeCore,
    side: DataSide,
    looked_ns: u64,
    look_interval_ns: u64,
}

impl RecordingScope {
    /// The scope of a recording, and the link for its front end.
    ///
    /// # Errors
    /// [`ScopeError::OutOfMemory`].
    pub fn new(recording: Box<dyn Recording>) -> Result<(RecordingScope, ScopeLink), ScopeError> {
        let (core, side) = (ScopeCore::of_recording(recording)?, DataSide::default());
        let link = side.link();
        Ok((RecordingScope { core, side, looked_ns: 0, look_interval_ns: 0 }, link))
    }
}

impl Stage for RecordingScope {
    fn process(&mut self, _: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> Result<Outcome, StageError> {
        self.side.wake_with(|| ctx.waker());
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(self.looked_ns) >= self.look_interval_ns {
            self.looked_ns = now_ns;
            self.look_interval_ns = LOOK_INTERVAL_NS;
            if self.core.refresh() {
                self.side.renew();
                // A picture lacks samples, and a viewer waits for them.
                self.look_interval_ns = SOON_NS;
            }
        }
        self.side.answer_all(&mut self.core, 0, now_ns);
        Ok(Outcome::WantsInput)
    }
}

const BATCHES_PER_STEP: usize = 64;
/// Interval of checks whether a recording grew or has better summaries.
const LOOK_INTERVAL_NS: u64 = 250_000_000;
/// A little under 0.1 s, after which the runtime calls the stage again.
const SOON_NS: u64 = 90_000_000;
/// A little under a sixtieth of a second, so that a display of 60 Hz is never one interval late.
const PICTURE_INTERVAL_NS: u64 = 15_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::viewport::{Viewport, Window};
    use crate::testing::sine_batch;

    fn viewport() -> Viewport {
        Viewport { span: Some(0.1), ..Viewport::latest(10) }
    }

    /// Waits for the minimum interval between two pictures.
    fn pause() {
        std::thread::sleep(std::time::Duration::from_millis(16));
    }

    #[test]
    fn a_picture_comes_when_it_was_asked_for_and_once() {
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        feed.ingest(&sine_batch(0, 1, 100, 1e3)).unwrap();
        assert!(link.take().is_none(), "nobody asked");
        link.request(viewport());
        feed.idle();
        assert_eq!(link.take().unwrap().next_index, 100);
        pause();
        feed.idle();
        assert!(link.take().is_none(), "nothing is new");
        feed.ingest(&sine_batch(100, 1, 100, 1e3)).unwrap();
        assert_eq!(link.take().unwrap().next_index, 200);
        assert_eq!(link.pictures_taken(), 2);
    }

    #[test]
    fn a_held_picture_costs_nothing_while_the_stream_goes_on() {
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        feed.ingest(&sine_batch(0, 1, 100, 1e3)).unwrap();
        link.request(Viewport { window: Window::Ending { at: 100.0 }, ..viewport() });
        feed.idle();
        link.take().unwrap();
        for block in 1..5 {
            pause();
            feed.ingest(&sine_batch(block * 100, 1, 100, 1e3)).unwrap();
            assert!(link.take().is_none());
        }
        link.request(viewport());
        pause();
        feed.idle();
        assert_eq!(link.take().unwrap().next_index, 500, "the stream was drained meanwhile");
    }

    #[test]
    fn the_face_keeps_the_history_of_a_stream_that_is_over() {
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        link.request(viewport());
        feed.ingest(&sine_batch(0, 1, 500, 1e3)).unwrap();
        drop(feed);
        let last = link.take().unwrap();
        assert!(last.is_ended && last.next_index == 500);
        link.request(Viewport { window: Window::Ending { at: 200.0 }, ..viewport() });
        assert_eq!(link.take().unwrap().right_index(), 200.0);
    }

    #[test]
    fn a_new_picture_wakes_the_face_and_closing_does_too() {
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        let (wake, woken) = std::sync::mpsc::channel();
        // The feed's end wakes once more, when the receiver is gone.
        link.on_picture(move || {
            let _ = wake.send(());
        });
        link.request(viewport());
        feed.ingest(&sine_batch(0, 1, 100, 1e3)).unwrap();
        assert_eq!(woken.try_iter().count(), 1);
        link.close();
        assert!(link.is_closed());
        assert_eq!(woken.try_iter().count(), 1);
    }
}
