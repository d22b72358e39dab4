//! The noise floor of each line, and the thresholds over it.
//!
//! A line of a transform of Gaussian noise has an exponentially distributed power. Its mean is the floor.

use std::ops::Range;

use super::rows::Rows;
use crate::simd::lines;

/// Mean power of the noise of each line.
#[derive(Debug)]
pub(super) struct Floor {
    pub(super) levels: Vec<f32>,
    is_known: bool,
    /// Lines that do not follow: those of bursts.
    busy: Vec<Range<usize>>,
    /// Levels of pieces of the signal, before the first floor.
    learned: Vec<Vec<f32>>,
}

impl Floor {
    pub(super) fn new(lines: usize) -> Self {
        Self { levels: vec![0.0; lines], is_known: false, busy: Vec::new(), learned: Vec::new() }
    }

    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Takes the noise of a piece of the signal.
    pub(super) fn learn<'a>(&mut self, rows: impl ExactSizeIterator<Item = &'a [f32]> + Clone) {
        if rows.len() >= FEWEST_ROWS {
            self.learned.push(levels_of(rows));
        }
    }

    /// Takes what was learned, else the medians of the held rows. Does nothing for fewer rows than a floor can be told from.
    pub(super) fn begin(&mut self, rows: &Rows) {
        if rows.held().len() < FEWEST_ROWS {
            return;
        }
        self.is_known = true;
        self.levels = levels_of(rows.held());
        let pieces = std::mem::take(&mut self.learned);
        if pieces.is_empty() {
            return;
        }
        let mut values = Vec::with_capacity(pieces.len());
        let mut quiet = |line: usize| {
            values.clear();
            values.extend(pieces.iter().map(|piece| piece[line]));
            quantile(&mut values, QUIET)
        };
        let mut quiet: Vec<f32> = (0..self.levels.len()).map(&mut quiet).collect();
        // Where the noise itself is another one now, even the lines that are nearest to it have changed.
        let changes = self.levels.iter().zip(&quiet).map(|(own, quiet)| own / quiet.max(f32::MIN_POSITIVE));
        let change = quantile(&mut changes.collect::<Vec<f32>>(), UNCHANGED);
        if !(1.0 / CHANGE..CHANGE).contains(&change) {
            quiet.iter_mut().for_each(|level| *level *= change);
        }
        self.levels = quiet;
    }

    /// Follows a row outside of bursts. Power beyond `CLIP` floors counts as that, so that no burst lifts the floor.
    pub(super) fn follow(&mut self, row: &[f32], bursts: impl Iterator<Item = Range<usize>>) {
        self.busy.clear();
        self.busy.extend(bursts);
        self.busy.sort_unstable_by_key(|lines| lines.start);
        self.busy.push(row.len()..row.len());
        let of_clipped = 1.0 / (1.0 - (-CLIP).exp());
        let mut from = 0;
        for band in &self.busy {
            let free = from..band.start.max(from);
            lines::follow(&row[free.clone()], CLIP, of_clipped, FOLLOW, &mut self.levels[free]);
            from = from.max(band.end);
        }
    }

    /// Makes a signal that lasts too long a part of the floor.
    pub(super) fn accept(&mut self, rows: &Rows, lines: Range<usize>) {
        for line in lines {
            self.levels[line] = rows.held().map(|row| row[line]).sum::<f32>() / rows.held().len() as f32;
        }
    }
}

/// Medians of rows, smooth but for carriers.
fn levels_of<'a>(rows: impl ExactSizeIterator<Item = &'a [f32]> + Clone) -> Vec<f32> {
    let lines = rows.clone().next().map_or(0, <[f32]>::len);
    let mut values = Vec::with_capacity(rows.len());
    let mut own = |line: usize| {
        values.clear();
        values.extend(rows.clone().map(|row| row[line]));
        quantile(&mut values, 0.5) / std::f32::consts::LN_2
    };
    let own: Vec<f32> = (0..lines).map(&mut own).collect();
    let level = |line: usize| {
        let near = line.saturating_sub(NEAR_LINES)..(line + NEAR_LINES + 1).min(lines);
        let smooth = quantile(&mut own[near].to_vec(), 0.5);
        // A line that is always louder than its neighbours is a carrier, and so a part of the floor.
        if own[line] > smooth * CARRIER { own[line] } else { smooth }
    };
    (0..lines).map(level).collect()
}

/// The value that this part of all values is below.
fn quantile(values: &mut [f32], part: f64) -> f32 {
    let place = (values.len() as f64 * part) as usize;
    *values.select_nth_unstable_by(place, f32::total_cmp).1
}

/// Thresholds of a cell and of a sum of four rows, in floors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thresholds {
    pub(super) one: f32,
    pub(super) four: f32,
}

impl Thresholds {
    /// Noise exceeds them in this share of cells, half of it by each.
    pub(super) fn new(false_alarms: f64) -> Self {
        let each = false_alarms / 2.0;
        // Neighbours of four rows of Hann's window, half over one another, correlate by 1/6. Their sum is that of four
        // exponentials whose means are the eigenvalues of the matrix of correlations.
        let means = [1.0, 2.0, 3.0, 4.0].map(|k: f64| 1.0 + (k * std::f64::consts::PI / 5.0).cos() / 3.0);
        let exceeds = |sum: f64| -> f64 {
            let part = |own: usize| {
                let others = (0..4).filter(|&other| other != own);
                let factor: f64 = others.map(|other| means[own] / (means[own] - means[other])).product();
                factor * (-sum / means[own]).exp()
            };
            (0..4).map(part).sum()
        };
        let (mut low, mut high) = (4.0, 400.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if exceeds(middle) > each { low = middle } else { high = middle }
        }
        // The floor is a mean of `FLOOR_CELLS` cells itself: the threshold of a cell-averaging detector (Gandhi and Kassam 1988).
        let of_estimate = |threshold: f64| (FLOOR_CELLS * (threshold / FLOOR_CELLS).exp_m1()) as f32;
        Self { one: of_estimate(-each.ln()), four: of_estimate(high) }
    }
}

/// Fewer rows tell no floor.
const FEWEST_ROWS: usize = 8;
const NEAR_LINES: usize = 8;
/// At least this part of the pieces is without bursts at a line.
const QUIET: f64 = 0.25;
/// At least this part of the lines has no burst in the first rows.
const UNCHANGED: f64 = 0.1;
/// A larger change of the noise is none of the estimate.
const CHANGE: f32 = 1.5;
const CARRIER: f32 = 2.5;
/// Share of a new row in the floor.
const FOLLOW: f32 = 1.0 / 512.0;
const CLIP: f32 = 4.0;
/// Independent cells in a floor: 2 / FOLLOW - 1 once it follows, fewer at first. With 600 the rate was 0.95 of the promised, in 4e8 cells.
const FLOOR_CELLS: f64 = 400.0;
