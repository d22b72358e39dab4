//! What a repair has done.

use std::path::PathBuf;

/// What became of a recording, on one of its disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The file that opens it.
    pub path: PathBuf,
    /// Samples per channel that it has.
    pub len_samples: u64,
    /// Whether it was closed, or what ties its channels together was written anew; else there was nothing to do.
    pub is_changed: bool,
    /// What was cut off behind its samples, in bytes of all channels: room that was taken ahead of them, and samples of the last moment, in which
    /// nobody knows where gaps are.
    pub cut_bytes: u64,
}
