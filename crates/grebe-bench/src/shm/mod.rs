//! Samples from one process to others through shared memory, beside a Unix socket, a pipe and UDP with the same frames.
//!
//! The producer writes fresh data in each frame; every consumer checks each frame, in place by its minimum and maximum, or
//! after a copy by every byte.
//!
//! ```no_run
//! use grebe_bench::shm::{self, Plan};
//! # fn peer() -> std::process::Command { todo() }
//! # fn todo() -> std::process::Command { std::process::Command::new("grebe") }
//! let rows = shm::run(&Plan::new(peer), |row| println!("{}", row.line())).unwrap();
//! println!("{}", shm::markdown(&rows));
//! ```

mod check;
mod consume;
mod make;
mod plan;
mod produce;
mod report;
mod run;

pub use check::{Checker, Seen};
pub use consume::peer_main;
pub use make::{Made, Maker};
pub use plan::{Job, Plan, SCENARIOS, Scenario, Spawn, Technique, Work};
pub use report::{ConsumerRow, Row, markdown};
pub use run::{run, run_other};
