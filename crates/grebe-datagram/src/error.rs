use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Error of a socket or a batch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what the fields of its variant are")]
pub enum Error {
    /// A socket could not be opened, bound or connected, or could not join a group.
    #[error("cannot {action} {address}: {source}")]
    Open { action: &'static str, address: SocketAddr, source: io::Error },
    /// Datagram above the maximum of UDP.
    #[error("a datagram of {bytes} bytes: UDP carries at most {limit}; send smaller frames")]
    TooLong { bytes: usize, limit: usize },
    /// Run with a segment length of zero.
    #[error("a run of datagrams needs a segment length of at least 1 byte")]
    EmptySegment,
    /// `push` on an unconnected sender: use `push_to`.
    #[error("the sender is not connected: name the destination of each datagram with push_to")]
    NoDestination,
    /// The kernel accepted nothing for this long. The unsent datagrams are still in the batch; `flush`
    /// continues with them.
    #[error("the kernel took no datagram for {} ms: the link is stalled", waited.as_millis())]
    Stalled { waited: Duration },
    /// The kernel refused a datagram permanently. It counts as unsent and is skipped; `flush` continues with
    /// the next ones. A link that is down is not such an error, see [`SendCounters`](crate::SendCounters).
    #[error("cannot send a datagram of {bytes} bytes: {source}")]
    Send { bytes: usize, source: io::Error },
    /// Receiving or waiting failed.
    #[error("cannot receive: {source}")]
    Receive { source: io::Error },
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Open { source, .. } | Error::Send { source, .. } | Error::Receive { source } => {
                source.kind()
            }
            Error::TooLong { .. } | Error::EmptySegment | Error::NoDestination => io::ErrorKind::InvalidInput,
            Error::Stalled { .. } => io::ErrorKind::TimedOut,
        };
        io::Error::new(kind, error)
    }
}
