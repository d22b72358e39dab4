use std::io;
use std::path::{Path, PathBuf};

use crate::name::printable;

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Error that ends a copy. An error of a single file ends nothing: the file is [skipped](crate::LeftOut).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This end was cancelled.
    #[error("stopped; received data is kept, and {}", Error::RESUME)]
    Cancelled,
    /// The stream ended too early.
    #[error("the connection ended early; received data is kept, and {}", Error::RESUME)]
    Closed,
    /// The stream failed.
    #[error("the connection failed: {0}; received data is kept, and {resume}", resume = Error::RESUME)]
    Stream(io::Error),
    /// The other end gave up.
    #[error("the other end stopped: {what}")]
    Peer {
        /// The peer's message, with control characters escaped.
        what: String,
    },
    /// Malformed message, which no end of this protocol makes.
    #[error("the other end sent an invalid message: {what}")]
    Malformed {
        /// The fault.
        what: &'static str,
    },
    /// The other end speaks another version.
    #[error(
        "the other end speaks version {theirs} of the protocol, this one {ours}: install the same grebe at both ends"
    )]
    Version {
        /// Version of the other end.
        theirs: u64,
        /// Version of this end.
        ours: u64,
    },
    /// Conflicting roles: neither end has options, both have, or both want to send.
    #[error("the two ends do not fit: {what}")]
    Roles {
        /// The conflict.
        what: &'static str,
    },
    /// A source that cannot be copied.
    #[error("{}: {why}", shown(path))]
    Source {
        /// The source.
        path: PathBuf,
        /// The fault, and the remedy.
        why: &'static str,
    },
    /// The destination cannot be used.
    #[error("{}: {why}", shown(path))]
    Destination {
        /// The destination, or the obstacle there.
        path: PathBuf,
        /// The fault, and the remedy.
        why: &'static str,
    },
    /// Invalid pattern.
    #[error("invalid pattern '{pattern}': {why}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The fault.
        why: String,
    },
    /// The disk is full.
    #[error("{} has no room left; make room, then {}", shown(path), Error::RESUME)]
    NoRoom {
        /// The destination.
        path: PathBuf,
    },
    /// The offer exceeds the free space of the disk.
    #[error(
        "{} has room for {}, and {} are to come: make room, or receive into a directory of another disk",
        shown(path),
        size(*free_bytes),
        size(*needed_bytes)
    )]
    TooMuch {
        /// The destination.
        path: PathBuf,
        /// Free bytes.
        free_bytes: u64,
        /// Needed bytes.
        needed_bytes: u64,
    },
    /// The user at this end declined the files.
    #[error("the files were declined; nothing was received")]
    Declined,
    /// A file that the whole copy needs could not be opened, read or written.
    #[error("cannot {action} {}: {source}", shown(path))]
    File {
        /// The action, as a verb.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// Advice for resuming a copy, in messages. A caller with another way to resume puts its own text here.
    pub const RESUME: &str = "the same command goes on from there";

    /// Whether this end found the error, so that the other end does not know it.
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

/// Bytes for display: `314.6 MB`.
fn size(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB", "PB", "EB"];
    let (mut number, mut unit) = (bytes as f64, "bytes");
    for larger in units.into_iter().take_while(|_| bytes >= 1_000) {
        if number < 999.95 {
            break;
        }
        (number, unit) = (number / 1e3, larger);
    }
    if bytes < 1_000 { format!("{bytes} bytes") } else { format!("{number:.1} {unit}") }
}

/// Path for display, with control characters escaped.
pub(crate) fn shown(path: &Path) -> String {
    printable(path.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_reported_with_units_and_advice() {
        let error =
            |free_bytes| Error::TooMuch { path: "small".into(), free_bytes, needed_bytes: 2_500_000_000 };
        let said = error(314_572_800).to_string();
        assert!(said.starts_with("small has room for 314.6 MB, and 2.5 GB are to come: make room"), "{said}");
        assert!(
            error(999).to_string().contains("999 bytes") && error(999_999).to_string().contains("1.0 MB")
        );
    }
}
