use std::io;

/// Result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a command on another host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Invalid options or configuration.
    #[error("{0}")]
    Usage(String),
    /// The caller cancelled.
    #[error("interrupted")]
    Interrupted,
    /// The login was refused, or `ssh` or the remote command did not start.
    #[error("{why}")]
    NotStarted {
        /// The reason, with advice.
        why: String,
        /// Whether the login was refused, so that only the user can help.
        is_refused: bool,
    },
    /// The remote command failed.
    #[error("{host}: {why}")]
    Failed {
        /// The host.
        host: String,
        /// Its own message, printable.
        why: String,
        /// Exit status for that failure.
        status: u8,
    },
    /// The process at the other end of `ssh` violates the protocol, or is gone.
    #[error("{0}")]
    Peer(String),
    /// A file, a pipe or a host name failed on this host.
    #[error("{what}: {source}")]
    System {
        /// The failed action.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// Invalid ticket, or an error of the connection beside `ssh`.
    #[error(transparent)]
    Connection(#[from] grebe_connection::Error),
    /// Error of sending or receiving files.
    #[error(transparent)]
    Tree(#[from] grebe_tree::Error),
}

impl Error {
    pub(crate) fn not_started(why: String) -> Self {
        Self::NotStarted { why, is_refused: false }
    }
}

/// Adds the failed action to a system error.
pub(crate) trait During<T> {
    fn during(self, what: impl Into<String>) -> Result<T>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|source| Error::System { what: what.into(), source })
    }
}
