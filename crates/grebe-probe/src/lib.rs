//! Measures the capacity of a network path, and finds its bottleneck.
//!
//! A [`Server`] waits with a one-time ticket. [`probe`] measures the path to it in both directions and
//! returns a [`Report`] with round trip, path MTU, clock offset, loss and its runs, reordering, duplicates,
//! jitter, the highest rate without loss, bufferbloat and TCP throughput. Each figure has a 95 % interval.
//! The report also gives advice in sentences.
//!
//! ```
//! use std::time::Duration;
//! use grebe_probe::{Bounds, ProbeOptions, ServeOptions, Server, probe};
//!
//! # fn main() -> Result<(), grebe_probe::Error> {
//! let bounds = Bounds {
//!     bytes_max: Some(2_000_000),
//!     duration_max: Some(Duration::from_secs(3)),
//!     rate_max_bps: Some(20e6),
//!     ..Bounds::default()
//! };
//! let bind = Some("127.0.0.1:0".parse().unwrap());
//! let server = Server::bind(&ServeOptions { bind, bounds, ..ServeOptions::default() })?;
//! let word = server.ticket().word();
//! let serving = std::thread::spawn(move || server.run(|event| println!("{event:?}")));
//!
//! // On the other host:
//! let ticket = grebe_probe::Ticket::from_word(&word, grebe_probe::Purpose::Probe)?;
//! let options = ProbeOptions {
//!     bounds,
//!     interval: Some(Duration::from_millis(2)),
//!     datagram_bytes: Some(1_000),
//!     tcp_writes: vec![],
//!     ..ProbeOptions::default()
//! };
//! let report = probe(&ticket, &options, |event| println!("{event:?}"))?;
//! assert!(report.rtt.min_ms.value < report.rtt.p99_ms.high);
//! assert!(report.up.loss.is_some());
//! assert_eq!(serving.join().unwrap()?, 1, "one client was served, and the server has ended");
//! # Ok(())
//! # }
//! ```
//!
//! To stop either side, keep a clone of the [`Cancel`] in its options.
//!
//! Internally, `proto` decides and `io` acts. Packets, trains, their assessment, the search and both sides'
//! sessions need no socket or clock, so tests run them on simulated links.
#![forbid(unsafe_code)]

mod error;
mod io;
mod proto;

pub use grebe_packet::{Address, Cancel, Key, Purpose, Ticket};

pub use error::{Error, Result};
pub use io::client::{ProbeOptions, probe};
pub use io::server::{ServeEvent, ServeOptions, Server};
pub use proto::estimate::Estimate;
pub use proto::limits::Bounds;
pub use proto::packet::PROTOCOL;
#[doc(hidden)]
pub use proto::packet::fuzz_packet;
pub use proto::report::{
    Advice, Direction, LimitedBy, ProbeEvent, Report, Rtt, Spacing, TcpResult, TrainResult, TransferTime,
};
pub use proto::train::DATAGRAM_BYTES;
