use std::io;
use std::net::SocketAddr;

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Error of a relay, or of a meeting at one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Malformed message. The receiver drops it.
    #[error("not a message of this protocol: {what}")]
    Malformed {
        /// The fault.
        what: &'static str,
    },
    /// Message that was not made with the ticket's key, or was changed in transit. The receiver drops it.
    #[error("a message that fails authentication: of another ticket, or modified")]
    NotAuthentic,
    /// The system has no random numbers, or a key cannot be derived.
    #[error("cannot make keys: {what}")]
    Keys {
        /// The step that failed.
        what: String,
    },
    /// The relay cannot listen at the address for metrics.
    #[error("cannot listen for HTTP at {address}: {source}; give another address")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A socket failed.
    #[error(transparent)]
    Socket(#[from] grebe_datagram::Error),
}

impl From<grebe_packet::Error> for Error {
    fn from(error: grebe_packet::Error) -> Self {
        match error {
            grebe_packet::Error::Malformed { what } => Self::Malformed { what },
            other => Self::Keys { what: other.to_string() },
        }
    }
}
