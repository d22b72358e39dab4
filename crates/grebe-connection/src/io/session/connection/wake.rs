//! Wakes a thread that waits for a socket. The thread also waits for one socket of a local pair.

use std::io;
#[cfg(unix)]
use std::os::unix::net::UnixDatagram as Socket;

#[cfg(not(unix))]
use std::net::UdpSocket as Socket;

/// Both ends of the pair.
#[derive(Debug)]
pub(super) struct Wake {
    calls: Socket,
    hears: Socket,
}

impl Wake {
    pub(super) fn new() -> io::Result<Self> {
        let (calls, hears) = pair()?;
        calls.set_nonblocking(true)?;
        hears.set_nonblocking(true)?;
        Ok(Self { calls, hears })
    }

    /// Wakes the thread. A full socket buffer is fine, because a wake-up is already pending.
    pub(super) fn call(&self) {
        let _ = self.calls.send(&[0]);
    }

    /// Discards pending wake-ups.
    pub(super) fn forget(&self) {
        let mut call = [0; 1];
        while self.hears.recv(&mut call).is_ok() {}
    }

    /// Socket for the thread to wait for.
    pub(super) fn socket(&self) -> &Socket {
        &self.hears
    }
}

#[cfg(unix)]
fn pair() -> io::Result<(Socket, Socket)> {
    Socket::pair()
}

/// Connects the two sockets, so that each accepts datagrams from the other only.
#[cfg(not(unix))]
fn pair() -> io::Result<(Socket, Socket)> {
    let (one, other) = (Socket::bind("127.0.0.1:0")?, Socket::bind("127.0.0.1:0")?);
    one.connect(other.local_addr()?)?;
    other.connect(one.local_addr()?)?;
    Ok((one, other))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grebe_datagram::wait_readable;

    use super::*;

    #[test]
    fn a_call_is_heard_once_however_often_it_was_made() {
        let wake = Wake::new().unwrap();
        let hears = |timeout| wait_readable(wake.socket(), timeout).unwrap();
        assert!(!hears(Duration::from_millis(1)));
        for _ in 0..10_000 {
            wake.call();
        }
        assert!(hears(Duration::from_secs(10)));
        wake.forget();
        assert!(!hears(Duration::from_millis(1)));
    }
}
