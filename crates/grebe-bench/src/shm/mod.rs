//! Samples from one process to others through shared memory and pipes, beside a Unix socket and UDP with the same frames; and
//! what each way into a program adds to the age of a frame.
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
mod faults;
mod ingress;
mod make;
mod plan;
mod produce;
mod report;
mod requirements;
mod run;

pub use check::{Checker, Seen};
pub use consume::peer_main;
pub use faults::Faults;
pub use make::{Made, Maker};
pub use plan::{Job, Part, Plan, SCENARIOS, Scenario, Spawn, Technique, Work};
pub use report::{ConsumerRow, LatencyRatio, Row, markdown};
pub use requirements::{Report, Requirement};
pub use run::{run, run_other};
