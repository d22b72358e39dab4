use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with a socket or a batch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what the fields of its variant are")]
pub enum Error {
    /// A socket could not be opened, bound, connected or joined to a group.
    #[error("cannot {action} {address}: {source}")]
    Open { action: &'static str, address: SocketAddr, source: io::Error },
    /// A datagram longer than UDP carries.
    #[error("a datagram of {bytes} bytes: UDP carries at most {limit}; send smaller frames")]
    TooLong { bytes: usize, limit: usize },
    /// A run whose segment length is zero.
    #[error("a run of datagrams needs a segment length of at least 1 byte")]
    EmptySegment,
    /// `push` on a sender that is not connected: use `push_to`.
    #[error("the sender is not connected: name the destination of each datagram with push_to")]
    NoDestination,
    /// The kernel took nothing for this long. What was not sent is still in the batch: `flush` goes on with it.
    #[error("the kernel took no datagram for {} ms: the link is stalled", waited.as_millis())]
    Stalled { waited: Duration },
    /// The kernel refused a datagram for good: a link that is down is no such error, see [`SendCounters`](crate::SendCounters). It is counted as unsent and left out; `flush` goes on with the ones after it.
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
