//! Waiting for a socket that is not one of ours.

use std::io;
use std::time::Duration;

use socket2::SockRef;

use crate::sys;

/// Waits until there is something to read from `socket` (a `&UdpSocket`, a `&TcpStream`, a `&TcpListener` with somebody to
/// accept), at most `timeout`. `false` after the timeout, and also after a signal.
///
/// The timeout is as exact as the system has it: Linux and FreeBSD take nanoseconds, others whole milliseconds (rounded up).
///
/// ```
/// use std::time::Duration;
/// let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
/// assert!(!grebe_datagram::wait_readable(&socket, Duration::from_micros(200))?);
/// socket.send_to(b"hello", socket.local_addr()?)?;
/// assert!(grebe_datagram::wait_readable(&socket, Duration::from_secs(10))?);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// What the system says where it cannot wait.
pub fn wait_readable<'s>(socket: impl Into<SockRef<'s>>, timeout: Duration) -> io::Result<bool> {
    sys::wait_readable(&socket.into(), timeout)
}
