//! How a session ends: with a verdict, or in silence.

/// How a transfer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every byte is there and the hash is right.
    Whole,
    /// Every byte arrived, but a hash differs: the file changed while it was read, or a disk is broken.
    HashDiffers,
    /// The receiver could not write.
    CannotWrite,
    /// The receiver does not take what was offered.
    Refused,
    /// One of the two was cancelled.
    Cancelled,
}

/// For how long a peer that was there may be silent.
pub(crate) const SILENCE_US_MAX: u64 = 60_000_000;
