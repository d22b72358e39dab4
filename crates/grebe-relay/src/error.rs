use std::io;
use std::net::SocketAddr;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with a relay, or with meeting at one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes that are no message of this protocol. They are dropped.
    #[error("not a message of this protocol: {what}")]
    Malformed {
        /// What is wrong with them.
        what: &'static str,
    },
    /// A message that was not made with the ticket's key, or was changed on its way. It is dropped.
    #[error("a message that does not authenticate: another ticket's, or changed on its way")]
    NotAuthentic,
    /// The system has no random numbers, or a key cannot be made of them.
    #[error("cannot make keys: {what}")]
    Keys {
        /// What failed.
        what: String,
    },
    /// The address for the figures cannot be listened at.
    #[error("cannot listen for HTTP at {address}: {source}; give another address")]
    Metrics {
        /// Where.
        address: SocketAddr,
        /// What the system said.
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
