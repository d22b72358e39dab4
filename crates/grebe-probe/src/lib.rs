//! What can this path carry, and why not more?
//!
//! A [`Server`] waits with a one-time key; [`probe`] measures the way to it and back, and returns a [`Report`]: round trip, path MTU,
//! clock offset, loss and its runs, reordering, copies, jitter, the highest rate without loss, what full queues cost, what TCP
//! makes of it; each with a 95 % interval, and what to do about it in words.
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
//! let bind = "127.0.0.1:0".parse().unwrap();
//! let server = Server::bind(&ServeOptions { bind, bounds, clients: 1, idle_max: Duration::from_secs(10) })?;
//! let ticket = server.ticket().clone();
//! let serving = std::thread::spawn(move || server.run(&|| false, &mut |_| {}));
//!
//! let options = ProbeOptions {
//!     bounds,
//!     interval: Some(Duration::from_millis(2)),
//!     datagram_bytes: Some(1_000),
//!     tcp_writes: vec![],
//!     ..ProbeOptions::default()
//! };
//! let report = probe(&ticket, &options, &|| false, &mut |_| {})?;
//! assert!(report.rtt.min_ms.value < report.rtt.p99_ms.high);
//! assert!(report.up.loss.is_some());
//! assert_eq!(serving.join().unwrap()?, 1, "one client was served, and the server has ended");
//! # Ok(())
//! # }
//! ```
//!
//! The [search](Search), the [judgement of a train](judge) and the [tracker](Tracker) have no socket and no clock: they are tested
//! on simulated links.
#![forbid(unsafe_code)]

mod client;
mod endpoint;
mod error;
mod interval;
mod key;
mod limits;
mod packet;
mod replay;
mod report;
mod search;
mod server;
#[cfg(test)]
mod simulated;
mod tcp;
mod tracker;
mod train;
mod verdict;
mod wire;

pub use client::{ProbeOptions, Probing, probe, resolve};
pub use error::{Error, Result};
pub use interval::{Estimate, mean, quantile, share};
pub use key::{Key, Ticket};
pub use limits::{Bounds, Limits};
pub use packet::PROTOCOL;
#[doc(hidden)]
pub use packet::fuzz_packet;
pub use report::{Advice, Move, Report, Rtt, Spacing, Tcp, TrainLine, Way};
pub use search::{BaseLoss, Found, Limit, Search, Step, Trial, judge};
pub use server::{ServeOptions, Server, Serving};
pub use tracker::{Summary, Tracker};
pub use train::{Train, packet_bits};
pub use verdict::tcp_cubic_bps;
