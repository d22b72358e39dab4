//! Reads content once, in order, a group at a time, and hashes it on the way.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::io::layout::{self, HASH_BYTES};
use crate::io::source::{ContentReader, Source};
use crate::io::{Patience, has_cores_to_spare};
use crate::{Error, RangeSet};

/// What the reader hands over, in the order of the stream.
pub(super) enum FromFiles {
    /// A group, its hash at its end.
    Group(u64, Vec<u8>),
    /// All up to here was read, or needs no reading.
    UpTo(u64),
    /// It went wrong.
    Failed(Error),
}

/// Reads where it is asked: what was read is sent while it lies in the cache of the core, and no thread waits for another.
/// A disk that makes the asker wait gets a thread of its own that reads ahead, and so does every disk where cores are idle.
pub(super) struct Reader {
    here: Option<Job>,
    ahead: Option<Ahead>,
    patience: Patience,
}

/// The reader's thread, at most [`GROUPS`] groups ahead of who takes them.
struct Ahead {
    groups: Receiver<FromFiles>,
    empties: Sender<Vec<u8>>,
    skips: Sender<RangeSet>,
    thread: Option<JoinHandle<()>>,
}

struct Job {
    source: Arc<Source>,
    content: ContentReader,
    next_group: u64,
    held: RangeSet,
    empties: Vec<Vec<u8>>,
}

impl Reader {
    pub fn start(source: Arc<Source>) -> Self {
        let content = ContentReader::new(source.clone());
        let job = Job { source, content, next_group: 0, held: RangeSet::default(), empties: Vec::new() };
        let mut reader = Self { here: Some(job), ahead: None, patience: Patience::new() };
        if has_cores_to_spare() {
            reader.go_ahead();
        }
        reader
    }

    /// The next; where this thread has to read it, only if that is `urgent`.
    pub fn take(&mut self, urgent: bool) -> Option<FromFiles> {
        if let Some(job) = &mut self.here {
            if !urgent {
                return None;
            }
            let start = Instant::now();
            let read = job.next();
            if self.patience.is_over(start.elapsed()) {
                self.go_ahead();
            }
            return read;
        }
        self.ahead.as_ref()?.groups.try_recv().ok()
    }

    /// The next, as soon as it is there, but not later than that.
    pub fn wait(&mut self, time: Duration) -> Option<FromFiles> {
        match &self.ahead {
            Some(ahead) => ahead.groups.recv_timeout(time).ok(),
            None => self.take(true),
        }
    }

    /// Gives a buffer back to be filled again.
    pub fn give_back(&mut self, group: Vec<u8>) {
        if let Some(job) = &mut self.here {
            job.empties.push(group);
        } else if let Some(ahead) = &self.ahead {
            // The thread may be done: then nobody needs it.
            let _ = ahead.empties.send(group);
        }
    }

    /// Groups that lie in these ranges need no reading.
    pub fn skip(&mut self, held: RangeSet) {
        if let Some(job) = &mut self.here {
            job.held = held;
        } else if let Some(ahead) = &self.ahead {
            let _ = ahead.skips.send(held);
        }
    }

    /// Where the system has no thread left, it goes on as it is.
    fn go_ahead(&mut self) {
        let (give, take) = sync_channel(1);
        if let Some(ahead) = Ahead::start(take)
            && let Some(job) = self.here.take()
        {
            let _ = give.send(job);
            self.ahead = Some(ahead);
        }
    }
}

