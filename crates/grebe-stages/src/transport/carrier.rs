//! Carriers of streams without frames, with their options.

use std::fmt;

use grebe_process::query::{Pairs, Query};

use super::byte_stream::ByteStream;
use super::host_port::HostPort;
use super::patience::Patience;
use super::reconnect::Reconnect;
use super::standard;
use super::tcp::TcpEnd;
use crate::error::Error;
use crate::open::Notify;
use crate::scheme::{End, Traits};
use crate::serial::{SerialEnd, SerialPort};

/// A carrier of streams without frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// Standard input or output.
    Pipe,
    Tcp(TcpEnd),
    Udp(HostPort),
    Serial(SerialEnd),
}

impl Carrier {
    /// Parses the part of a name before its query. `None`: not a carrier.
    pub(crate) fn parse(name: &str) -> Option<Result<Self, String>> {
        if matches!(name, "pipe:" | "-") {
            return Some(Ok(Self::Pipe));
        }
        if let Some(at) = name.strip_prefix("tcp://") {
            return Some(HostPort::parse("tcp", at).map(|at| Self::Tcp(TcpEnd::new(at))));
        }
        if let Some(at) = name.strip_prefix("udp://") {
            return Some(HostPort::parse("udp", at).map(Self::Udp));
        }
        name.strip_prefix("serial:").map(|port| SerialEnd::parse(port).map(Self::Serial))
    }

    /// Whether it carries frames if the name states no format.
    pub(crate) fn has_frames(&self) -> bool {
        matches!(self, Self::Pipe | Self::Udp(_))
    }

    /// Parses the options of the carrier.
    ///
    /// # Errors
    /// An option is malformed, or belongs to another carrier.
    pub(crate) fn take(&mut self, query: &mut Query<'_>) -> Result<(), String> {
        if !matches!(self, Self::Serial(_)) {
            query.refuse(&["baud", "mode", "flow", "hangup"], "serial:")?;
        }
        match self {
            Self::Tcp(end) => end.take(query),
            Self::Serial(end) => end.take(query),
            Self::Pipe | Self::Udp(_) => {
                query.refuse(&["listen"], "tcp://")?;
                query.refuse(&["reconnect"], "tcp:// and serial:")?;
                query.refuse(&["wire"], "frames, whose samples say what they are")?;
                match self {
                    Self::Udp(at) => at.take_multicast(query),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Adds the options of the carrier.
    pub(crate) fn write(&self, pairs: Pairs) -> Pairs {
        match self {
            Self::Pipe => pairs,
            Self::Udp(at) => at.write_multicast(pairs),
            Self::Tcp(end) => end.write(pairs),
            Self::Serial(end) => end.write(pairs),
        }
    }

    pub(crate) fn traits(&self) -> Traits {
        match self {
            Self::Pipe => Traits::PIPE,
            Self::Tcp(_) => Traits { is_live: false, ..Traits::LIVE },
            // This machine's clock stamps them on arrival.
            Self::Udp(_) => Traits { is_local: true, ..Traits::DATAGRAMS },
            Self::Serial(_) => Traits::LIVE,
        }
    }

    /// Its exclusive resource: standard input or output, or a port.
    pub(crate) fn claim(&self, end: End) -> Option<String> {
        match (self, end) {
            (Self::Pipe, End::Source) => Some("standard input".to_owned()),
            (Self::Pipe, End::Sink) => Some("standard output".to_owned()),
            (Self::Serial(port), _) => Some(format!("the serial port {}", port.path.display())),
            (Self::Tcp(_) | Self::Udp(_), _) => None,
        }
    }

    /// Whether samples mostly arrive as they are made. Pipes carry files and results of programs.
    pub(crate) fn keeps_time(&self) -> bool {
        !matches!(self, Self::Pipe)
    }

    /// Whether to reconnect after a loss.
    pub(crate) fn reconnects(&self) -> bool {
        match self {
            Self::Tcp(end) => end.reconnects,
            Self::Serial(end) => end.reconnects,
            Self::Pipe | Self::Udp(_) => false,
        }
    }

    /// Opens a byte stream, with a function to reopen it if requested.
    ///
    /// # Errors
    /// It cannot be opened, or carries datagrams.
    pub(crate) fn open(
        &self,
        end: End,
        patience: &Patience<'_>,
        notify: Notify<'_>,
    ) -> Result<(ByteStream, Option<Reconnect<ByteStream>>), Error> {
        let standard = |what| move |source| Error::Closed { what, source };
        Ok(match self {
            Self::Pipe if end == End::Source => {
                (ByteStream::Input(standard::stdin().map_err(standard("standard input"))?), None)
            }
            Self::Pipe => {
                (ByteStream::Output(standard::stdout().map_err(standard("standard output"))?), None)
            }
            Self::Tcp(end) => {
                let connector = end.connector("tcp", notify)?;
                let stream = patience.open(notify, |_| connector.open(patience.cancel, patience.within))?;
                let reconnect = end.reconnects.then(|| {
                    Reconnect::new(connector.uri(), move |cancel| {
                        connector.open(cancel, None).map(ByteStream::Tcp)
                    })
                });
                (ByteStream::Tcp(stream), reconnect)
            }
            Self::Serial(end) => {
                let port = patience.open(notify, |_| SerialPort::open(end))?;
                let reconnect = end.reconnects.then(|| {
                    let end = end.clone();
                    let open = move |_: &_| SerialPort::open(&end).map(ByteStream::Serial);
                    Reconnect::new(self.to_string(), open)
                });
                (ByteStream::Serial(port), reconnect)
            }
            Self::Udp(_) => {
                let reason = "carries datagrams, not a byte stream".to_owned();
                return Err(Error::Name { name: self.to_string(), reason });
            }
        })
    }
}

/// Whether `format=` selects lines of numbers.
pub(crate) fn is_text(name: &str, query: &str) -> bool {
    match query.split('&').find_map(|pair| pair.strip_prefix("format=")) {
        Some(format) => format == "text",
        None => name.starts_with("serial:"),
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pipe => f.write_str("pipe:"),
            Self::Tcp(end) => write!(f, "tcp://{}", end.at),
            Self::Udp(at) => write!(f, "udp://{at}"),
            Self::Serial(end) => end.fmt(f),
        }
    }
}
