//! Ours and its baseline, measured in turns.

use serde_json::json;

use crate::canary::{self, Reading};
use crate::error::Result;
use crate::pairs::{Pairs, range};
use crate::row::{Progress, Row, Tell, digits, percent};
use crate::runs::Spread;

/// A comparison with a baseline.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a> {
    /// Which bench.
    pub bench: &'a str,
    /// Which case of it.
    pub case: &'a str,
    /// Unit of the values.
    pub unit: &'a str,
    /// The name of the baseline.
    pub baseline: &'a str,
    /// Pairs of runs.
    pub pairs: usize,
}

/// Measures ours and the baseline in turns. Returns a row with the minimum ratio required.
///
/// # Errors
/// The first error of either.
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

/// A measurement with its baseline of the same minutes.
pub(super) struct Compared<'a> {
    of: Beside<'a>,
    pub(super) ours: Spread,
    pub(super) baseline: Spread,
    /// The median of the pairs' ratios, ours to the baseline, and the 95 % interval of their mean.
    pub(super) ratio: f64,
    pub(super) interval: Option<(f64, f64)>,
    machine: (Reading, Reading),
}

impl<'a> Compared<'a> {
    pub(super) fn measure(
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

    /// The row, with the counts of the runs, the share of the machine's limit, and the goal: name, bound, and whether
    /// it is met.
    pub(super) fn row(
        &self,
        note: &str,
        of_limit: Option<f64>,
        (name, bound, is_met): (&str, &str, bool),
    ) -> Row {
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

    /// Reports the row, if the baseline is the machine's limit.
    pub(super) fn tell(&self, tell: Tell, note: &str, goal: (&str, &str, bool)) {
        tell(Progress::Row(&self.row(note, Some(self.ratio), goal)));
    }
}
