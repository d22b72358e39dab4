//! Result of a repair.

use std::path::PathBuf;

/// Result for a recording on one of its disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The file that opens it.
    pub path: PathBuf,
    /// Samples per channel that it has.
    pub len_samples: u64,
    /// Whether it was closed, or what ties its channels together was written anew; else there was nothing to do.
    pub is_changed: bool,
    /// Bytes of all channels cut off after its samples: reserved room, and samples of the last moment, in
    /// which gaps are unknown.
    pub cut_bytes: u64,
}
