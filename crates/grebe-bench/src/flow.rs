//! The runtime: what stages, queues and telemetry cost, each beside the same work without them.

mod chain;
mod decimate;
mod hop;
mod stages;

use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde_json::json;

use crate::canary::{self, Reading};
use crate::error::Result;
use crate::row::{Progress, Row, Tell, digits, percent, range};
use crate::runs::{Pairs, Runs, Spread};

/// What to measure.
#[derive(Debug, Clone, Parser)]
pub struct Options {
    /// What to measure [default: all].
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub parts: Vec<Part>,
    /// How long and how often. Where an interval of the ratio is asked for, there are at least 24 runs.
    #[command(flatten)]
    pub runs: Runs,
}

impl Default for Options {
    fn default() -> Self {
        Self::parse_from([""])
    }
}

/// What is measured.
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
/// Where a graph fails, or what it did is not what its baseline did.
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

/// What is measured beside what.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a> {
    /// Which bench.
    pub bench: &'a str,
    /// Which case of it.
    pub case: &'a str,
    /// What the values are in.
    pub unit: &'a str,
    /// The name of the baseline.
    pub baseline: &'a str,
    /// Pairs of runs.
    pub pairs: usize,
}

/// Measures ours and the baseline in turns; a row, with the ratio that is asked for at least.
///
/// # Errors
/// The first that either says.
pub fn beside(
    of: Beside,
    ratio_min: f64,
    ours: impl FnMut() -> Result<f64>,
    baseline: impl FnMut() -> Result<f64>,
) -> Result<Row> {
    let compared = Compared::measure(of, ours, baseline)?;
    let is_met = compared.ratio >= ratio_min;
    Ok(compared.row("", None, ("ratio", &format!(">= {ratio_min}"), is_met)))
}

/// What was measured, beside its baseline of the same minutes.
struct Compared<'a> {
    of: Beside<'a>,
    ours: Spread,
    baseline: Spread,
    /// The median of the pairs' ratios, ours to the baseline, and the 95 % interval of their mean.
    ratio: f64,
    interval: Option<(f64, f64)>,
    machine: (Reading, Reading),
}

impl<'a> Compared<'a> {
    fn measure(
        of: Beside<'a>,
        ours: impl FnMut() -> Result<f64>,
        baseline: impl FnMut() -> Result<f64>,
    ) -> Result<Self> {
        let before = canary::read();
        let pairs = Pairs::measure(of.pairs, ours, baseline)?;
        Ok(Self {
            of,
            ours: Spread::of(&pairs.ours),
            baseline: Spread::of(&pairs.baseline),
            ratio: pairs.ratio(),
            interval: pairs.interval(),
            machine: (before, canary::read()),
        })
    }

    /// The row, with what else the runs counted, the share of what the machine allows, and what is asked of it: a name, the bound,
    /// and whether it is met.
    fn row(&self, note: &str, of_limit: Option<f64>, (name, bound, is_met): (&str, &str, bool)) -> Row {
        let Beside { bench, case, unit, baseline, pairs } = self.of;
        let json = json!({
            "bench": bench,
            "case": case,
            "unit": unit,
            "ours": self.ours,
            "baseline_name": baseline,
            "baseline": self.baseline,
            "ratio": self.ratio,
            "ratio_interval": self.interval,
            "of_limit": of_limit,
            "pairs": pairs,
            "note": note,
            "machine_before": self.machine.0,
            "machine_after": self.machine.1,
        });
        let interval = self.interval.map(|(low, high)| format!(" [{low:.3}, {high:.3}]"));
        let ratio = format!("{:.3}{}", self.ratio, interval.unwrap_or_default());
        Row::new("The runtime, each beside the same work without it", &json)
            .name("bench", bench)
            .name("case", case)
            .range("ours", format!("{} {unit}", range(&self.ours)))
            .text("baseline", format!("{baseline}: {}", range(&self.baseline)))
            .cell("ratio [95 %]", &ratio)
            .cell("of limit", percent(of_limit))
            .cell("pairs", pairs)
            .text("notes", note)
            .machine(Some(self.machine), "")
            .goal(name, bound, format!("{} {unit}, ratio {ratio}", digits(self.ours.median)), is_met)
    }

    /// Tells the row, where the baseline is what the machine allows.
    fn tell(&self, tell: Tell, note: &str, goal: (&str, &str, bool)) {
        tell(Progress::Row(&self.row(note, Some(self.ratio), goal)));
    }
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
