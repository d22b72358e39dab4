//! Benchmarks of how grebe moves samples and files.
//!
//! A number without its baseline is not a result. Every [`Row`] stands beside the plainest technique, measured in turn with it,
//! and says what was lost and how far apart the machine's cores were before and after ([`canary`]). Every frame and file is
//! checked for being the right one, on both sides of every comparison.
//!
//! Each bench has its options and a function `run`, which prints nothing and hands each row to a closure:
//!
//! ```
//! use grebe_bench::flow::{self, Options};
//! use grebe_bench::{Progress, markdown};
//! use std::time::Duration;
//!
//! let options = Options { parts: vec!["hop".to_owned()], duration: Duration::from_millis(2), repeats: 3 };
//! let mut rows = Vec::new();
//! flow::run(&options, &mut |progress| {
//!     if let Progress::Row(row) = progress {
//!         println!("{}", row.line());
//!         rows.push(row.clone());
//!     }
//! })?;
//! assert!(markdown(&rows).contains("ns per frame"));
//! # Ok::<(), grebe_bench::Error>(())
//! ```
//!
//! Benches between processes start the program again by a [`Launcher`]; such a process calls [`peer_main`].
#![forbid(unsafe_code)]

pub mod canary;
mod clock;
mod cores;
mod error;
pub mod flow;
mod peer;
mod row;
pub mod shm;
mod stats;
mod stream;
pub mod transfer;
pub mod udp;
pub mod view;

pub use error::{Error, Result};
pub use peer::Launcher;
pub use row::{Progress, Row, markdown};
pub use stream::{Checker, Turns};

/// Runs a process of a bench: its task comes on standard input, its answers go to standard output.
///
/// # Errors
/// Where the task cannot be read or nobody listens. What fails in the task itself is an answer.
pub fn peer_main() -> Result<()> {
    answer(None)
}

/// The same for a program that measures its own shared memory beside ours.
///
/// # Errors
/// As [`peer_main`].
pub fn peer_main_beside(other: &dyn shm::Other) -> Result<()> {
    answer(Some(other))
}

fn answer(other: Option<&dyn shm::Other>) -> Result<()> {
    let task = peer::read_task()?;
    let done = match task.bench.as_str() {
        "udp" => udp::peer(task.parse()?),
        "shm" => shm::peer(&task.parse()?, other),
        _ => transfer::peer(task.parse()?),
    };
    done.or_else(|error| peer::say_failed(&error))
}
