//! The two ends of a TCP connection that carries samples.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use grebe_ring::Cancel;

use crate::error::Error;
use crate::uri::HostPort;

/// One end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TcpEnd {
    pub(crate) at: HostPort,
    /// It waits for the other end instead of connecting to it.
    pub(crate) listens: bool,
}

impl TcpEnd {
    /// The connection; `listening` is told the address that is listened on, with the port that the system chose where none was named.
    pub(crate) fn open(
        &self,
        cancel: &Cancel,
        listening: impl FnOnce(SocketAddr),
    ) -> Result<TcpStream, Error> {
        if self.listens { accept(&self.at, cancel, listening) } else { connect(&self.at) }
    }
}

/// Connects to whoever listens there.
fn connect(to: &HostPort) -> Result<TcpStream, Error> {
    let address = to.to_send()?;
    let connected = TcpStream::connect_timeout(&address, CONNECT_WITHIN);
    prepare(connected.map_err(failed("connect to", to))?).map_err(failed("connect to", to))
}

/// Waits until somebody connects.
fn accept(at: &HostPort, cancel: &Cancel, listening: impl FnOnce(SocketAddr)) -> Result<TcpStream, Error> {
    let failed = failed("listen on", at);
    let (address, otherwise) = at.to_listen()?;
    let listener = TcpListener::bind(address).or_else(|_| TcpListener::bind(otherwise)).map_err(&failed)?;
    listener.set_nonblocking(true).map_err(&failed)?;
    listening(listener.local_addr().map_err(&failed)?);
    loop {
        match listener.accept() {
            Ok((stream, _)) => return prepare(stream).map_err(&failed),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                if cancel.is_cancelled() {
                    return Err(Error::Cancelled);
                }
                std::thread::sleep(LOOK_EVERY);
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// What is written leaves at once, and a read comes back now and then.
fn prepare(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(READ_WITHIN))?;
    Ok(stream)
}

fn failed(action: &'static str, at: &HostPort) -> impl Fn(io::Error) -> Error + use<> {
    let uri = format!("tcp://{at}");
    move |source| Error::Tcp { action, uri: uri.clone(), source }
}

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const READ_WITHIN: Duration = Duration::from_millis(100);
const LOOK_EVERY: Duration = Duration::from_millis(20);
