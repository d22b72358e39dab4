//! The runtime: what stages, queues and telemetry cost, each beside the same work without them.
//!
//! ```no_run
//! use grebe_bench::flow::{self, Plan};
//! let rows = flow::run(&Plan::default(), |row| println!("{}", row.line())).unwrap();
//! println!("{}", flow::markdown(&rows));
//! ```

mod chain;
mod decimate;
mod fan_out;
mod hop;
mod pairs;
mod row;
mod stages;
mod telemetry;

use std::time::Duration;

pub use pairs::{Pairs, Spread, interleave};
pub use row::{Goal, Row, markdown};

use crate::{Error, Result};

/// What to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Which benches.
    pub benches: Vec<Bench>,
    /// About how long one run takes.
    pub duration: Duration,
    /// Pairs of runs, each beside its baseline; medians are reported. Where an interval of the ratio is stated, at least 20.
    pub repeats: usize,
}

/// One bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bench {
    /// A generator, three transforms and a hash, against the same in one loop.
    Chain,
    /// What handing on a batch costs a frame.
    Hop,
    /// Two consumers, one of which sleeps, against one.
    FanOut,
    /// A decimating stage against its loop on memory last written by the other core.
    Decimate,
    /// Counters that are read ten times a second, against counters that are not.
    Telemetry,
}

impl Bench {
    /// All of them.
    pub const ALL: [Bench; 5] = [Bench::Chain, Bench::Hop, Bench::FanOut, Bench::Decimate, Bench::Telemetry];

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Bench::Chain => "chain",
            Bench::Hop => "hop",
            Bench::FanOut => "fan_out",
            Bench::Decimate => "decimate",
            Bench::Telemetry => "telemetry",
        }
    }

    /// The bench of this name.
    ///
    /// # Errors
    /// [`Error::UnknownBench`], which lists them all.
    pub fn by_name(name: &str) -> Result<Bench> {
        Bench::ALL.into_iter().find(|bench| bench.name() == name).ok_or_else(|| Error::UnknownBench {
            name: name.to_owned(),
            known: Bench::ALL.map(Bench::name).join(", "),
        })
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self { benches: Bench::ALL.to_vec(), duration: Duration::from_millis(250), repeats: 5 }
    }
}

/// Measures everything that the plan names, and calls `done` with each row as soon as it is known.
///
/// # Errors
/// Where a graph fails, or what it did is not what its baseline did.
pub fn run(plan: &Plan, mut done: impl FnMut(&Row)) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for bench in &plan.benches {
        let mut one = |row: Row| {
            done(&row);
            rows.push(row);
        };
        match bench {
            Bench::Chain => chain::run(plan, &mut one)?,
            Bench::Hop => hop::run(plan, &mut one)?,
            Bench::FanOut => fan_out::run(plan, &mut one)?,
            Bench::Decimate => decimate::run(plan, &mut one)?,
            Bench::Telemetry => telemetry::run(plan, &mut one)?,
        }
    }
    Ok(rows)
}
