//! UDP between two processes: how fast, how much is lost, how late.
//!
//! ```no_run
//! use grebe_bench::udp::{self, Plan};
//! let results = udp::run(&Plan::default(), |result| println!("{}", result.line())).unwrap();
//! println!("{}", udp::markdown(&results));
//! ```

mod amortise;
pub(crate) mod pattern;
mod plan;
mod receive;
mod report;
mod run;
mod scenario;
mod send;
mod sweep;

pub use amortise::{Amortised, amortise, amortise_with};
pub use plan::{Fault, Plan, Spawn, Technique};
pub use receive::{Watch, peer_main};
pub use report::{Latency, RunResult, markdown};
pub use run::{run, run_other};
pub use scenario::{SCENARIOS, Scenario};
pub use send::{Frames, Outlet};
pub use sweep::{Reach, reach};
