//! Finds publishing processes and reads their reports.

use std::io::{self, Read};
use std::time::Instant;

use super::directory::{self, Entry, remove_leftovers};
use super::endpoint::{Stream, connect};
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
    /// None so far.
    pub fn new() -> Result<Self, Error> {
        Ok(Self { connections: Vec::new() })
    }

    /// Processes that publish now, by process id, each with its last report. Returns at once. Removes what dead
    /// processes left.
    pub fn look(&mut self) -> Vec<Watched> {
        // Before listing the entries: a process being killed may still have accepted our connection, and its
        // entry is dead by now.
        self.connections.retain_mut(Connection::read);
        remove_leftovers();
        for entry in directory::all() {
            if !self.connections.iter().any(|connection| connection.entry == entry)
                && let Some(stream) = connect(&entry.path)
            {
                self.connections.push(Connection {
                    entry,
                    stream,
                    unread: Vec::new(),
                    report: None,
                    read_at: Instant::now(),
                });
            }
        }
        self.connections.sort_by(|a, b| a.entry.cmp(&b.entry));
        self.connections.iter().map(Connection::watched).collect()
    }
}

#[derive(Debug)]
struct Connection {
    entry: Entry,
    stream: Stream,
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
            pid: self.entry.pid,
            name: self.entry.name.clone(),
            report: self.report.clone(),
            silent_for: self.read_at.elapsed(),
        }
    }
}

/// Fits a thousand stages.
const LINE_BYTES_MAX: usize = 1 << 20;
