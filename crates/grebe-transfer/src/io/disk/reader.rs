//! Reads content once, in order, one group at a time, and hashes it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::groups::{self, HASH_BYTES};
use super::source::{Content, ContentReader};
use super::{Patience, has_cores_to_spare};
use crate::proto::ranges::RangeSet;

/// One step of reading, in the order of the stream.
pub(super) enum Read {
    /// A group, its hash at its end.
    Group(u64, Vec<u8>),
    /// All up to here was read, or needs no reading.
    UpTo(u64),
}

/// Reads on the caller's thread: what was read is sent while it lies in the core's cache, and no thread waits for another. A
/// disk that makes the caller wait gets a thread of its own that reads ahead, and so does every disk where cores are idle.
pub(super) struct Reader {
    here: Option<GroupReader>,
    ahead: Option<ReadAhead>,
    patience: Patience,
}

/// A thread that reads at most [`GROUPS_AHEAD`] groups ahead of the sender.
struct ReadAhead {
    full: Receiver<Read>,
    empties: Sender<Vec<u8>>,
    skips: Sender<RangeSet>,
    thread: Option<JoinHandle<()>>,
}

/// Reads group after group.
struct GroupReader {
    stream_bytes: u64,
    content: ContentReader,
    next_group: u64,
    held: RangeSet,
    empties: Vec<Vec<u8>>,
}

impl Reader {
    pub(super) fn start(content: Arc<Content>) -> Self {
        let group_reader = GroupReader {
            stream_bytes: content.source().stream_bytes(),
            content: ContentReader::new(content),
            next_group: 0,
            held: RangeSet::default(),
            empties: Vec::new(),
        };
        let mut reader = Self { here: Some(group_reader), ahead: None, patience: Patience::new() };
        if has_cores_to_spare() {
            reader.go_ahead();
        }
        reader
    }

    /// The next group; where this thread has to read it, only if that is `urgent`.
    pub(super) fn take(&mut self, urgent: bool) -> Option<Read> {
        if let Some(group_reader) = &mut self.here {
            if !urgent {
                return None;
            }
            let start = Instant::now();
            let read = group_reader.next();
            if self.patience.is_over(start.elapsed()) {
                self.go_ahead();
            }
            return read;
        }
        self.ahead.as_ref()?.full.try_recv().ok()
    }

    /// The next group, waited for no longer than `time`.
    pub(super) fn wait(&mut self, time: Duration) -> Option<Read> {
        match &self.ahead {
            Some(ahead) => ahead.full.recv_timeout(time).ok(),
            None => self.take(true),
        }
    }

    /// Gives a buffer back to be filled again.
    pub(super) fn give_back(&mut self, group: Vec<u8>) {
        if let Some(group_reader) = &mut self.here {
            group_reader.empties.push(group);
        } else if let Some(ahead) = &self.ahead {
            // The thread may have ended: then nobody needs the buffer.
            let _ = ahead.empties.send(group);
        }
    }

    /// Groups that lie in these ranges need no reading.
    pub(super) fn skip(&mut self, held: RangeSet) {
        if let Some(group_reader) = &mut self.here {
            group_reader.held = held;
        } else if let Some(ahead) = &self.ahead {
            let _ = ahead.skips.send(held);
        }
    }

    /// Starts to read ahead on a thread; where the system has no thread left, this thread goes on reading.
    fn go_ahead(&mut self) {
        let (give, take) = sync_channel(1);
        if let Some(ahead) = ReadAhead::start(take)
            && let Some(group_reader) = self.here.take()
        {
            let _ = give.send(group_reader);
            self.ahead = Some(ahead);
        }
    }
}

impl ReadAhead {
    fn start(group_reader: Receiver<GroupReader>) -> Option<Self> {
        let (full, taken) = sync_channel(GROUPS_AHEAD + 2);
        let (empties, free) = channel();
        let (skips, skip) = channel();
        for _ in 0..GROUPS_AHEAD {
            // This cannot fail: `free` still exists.
            let _ = empties.send(Vec::new());
        }
        let thread = Builder::new().name("grebe-read".into()).spawn(move || {
            if let Ok(group_reader) = group_reader.recv() {
                group_reader.run(&free, &skip, &full);
            }
        });
        Some(Self { full: taken, empties, skips, thread: Some(thread.ok()?) })
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        // Both channels closed, the thread ends at its next group.
        (self.full, self.empties) = (sync_channel(0).1, channel().0);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl GroupReader {
    fn run(mut self, free: &Receiver<Vec<u8>>, skips: &Receiver<RangeSet>, full: &SyncSender<Read>) {
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

    /// The next group; `None` at the end.
    fn next(&mut self) -> Option<Read> {
        let stream_bytes = self.stream_bytes;
        if self.next_group >= groups::count(stream_bytes) {
            return None;
        }
        let range = groups::group_range(self.next_group, stream_bytes);
        if self.held.contains(&range) {
            self.next_group += 1;
            return Some(Read::UpTo(range.end));
        }
        let from = groups::content_range(self.next_group, stream_bytes);
        let mut bytes = self.empties.pop().unwrap_or_default();
        bytes.resize((range.end - range.start) as usize, 0);
        let (data, hash) = bytes.split_at_mut((from.end - from.start) as usize);
        self.content.read_at(data, from.start);
        hash[..HASH_BYTES as usize].copy_from_slice(blake3::hash(data).as_bytes());
        self.next_group += 1;
        Some(Read::Group(range.start, bytes))
    }
}

/// 8 MiB: at 6 Gbit/s a disk may be late by 10 ms without a gap in what is sent.
const GROUPS_AHEAD: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::disk::source::Source;

    fn source(bytes: usize) -> (tempfile::TempDir, Arc<Source>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sample");
        std::fs::write(&path, (0..bytes).map(|at| (at / 1_000) as u8).collect::<Vec<_>>()).unwrap();
        (directory, Arc::new(Source::open(&[path]).unwrap()))
    }

    /// Everything that it hands over; it begins to read ahead after so many groups.
    fn read_all(source: &Arc<Source>, ahead_after: usize, held: &RangeSet) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut reader = Reader::start(Arc::new(Content::new(source.clone())));
        reader.skip(held.clone());
        let mut groups = Vec::new();
        while groups.len() < groups::count(source.stream_bytes()) as usize {
            if groups.len() == ahead_after {
                reader.go_ahead();
            }
            match reader.wait(Duration::from_secs(60)) {
                Some(Read::Group(start, bytes)) => {
                    groups.push((start, Some(bytes.clone())));
                    reader.give_back(bytes);
                }
                Some(Read::UpTo(end)) => groups.push((end, None)),
                None => panic!("it ended early"),
            }
        }
        groups
    }

    #[test]
    fn a_thread_goes_on_where_the_caller_stopped_reading() {
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
        held.insert(0..groups::group_range(2, source.stream_bytes()).end);
        // A thread may have read a little before it was told.
        let groups = read_all(&source, 3, &held);
        assert!(groups.iter().skip(3).all(|(_, bytes)| bytes.is_some()));
        if !has_cores_to_spare() {
            assert!(groups.iter().take(3).all(|(_, bytes)| bytes.is_none()));
        }
    }
}
