use serde::Serialize;

use crate::canary::{self, Reading};
use crate::error::Result;
use crate::row::{Row, digits, range};
use crate::stats::{Pairs, Spread, interleave};

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

/// What was measured, beside its baseline of the same minutes.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Compared<'a> {
    bench: &'a str,
    case: &'a str,
    unit: &'a str,
    pub ours: Spread,
    baseline_name: &'a str,
    pub baseline: Spread,
    /// The median of the pairs' ratios, ours to the baseline.
    pub ratio: f64,
    /// The 95 % interval of the mean ratio.
    pub ratio_interval: Option<(f64, f64)>,
    pairs: usize,
    /// What else the runs counted: drops, copies, the end-to-end ratio.
    note: String,
    machine_before: Reading,
    machine_after: Reading,
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
    let compared = compare(of, ours, baseline)?;
    let is_met = compared.ratio >= ratio_min;
    Ok(compared.row("", ("ratio", format!(">= {ratio_min}"), is_met)))
}

/// Measures ours and the baseline in turns.
pub(super) fn compare<'a>(
    of: Beside<'a>,
    ours: impl FnMut() -> Result<f64>,
    baseline: impl FnMut() -> Result<f64>,
) -> Result<Compared<'a>> {
    let machine_before = canary::read();
    let pairs: Pairs = interleave(of.pairs, ours, baseline)?;
    Ok(Compared {
        bench: of.bench,
        case: of.case,
        unit: of.unit,
        ours: Spread::of(&pairs.ours),
        baseline_name: of.baseline,
        baseline: Spread::of(&pairs.baseline),
        ratio: pairs.ratio(),
        ratio_interval: pairs.interval(),
        pairs: pairs.ours.len(),
        note: String::new(),
        machine_before,
        machine_after: canary::read(),
    })
}

impl Compared<'_> {
    /// The row, with a note and with what is asked of it: a name, the bound, and whether it is met.
    pub(super) fn row(self, note: &str, (name, bound, is_met): (&'static str, String, bool)) -> Row {
        let this = Self { note: note.to_owned(), ..self };
        let interval = this.ratio_interval.map(|(low, high)| format!(" [{low:.3}, {high:.3}]"));
        let ratio = format!("{:.3}{}", this.ratio, interval.unwrap_or_default());
        Row::new("The runtime, each beside the same work without it", &this)
            .name("bench", this.bench)
            .name("case", this.case)
            .cell("ours (range)", format!("{} {}", range(&this.ours), this.unit))
            .text("baseline (range)", format!("{}: {}", this.baseline_name, range(&this.baseline)))
            .cell("ratio [95 %]", &ratio)
            .cell("pairs", this.pairs)
            .text("notes", if note.is_empty() { "-" } else { note })
            .machine(Some((this.machine_before, this.machine_after)))
            .goal(name, bound, format!("{} {}, ratio {ratio}", digits(this.ours.median), this.unit), is_met)
    }
}
