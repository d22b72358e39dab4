//! Final figures of a copy.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::name::printable;
use crate::progress::{Done, Progress, add};

/// Result of a copy. Both ends return the same figures, except for `written_bytes` and `read_bytes`, which
/// are each end's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Files copied, new or changed.
    pub files_copied: u64,
    /// Bytes of these files.
    pub bytes_copied: u64,
    /// Files that existed already.
    pub files_same: u64,
    /// Bytes of these files.
    pub bytes_same: u64,
    /// Directories created.
    pub directories_made: u64,
    /// Symbolic and hard links created.
    pub links_made: u64,
    /// Names removed at the destination.
    pub deleted: u64,
    /// Bytes of files that were transferred or, within one host, read and written. Less than `bytes_copied`
    /// if parts existed, files had holes, or the file system shares content.
    pub data_bytes: u64,
    /// Bytes that this end wrote to the stream.
    pub written_bytes: u64,
    /// Bytes that this end read from the stream.
    pub read_bytes: u64,
    /// Skipped names: the first [`LEFT_OUT_KEPT`] of them.
    pub left_out: Vec<LeftOut>,
    /// Number of skipped names.
    pub left_out_count: u64,
    /// Present paths of the offered names, only at an end that [accepted an offer](crate::receive_offer).
    pub paths: Vec<PathBuf>,
    /// Waits of the sender.
    pub sender: Waits,
    /// Waits of the receiver.
    pub receiver: Waits,
}

/// Time that the busiest thread of an end waited, by cause. The largest one limited the copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// Waits for the stream, in ms.
    pub stream_ms: u64,
    /// Waits for disks of this end, in ms.
    pub disk_ms: u64,
}

/// A name that was skipped or copied incompletely.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Path below and including the source, with `/` between directories; any bytes.
    pub name: Vec<u8>,
    /// Reason as text.
    pub why: String,
}

impl LeftOut {
    /// Name for display, with control characters escaped.
    pub fn shown_name(&self) -> String {
        printable(&self.name)
    }
}

/// Maximum skipped names kept with their reasons, and at most 4 MiB of them; the others are only counted.
pub const LEFT_OUT_KEPT: usize = 10_000;

/// Skipped names, from all threads.
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
    fn the_memory_for_skipped_names_is_bounded() {
        let (list, progress) = (LeftOutList::default(), Progress::default());
        for _ in 0..200 {
            list.add(&progress, vec![b'x'; 64 << 10], "gone".to_owned());
        }
        let (kept, count) = list.take();
        assert_eq!((count, kept.len()), (200, 63));
    }
}
