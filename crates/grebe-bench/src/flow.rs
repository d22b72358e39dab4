//! The runtime: what stages, queues and telemetry cost, each beside the same work without them.

mod beside;
mod chain;
mod decimate;
mod hop;
mod stages;

use std::time::Duration;

pub use beside::{Beside, beside};
use clap::{Parser, ValueEnum};

use crate::error::Result;
use crate::row::Tell;
use crate::runs::Runs;

/// Options of the bench.
#[derive(Debug, Clone, Parser)]
pub struct Options {
    /// Parts to measure [default: all].
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub parts: Vec<Part>,
    /// Duration and number of runs; at least 24 for an interval of the ratio.
    #[command(flatten)]
    pub runs: Runs,
}

impl Default for Options {
    fn default() -> Self {
        Self::parse_from([""])
    }
}

/// Part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Part {
    /// A chain of stages.
    Chain,
    /// Handing on a batch.
    Hop,
    /// A slow consumer beside a fast one.
    FanOut,
    /// A stage that decimates.
    Decimate,
    /// Reading the counters.
    Telemetry,
}

/// Measures everything that the options name.
///
/// # Errors
/// If a graph fails, or its work differs from its baseline's.
pub fn run(options: &Options, tell: Tell) -> Result<()> {
    let Runs { duration, repeats } = options.runs;
    let parts = if options.parts.is_empty() { Part::value_variants() } else { &options.parts };
    for part in parts {
        let run: fn(Duration, usize, Tell) -> Result<()> = match part {
            Part::Chain => chain::run,
            Part::Hop => hop::run,
            Part::FanOut => chain::fan_out,
            Part::Decimate => decimate::run,
            Part::Telemetry => hop::telemetry,
        };
        run(duration, repeats.into(), tell)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Progress, markdown};

    #[test]
    fn every_part_gives_its_rows_with_a_baseline_beside_each() {
        let runs = Runs { duration: Duration::from_millis(4), repeats: 3 };
        let options = Options { parts: Vec::new(), runs };
        let mut rows = Vec::new();
        run(&options, &mut |progress| {
            if let Progress::Row(row) = progress {
                rows.push(row.clone());
            }
        })
        .unwrap();
        let json = serde_json::to_value(&rows).unwrap();
        let json = json.as_array().unwrap();
        let benches: Vec<_> = json.iter().map(|row| row["bench"].as_str().unwrap()).collect();
        assert_eq!(
            benches,
            ["chain", "chain", "hop", "hop", "fan_out", "decimate", "decimate", "telemetry", "telemetry"]
        );
        for row in json {
            let number = |path: &str| row.pointer(path).and_then(|value| value.as_f64()).unwrap();
            assert!(number("/ours/low") <= number("/ours/median") && number("/ours/high") > 0.0, "{row}");
            assert!(number("/baseline/median") > 0.0 && number("/ratio") > 0.0, "{row}");
            assert!(number("/of_limit") > 0.0, "{row}");
            assert!(row["ratio_interval"].is_array() && row["goals"].as_array().unwrap().len() == 1, "{row}");
        }
        let note = json[0]["note"].as_str().unwrap();
        assert!(note.starts_with("0 dropped, 0 copied"), "block drops nothing: {note}");
        assert!(json[4]["pairs"].as_u64().unwrap() >= 20);
        let lines = markdown(&rows).lines().filter(|line| line.starts_with("| ")).count();
        assert_eq!(lines, 2 * (1 + rows.len()), "a table of rows and one of goals");
    }

    #[test]
    fn an_unknown_part_is_answered_with_the_known_ones() {
        let error = Options::try_parse_from(["", "--parts", "speed"]).unwrap_err().to_string();
        assert!(error.contains("speed") && error.contains("fan_out"), "{error}");
    }
}
