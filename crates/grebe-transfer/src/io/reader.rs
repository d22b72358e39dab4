//! Reads content once, in order, a group at a time, and hashes it on the way.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::io::layout::{self, HASH_BYTES};
use crate::io::source::{ContentReader, Source};
use crate::{Error, RangeSet, Result};

/// What the reader hands over, in the order of the stream.
pub(super) enum FromFiles {
    /// A group, its hash at its end.
    Group(u64, Vec<u8>),
    /// All up to here was read, or needs no reading.
    UpTo(u64),
    /// It went wrong.
    Failed(Error),
}

/// The reader's thread, at most [`GROUPS`] groups ahead of who takes them.
pub(super) struct Reader {
    groups: Receiver<FromFiles>,
    empties: Sender<Vec<u8>>,
    skips: Sender<RangeSet>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    pub fn start(source: Arc<Source>) -> Result<Self> {
        let (full, groups) = sync_channel(GROUPS + 2);
        let (empties, free) = channel();
        let (skips, skip) = channel();
        for _ in 0..GROUPS {
            // The other end is in hand.
            let _ = empties.send(Vec::new());
        }
        let thread = Builder::new()
            .name("grebe-read".into())
            .spawn(move || {
                if let Err(error) = read(&source, &free, &skip, &full) {
                    let _ = full.send(FromFiles::Failed(error));
                }
            })
            .map_err(|source| Error::File {
                action: "start a thread to read",
                path: "files".into(),
                source,
            })?;
        Ok(Self { groups, empties, skips, thread: Some(thread) })
    }

    /// The next, if it is there.
    pub fn take(&self) -> Option<FromFiles> {
        self.groups.try_recv().ok()
    }

    /// The next, as soon as it is there, but not later than that.
    pub fn wait(&self, time: Duration) -> Option<FromFiles> {
        self.groups.recv_timeout(time).ok()
    }

    /// Gives a buffer back to be filled again.
    pub fn give_back(&self, group: Vec<u8>) {
        // The reader may be done: then nobody needs it.
        let _ = self.empties.send(group);
    }

    /// Groups that lie in these ranges need no reading.
    pub fn skip(&self, held: RangeSet) {
        let _ = self.skips.send(held);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Both channels closed, the thread ends at its next group.
        (self.groups, self.empties) = (sync_channel(0).1, channel().0);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// 8 MiB: what a disk may be late by at 6 Gbit/s without a gap is 10 ms.
const GROUPS: usize = 32;

fn read(
    source: &Arc<Source>,
    free: &Receiver<Vec<u8>>,
    skips: &Receiver<RangeSet>,
    full: &SyncSender<FromFiles>,
) -> Result<()> {
    let stream_bytes = source.stream_bytes();
    let mut content = ContentReader::new(source.clone());
    let mut held = RangeSet::default();
    for group in 0..layout::groups(stream_bytes) {
        if let Some(newest) = skips.try_iter().last() {
            held = newest;
        }
        let range = layout::group_range(group, stream_bytes);
        let handed_over = if held.contains(&range) {
            full.send(FromFiles::UpTo(range.end))
        } else {
            let Ok(mut bytes) = free.recv() else { return Ok(()) };
            let from = layout::content_range(group, stream_bytes);
            bytes.resize((range.end - range.start) as usize, 0);
            let (data, hash) = bytes.split_at_mut((from.end - from.start) as usize);
            content.read_exact_at(data, from.start)?;
            hash[..HASH_BYTES as usize].copy_from_slice(blake3::hash(data).as_bytes());
            full.send(FromFiles::Group(range.start, bytes))
        };
        if handed_over.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
