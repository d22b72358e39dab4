//! Files over long distances: every byte, encrypted and verified, at the rate of the path, whatever its round trip and loss.
//!
//! One end *listens* and makes a [`Ticket`]; the other end has the ticket and connects. Either may be the one that sends:
//!
//! | listens | connects |
//! |---|---|
//! | [`ReceiveListener`] | [`send`] |
//! | [`SendListener`] | [`receive`] |
//! | [`ConnectionListener`] | [`connect`](fn@connect) |
//!
//! The last row moves no files: a [`Connection`] is a stream of bytes each way, for protocols of their own.
//!
//! A ticket is one secret word that a person hands over. It names the listener's addresses, is good for one session, and both
//! ends prove to each other that they have it.
//!
//! ```
//! use std::sync::Arc;
//! use std::thread;
//! use std::time::Duration;
//!
//! use grebe_transfer::{
//!     Purpose, ReceiveListener, ReceiveOptions, SendOptions, Source, Ticket, send,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let (from, into) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! let file = from.path().join("run7.bin");
//! std::fs::write(&file, vec![7; 300_000])?;
//!
//! // On the host that receives: listen, and hand the ticket's word to the other side.
//! let listener = ReceiveListener::bind("127.0.0.1:0".parse()?, Duration::from_secs(3_600))?;
//! let word = listener.ticket.word();
//! let directory = into.path().to_path_buf();
//! let receiving = thread::spawn(move || {
//!     let options = ReceiveOptions { overwrite: true, ..ReceiveOptions::default() };
//!     listener.receive(&directory, &options, |progress| {
//!         eprintln!("{} of {} bytes", progress.received_bytes, progress.total_bytes);
//!     })
//! });
//!
//! // On the host that sends: nothing is to be set, neither a bandwidth nor a round trip nor a window.
//! let ticket = Ticket::from_word(&word, Purpose::Transfer)?;
//! let source = Arc::new(Source::open(&[file])?);
//! let options = SendOptions { limit_bits_per_s: Some(1e9), ..SendOptions::default() };
//! let sent = send(&source, &ticket, &options, |progress| {
//!     eprintln!("{} bytes confirmed, limit: {:?}", progress.confirmed_bytes, progress.limit);
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
//! - `send` returns when the receiver has written and verified every byte; each 256 KiB have a BLAKE3 hash.
//! - Received files lie in a folder `.grebe-partial` until everything is whole. After a crash, a [`Cancel`] or a broken path, send
//!   the same files to the same directory again, with a new ticket: the transfer goes on where it was.
//! - A file that cannot be sent, or that changes meanwhile, does not stop the others, and is [named](LeftOut).
//! - A path that lets no UDP pass is crossed over TCP, and [`SendOptions::notify`] says so.
//! - Ends that may not reach each other meet at the relay that the [ticket](Ticket::relay) names, and go directly where a NAT lets
//!   them, else by the relay; [`Notice`] says which. [`Via`] chooses.
//! - [`Mode`] says how much of a shared path to take; [`SendProgress::limit`] says what keeps a transfer from being faster.
//!
//! # What this crate does not do
//! It finds no peers, and keeps no list of tickets. It does not synchronise directories: what is there
//! stays, or is replaced whole.
//!
//! The protocol is described in `docs/transfer-protocol.md`.
#![forbid(unsafe_code)]

mod error;
mod io;
mod proto;

pub use error::{Error, Result, shown};
pub use grebe_packet::{Address, Cancel, Purpose, Ticket, is_printable, printable};
pub use grebe_relay::{PORT as RELAY_PORT, Refusal, Through, Via};
pub use io::{
    disk::{Accept, LeftOut, Offered, Renamed, source::Source},
    session::{
        Notice, Notify, ReceiveProgress, ReceiveReport, SendReport, Transport, WhyRelayed,
        connect::listen_anywhere,
        connection::{
            Connection, ConnectionListener, ConnectionOptions, ConnectionProgress, ConnectionReader,
            ConnectionStatus, ConnectionWriter, connect,
        },
        receive::{ReceiveListener, ReceiveOptions, receive},
        send::{SendListener, SendOptions, send},
    },
};
pub use proto::{
    congestion::{Mode, Phase, PhaseCost},
    sender::{Limit, SendCounters, SendProgress},
    wire::Verdict,
};

/// The protocol's core for this workspace's benchmarks, fuzz targets and tests. It may change in any release.
///
/// A module and not a feature: the command's own benchmark simulates transfers, so that a feature would always be on.
#[doc(hidden)]
pub mod internals {
    pub use crate::proto::{
        connection::{Broken, ConnectionEnd},
        handshake::{INIT_BYTES, Initiator, Responder, Role, Session},
        index::{Entry, Index},
        ranges::RangeSet,
        receiver::{Arrived, Receiver},
        sender::{Sender, SenderOptions, Transmit},
        sent_packets::Item,
        simulator,
        stream_buffer::{Chunk, ReceiveBuffer, SendBuffer},
        wire::{
            Feedback, Frame, HEADER_BYTES, Header, HeldRanges, Offer, ReceivedPackets, RunBytes, Stamp,
            TAG_BYTES, Train,
        },
    };
}
