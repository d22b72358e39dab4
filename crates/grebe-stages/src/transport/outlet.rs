//! A connection to one of many readers, which must hold up none of the others.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Sends what the system takes at once, and keeps the rest for later, up to a bound.
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

    /// Sends these bytes, or keeps of them what the system does not take now; `false`: more than `backlog_bytes_max` would be kept,
    /// and none of them was taken.
    pub(crate) fn send(&mut self, bytes: &[u8], backlog_bytes_max: usize) -> bool {
        self.flush();
        let sent = if self.backlog.is_empty() { self.write(bytes) } else { 0 };
        let rest = &bytes[sent..];
        if sent == 0 && !rest.is_empty() && self.backlog.len() + rest.len() > backlog_bytes_max {
            return false;
        }
        // Of what was begun the rest is kept, so that nothing is cut.
        self.backlog.extend(rest);
        true
    }

    /// Sends of what was kept as much as the system takes.
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

    /// What the other end says; `None`: nothing now.
    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> Option<usize> {
        match self.stream.read(bytes) {
            Ok(0) => self.is_gone = true,
            Ok(read) => return Some(read),
            Err(error) => self.is_gone |= !is_not_now(&error),
        }
        None
    }

    /// Whether nobody is at the other end any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// To wait for room.
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

/// How many bytes the system took.
fn write_to(stream: &mut TcpStream, bytes: &[u8], is_gone: &mut bool) -> usize {
    stream.write(bytes).unwrap_or_else(|error| {
        *is_gone |= !is_not_now(&error);
        0
    })
}

fn is_not_now(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Gives readers what was kept for them, as long as they take a fair amount of it each second, and for ten seconds at most once the
/// graph `is_stopping`; what is left then, in bytes. Then each is told that nothing follows, and has a moment to go: a connection
/// that is closed while it brings something loses what was sent.
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
    // Who has gone meanwhile is told nothing.
    outlets.iter().for_each(|outlet| drop(outlet.stream.shutdown(Shutdown::Write)));
    let told = Instant::now();
    while outlets.iter().any(|outlet| !outlet.is_gone) && told.elapsed() < FAREWELL {
        std::thread::sleep(Duration::from_millis(1));
        // Once each: one that sends without end has its turn, too.
        outlets.iter_mut().for_each(|outlet| _ = outlet.read(&mut [0; 4096]));
    }
    left
}

/// How often it is looked whether readers take enough, at the end.
const PATIENCE: Duration = Duration::from_secs(10);
/// What readers take in that time where it is worth waiting for them: 64 KiB/s.
const TAKEN_BYTES_MIN: usize = 640 << 10;
/// For readers to go.
const FAREWELL: Duration = Duration::from_secs(2);
