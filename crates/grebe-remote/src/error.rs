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
    /// Error of sending or receiving files by ticket.
    #[error("{}", .0.to_string().replace(grebe_tree::Error::RESUME, NEW_TICKET))]
    Tree(grebe_tree::Error),
}

/// A ticket is for one transfer.
const NEW_TICKET: &str = "the transfer goes on from there: start recv again, and give send its new ticket";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_resumes_with_a_new_ticket_of_either_end() {
        let told = grebe_tree::Error::Cancelled.to_string();
        for error in [grebe_tree::Error::Cancelled, grebe_tree::Error::Peer { what: told }] {
            let said = Error::Tree(error).to_string();
            assert!(said.contains("start recv again, and give send its new ticket"), "{said}");
            assert!(!said.contains("same command"), "{said}");
        }
    }
}
