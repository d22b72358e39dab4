//! The two buffers of a socket.

/// Buffer of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Data waiting to be read.
    Receive,
    /// Data waiting to leave.
    Send,
}
