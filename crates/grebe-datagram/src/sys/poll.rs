//! Waiting for a socket on Unix.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use socket2::Socket;

/// Whether there is something to read (or an error to fetch) within `timeout`.
pub(crate) fn wait_readable(socket: &Socket, timeout: Duration) -> io::Result<bool> {
    wait(socket, libc::POLLIN, timeout)
}

/// Waits until something may be sent, at most `timeout`.
pub(crate) fn wait_writable(socket: &Socket, timeout: Duration) -> io::Result<()> {
    wait(socket, libc::POLLOUT, timeout).map(drop)
}

fn wait(socket: &Socket, events: i16, timeout: Duration) -> io::Result<bool> {
    let mut entry = libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 };
    // Rounded up: a wait of 0 ms would spin.
    let timeout_ms = timeout.as_micros().div_ceil(1_000).min(60_000) as libc::c_int;
    // SAFETY: `entry` is one valid pollfd for the duration of the call.
    match unsafe { libc::poll(&mut entry, 1, timeout_ms) } {
        0 => Ok(false),
        1.. => Ok(true),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
    }
}
