//! Route of the data, and its channel.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use grebe_connection::{
    Cancel, Connection, ConnectionOptions, ConnectionStatus, Error, Mode, Notice, Notify, Ticket, Transport,
    connect,
};
use serde::{Deserialize, Serialize};

use crate::error::{During, Result};

/// Allowed routes of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Via {
    /// UDP, else TCP at the same port, else a relay if one is named, else `ssh`.
    #[default]
    Auto,
    /// Only UDP, direct or through the relay.
    Udp,
    /// A TCP connection beside `ssh`.
    Tcp,
    /// Only UDP through the relay.
    Relay,
    /// The connection of `ssh`.
    Ssh,
}

/// Route of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// Direct UDP.
    Udp,
    /// Direct TCP.
    Tcp,
    /// UDP through a relay.
    Relay,
    /// Through `ssh`.
    Ssh,
    /// Within this machine.
    Disk,
}

/// [`Mode`] with the names of the command line.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Mode", rename_all = "lowercase")]
pub(crate) enum ModeName {
    Fair,
    Greedy,
    Background,
}

/// Parameters of the data's route, equal at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// Allowed routes.
    pub via: Via,
    /// Share of a shared path.
    #[serde(with = "ModeName")]
    pub mode: Mode,
    /// Maximum bits per second on the wire.
    pub limit_bits_per_s: Option<f64>,
}

/// Byte stream each way to the other end.
pub struct Channel {
    /// From the other end.
    pub reader: Box<dyn Read + Send>,
    /// To the other end.
    pub writer: Box<dyn Write + Send>,
    /// Initial route.
    pub route: Route,
    /// Whether a relay forwards the data at present. A direct route that falls silent is replaced by the
    /// relay.
    pub is_relayed: Arc<AtomicBool>,
    /// Status, for a connection of our own.
    pub status: Option<ConnectionStatus>,
}

/// Makes connections beside `ssh`.
#[derive(Clone)]
pub struct Dialer {
    /// As both ends know them.
    pub terms: Terms,
    /// Cancels its connections.
    pub cancel: Cancel,
    /// Callback for the route of ends that meet at a relay.
    pub notify: Notify,
    /// Whether this end writes much: it measures the path while it connects.
    pub measures: bool,
}

impl Route {
    /// Name for display.
    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Relay => "UDP by the relay",
            Self::Ssh => "ssh",
            Self::Disk => "disk",
        }
    }
}

impl Channel {
    /// Makes a channel from the pipes of `ssh`, or of a process that it started.
    pub fn by_pipes(
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
        Self { reader: Box::new(reader), writer, route: Route::Ssh, is_relayed: Arc::default(), status: None }
    }

    /// Makes a channel at the end with the ticket. Sends a first word, so that the other end can verify the
    /// connection.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn connected(mut connection: Connection) -> io::Result<Self> {
        connection.writer.write_all(&[FIRST_WORD])?;
        connection.writer.flush()?;
        Ok(Self::over(connection))
    }

    /// Makes a channel at the listening end, after the first word.
    ///
    /// # Errors
    /// Those of the connection, and a wrong first word.
    pub fn accepted(mut connection: Connection) -> io::Result<Self> {
        let mut word = [0];
        connection.reader.read_exact(&mut word)?;
        if word != [FIRST_WORD] {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the other end is not `grebe cp`"));
        }
        Ok(Self::over(connection))
    }

    fn over(connection: Connection) -> Self {
        let route = if connection.status.progress().is_over_tcp { Route::Tcp } else { Route::Udp };
        Self {
            reader: Box::new(connection.reader),
            writer: Box::new(connection.writer),
            route,
            is_relayed: Arc::default(),
            status: Some(connection.status),
        }
    }
}

impl Dialer {
    /// Makes a dialer at the started end. The other end reports the route.
    pub fn served(terms: Terms, cancel: &Cancel) -> Self {
        Self { terms, cancel: cancel.clone(), notify: Arc::new(|_| {}), measures: false }
    }

    /// Connects to the maker of the ticket. `None`: no route worked in time, and another one is allowed.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn reach(&self, ticket: &Ticket) -> Result<Option<Channel>> {
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
                let mut channel = Channel::connected(connection).during("cannot use the connection")?;
                if is_relayed.load(Ordering::Relaxed) {
                    channel.route = Route::Relay;
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

    /// Options of a connection.
    pub fn options(&self, has_relay: bool) -> ConnectionOptions {
        ConnectionOptions {
            mode: self.terms.mode,
            limit_bits_per_s: self.terms.limit_bits_per_s,
            measures: self.measures,
            transport: match self.terms.via {
                Via::Udp | Via::Relay => Transport::Udp,
                Via::Tcp => Transport::Tcp,
                Via::Auto | Via::Ssh => Transport::Any,
            },
            via: if self.terms.via == Via::Relay {
                grebe_connection::Via::Relay
            } else {
                grebe_connection::Via::Any
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

/// Limits the write rate to the user's maximum.
struct Limited<W> {
    writer: W,
    bytes_per_s: f64,
    free_at: Instant,
}

impl<W: Write> Write for Limited<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let now = Instant::now();
        thread::sleep(self.free_at.saturating_duration_since(now));
        // A fiftieth of a second at once: short enough for other flows on the path, long enough for the
        // timer.
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
/// If neither UDP nor TCP answers, `ssh` remains.
const DECIDED_WITHIN: Duration = Duration::from_secs(2);
/// Direct routes come first, and the relay then takes some round trips.
const DECIDED_WITH_RELAY_WITHIN: Duration = Duration::from_secs(5);
/// Timeout if the user allows no other route.
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
        // Not earlier; how much later depends on the machine.
        assert!(limited.free_at >= began + Duration::from_millis(99));
    }
}
