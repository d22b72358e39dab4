//! A line of progress on a terminal.

use std::time::{Duration, Instant};

use grebe_flow::Snapshot;
use grebe_scope::Engineering;
use indicatif::{ProgressBar, ProgressStyle};

use super::report::Losses;
use crate::units::grouped;

/// A line on standard error, rewritten twice a second, from the first second on; nothing where that is no terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    began: Instant,
    /// The stage whose samples are shown.
    stage: String,
}

impl Progress {
    /// Follows what goes through the stage of this name.
    pub(crate) fn of(stage: impl Into<String>) -> Self {
        let bar = ProgressBar::new_spinner();
        // A template that cannot fail: it is a constant, and a test draws it.
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise}  {msg}") {
            bar.set_style(style);
        }
        Self { bar, began: Instant::now(), stage: stage.into() }
    }

    /// Shows the counters.
    pub(crate) fn show(&self, snapshot: &Snapshot) {
        let elapsed = self.began.elapsed();
        if elapsed < Duration::from_secs(1) {
            return;
        }
        let Some(stage) = snapshot.stage(&self.stage) else { return };
        let samples = stage.samples_in.max(stage.samples_out);
        let rate = samples as f64 / elapsed.as_secs_f64();
        let losses = Losses::of(snapshot);
        let lost = if losses.is_none() { "no loss".to_owned() } else { losses.to_string() };
        self.bar.set_message(format!(
            "{} samples  {}  {lost}",
            grouped(samples),
            Engineering::new(rate, "S/s")
        ));
        self.bar.tick();
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_template_is_valid() {
        assert!(indicatif::ProgressStyle::with_template("{spinner} {elapsed_precise}  {msg}").is_ok());
    }
}
