//! Byte streams over long distances: encrypted, verified, and at the rate of the path, whatever its round
//! trip and loss.
//!
//! One end [listens](ConnectionListener) and makes a [`Ticket`]; the other end has the ticket and
//! [connects](fn@connect). Both then have a [`Connection`], a stream of bytes each way, and speak a protocol
//! of their own.
//!
//! A ticket is one secret word that a person hands over. It names the listener's addresses, is good for one
//! session, and both ends prove to each other that they have it.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::thread;
//! use std::time::Duration;
//!
//! use grebe_connection::{ConnectionListener, ConnectionOptions, Purpose, Ticket, connect};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! // On one host: listen, and hand the ticket's word to the other side.
//! let hour = Duration::from_secs(3_600);
//! let listener = ConnectionListener::bind("127.0.0.1:0".parse()?, Purpose::Connection, hour)?;
//! let word = listener.ticket.word();
//! let reading = thread::spawn(move || {
//!     let mut connection = listener.accept(&ConnectionOptions::default())?;
//!     let mut came = Vec::new();
//!     connection.reader.read_to_end(&mut came)?;
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(came)
//! });
//!
//! // On the other: nothing is to be set, neither a bandwidth nor a round trip nor a window.
//! let ticket = Ticket::from_word(&word, Purpose::Connection)?;
//! let options = ConnectionOptions { limit_bits_per_s: Some(1e9), ..ConnectionOptions::default() };
//! let mut connection = connect(&ticket, &options)?;
//! connection.writer.write_all(&vec![7; 300_000])?;
//! drop(connection.writer);
//!
//! assert_eq!(reading.join().expect("the thread does not panic")?, vec![7; 300_000]);
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//! - A path that blocks UDP is crossed over TCP, and [`ConnectionOptions::notify`] reports it.
//! - Ends that may not reach each other meet at the [ticket's relay](Ticket::relay). They connect directly if
//!   their NATs allow it, otherwise through the relay. [`Notice`] reports the route and [`Via`] chooses it.
//! - [`Mode`] sets the share of a shared path. [`ConnectionProgress::limit`] names the bottleneck.
//!
//! # Out of scope
//! This crate does not discover peers, keep lists of tickets or handle files. `grebe-tree` sends trees over a
//! connection.
//!
//! The protocol is described in `docs/transfer-protocol.md`.
#![forbid(unsafe_code)]

mod error;
mod io;
mod proto;

pub use error::{Error, Result, shown};
pub use grebe_datagram::listen_anywhere;
pub use grebe_packet::{Address, Cancel, Purpose, Ticket, is_printable, printable};
pub use grebe_relay::{PORT as RELAY_PORT, Refusal, Through, Via};
pub use io::session::{
    Notice, Notify, Transport, WhyRelayed,
    connection::{
        Connection, ConnectionListener, ConnectionOptions, ConnectionProgress, ConnectionReader,
        ConnectionStatus, ConnectionWriter, Greet, connect,
    },
};
pub use proto::{
    congestion::{Mode, Phase, PhaseCost},
    sender::{Limit, SendCounters},
    wire::Verdict,
};

/// The protocol's core for this workspace's benchmarks, fuzz targets and tests. It may change in any release.
///
/// A module rather than a feature: the command's own benchmark simulates connections, so the feature would
/// always be on.
#[doc(hidden)]
pub mod internals {
    pub use crate::proto::{
        connection::{Broken, ConnectionEnd},
        handshake::{INIT_BYTES, Initiator, Responder, Session},
        ranges::RangeSet,
        receiver::{Arrived, Receiver},
        sender::{Sender, SenderOptions, Transmit},
        sent_packets::Item,
        stream_buffer::{Chunk, ReceiveBuffer, SendBuffer},
        train::{FIRST_PACKETS, HANDSHAKE_TRAIN_AFTER_US, HandshakeTrain},
        wire::{
            Feedback, Frame, HEADER_BYTES, Header, ReceivedPackets, RunBytes, Stamp, TAG_BYTES, Train,
            UDP_IP_BYTES,
        },
    };
}
