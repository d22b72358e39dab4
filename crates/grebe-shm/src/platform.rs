//! The parts that differ between systems. All others exist once.
//!
//! | part | Linux | macOS | Windows |
//! |---|---|---|---|
//! | [`Memory`] | memfd, sealed | POSIX object, unlinked; its length is set once | section without a name |
//! | handed over | descriptor in a message | descriptor in a message | handle duplicated into the reader |
//! | read-only | seal | second descriptor, opened read-only | access of the duplicate |
//! | name of a stream | socket in a directory | socket in a directory | file in a directory, with a pipe's name |
//! | [`Connection`] | `SOCK_SEQPACKET` | `SOCK_STREAM`, each packet after its length | pipe of messages |
//! | wake-up, sign of life | the connection | the connection | the connection |
//! | peer's user | `SO_PEERCRED` | `getpeereid` | the pipe's access list and owner |
//! | [`Listener`] waits by | epoll | kqueue | completion port |
//!
//! Each system has the same types:
//!
//! - `Memory`: `make`, `map`, `unmap`, `seal` (fixes the length; read-only for others if asked), `is_fixed_at`.
//! - `Connection`: `connect`, `send`, `receive`, `wait`, `hang_up` (says the end, still listens) and
//!   `is_from_own_user`. Sending and receiving never wait.
//! - `Listener`: `bind`, `wait` for [`Event`]s, `close` (frees the name, still watches connections). `Closer` ends
//!   the wait from another thread.
//! - `names`: the user's own directory, and the producers in one.

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod unix;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(crate) use unix::{Closer, Connection, Listener, Memory, Peer, names};

#[cfg(windows)]
#[allow(unsafe_code, reason = "system calls")]
mod windows;
#[cfg(windows)]
pub(crate) use windows::{Closer, Connection, Listener, Memory, Peer, names};

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
#[allow(unsafe_code, reason = "the same functions")]
mod absent;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
pub(crate) use absent::{Closer, Connection, Listener, Memory, Peer, names};

/// Arrival of a packet, without waiting.
pub(crate) enum Received {
    /// Length of the packet, and the memory that came with it.
    Packet(usize, Vec<Memory>),
    /// Longer than any message.
    TooLong,
    /// Nothing available now.
    Nothing,
    /// The other side hung up.
    HungUp,
}

/// Event of a [`Listener`].
pub(crate) enum Event {
    /// New connection, watched under this number.
    Connected(u64, Connection, Peer),
    /// Packet or hang-up of a connection.
    Readable(u64),
    /// The publisher is gone.
    Closing,
}
