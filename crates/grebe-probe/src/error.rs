use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can end a probe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A ticket that cannot be read, or a key that cannot be made.
    #[error(transparent)]
    Ticket(#[from] grebe_packet::Error),
    /// Nothing answers any more: the ticket's time is over.
    #[error("the ticket's time is over; start `grebe probe --serve` again")]
    Expired,
    /// A limit that no probe can keep to.
    #[error("{what}")]
    Limit {
        /// Which one, and what to do.
        what: String,
    },
    /// The host of a ticket has no address.
    #[error("cannot find the address of `{host}`: {source}")]
    Resolve {
        /// As the ticket names it.
        host: String,
        /// What the system said.
        source: io::Error,
    },
    /// Nothing came back.
    #[error(
        "{peer} did not answer within {} s: is `grebe probe --serve` running there, is the ticket of this run, and does UDP to that \
         port reach it, through a firewall or by a router that passes it on?", waited.as_secs()
    )]
    Silent {
        /// Who was asked.
        peer: SocketAddr,
        /// For how long.
        waited: Duration,
    },
    /// The server ended the session.
    #[error("{peer} ended the probe: {why}")]
    Ended {
        /// The server.
        peer: SocketAddr,
        /// What it said.
        why: &'static str,
    },
    /// Sending or receiving datagrams failed.
    #[error(transparent)]
    Datagram(#[from] grebe_datagram::Error),
    /// A TCP connection or a thread failed.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried, as a verb.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The probe was cancelled.
    #[error("cancelled")]
    Cancelled,
}
