//! Report of a saved range.

use std::time::Duration;

use anyhow::Result;
use grebe_recording::{RingSaved, SampleFile};
use grebe_scope::Engineering;
use serde_json::{Value, json};

use crate::units::grouped;

/// Saved range, with its gaps.
pub(crate) struct SavedRange {
    saved: RingSaved,
    gaps: usize,
    gap_samples: u64,
}

impl SavedRange {
    pub(crate) fn of(saved: RingSaved) -> Result<Self> {
        let file = SampleFile::open(&saved.files[0])?;
        let gap_samples = file.gaps().map(|gap| gap.length_samples).sum();
        Ok(Self { gaps: file.gaps().count(), gap_samples, saved })
    }

    pub(crate) fn words(&self) -> String {
        let Self { saved, gaps, gap_samples } = self;
        let time = Engineering::new(saved.len_samples as f64 / saved.sample_rate_hz, "s");
        let samples = grouped(saved.len_samples);
        let within = match gaps {
            0 => "no gap".to_owned(),
            gaps => format!("{} samples missing in {gaps} gaps", grouped(*gap_samples)),
        };
        format!("saved {time} ({samples} samples per channel, {within}) in {}", saved.files[0].display())
    }

    /// Short report.
    pub(crate) fn short_words(&self) -> String {
        let Self { saved, gap_samples, .. } = self;
        let time = Engineering::new(saved.len_samples as f64 / saved.sample_rate_hz, "s");
        let missing = match gap_samples {
            0 => String::new(),
            samples => format!(", {} samples missing,", grouped(*samples)),
        };
        format!("saved {time}{missing} in {}", saved.files[0].display())
    }

    /// Missing parts of the range.
    pub(crate) fn missing(&self) -> Option<String> {
        let said = |time: Duration| (!time.is_zero()).then(|| Engineering::new(time.as_secs_f64(), "s"));
        let before = said(self.saved.missing_before)
            .map(|time| format!("the first {time} are missing: the ring does not reach that far back"));
        let after = said(self.saved.missing_after).map(|time| format!("the last {time} did not arrive"));
        match (before, after) {
            (Some(before), Some(after)) => Some(format!("{before}; {after}")),
            (before, after) => before.or(after),
        }
    }

    pub(crate) fn json(&self) -> Value {
        let Self { saved, gaps, gap_samples } = self;
        json!({
            "files": saved.files,
            "samples": saved.len_samples,
            "seconds": saved.len_samples as f64 / saved.sample_rate_hz,
            "gaps": gaps,
            "gap_samples": gap_samples,
            "missing_before_s": saved.missing_before.as_secs_f64(),
            "missing_after_s": saved.missing_after.as_secs_f64(),
        })
    }
}
