use std::io;
use std::path::{Path, PathBuf};

use crate::name::printable;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What ends a copy. What concerns one file alone ends nothing: it is [left out](crate::LeftOut).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This end was cancelled.
    #[error("stopped; what has come is kept, and the same command goes on from there")]
    Cancelled,
    /// The stream ended too early.
    #[error(
        "the connection ended before everything was there; what has come is kept, and the same command goes on from there"
    )]
    Closed,
    /// The stream failed.
    #[error("the connection failed: {0}; what has come is kept, and the same command goes on from there")]
    Stream(io::Error),
    /// The other end gave up.
    #[error("the other end stopped: {what}")]
    Peer {
        /// In its own words; nothing in them does anything to a terminal.
        what: String,
    },
    /// A message that no end of this protocol makes.
    #[error("the other end sent what cannot be: {what}")]
    Malformed {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The other end speaks another version.
    #[error(
        "the other end speaks version {theirs} of the protocol, this one {ours}: install the same grebe at both ends"
    )]
    Version {
        /// Of the other end.
        theirs: u64,
        /// Of this end.
        ours: u64,
    },
    /// Neither end was given options, or both were, or both would send.
    #[error("the two ends do not fit: {what}")]
    Roles {
        /// What is wrong.
        what: &'static str,
    },
    /// What was named cannot be copied.
    #[error("{}: {why}", shown(path))]
    Source {
        /// What was named.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        why: &'static str,
    },
    /// The destination cannot be used.
    #[error("{}: {why}", shown(path))]
    Destination {
        /// The destination, or what is in the way there.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        why: &'static str,
    },
    /// A pattern that cannot be read.
    #[error("'{pattern}' is no pattern: {why}")]
    Pattern {
        /// As it was given.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// The disk is full.
    #[error("{} has no room left; make room, then the same command goes on from there", shown(path))]
    NoRoom {
        /// The destination.
        path: PathBuf,
    },
    /// The disk has less room than was offered.
    #[error("{} has room for {free_bytes} bytes, and {needed_bytes} are to come", shown(path))]
    TooMuch {
        /// The destination.
        path: PathBuf,
        /// What is free, in bytes.
        free_bytes: u64,
        /// What is needed, in bytes.
        needed_bytes: u64,
    },
    /// The person at this end does not want the files.
    #[error("the files were declined; nothing was received")]
    Declined,
    /// Something that the whole copy needs could not be opened, read or written.
    #[error("cannot {action} {}: {source}", shown(path))]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// What it was tried on.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// Whether this end has found it, so that the other one does not know.
    pub fn is_ours(&self) -> bool {
        !matches!(self, Self::Closed | Self::Stream(_) | Self::Peer { .. })
    }
}

impl From<grebe_packet::Error> for Error {
    fn from(error: grebe_packet::Error) -> Self {
        match error {
            grebe_packet::Error::Malformed { what } => Self::Malformed { what },
            _ => Self::Malformed { what: "a field that cannot be read" },
        }
    }
}

/// A path for people: nothing in it does anything to a terminal.
pub(crate) fn shown(path: &Path) -> String {
    printable(path.as_os_str().as_encoded_bytes())
}
