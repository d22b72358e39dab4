//! The noise floor of each line, and the thresholds over it.
//!
//! A line of a transform of Gaussian noise has an exponentially distributed power. Its mean is the floor.

use std::ops::Range;

use super::rows::Rows;

/// Mean power of the noise of each line.
#[derive(Debug)]
pub(super) struct Floor {
    pub(super) levels: Vec<f32>,
    is_known: bool,
    /// Lines that do not follow: those of bursts.
    busy: Vec<Range<usize>>,
}

impl Floor {
    pub(super) fn new(lines: usize) -> Self {
        Self { levels: vec![0.0; lines], is_known: false, busy: Vec::new() }
    }

    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Takes the medians of the held rows. Does nothing for fewer rows than a floor can be told from.
    pub(super) fn begin(&mut self, rows: &Rows) {
        if rows.held().len() < FEWEST_ROWS {
            return;
        }
        self.is_known = true;
        let mut values = Vec::with_capacity(rows.held().len());
        let mut own = |line: usize| {
            values.clear();
            values.extend(rows.held().map(|row| row[line]));
            median(&mut values) / std::f32::consts::LN_2
        };
        let own: Vec<f32> = (0..self.levels.len()).map(&mut own).collect();
        for line in 0..own.len() {
            let near = line.saturating_sub(NEAR_LINES)..(line + NEAR_LINES + 1).min(own.len());
            let smooth = median(&mut own[near].to_vec());
            // A line that is always louder than its neighbours is a carrier, and so a part of the floor.
            self.levels[line] = if own[line] > smooth * CARRIER { own[line] } else { smooth };
        }
    }

    /// Follows a row outside of bursts. Power beyond `CLIP` floors counts as that, so that no burst lifts the floor.
    pub(super) fn follow(&mut self, row: &[f32], bursts: impl Iterator<Item = Range<usize>>) {
        self.busy.clear();
        self.busy.extend(bursts);
        self.busy.sort_unstable_by_key(|lines| lines.start);
        self.busy.push(row.len()..row.len());
        let of_clipped = 1.0 / (1.0 - (-CLIP).exp());
        let mut from = 0;
        for lines in &self.busy {
            let free = from..lines.start.max(from);
            for (floor, power) in self.levels[free.clone()].iter_mut().zip(&row[free]) {
                *floor += (power.min(CLIP * *floor) * of_clipped - *floor) * FOLLOW;
            }
            from = from.max(lines.end);
        }
    }

    /// Makes a signal that lasts too long a part of the floor.
    pub(super) fn accept(&mut self, rows: &Rows, lines: Range<usize>) {
        for line in lines {
            self.levels[line] = rows.held().map(|row| row[line]).sum::<f32>() / rows.held().len() as f32;
        }
    }
}

fn median(values: &mut [f32]) -> f32 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f32::total_cmp).1
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
const CARRIER: f32 = 2.5;
/// Share of a new row in the floor.
const FOLLOW: f32 = 1.0 / 512.0;
const CLIP: f32 = 4.0;
/// Independent cells in a floor: 2 / FOLLOW - 1 once it follows, fewer at first. With 600 the rate was 0.95 of the promised, in 4e8 cells.
const FLOOR_CELLS: f64 = 400.0;
