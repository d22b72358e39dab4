//! The ends of a TCP connection that carries samples.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use grebe_process::query::{Pairs, Query};
use grebe_ring::Cancel;

use super::host_port::HostPort;
use crate::error::Error;
use crate::open::{Notice, Notify};

/// One end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TcpEnd {
    pub(crate) at: HostPort,
    /// Whether it listens instead of connecting.
    pub(crate) listens: bool,
    /// Whether it reconnects after a loss.
    pub(crate) reconnects: bool,
}

/// Opens connections to one address.
#[derive(Debug)]
pub(crate) struct Connector {
    /// The scheme in messages.
    scheme: &'static str,
    at: HostPort,
    /// `None`: it connects.
    listener: Option<TcpListener>,
}

impl TcpEnd {
    /// An end that connects, once.
    pub(crate) fn new(at: HostPort) -> Self {
        Self { at, listens: false, reconnects: false }
    }

    /// Parses its options.
    ///
    /// # Errors
    /// An option is malformed.
    pub(crate) fn take(&mut self, query: &mut Query<'_>) -> Result<(), String> {
        (self.listens, self.reconnects) = (query.flag("listen")?, query.flag("reconnect")?);
        Ok(())
    }

    /// Adds its options.
    pub(crate) fn write(&self, pairs: Pairs) -> Pairs {
        pairs.flag("listen", self.listens).flag("reconnect", self.reconnects)
    }

    /// The connector. Reports the address listened on, with the port that the system chose for port 0.
    pub(crate) fn connector(&self, scheme: &'static str, notify: Notify<'_>) -> Result<Connector, Error> {
        let at = self.at.clone();
        let listener = self.listens.then(|| Connector::bind(scheme, at.clone(), notify)).transpose()?;
        Ok(Connector { listener, ..Connector::to(scheme, at) })
    }
}

impl Connector {
    /// A connector to an address.
    pub(crate) fn to(scheme: &'static str, at: HostPort) -> Self {
        Self { scheme, at, listener: None }
    }

    /// A non-blocking listener.
    pub(crate) fn bind(scheme: &'static str, at: HostPort, notify: Notify<'_>) -> Result<TcpListener, Error> {
        let (address, otherwise) = at.to_listen()?;
        let connector = Self::to(scheme, at);
        let failed = |source| connector.failed("listen on", source);
        let listener =
            TcpListener::bind(address).or_else(|_| TcpListener::bind(otherwise)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        notify(Notice::WaitingForConnection { scheme, address });
        Ok(listener)
    }

    /// Opens the connection. A listener waits for it, up to `within`.
    ///
    /// # Errors
    /// No peer listens there, or [`Error::Idle`]: none connected.
    pub(crate) fn open(&self, cancel: &Cancel, within: Option<Duration>) -> Result<TcpStream, Error> {
        match &self.listener {
            Some(listener) => self.accept(listener, cancel, within)?.ok_or(Error::Cancelled),
            None => self.connect(),
        }
    }

    pub(crate) fn listens(&self) -> bool {
        self.listener.is_some()
    }

    /// Its URI.
    pub(crate) fn uri(&self) -> String {
        format!("{}://{}", self.scheme, self.at)
    }

    fn connect(&self) -> Result<TcpStream, Error> {
        let connected = TcpStream::connect_timeout(&self.at.to_send()?, CONNECT_WITHIN).and_then(prepare);
        connected.map_err(|source| self.failed("connect to", source))
    }

    /// Waits for a connection. `None`: cancelled.
    fn accept(
        &self,
        listener: &TcpListener,
        cancel: &Cancel,
        within: Option<Duration>,
    ) -> Result<Option<TcpStream>, Error> {
        let began = Instant::now();
        while !cancel.is_cancelled() {
            if let Some(timeout) = within.filter(|&within| began.elapsed() >= within) {
                return Err(Error::Idle { timeout });
            }
            match listener.accept() {
                Ok((stream, _)) => {
                    return prepare(stream).map(Some).map_err(|source| self.failed("listen on", source));
                }
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    std::thread::sleep(CHECK_EVERY);
                }
                Err(source) => return Err(self.failed("listen on", source)),
            }
        }
        Ok(None)
    }

    fn failed(&self, action: &'static str, source: io::Error) -> Error {
        Error::Tcp { action, uri: self.uri(), source }
    }
}

/// Writes leave at once, and reads have a timeout.
fn prepare(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(READ_WITHIN))?;
    Ok(stream)
}

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const READ_WITHIN: Duration = Duration::from_millis(100);
const CHECK_EVERY: Duration = Duration::from_millis(20);
