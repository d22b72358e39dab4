use std::io;

/// What this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What keeps a command on another host from its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Options or a configuration that make no sense.
    #[error("{0}")]
    Usage(String),
    /// The caller wanted no more.
    #[error("interrupted")]
    Interrupted,
    /// The login was refused, or `ssh` or the command there did not start.
    #[error("{why}")]
    NotStarted {
        /// The reason, and what to do.
        why: String,
        /// The login was refused: only a person can help.
        is_refused: bool,
    },
    /// The command there failed.
    #[error("{host}: {why}")]
    Failed {
        /// The host.
        host: String,
        /// In its own words, printable.
        why: String,
        /// The exit status of that.
        status: u8,
    },
    /// The process at the other end of `ssh` speaks otherwise, or is gone.
    #[error("{0}")]
    Peer(String),
    /// A file, a pipe or a name of this host.
    #[error("{what}: {source}")]
    System {
        /// What cannot be done.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// A ticket, or the connection beside `ssh`.
    #[error(transparent)]
    Connection(#[from] grebe_connection::Error),
    /// The files of a transfer: how they were sent or received.
    #[error(transparent)]
    Tree(#[from] grebe_tree::Error),
}

impl Error {
    pub(crate) fn not_started(why: String) -> Self {
        Self::NotStarted { why, is_refused: false }
    }
}

/// Adds to an error of the system what could not be done.
pub(crate) trait During<T> {
    fn during(self, what: impl Into<String>) -> Result<T>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|source| Error::System { what: what.into(), source })
    }
}
