//! What a copy was, in numbers, when it is over.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::name::printable;
use crate::progress::{Done, Progress, add};

/// What came of a copy. Both ends return the same figures, but for `written_bytes` and `read_bytes`, which are each end's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Files that were copied, new or changed.
    pub files_copied: u64,
    /// Their bytes.
    pub bytes_copied: u64,
    /// Files that were there already.
    pub files_same: u64,
    /// Their bytes.
    pub bytes_same: u64,
    /// Directories that were made.
    pub directories_made: u64,
    /// Symbolic and hard links that were made.
    pub links_made: u64,
    /// Names that were removed at the destination.
    pub deleted: u64,
    /// Bytes of files that travelled or, within one host, were read and written; less than was copied where parts were there, or holes,
    /// or the file system shares content.
    pub data_bytes: u64,
    /// Bytes that this end wrote to the stream.
    pub written_bytes: u64,
    /// Bytes that this end read from the stream.
    pub read_bytes: u64,
    /// What was left out: the first [`LEFT_OUT_KEPT`] of them.
    pub left_out: Vec<LeftOut>,
    /// How many were left out.
    pub left_out_count: u64,
    /// What was offered by name, where it is now; only at an end that [took an offer](crate::receive_offer).
    pub paths: Vec<PathBuf>,
    /// Where the time went, at each end.
    pub sender: Waits,
    /// Where the time went at the end that received.
    pub receiver: Waits,
}

/// For how long the busiest thread of an end waited, and for whom: the largest of them limited the copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// For the stream to take or bring bytes, in ms.
    pub stream_ms: u64,
    /// For disks of this end, in ms.
    pub disk_ms: u64,
}

/// A name that was not copied, or not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The name, from what was named on down, `/` between directories; any bytes.
    pub name: Vec<u8>,
    /// Why, in words.
    pub why: String,
}

impl LeftOut {
    /// The name for people: nothing in it does anything to a terminal.
    pub fn shown_name(&self) -> String {
        printable(&self.name)
    }
}

/// So many names that were left out are kept with their reasons, and at most 4 MiB of them; the others are counted.
pub const LEFT_OUT_KEPT: usize = 10_000;

/// What is left out, from all threads.
#[derive(Debug, Default)]
pub(crate) struct LeftOutList(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    list: Vec<LeftOut>,
    bytes: usize,
    count: u64,
}

const KEPT_BYTES: usize = 4 << 20;

impl LeftOutList {
    pub(crate) fn add(&self, progress: &Progress, name: Vec<u8>, why: String) {
        add(&progress.left_out, 1);
        progress.tell(&name, Done::LeftOut { why: &why }, 0);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.count += 1;
        let bytes = name.len() + why.len();
        if kept.list.len() < LEFT_OUT_KEPT && kept.bytes + bytes <= KEPT_BYTES {
            kept.bytes += bytes;
            kept.list.push(LeftOut { name, why });
        }
    }

    pub(crate) fn take(&self) -> (Vec<LeftOut>, u64) {
        let kept = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        (kept.list, kept.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_takes_so_much_memory_and_no_more() {
        let (list, progress) = (LeftOutList::default(), Progress::default());
        for _ in 0..200 {
            list.add(&progress, vec![b'x'; 64 << 10], "gone".to_owned());
        }
        let (kept, count) = list.take();
        assert_eq!((count, kept.len()), (200, 63));
    }
}
