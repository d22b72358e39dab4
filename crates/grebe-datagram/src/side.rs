//! The two buffers of a socket.

/// Which buffer of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What waits to be read.
    Receive,
    /// What waits to leave.
    Send,
}
