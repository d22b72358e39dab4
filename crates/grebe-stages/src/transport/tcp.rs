//! The two ends of a TCP connection that carries samples.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use grebe_process::query::{Pairs, Query};
use grebe_ring::Cancel;

use super::host_port::HostPort;
use crate::error::Error;
use crate::open::{Notice, Notify};

/// One end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TcpEnd {
    pub(crate) at: HostPort,
    /// It waits for the other end instead of connecting to it.
    pub(crate) listens: bool,
    /// It is opened again once it was lost.
    pub(crate) reconnects: bool,
}

/// Opens a connection to one place, as often as it is asked to.
#[derive(Debug)]
pub(crate) struct Connector {
    /// What its place is called in messages.
    scheme: &'static str,
    at: HostPort,
    /// `None`: it connects.
    listener: Option<TcpListener>,
}

impl TcpEnd {
    /// One that connects, once.
    pub(crate) fn new(at: HostPort) -> Self {
        Self { at, listens: false, reconnects: false }
    }

    /// Takes what a query says of it.
    ///
    /// # Errors
    /// It is malformed.
    pub(crate) fn take(&mut self, query: &mut Query<'_>) -> Result<(), String> {
        (self.listens, self.reconnects) = (query.flag("listen")?, query.flag("reconnect")?);
        Ok(())
    }

    /// Adds what the name says of it.
    pub(crate) fn write(&self, pairs: Pairs) -> Pairs {
        pairs.flag("listen", self.listens).flag("reconnect", self.reconnects)
    }

    /// What opens the connection; a person is told the address that is listened on, with the port that the system chose where none was
    /// named.
    pub(crate) fn connector(&self, scheme: &'static str, notify: Notify<'_>) -> Result<Connector, Error> {
        let at = self.at.clone();
        let listener = self.listens.then(|| Connector::bind(scheme, at.clone(), notify)).transpose()?;
        Ok(Connector { listener, ..Connector::to(scheme, at) })
    }
}

impl Connector {
    /// One that connects to whoever listens there.
    pub(crate) fn to(scheme: &'static str, at: HostPort) -> Self {
        Self { scheme, at, listener: None }
    }

    /// A listener that does not block.
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

    /// The connection.
    pub(crate) fn open(&self, cancel: &Cancel) -> Result<TcpStream, Error> {
        match &self.listener {
            Some(listener) => self.accept(listener, cancel)?.ok_or(Error::Cancelled),
            None => self.connect(),
        }
    }

    pub(crate) fn listens(&self) -> bool {
        self.listener.is_some()
    }

    /// Where it leads.
    pub(crate) fn uri(&self) -> String {
        format!("{}://{}", self.scheme, self.at)
    }

    fn connect(&self) -> Result<TcpStream, Error> {
        let connected = TcpStream::connect_timeout(&self.at.to_send()?, CONNECT_WITHIN).and_then(prepare);
        connected.map_err(|source| self.failed("connect to", source))
    }

    /// Waits until somebody connects; `None`: it was cancelled.
    fn accept(&self, listener: &TcpListener, cancel: &Cancel) -> Result<Option<TcpStream>, Error> {
        while !cancel.is_cancelled() {
            match listener.accept() {
                Ok((stream, _)) => {
                    return prepare(stream).map(Some).map_err(|source| self.failed("listen on", source));
                }
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    std::thread::sleep(LOOK_EVERY);
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

/// What is written leaves at once, and a read comes back now and then.
fn prepare(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(READ_WITHIN))?;
    Ok(stream)
}

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const READ_WITHIN: Duration = Duration::from_millis(100);
const LOOK_EVERY: Duration = Duration::from_millis(20);
