use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::wire::Verdict;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with a transfer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A packet that no sender of this protocol makes. It is dropped.
    #[error("not a packet of this protocol: {what}")]
    Malformed {
        /// What is wrong with it.
        what: &'static str,
    },
    /// A packet that was not made with the session's key, or was changed on its way. It is dropped.
    #[error("a packet that does not authenticate: another session's, or changed on its way")]
    NotAuthentic,
    /// A ticket that cannot be read.
    #[error("not a ticket: {what}; a ticket is one word that begins with grebe, copied whole")]
    Ticket {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The system has no random numbers, or the handshake cannot be computed.
    #[error("cannot make keys: {what}")]
    Keys {
        /// What failed.
        what: String,
    },
    /// The peer did not answer at all.
    #[error("no answer from {peer} within {} s: is it running, and does a firewall between let UDP pass?", waited.as_secs())]
    NoAnswer {
        /// Who was asked.
        peer: SocketAddr,
        /// For how long.
        waited: Duration,
    },
    /// The peer answered once and has been silent since.
    #[error("the peer has been silent for {} s", waited.as_secs())]
    Silent {
        /// For how long.
        waited: Duration,
    },
    /// Nobody came while the ticket was good.
    #[error("no sender came while the ticket was good; make a new one")]
    Expired,
    /// What was written is not what was read.
    #[error("{} is not what was sent: it changed while it was read, or a disk is broken; send it again", path.display())]
    HashDiffers {
        /// The file, which still has its `.part` name.
        path: PathBuf,
    },
    /// The receiver ended the transfer.
    #[error("the receiver ended the transfer: {}", describe(*verdict))]
    Ended {
        /// How it ended there.
        verdict: Verdict,
    },
    /// A file could not be opened, read, written or renamed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A socket failed.
    #[error(transparent)]
    Socket(#[from] grebe_datagram::Error),
}

fn describe(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Whole => "it has the whole file",
        Verdict::HashDiffers => {
            "what it wrote is not what was read: the file changed meanwhile, or a disk is broken"
        }
        Verdict::CannotWrite => "it cannot write; its own message says why",
        Verdict::Refused => "it does not take this file",
    }
}
