//! Finds publishing processes and reads their reports.

use std::fs;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::directory::{Socket, remove_unnamed, sockets};
use super::report::{Report, Watched};
use crate::error::Error;

/// Connections to all published graphs of this user's processes.
///
/// ```no_run
/// let mut watch = grebe_flow::telemetry::Watch::new()?;
/// for process in watch.look() {
///     println!("{} {}: {:?}", process.pid, process.name, process.report.and_then(|report| report.slowest));
/// }
/// # Ok::<(), grebe_flow::Error>(())
/// ```
#[derive(Debug)]
pub struct Watch {
    connections: Vec<Connection>,
}

impl Watch {
    /// Starts without connections.
    ///
    /// # Errors
    /// [`Error::Telemetry`] on a system without Unix sockets.
    pub fn new() -> Result<Self, Error> {
        Ok(Self { connections: Vec::new() })
    }

    /// Processes that publish now, by process id, each with its last report. Returns at once. Removes sockets
    /// of dead processes.
    pub fn look(&mut self) -> Vec<Watched> {
        // Before listing the sockets: a process being killed may still have accepted our connection, and its
        // socket is dead by now.
        self.connections.retain_mut(Connection::read);
        remove_unnamed();
        for socket in sockets() {
            if !self.connections.iter().any(|connection| connection.socket == socket)
                && let Some(stream) = connect(&socket)
            {
                self.connections.push(Connection {
                    socket,
                    stream,
                    unread: Vec::new(),
                    report: None,
                    read_at: Instant::now(),
                });
            }
        }
        self.connections.sort_by(|a, b| a.socket.cmp(&b.socket));
        self.connections.iter().map(Connection::watched).collect()
    }
}

/// Connects, or removes the socket if its process is gone.
fn connect(socket: &Socket) -> Option<UnixStream> {
    match UnixStream::connect(&socket.path) {
        Ok(stream) => stream.set_nonblocking(true).ok().map(|()| stream),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // A socket gets this name only once it listens. Another watcher may have been faster.
            let _ = fs::remove_file(&socket.path);
            None
        }
        Err(_) => None,
    }
}

#[derive(Debug)]
struct Connection {
    socket: Socket,
    stream: UnixStream,
    /// Start of an incomplete line.
    unread: Vec<u8>,
    report: Option<Report>,
    read_at: Instant,
}

impl Connection {
    /// Reads available data; `false` if the other side is gone.
    fn read(&mut self) -> bool {
        let mut part = [0; 16 << 10];
        loop {
            match self.stream.read(&mut part) {
                Ok(0) => return false,
                Ok(count) => {
                    self.unread.extend_from_slice(&part[..count]);
                    self.take_lines();
                    if self.unread.len() > LINE_BYTES_MAX {
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    fn take_lines(&mut self) {
        while let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
            // Unknown messages of another version are skipped.
            if let Ok(report) = serde_json::from_slice(&self.unread[..end]) {
                self.report = Some(report);
                self.read_at = Instant::now();
            }
            self.unread.drain(..=end);
        }
    }

    fn watched(&self) -> Watched {
        Watched {
            pid: self.socket.pid,
            name: self.socket.name.clone(),
            report: self.report.clone(),
            silent_for: self.read_at.elapsed(),
        }
    }
}

/// Fits a thousand stages.
const LINE_BYTES_MAX: usize = 1 << 20;
