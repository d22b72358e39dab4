//! Waits for a socket on Unix.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use socket2::Socket;

/// Whether any socket becomes readable (or has an error) within `timeout`.
pub(crate) fn wait_readable<const N: usize>(sockets: [&Socket; N], timeout: Duration) -> io::Result<bool> {
    wait(sockets, libc::POLLIN, timeout)
}

/// Waits until the socket is writable, at most `timeout`.
pub(crate) fn wait_writable(socket: &Socket, timeout: Duration) -> io::Result<()> {
    wait([socket], libc::POLLOUT, timeout).map(drop)
}

fn wait<const N: usize>(sockets: [&Socket; N], events: i16, timeout: Duration) -> io::Result<bool> {
    let mut entries = sockets.map(|socket| libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 });
    match poll(&mut entries, timeout.min(TIMEOUT_MAX)) {
        0 => Ok(false),
        1.. => Ok(true),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
    }
}

/// `ppoll`, because it takes nanoseconds and pacing needs waits below a millisecond.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn poll(entries: &mut [libc::pollfd], timeout: Duration) -> libc::c_int {
    let timeout = libc::timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos() as _ };
    // SAFETY: `entries` are valid pollfds and `timeout` a valid timespec for the duration of the call; no
    // signal mask is given.
    unsafe { libc::ppoll(entries.as_mut_ptr(), entries.len() as _, &timeout, std::ptr::null()) }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn poll(entries: &mut [libc::pollfd], timeout: Duration) -> libc::c_int {
    // Rounded up: a wait of 0 ms would spin.
    let timeout_ms = timeout.as_micros().div_ceil(1_000) as libc::c_int;
    // SAFETY: `entries` are valid pollfds for the duration of the call.
    unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as _, timeout_ms) }
}

/// Fits every system's type; a longer wait repeats.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);
