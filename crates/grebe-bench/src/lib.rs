//! Benchmarks of grebe's transport of samples and files.
//!
//! A number without its baseline is not a result. The simplest technique, measured in turns, stands beside every
//! [`Row`]. A row also states the losses, and the latency between the machine's cores before and after ([`canary`]).
//! Both sides of every comparison check every frame and file.
//!
//! Each bench has options for a command line (`clap::Args`) and a function `run`, which prints nothing and gives each
//! row to a closure:
//!
//! ```
//! use grebe_bench::{Progress, flow, markdown};
//! use std::time::Duration;
//!
//! let mut options = flow::Options::default();
//! options.parts = vec![flow::Part::Hop];
//! options.runs.duration = Duration::from_millis(2);
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
//! `grebe bench` has `udp` and `shm`. The program `grebe-bench` has the others, with the feature `developer` (and
//! `zenoh`).
//!
//! A [`Launcher`] starts the program again for benches between processes. Such a process calls [`peer_main`].

pub mod canary;
mod error;
#[cfg(feature = "developer")]
pub mod flow;
mod limit;
mod machine;
#[cfg(feature = "developer")]
mod pairs;
mod peer;
mod row;
mod runs;
pub mod shm;
mod stream;
mod system;
#[cfg(feature = "developer")]
pub mod transfer;
pub mod udp;
#[cfg(feature = "developer")]
pub mod view;
#[cfg(feature = "zenoh")]
pub mod zenoh;

pub use error::{Error, Result};
pub use machine::Machine;
pub use peer::Launcher;
pub use row::{Progress, Row, markdown};
pub use runs::Runs;
pub use stream::{Checker, FrameSender, Frames};

use peer::Task as _;

/// Runs a process of a bench: reads its task from standard input, writes its answers to standard output. `other` is a
/// program whose shared memory is measured beside ours.
///
/// # Errors
/// The task cannot be read, or the output is closed. An error within the task is an answer.
pub fn peer_main(other: Option<&dyn shm::Other>) -> Result<()> {
    let (bench, task) = peer::read_task()?;
    let done = match bench.as_str() {
        udp::UdpTask::BENCH => udp::peer(peer::task(task)?),
        shm::ShmTask::BENCH => shm::peer(&peer::task(task)?, other),
        #[cfg(feature = "developer")]
        transfer::TransferTask::BENCH => return transfer::peer(peer::task(task)?),
        #[cfg(feature = "zenoh")]
        zenoh::ZenohTask::BENCH => zenoh::peer(peer::task(task)?),
        _ => Err(Error::peer("task", format!("this program has no bench '{bench}'"))),
    };
    done.or_else(|error| peer::say_either::<()>(&Err(error.to_string())))
}
