//! A result, for people and for programs.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::pairs::{Pairs, Spread};
use crate::canary::Reading;

/// One row: what was measured, beside its baseline of the same minutes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Which bench.
    pub bench: String,
    /// Which case of it.
    pub case: String,
    /// What the values are in.
    pub unit: String,
    /// Ours.
    pub ours: Spread,
    /// What it stands beside.
    pub baseline_name: String,
    /// The baseline.
    pub baseline: Spread,
    /// The median of the pairs' ratios, ours to the baseline.
    pub ratio: f64,
    /// The 95 % interval of the mean ratio.
    pub ratio_interval: Option<(f64, f64)>,
    /// Pairs of runs.
    pub pairs: usize,
    /// What was asked of it, and whether it was reached.
    pub goal: Option<Goal>,
    /// What else the runs counted: drops, copies, the end-to-end ratio.
    pub notes: Vec<String>,
    /// The machine before the runs.
    pub mood_before: Reading,
    /// The machine after them.
    pub mood_after: Reading,
}

/// What was asked of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// In words.
    pub text: String,
    /// Whether it was reached.
    pub is_met: bool,
}

impl Row {
    /// A row without goal and notes.
    pub fn new(
        (bench, case, unit): (&str, &str, &str),
        baseline_name: &str,
        pairs: &Pairs,
        (mood_before, mood_after): (Reading, Reading),
    ) -> Self {
        Self {
            bench: bench.to_owned(),
            case: case.to_owned(),
            unit: unit.to_owned(),
            ours: Spread::of(&pairs.ours),
            baseline_name: baseline_name.to_owned(),
            baseline: Spread::of(&pairs.baseline),
            ratio: pairs.ratio(),
            ratio_interval: pairs.interval(),
            pairs: pairs.ours.len(),
            goal: None,
            notes: Vec::new(),
            mood_before,
            mood_after,
        }
    }

    /// With what was asked of it.
    pub fn goal(self, text: &str, is_met: impl FnOnce(&Row) -> bool) -> Self {
        let is_met = is_met(&self);
        Self { goal: Some(Goal { text: text.to_owned(), is_met }), ..self }
    }

    /// With something more that was counted.
    pub fn note(mut self, note: String) -> Self {
        self.notes.push(note);
        self
    }

    /// The row as a line for people.
    pub fn line(&self) -> String {
        let mut line = format!(
            "{} {}: {} {} ({} to {}), {} {} ({} to {}), ratio {:.3}",
            self.bench,
            self.case,
            number(self.ours.median),
            self.unit,
            number(self.ours.low),
            number(self.ours.high),
            self.baseline_name,
            number(self.baseline.median),
            number(self.baseline.low),
            number(self.baseline.high),
            self.ratio,
        );
        if let Some((low, high)) = self.ratio_interval {
            let _ = write!(line, " [{low:.3}, {high:.3}]");
        }
        let _ = write!(line, ", {} pairs", self.pairs);
        if let Some(goal) = &self.goal {
            let _ = write!(line, "; {}: {}", goal.text, if goal.is_met { "yes" } else { "NO" });
        }
        for note in &self.notes {
            let _ = write!(line, "; {note}");
        }
        let _ = write!(line, "; mood {} to {}", self.mood_before, self.mood_after);
        line
    }
}

/// The rows as a Markdown table.
pub fn markdown(rows: &[Row]) -> String {
    let mut table = String::from(
        "| bench | case | unit | ours (range) | beside | (range) | ratio [95 %] | pairs | goal | notes | mood ns |\n\
         |---|---|---|--:|---|--:|--:|--:|---|---|--:|\n",
    );
    for row in rows {
        let spread = |of: &Spread| format!("{} ({}-{})", number(of.median), number(of.low), number(of.high));
        let interval =
            row.ratio_interval.map(|(low, high)| format!(" [{low:.3}, {high:.3}]")).unwrap_or_default();
        let goal = row.goal.as_ref().map_or("-".to_owned(), |goal| {
            format!("{}: {}", goal.text, if goal.is_met { "yes" } else { "**no**" })
        });
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} | {:.3}{interval} | {} | {goal} | {} | {:.0}-{:.0} |",
            row.bench,
            row.case,
            row.unit,
            spread(&row.ours),
            row.baseline_name,
            spread(&row.baseline),
            row.ratio,
            row.pairs,
            row.notes.join("; "),
            row.mood_before.round_trip_ns,
            row.mood_after.round_trip_ns,
        );
    }
    table
}

/// Three digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
