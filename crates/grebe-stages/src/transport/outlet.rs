//! A connection to one of many readers, independent of the others.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Sends without waiting, and keeps the rest up to a limit.
#[derive(Debug)]
pub(crate) struct Outlet {
    stream: TcpStream,
    backlog: VecDeque<u8>,
    is_gone: bool,
}

impl Outlet {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, backlog: VecDeque::new(), is_gone: false })
    }

    /// Sends bytes, and keeps those that the system does not accept now. `false`: they would exceed
    /// `backlog_bytes_max`, and none was sent.
    pub(crate) fn send(&mut self, bytes: &[u8], backlog_bytes_max: usize) -> bool {
        self.flush();
        let sent = if self.backlog.is_empty() { self.write(bytes) } else { 0 };
        let rest = &bytes[sent..];
        if sent == 0 && !rest.is_empty() && self.backlog.len() + rest.len() > backlog_bytes_max {
            return false;
        }
        // The rest of a partly sent message is kept, so that it is never cut.
        self.backlog.extend(rest);
        true
    }

    /// Sends kept bytes, as many as the system accepts.
    pub(crate) fn flush(&mut self) {
        while !self.backlog.is_empty() {
            let (front, _) = self.backlog.as_slices();
            let length = front.len();
            match write_to(&mut self.stream, front, &mut self.is_gone) {
                0 => return,
                sent => drop(self.backlog.drain(..sent.min(length))),
            }
        }
    }

    /// Reads from the peer. `None`: nothing now.
    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> Option<usize> {
        match self.stream.read(bytes) {
            Ok(0) => self.is_gone = true,
            Ok(read) => return Some(read),
            Err(error) => self.is_gone |= !is_not_now(&error),
        }
        None
    }

    /// Whether the peer has gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// For waiting until there is room.
    #[cfg(unix)]
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        while sent < bytes.len() {
            match write_to(&mut self.stream, &bytes[sent..], &mut self.is_gone) {
                0 => break,
                more => sent += more,
            }
        }
        sent
    }
}

/// Returns the bytes that the system accepted.
fn write_to(stream: &mut TcpStream, bytes: &[u8], is_gone: &mut bool) -> usize {
    stream.write(bytes).unwrap_or_else(|error| {
        *is_gone |= !is_not_now(&error);
        0
    })
}

fn is_not_now(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Sends the kept bytes, while readers accept a minimum per interval; for up to ten seconds once the graph
/// `is_stopping`. Returns the bytes left.
///
/// Then shuts each connection down and lets the reader close first, because closing with unread input discards sent
/// bytes.
pub(crate) fn drain(outlets: &mut [&mut Outlet], is_stopping: impl Fn() -> bool) -> usize {
    let waiting = |outlets: &[&mut Outlet]| {
        let here = outlets.iter().filter(|outlet| !outlet.is_gone);
        here.map(|outlet| outlet.backlog.len()).sum::<usize>()
    };
    let mut left = waiting(outlets);
    let mut window = (Instant::now(), left);
    while left > 0 {
        std::thread::sleep(Duration::from_millis(1));
        outlets.iter_mut().for_each(|outlet| outlet.flush());
        left = waiting(outlets);
        if window.0.elapsed() >= PATIENCE {
            if window.1 - left.min(window.1) < TAKEN_BYTES_MIN || is_stopping() {
                break;
            }
            window = (Instant::now(), left);
        }
    }
    // A closed connection needs no shutdown.
    outlets.iter().for_each(|outlet| drop(outlet.stream.shutdown(Shutdown::Write)));
    let told = Instant::now();
    while outlets.iter().any(|outlet| !outlet.is_gone) && told.elapsed() < FAREWELL {
        std::thread::sleep(Duration::from_millis(1));
        // One read each, so that a peer that sends without end cannot delay the others.
        outlets.iter_mut().for_each(|outlet| _ = outlet.read(&mut [0; 4096]));
    }
    left
}

/// Interval for judging the readers at the end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Minimum that readers must accept in that time: 64 KiB/s.
const TAKEN_BYTES_MIN: usize = 640 << 10;
/// Time for readers to close.
const FAREWELL: Duration = Duration::from_secs(2);
