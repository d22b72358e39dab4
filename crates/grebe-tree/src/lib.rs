//! Copies trees of files over any reliable byte stream: a pipe, a socket, ssh, a `grebe-connection`.
//!
//! One end calls [`send`], the other [`receive`]. One of the two gets [`Options`] and passes them to the
//! other. [`copy`] does both in one process.
//!
//! ```
//! use std::sync::Arc;
//!
//! use grebe_tree::{Cancel, Options, Progress, SendTree, copy};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (from, into) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! std::fs::create_dir(from.path().join("run7"))?;
//! std::fs::write(from.path().join("run7/samples.dat"), vec![7; 300_000])?;
//!
//! let tree = SendTree { sources: vec![from.path().join("run7")], options: Some(Options::archive()), is_fresh: false };
//! let report = copy(&tree, into.path(), &Arc::new(Progress::default()), &Cancel::default())?;
//! assert_eq!((report.files_copied, report.directories_made), (1, 1));
//! assert_eq!(std::fs::read(into.path().join("run7/samples.dat"))?, vec![7; 300_000]);
//!
//! let again = copy(&tree, into.path(), &Arc::new(Progress::default()), &Cancel::default())?;
//! assert_eq!((again.files_copied, again.files_same), (0, 1));
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//! - Walking, reading, sending and writing overlap. No file costs a round trip of its own.
//! - A file gets its final name only when it is complete and verified. Until then it lies in `.grebe-partial`
//!   at the destination, and the same copy resumes there.
//! - A file that changes while it is read is read again. It is skipped if it keeps changing.
//! - Nothing outside the destination changes, for any message of the sender and any link there.
//! - A file that cannot be copied stops nothing. Both ends report it as [skipped](LeftOut), with a reason.
//! - Holes of sparse files stay holes. Names are bytes.
//!
//! # Streams
//! A blocking read or write must return an error when the copy is cancelled from outside, as those of
//! `grebe-connection` do. Otherwise [`send`] and [`receive`] return only after it. Each end drops its writer
//! after its last message, and flushes it before it waits.
//!
//! `docs/tree-protocol.md` describes the messages.
#![forbid(unsafe_code)]

mod arriving;
mod blocks;
mod delta;
mod directories;
mod error;
mod exclude;
mod handover;
#[cfg(test)]
mod hostile;
mod local;
mod name;
mod offering;
mod options;
mod pipe;
mod progress;
mod reading_thread;
mod receive;
mod report;
mod scan;
mod send;
mod stretch;
mod system;
mod wire;

pub use arriving::Arriving;
pub use error::{Error, Result};
pub use grebe_packet::Cancel;
pub use local::copy;
pub use offering::{Accept, Offer, Offering};
pub use options::{Fsync, Options};
pub use progress::{Current, Done, Event, Notify, Progress, Snapshot};
pub use receive::{ReceiveTree, Reception, is_fresh, nests, receive, receive_offer};
pub use report::{LEFT_OUT_KEPT, LeftOut, Report, Waits};
pub use send::{SendTree, check_sources, send, send_offer};