impl Ahead {
    fn start(job: Receiver<Job>) -> Option<Self> {
        let (full, groups) = sync_channel(GROUPS + 2);
        let (empties, free) = channel();
        let (skips, skip) = channel();
        for _ in 0..GROUPS {
            // The other end is in hand.
            let _ = empties.send(Vec::new());
        }
        let thread = Builder::new().name("grebe-read".into()).spawn(move || {
            if let Ok(job) = job.recv() {
                job.run(&free, &skip, &full);
            }
        });
        Some(Self { groups, empties, skips, thread: Some(thread.ok()?) })
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Both channels closed, the thread ends at its next group.
        (self.groups, self.empties) = (sync_channel(0).1, channel().0);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Job {
    fn run(mut self, free: &Receiver<Vec<u8>>, skips: &Receiver<RangeSet>, full: &SyncSender<FromFiles>) {
        loop {
            if let Some(newest) = skips.try_iter().last() {
                self.held = newest;
            }
            if self.empties.is_empty() {
                let Ok(buffer) = free.recv() else { return };
                self.empties.push(buffer);
            }
            let Some(read) = self.next() else { return };
            if full.send(read).is_err() {
                return;
            }
        }
    }

    /// The next group; `None` at the end, and after a failure.
    fn next(&mut self) -> Option<FromFiles> {
        let stream_bytes = self.source.stream_bytes();
        if self.next_group >= layout::groups(stream_bytes) {
            return None;
        }
        let range = layout::group_range(self.next_group, stream_bytes);
        if self.held.contains(&range) {
            self.next_group += 1;
            return Some(FromFiles::UpTo(range.end));
        }
        let from = layout::content_range(self.next_group, stream_bytes);
        let mut bytes = self.empties.pop().unwrap_or_default();
        bytes.resize((range.end - range.start) as usize, 0);
        let (data, hash) = bytes.split_at_mut((from.end - from.start) as usize);
        if let Err(error) = self.content.read_exact_at(data, from.start) {
            self.next_group = u64::MAX;
            return Some(FromFiles::Failed(error));
        }
        hash[..HASH_BYTES as usize].copy_from_slice(blake3::hash(data).as_bytes());
        self.next_group += 1;
        Some(FromFiles::Group(range.start, bytes))
    }
}

/// 8 MiB: what a disk may be late by at 6 Gbit/s without a gap is 10 ms.
const GROUPS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn source(bytes: usize) -> (tempfile::TempDir, Arc<Source>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sample");
        std::fs::write(&path, (0..bytes).map(|at| (at / 1_000) as u8).collect::<Vec<_>>()).unwrap();
        (directory, Arc::new(Source::open(&[path]).unwrap()))
    }

    /// All that it hands over; a thread of its own takes over after so many groups.
    fn read_all(source: &Arc<Source>, ahead_after: usize, held: &RangeSet) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut reader = Reader::start(source.clone());
        reader.skip(held.clone());
        let mut groups = Vec::new();
        while groups.len() < layout::groups(source.stream_bytes()) as usize {
            if groups.len() == ahead_after {
                reader.go_ahead();
            }
            match reader.wait(Duration::from_secs(60)) {
                Some(FromFiles::Group(start, bytes)) => {
                    groups.push((start, Some(bytes.clone())));
                    reader.give_back(bytes);
                }
                Some(FromFiles::UpTo(end)) => groups.push((end, None)),
                Some(FromFiles::Failed(error)) => panic!("{error}"),
                None => panic!("it ended early"),
            }
        }
        groups
    }

    #[test]
    fn a_thread_goes_on_where_the_asker_read() {
        let (_directory, source) = source(2_000_000);
        let here = read_all(&source, usize::MAX, &RangeSet::default());
        assert_eq!(here.len(), 8);
        for after in [0, 1, 5] {
            assert!(read_all(&source, after, &RangeSet::default()) == here, "after {after} groups");
        }
    }

    #[test]
    fn what_the_receiver_has_is_not_read() {
        let (_directory, source) = source(2_000_000);
        let mut held = RangeSet::default();
        held.insert(0..layout::group_range(2, source.stream_bytes()).end);
        // A thread may have read a little before it was told.
        let groups = read_all(&source, 3, &held);
        assert!(groups.iter().skip(3).all(|(_, bytes)| bytes.is_some()));
        if !has_cores_to_spare() {
            assert!(groups.iter().take(3).all(|(_, bytes)| bytes.is_none()));
        }
    }

    #[test]
    fn a_file_that_became_shorter_ends_it() {
        let (directory, source) = source(2_000_000);
        std::fs::write(directory.path().join("sample"), b"short").unwrap();
        let mut reader = Reader::start(source);
        let read = reader.wait(Duration::from_secs(60));
        assert!(matches!(read, Some(FromFiles::Failed(Error::File { .. }))));
        assert!(reader.wait(Duration::from_secs(60)).is_none());
    }
}
