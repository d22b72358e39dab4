use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Reason why a server cannot start, or cannot be reached. Each message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is not available.
    #[error("cannot listen on {address}: {source}; another --listen, or port 0 for a free one, may do")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The certificate or the key is unusable.
    #[error("cannot use {path}: {why}; --tls-cert and --tls-key take files in PEM form")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// The system has no thread, no random numbers, or no memory.
    #[error("the system refuses what a server needs: {0}")]
    System(io::Error),
    /// The connection failed.
    #[error("no connection to {to}: {why}")]
    Connect {
        /// Host and port.
        to: String,
        /// The reason.
        why: String,
    },
    /// The server rejected this viewer.
    #[error("{to} does not let this viewer in: {why}")]
    Refused {
        /// Host and port.
        to: String,
        /// In the server's words.
        why: String,
    },
    /// A pipe was closed, or delivered invalid data.
    #[error("the other end is gone: {0}")]
    Pipe(String),
}
