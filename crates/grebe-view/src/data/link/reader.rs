//! Reads a scope's history in the background, a few samples at a time, so that it delays the data thread only by a
//! short copy.

use std::ops::Range;
use std::thread::park_timeout;
use std::time::Duration;

use super::ScopeLink;
use crate::data::extract::Extract;
use crate::data::picture::Picture;
use crate::data::viewport::Viewport;

/// Requests samples and waits for them. Belongs to the thread that made it.
#[derive(Debug)]
pub struct HistoryReader {
    link: ScopeLink,
}

impl ScopeLink {
    /// A reader of the history, for the calling thread.
    pub fn reader(&self) -> HistoryReader {
        let (link, reader) = (self.another(), std::thread::current());
        link.on_picture(move || reader.unpark());
        HistoryReader { link }
    }
}

impl HistoryReader {
    /// A picture with the present state of the stream; `None` if `goes_on` returned false first.
    pub fn picture(&self, goes_on: impl Fn() -> bool) -> Option<Picture> {
        self.link.begin_viewing();
        self.link.request(Viewport::latest(1));
        self.wait(goes_on, ScopeLink::poll)
    }

    /// The samples of a range that the history still holds, at most 2^24 per channel; `None` as above.
    pub fn read(&self, range: Range<u64>, goes_on: impl Fn() -> bool) -> Option<Extract> {
        self.link.request_extract(range);
        self.wait(goes_on, ScopeLink::take_extract)
    }

    fn wait<T>(&self, goes_on: impl Fn() -> bool, take: impl Fn(&ScopeLink) -> Option<T>) -> Option<T> {
        loop {
            let taken = take(&self.link);
            if taken.is_some() || !goes_on() {
                return taken;
            }
            park_timeout(LOOK_INTERVAL);
            // The data side may have found the lock taken.
            self.link.ask();
        }
    }
}

const LOOK_INTERVAL: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use crate::data::feed::ScopeFeed;
    use crate::testing::sine_batch;

    #[test]
    fn what_is_held_is_read_while_the_stream_goes_on_and_when_it_is_over() {
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        for block in 0..4 {
            feed.ingest(&sine_batch(block * 500, 1, 500, 1e3)).unwrap();
        }
        let (done, is_done) = std::sync::mpsc::channel();
        let read = std::thread::spawn({
            let link = link.clone();
            move || {
                let reader = link.reader();
                let picture = reader.picture(|| true).unwrap();
                let extract = reader.read(1000..1600, || true).unwrap();
                done.send(()).unwrap();
                (picture, extract)
            }
        });
        // The data side answers between two batches.
        while is_done.try_recv().is_err() {
            feed.idle();
            std::thread::yield_now();
        }
        let (picture, extract) = read.join().unwrap();
        assert_eq!((picture.next_index, extract.len_samples()), (2000, 600));
        assert_eq!((extract.held.clone(), extract.streams), (0..2000, 1));
        feed.finish();
        let reader = link.reader();
        assert_eq!(reader.read(1990..2100, || true).unwrap().len_samples(), 10);
        assert!(reader.picture(|| true).unwrap().is_ended);
    }

    #[test]
    fn nobody_waits_for_a_scope_that_answers_no_more() {
        let (_feed, link) = ScopeFeed::new(1 << 20);
        assert!(link.reader().read(0..10, || false).is_none());
    }
}
