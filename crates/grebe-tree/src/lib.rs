//! Trees of files over any reliable stream of bytes: a pipe, a socket, ssh, a session of `grebe-connection`.
//!
//! One end calls [`send`], the other [`receive`]; one of the two is given [`Options`], and they travel to the other. [`copy`] is both
//! in one process.
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
//! # What holds
//! - Walking, reading, sending and writing overlap, and no file costs a round trip of its own.
//! - A file gets its name when all of it is there and was verified. Until then it lies in `.grebe-partial` at the destination, and the
//!   same copy, begun again, goes on in the middle of it.
//! - A file that changes while it is read is read again, and left out when it does not hold still.
//! - Nothing outside the destination is touched, whatever the sender says and whatever links stand there.
//! - What cannot be copied stops nothing: it is [left out](LeftOut), with a reason, in both ends' reports.
//! - Holes of sparse files stay holes, and names are bytes.
//!
//! # Streams
//! A read or write that blocks must end with an error when the copy is cancelled from outside, as those of `grebe-connection` do; else
//! [`send`] and [`receive`] return only after it. Each drops its writer when it has said everything, and both writers are flushed
//! before anybody waits.
//!
//! The messages are described in `docs/tree-protocol.md`.
#![forbid(unsafe_code)]

mod arriving;
mod blocks;
mod delta;
mod directories;
mod error;
mod exclude;
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
mod system;
mod wire;

pub use arriving::Arriving;
pub use error::{Error, Result};
pub use grebe_packet::Cancel;
pub use local::copy;
pub use offering::{Accept, Offer, Offering};
pub use options::{Fsync, Options};
pub use progress::{Current, Done, Event, Notify, Progress, Snapshot};
pub use receive::{ReceiveTree, Reception, is_fresh, receive, receive_offer};
pub use report::{LEFT_OUT_KEPT, LeftOut, Report, Waits};
pub use send::{SendTree, check_sources, send, send_offer};
