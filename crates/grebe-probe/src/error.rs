use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Error that ends a probe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Unreadable ticket, or a key that cannot be made.
    #[error(transparent)]
    Ticket(#[from] grebe_packet::Error),
    /// The ticket has expired, so nothing answers.
    #[error("the ticket has expired; start `grebe probe --serve` again")]
    Expired,
    /// Limit that no probe can meet.
    #[error("{what}")]
    Limit {
        /// The limit, with advice.
        what: String,
    },
    /// The host of a ticket has no address.
    #[error("cannot find the address of `{host}`: {source}")]
    Resolve {
        /// Host name of the ticket.
        host: String,
        /// The system's error.
        source: io::Error,
    },
    /// No answer arrived.
    #[error(
        "{peer} did not answer within {} s: is `grebe probe --serve` running there, is the ticket of this run, and does UDP to that \
         port reach it, through a firewall or by a router that passes it on?", waited.as_secs()
    )]
    Silent {
        /// The server.
        peer: SocketAddr,
        /// Time since the first packet.
        waited: Duration,
    },
    /// The server ended the session.
    #[error("{peer} ended the probe: {why}")]
    Ended {
        /// The server.
        peer: SocketAddr,
        /// The server's reason.
        why: &'static str,
    },
    /// Sending or receiving datagrams failed.
    #[error(transparent)]
    Datagram(#[from] grebe_datagram::Error),
    /// A TCP connection or a thread failed.
    #[error("cannot {action}: {source}")]
    System {
        /// The failed action, as a verb.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The probe was cancelled.
    #[error("cancelled")]
    Cancelled,
}
