use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why there is no server, or no way to one. Each message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; another --listen, or port 0 for a free one, may do")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Certificate or key are of no use.
    #[error("cannot use {path}: {why}; --tls-cert and --tls-key take files in PEM form")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The system has no thread, no random numbers, or no room.
    #[error("the system refuses what a server needs: {0}")]
    System(io::Error),
    /// There is no connection.
    #[error("no connection to {to}: {why}")]
    Connect {
        /// Host and port.
        to: String,
        /// What happened.
        why: String,
    },
    /// The server does not let this viewer in.
    #[error("{to} does not let this viewer in: {why}")]
    Refused {
        /// Host and port.
        to: String,
        /// In the server's words.
        why: String,
    },
    /// A pipe was closed, or says what cannot be.
    #[error("the other end is gone: {0}")]
    Pipe(String),
}
