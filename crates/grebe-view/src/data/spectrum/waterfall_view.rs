//! A finished waterfall: its cells, as pixels and in words.

use std::ops::Range;

use crate::data::spectrum::row_levels::level_of;
use crate::data::viewport::Detector;

/// Rows of levels: the newest first, frequency from left to right.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WaterfallView {
    pub(crate) channel: usize,
    pub(crate) width: usize,
    /// Lowest and highest frequency of the cells, as parts of the rate.
    pub(crate) band: (f64, f64),
    /// All cells in dBFS, row after row. NaN where samples were lost; minus infinity where there were none, or they
    /// are no longer held.
    pub(crate) cells: Vec<f32>,
    /// Samples per channel from the first row to the end of the last.
    pub(crate) span_samples: f64,
    /// Number of transforms in it, and number that covers all samples; `None`: each row is one transform.
    pub(crate) sampled: Option<Sampled>,
    /// Grows with each view, so that a front end detects a new one.
    pub(crate) number: u64,
}

/// Number of transforms in a waterfall, of the number that covers all samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sampled {
    pub(crate) done: u64,
    pub(crate) all: u64,
    /// Whether they come from the spectral summary of a recording.
    pub(crate) is_summary: bool,
}

impl WaterfallView {
    /// A note about the levels, for a person.
    pub(crate) fn words(&self, detector: Detector) -> Option<String> {
        let Sampled { done, all, is_summary } = self.sampled?;
        let detector = detector.name();
        Some(match (done < all, is_summary) {
            (false, true) => format!("{detector} of all {all} spectra, from the summary"),
            (true, true) => format!("{detector} of the summary, and of {done} of {all} finer spectra so far"),
            (true, false) => format!("{detector} of {done} of {all} spectra so far"),
            (false, false) => format!("{detector} of all {all} spectra"),
        })
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.cells.len().checked_div(self.width).unwrap_or(0)
    }

    /// A band as pixels, row after row from the newest: each has the level of all cells that it covers. NaN where samples
    /// were lost, minus infinity where there are none.
    pub(crate) fn pixels(
        &self,
        (low, high): (f64, f64),
        (width, height): (usize, usize),
        detector: Detector,
    ) -> Vec<f32> {
        let (rows, last) = (self.rows(), self.width.saturating_sub(1));
        let per_cycle = self.width as f64 / (self.band.1 - self.band.0);
        let place = |x: usize| (low + (high - low) * x as f64 / width as f64 - self.band.0) * per_cycle;
        let cells = |x: usize| {
            let (from, to) = (place(x), place(x + 1));
            // The edge of the band is within a line.
            let is_beside = to < 0.0 || from > self.width as f64 + 0.5;
            let first = (from as usize).min(last);
            // A cell over the edge of two pixels is in the right one.
            let to = if x + 1 == width { to.ceil() } else { to };
            if is_beside { 0..0 } else { first..(to as usize).clamp(first + 1, last + 1) }
        };
        let columns: Vec<Range<usize>> = (0..width).map(cells).collect();
        let mut pixels = Vec::with_capacity(width * height);
        for y in (0..height).filter(|_| rows > 0) {
            let first = y * rows / height;
            let covered = first..((y + 1) * rows / height).max(first + 1);
            pixels.extend(columns.iter().map(|cells| {
                let rows = covered.clone().map(|row| &self.cells[row * self.width..][cells.clone()]);
                let levels = rows.flatten().copied();
                let level = level_of(detector, levels.clone().filter(|level| level.is_finite()));
                let is_lost = level == f32::NEG_INFINITY && levels.into_iter().any(f32::is_nan);
                if is_lost { f32::NAN } else { level }
            }));
        }
        pixels
    }
}
