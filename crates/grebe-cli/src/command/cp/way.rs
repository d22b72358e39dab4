//! Which way the data goes, and both directions of it.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use grebe_transfer::{
    Cancel, Connection, ConnectionOptions, ConnectionStatus, Error, Notice, Notify, Ticket, Transport,
    connect,
};

use super::lines::{Terms, Way};
use crate::cli::Via;

/// A reader and a writer of bytes to the other end.
pub(in crate::command) struct Channel {
    pub(in crate::command) reader: Box<dyn Read + Send>,
    pub(in crate::command) writer: Box<dyn Write + Send>,
    /// At first.
    pub(in crate::command) way: Way,
    /// Whether a relay passes it on, at this moment: a direct way that falls silent is left for it.
    pub(in crate::command) is_relayed: Arc<AtomicBool>,
    /// Of a connection of our own.
    pub(in crate::command) status: Option<ConnectionStatus>,
}

/// How a connection beside `ssh` is made.
#[derive(Clone)]
pub(in crate::command) struct Beside {
    pub(in crate::command) terms: Terms,
    pub(in crate::command) cancel: Cancel,
    /// Is told which way it is where both ends meet at a relay.
    pub(in crate::command) notify: Notify,
}

impl Channel {
    /// The pipes to an `ssh`, or those of a process that it started.
    pub(in crate::command) fn by_pipes(
        reader: impl Read + Send + 'static,
        writer: impl Write + Send + 'static,
        limit_bits_per_s: Option<f64>,
    ) -> Self {
        let writer: Box<dyn Write + Send> = match limit_bits_per_s {
            Some(limit) => {
                Box::new(Limited { writer, bytes_per_s: (limit / 8.0).max(1.0), free_at: Instant::now() })
            }
            None => Box::new(writer),
        };
        Self { reader: Box::new(reader), writer, way: Way::Ssh, is_relayed: Arc::default(), status: None }
    }

    /// From the end that has the ticket. It says the first word, so that the other end knows that both mean this connection.
    pub(in crate::command) fn connected(mut connection: Connection) -> io::Result<Self> {
        connection.writer.write_all(&[FIRST_WORD])?;
        connection.writer.flush()?;
        Ok(Self::over(connection))
    }

    /// From the end that listens: waits for the first word.
    pub(in crate::command) fn accepted(mut connection: Connection) -> io::Result<Self> {
        let mut word = [0];
        connection.reader.read_exact(&mut word)?;
        if word != [FIRST_WORD] {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the other end is no `grebe cp`"));
        }
        Ok(Self::over(connection))
    }

    fn over(connection: Connection) -> Self {
        let way = if connection.status.progress().is_over_tcp { Way::Tcp } else { Way::Udp };
        Self {
            reader: Box::new(connection.reader),
            writer: Box::new(connection.writer),
            way,
            is_relayed: Arc::default(),
            status: Some(connection.status),
        }
    }
}

impl Beside {
    /// At the end that was started: what there is to tell of the way, the other end says.
    pub(in crate::command) fn served(terms: Terms, cancel: &Cancel) -> Self {
        Self { terms, cancel: cancel.clone(), notify: Arc::new(|_| {}) }
    }

    /// Goes to the end that made the ticket; `None`: no way leads there in time, and there is another.
    pub(in crate::command) fn reach(&self, ticket: &Ticket) -> Result<Option<Channel>> {
        let is_relayed = Arc::new(AtomicBool::new(false));
        let (told, notify) = (is_relayed.clone(), self.notify.clone());
        let mut options = self.options(ticket.relay.is_some());
        options.notify = Arc::new(move |notice: Notice| {
            match notice {
                Notice::Relayed { .. } => told.store(true, Ordering::Relaxed),
                Notice::Direct { .. } => told.store(false, Ordering::Relaxed),
                _ => {}
            }
            notify(notice);
        });
        match connect(ticket, &options) {
            Ok(connection) => {
                let mut channel = Channel::connected(connection)?;
                if is_relayed.load(Ordering::Relaxed) {
                    channel.way = Way::Relay;
                }
                channel.is_relayed = is_relayed;
                Ok(Some(channel))
            }
            Err(Error::NoAnswer { .. } | Error::Socket(_) | Error::Ticket { .. } | Error::Relay { .. })
                if self.terms.via == Via::Auto =>
            {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(in crate::command) fn options(&self, has_relay: bool) -> ConnectionOptions {
        ConnectionOptions {
            mode: self.terms.mode,
            limit_bits_per_s: self.terms.limit_bits_per_s,
            transport: match self.terms.via {
                Via::Udp | Via::Relay => Transport::Udp,
                Via::Tcp => Transport::Tcp,
                Via::Auto | Via::Ssh => Transport::Any,
            },
            via: if self.terms.via == Via::Relay {
                grebe_transfer::Via::Relay
            } else {
                grebe_transfer::Via::Any
            },
            answer_within: match (self.terms.via, has_relay) {
                (Via::Auto, false) => DECIDED_WITHIN,
                (Via::Auto, true) => DECIDED_WITH_RELAY_WITHIN,
                _ => ASKED_FOR,
            },
            cancel: self.cancel.clone(),
            notify: self.notify.clone(),
            ..ConnectionOptions::default()
        }
    }
}

/// Writes no faster than the user wants.
struct Limited<W> {
    writer: W,
    bytes_per_s: f64,
    free_at: Instant,
}

impl<W: Write> Write for Limited<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let now = Instant::now();
        thread::sleep(self.free_at.saturating_duration_since(now));
        // A fiftieth of a second at once: short enough for others on the path, long enough for the timer.
        let most = (self.bytes_per_s / 50.0).max(1_024.0) as usize;
        let written = self.writer.write(&bytes[..bytes.len().min(most)])?;
        self.free_at = self.free_at.max(now) + Duration::from_secs_f64(written as f64 / self.bytes_per_s);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

const FIRST_WORD: u8 = b'g';
/// Where neither UDP nor TCP answers, ssh is there.
const DECIDED_WITHIN: Duration = Duration::from_secs(2);
/// What answers directly comes first; then the relay takes some round trips.
const DECIDED_WITH_RELAY_WITHIN: Duration = Duration::from_secs(5);
/// Where the user wants no other way.
const ASKED_FOR: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_kept_and_nothing_is_lost() {
        let (bytes, began) = (vec![7; 100_000], Instant::now());
        let mut limited = Limited { writer: Vec::new(), bytes_per_s: 1e6, free_at: began };
        limited.write_all(&bytes).unwrap();
        assert_eq!(limited.writer, bytes);
        // Not before: how much later, is the machine's.
        assert!(limited.free_at >= began + Duration::from_millis(99));
    }
}
