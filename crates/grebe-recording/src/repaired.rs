//! Result of a repair.

use std::path::PathBuf;

/// Result for a recording on one of its disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The file that opens it.
    pub path: PathBuf,
    /// Samples per channel that it has.
    pub len_samples: u64,
    /// Whether the repair closed it, or rewrote its collection; otherwise nothing needed repair.
    pub is_changed: bool,
    /// Bytes of all channels cut off after its samples: reserved room, and samples of the last moment, in
    /// which gaps are unknown.
    pub cut_bytes: u64,
}
