//! Bytes and files over long distances: every byte, encrypted and verified, at the rate of the path, whatever its round trip and loss.
//!
//! One end [listens](ConnectionListener) and makes a [`Ticket`]; the other end has the ticket and [connects](fn@connect). Both then have a
//! [`Connection`], a stream of bytes each way. Either end may [`send`] over it, and the other one [`receive`]: trees of files, by
//! [`grebe_tree`]; or both speak a protocol of their own.
//!
//! A ticket is one secret word that a person hands over. It names the listener's addresses, is good for one session, and both
//! ends prove to each other that they have it.
//!
//! ```
//! use std::thread;
//! use std::time::Duration;
//!
//! use grebe_transfer::{
//!     Cancel, ConnectionListener, ConnectionOptions, Offering, Purpose, Reception, Ticket, connect, receive, send,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let (from, into) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! let file = from.path().join("run7.bin");
//! std::fs::write(&file, vec![7; 300_000])?;
//!
//! // On the host that receives: listen, and hand the ticket's word to the other side.
//! let hour = Duration::from_secs(3_600);
//! let listener = ConnectionListener::bind("127.0.0.1:0".parse()?, Purpose::Transfer, hour)?;
//! let word = listener.ticket.word();
//! let reception = Reception { directory: into.path().to_path_buf(), overwrite: true, accept: None, sender_waits: false };
//! let receiving = thread::spawn(move || {
//!     let connection = listener.accept(&ConnectionOptions::default())?;
//!     receive(connection, &reception, &Cancel::default(), |progress| {
//!         eprintln!("{} of {} bytes", progress.bytes, progress.total_bytes);
//!     })
//! });
//!
//! // On the host that sends: nothing is to be set, neither a bandwidth nor a round trip nor a window.
//! let offering = Offering::look(&[file], &[], &Cancel::default())?;
//! let ticket = Ticket::from_word(&word, Purpose::Transfer)?;
//! let options = ConnectionOptions { limit_bits_per_s: Some(1e9), ..ConnectionOptions::default() };
//! let sent = send(connect(&ticket, &options)?, &offering, &Cancel::default(), |progress| {
//!     eprintln!("{} bytes, limit: {:?}", progress.bytes, progress.connection.limit);
//! })?;
//! assert_eq!(sent.file_bytes, 300_000);
//!
//! let received = receiving.join().expect("the thread does not panic")?;
//! assert_eq!(std::fs::read(&received.paths[0])?, vec![7; 300_000]);
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//! - `send` returns when the receiver has written and verified every byte, or named what it could not have.
//! - A file gets its name when it is whole. After a crash, a [`Cancel`] or a broken path, send the same files to the same directory
//!   again, with a new ticket: the transfer goes on where it was.
//! - A file that cannot be sent, or that changes meanwhile, does not stop the others, and is [named](LeftOut).
//! - A path that lets no UDP pass is crossed over TCP, and [`ConnectionOptions::notify`] says so.
//! - Ends that may not reach each other meet at the relay that the [ticket](Ticket::relay) names, and go directly where a NAT lets
//!   them, else by the relay; [`Notice`] says which. [`Via`] chooses.
//! - [`Mode`] says how much of a shared path to take; [`ConnectionProgress::limit`] says what keeps a transfer from being faster.
//!
//! # What this crate does not do
//! It finds no peers, and keeps no list of tickets.
//!
//! The protocol is described in `docs/transfer-protocol.md`.
#![forbid(unsafe_code)]

mod error;
mod files;
mod io;
mod proto;

pub use error::{Error, Result, shown};
pub use files::{TransferProgress, TransferReport, receive, send};
pub use grebe_packet::{Address, Cancel, Purpose, Ticket, is_printable, printable};
pub use grebe_relay::{PORT as RELAY_PORT, Refusal, Through, Via};
pub use grebe_tree::{Accept, LeftOut, Offer, Offering, Reception};
pub use io::session::{
    Notice, Notify, Transport, WhyRelayed,
    connect::listen_anywhere,
    connection::{
        Connection, ConnectionListener, ConnectionOptions, ConnectionProgress, ConnectionReader,
        ConnectionStatus, ConnectionWriter, connect,
    },
};
pub use proto::{
    congestion::{Mode, Phase, PhaseCost},
    sender::{Limit, SendCounters},
    wire::Verdict,
};

/// The protocol's core for this workspace's benchmarks, fuzz targets and tests. It may change in any release.
///
/// A module and not a feature: the command's own benchmark simulates transfers, so that a feature would always be on.
#[doc(hidden)]
pub mod internals {
    pub use crate::proto::{
        connection::{Broken, ConnectionEnd},
        handshake::{INIT_BYTES, Initiator, Responder, Session},
        ranges::RangeSet,
        receiver::{Arrived, Receiver},
        sender::{Sender, SenderOptions, Transmit},
        sent_packets::Item,
        simulator,
        stream_buffer::{Chunk, ReceiveBuffer, SendBuffer},
        wire::{Feedback, Frame, HEADER_BYTES, Header, ReceivedPackets, RunBytes, Stamp, TAG_BYTES, Train},
    };
}
