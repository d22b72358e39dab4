//! Number of runs, and their summary.

use std::time::Duration;

use clap::Args;
use grebe_flow::{NoQuantity, SizeBytes, Time};
use serde::{Deserialize, Serialize};

/// Duration and repeats.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Runs")]
pub struct Runs {
    /// Duration of a run.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub duration: Duration,
    /// Number of runs; results are medians.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub repeats: u16,
}

/// Parses a time of the command line.
pub(crate) fn time(text: &str) -> Result<Duration, NoQuantity> {
    text.parse().map(|time: Time| time.0)
}

/// Parses a size of the command line.
pub(crate) fn size(text: &str) -> Result<usize, NoQuantity> {
    text.parse().map(|size: SizeBytes| size.0)
}

/// Values of several runs: minimum, median and maximum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub low: f64,
    pub median: f64,
    pub high: f64,
}

impl Spread {
    /// Of the value of each run.
    pub(crate) fn over<T>(all: &[T], value: impl Fn(&T) -> f64) -> Self {
        Self::of(&all.iter().map(value).collect::<Vec<_>>())
    }

    /// Of these values; zeros without values.
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |position: usize| sorted.get(position).copied().unwrap_or(0.0);
        let count = sorted.len();
        let median = (at(count.saturating_sub(1) / 2) + at(count / 2)) / 2.0;
        Self { low: at(0), median, high: at(count.saturating_sub(1)) }
    }
}
