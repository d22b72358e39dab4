//! Samples of a file that follow each other.

/// Samples of a file that follow each other there and where they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Position of the first one for the reader.
    pub(crate) at: u64,
    /// The first one in the file.
    pub(crate) from: u64,
    pub(crate) length: u64,
}
