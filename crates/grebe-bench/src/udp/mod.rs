//! UDP between two processes: how fast, how much is lost, how late.
//!
//! ```no_run
//! use grebe_bench::udp::{self, Plan};
//! let results = udp::run(&Plan::default(), |result| println!("{}", result.line())).unwrap();
//! println!("{}", udp::markdown(&results));
//! ```

mod pattern;
mod plan;
mod receive;
mod report;
mod run;
mod scenario;
mod send;

pub use plan::{Fault, Plan, Spawn, Technique};
pub use receive::peer_main;
pub use report::{Latency, RunResult, markdown};
pub use run::run;
pub use scenario::{SCENARIOS, Scenario};
