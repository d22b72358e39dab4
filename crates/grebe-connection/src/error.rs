use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use grebe_packet::{Address, printable};

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Error of a transfer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Malformed packet, which no sender of this protocol makes. The receiver drops it.
    #[error("not a packet of this protocol: {what}")]
    Malformed {
        /// The fault.
        what: &'static str,
    },
    /// Packet that was not sealed with the session's key, or was changed in transit. The receiver drops it.
    #[error("a packet that does not authenticate: another session's, or changed on its way")]
    NotAuthentic,
    /// Unreadable ticket.
    #[error("{}", grebe_packet::Error::Ticket { what })]
    Ticket {
        /// The fault.
        what: &'static str,
    },
    /// The system has no random numbers, or the handshake failed to compute.
    #[error("cannot make keys: {what}")]
    Keys {
        /// The step that failed.
        what: String,
    },
    /// The peer never answered.
    #[error("no answer from {peer} within {} s: is it running, was its ticket not used already (it is good for one peer), and does its host let UDP in, through a firewall, or by a port that a router passes on?", waited.as_secs())]
    NoAnswer {
        /// The peer.
        peer: SocketAddr,
        /// Time since the first question.
        waited: Duration,
    },
    /// The ends did not meet at the ticket's relay.
    #[error("cannot meet at the relay {relay}: {why}")]
    Relay {
        /// The relay.
        relay: Address,
        /// The reason, and the remedy.
        why: String,
    },
    /// The peer answered once and then fell silent.
    #[error("the peer has been silent for {} s", waited.as_secs())]
    Silent {
        /// Duration of the silence.
        waited: Duration,
    },
    /// This side was cancelled.
    #[error("stopped")]
    Cancelled,
    /// Nobody connected before the ticket expired.
    #[error("the ticket expired unused; make a new one")]
    Expired,
    /// The peer violates the protocol, so this side stops.
    #[error("the other side breaks the protocol: {what}; is it grebe, of the same version?")]
    Protocol {
        /// The violation.
        what: &'static str,
    },
    /// The peer ended the transfer.
    #[error("the other side ended the transfer: {}", describe(*verdict))]
    Ended {
        /// The peer's verdict.
        verdict: Verdict,
    },
    /// A socket failed.
    #[error(transparent)]
    Socket(#[from] grebe_datagram::Error),
}

/// Outcome of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every byte arrived.
    Whole = 0,
    /// One end cancelled.
    Cancelled = 4,
    /// Another end has used the ticket.
    Taken = 7,
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

/// Path for display, with control characters escaped so that it cannot affect a terminal.
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
        Verdict::Taken => "another peer used the ticket first; a ticket is good once",
        Verdict::Cancelled => "it was stopped, or could not read; send the same files again to resume",
    }
}
