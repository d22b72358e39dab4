use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use grebe_packet::{Address, printable};

use crate::proto::wire::Verdict;

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
    #[error("{}", grebe_packet::Error::Ticket { what })]
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
    #[error("no answer from {peer} within {} s: is it running, and does its host let UDP in, through a firewall, or by a port that a router passes on?", waited.as_secs())]
    NoAnswer {
        /// Who was asked.
        peer: SocketAddr,
        /// For how long.
        waited: Duration,
    },
    /// The ends did not meet at the relay of the ticket.
    #[error("cannot meet at the relay {relay}: {why}")]
    Relay {
        /// The relay.
        relay: Address,
        /// What is wrong, and what to look at.
        why: String,
    },
    /// The peer answered once and has been silent since.
    #[error("the peer has been silent for {} s", waited.as_secs())]
    Silent {
        /// For how long.
        waited: Duration,
    },
    /// This side was cancelled.
    #[error("stopped")]
    Cancelled,
    /// Nobody connected before the ticket expired.
    #[error("nobody came while the ticket was good; make a new one")]
    Expired,
    /// The peer does what no program of this protocol does: this side goes no further.
    #[error("the other side breaks the protocol: {what}; is it grebe, of the same version?")]
    Protocol {
        /// What it does.
        what: &'static str,
    },
    /// The peer ended the transfer.
    #[error("the other side ended the transfer: {}", describe(*verdict))]
    Ended {
        /// How it ended there.
        verdict: Verdict,
    },
    /// A socket failed.
    #[error(transparent)]
    Socket(#[from] grebe_datagram::Error),
}

impl From<grebe_packet::Error> for Error {
    fn from(error: grebe_packet::Error) -> Self {
        match error {
            grebe_packet::Error::Malformed { what } => Self::Malformed { what },
            grebe_packet::Error::Ticket { what } => Self::Ticket { what },
            other => Self::Keys { what: other.to_string() },
        }
    }
}

/// A path for people: nothing in it does anything to a terminal.
pub fn shown(path: &Path) -> String {
    printable(path.as_os_str().as_encoded_bytes())
}

impl From<grebe_relay::Error> for Error {
    fn from(error: grebe_relay::Error) -> Self {
        match error {
            grebe_relay::Error::Socket(error) => Self::Socket(error),
            other => Self::Keys { what: other.to_string() },
        }
    }
}

fn describe(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Whole => "it has everything",
        Verdict::Taken => "somebody else used the ticket first; it is good once",
        Verdict::Cancelled => {
            "it was told to stop, or could not read; the same files sent again go on from here"
        }
    }
}
