//! After how much a recording in parts begins another.

use std::time::Duration;

/// After how much a part is followed by the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotate {
    /// Length of the signal, gaps included; at least a second.
    After(Duration),
    /// Bytes of samples, of all channels; a megabyte at least.
    Bytes(u64),
}
