//! The runtime: what stages, queues and telemetry cost, each beside the same work without them.

mod chain;
mod decimate;
mod fan_out;
mod hop;
mod pairs;
mod stages;
mod telemetry;

use std::time::Duration;

pub use pairs::{Beside, beside};

use crate::error::{Error, Result};
use crate::row::Tell;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// By name: `chain`, `hop`, `fan_out`, `decimate`, `telemetry`; none: all of them.
    pub parts: Vec<String>,
    /// About how long one run takes.
    pub duration: Duration,
    /// Pairs of runs, each beside its baseline; medians are reported. Where an interval of the ratio is asked for, at least 24.
    pub repeats: usize,
}

type Part = fn(Duration, usize, Tell) -> Result<()>;

const PARTS: [(&str, Part); 5] = [
    ("chain", chain::run),
    ("hop", hop::run),
    ("fan_out", fan_out::run),
    ("decimate", decimate::run),
    ("telemetry", telemetry::run),
];

/// Measures everything that the options name.
///
/// # Errors
/// Where a name is unknown, a graph fails, or what it did is not what its baseline did.
pub fn run(options: &Options, tell: Tell) -> Result<()> {
    let by_name = |name: &String| {
        let found = PARTS.into_iter().find(|(known, _)| known == name);
        found.ok_or_else(|| Error::unknown("part", name, &PARTS.map(|(known, _)| known)))
    };
    let parts = match options.parts.as_slice() {
        [] => PARTS.to_vec(),
        names => names.iter().map(by_name).collect::<Result<_>>()?,
    };
    parts.into_iter().try_for_each(|(_, run)| run(options.duration, options.repeats, tell))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Progress, markdown};

    #[test]
    fn every_part_gives_its_rows_with_a_baseline_beside_each() {
        let options = Options { parts: Vec::new(), duration: Duration::from_millis(4), repeats: 3 };
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
        let options = Options { parts: vec!["speed".to_owned()], duration: Duration::ZERO, repeats: 1 };
        let error = run(&options, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("speed") && error.contains("fan_out"), "{error}");
    }
}
