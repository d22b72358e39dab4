//! Columns narrower than a sample: straight lines from sample to sample.

use grebe_scope::{Column, ColumnGrid, Pyramid};

use crate::data::extract::Runs;

/// Replaces columns that show one sample each by what a line through the samples passes in them. Columns next to a
/// gap, or whose samples are no longer kept singly, stay as they are.
pub(crate) fn join_samples(
    pyramid: &Pyramid,
    channel: usize,
    grid: ColumnGrid,
    first_column: u64,
    out: &mut [Column],
) {
    let step = grid.samples_per_column();
    let edge = |place: usize| (first_column + place as u64) as f64 * step;
    let (from, to) = (edge(0).floor() as u64, edge(out.len()).ceil() as u64 + 1);
    let mut copied = Runs::default();
    copied.copy(pyramid, channel, from..to);
    for (first, samples) in copied.iter() {
        Polyline { first, samples }.draw(step, first_column, out);
    }
}

/// A line through samples without a gap.
struct Polyline<'a> {
    first: u64,
    samples: &'a [i16],
}

impl Polyline<'_> {
    fn draw(&self, step: f64, first_column: u64, out: &mut [Column]) {
        let edge = |place: usize| (first_column + place as u64) as f64 * step;
        let (start, end) = (self.first as f64, (self.first + self.samples.len() as u64 - 1) as f64);
        let first_place = ((start / step).floor() as u64).saturating_sub(first_column) as usize;
        for (place, column) in out.iter_mut().enumerate().skip(first_place) {
            let (left, right) = (edge(place).max(start), edge(place + 1).min(end));
            if left > end {
                break;
            }
            if left > right || column.is_empty() {
                continue;
            }
            // A bend inside the column may be its extreme.
            let (a, b, bend) = (self.value(left), self.value(right), self.value(left.ceil().min(right)));
            column.min = a.min(b).min(bend).round() as i16;
            column.max = a.max(b).max(bend).round() as i16;
        }
    }

    /// The line's value at sample index `at`, within the run.
    fn value(&self, at: f64) -> f64 {
        let last = self.samples.len() - 1;
        let place = (at - self.first as f64).max(0.0);
        let before = (place as usize).min(last);
        let part = place - before as f64;
        let after = (before + 1).min(last);
        f64::from(self.samples[before]) * (1.0 - part) + f64::from(self.samples[after]) * part
    }
}

#[cfg(test)]
mod tests {
    use grebe_scope::Coverage;

    use super::*;

    fn columns(blocks: &[(u64, &[i16])], step: f64, first: u64, count: usize) -> Vec<Column> {
        let mut pyramid = Pyramid::new(1, 64 << 10).unwrap();
        for (first, samples) in blocks {
            pyramid.append(*first, &[samples]).unwrap();
        }
        let grid = ColumnGrid::new(step);
        let mut out = vec![Column::OUTSIDE; count];
        pyramid.columns(0, grid, first, &mut out);
        join_samples(&pyramid, 0, grid, first, &mut out);
        out
    }

    #[test]
    fn a_line_climbs_from_sample_to_sample() {
        let out = columns(&[(0, &[0, 100, 100])], 0.25, 0, 8);
        let seen: Vec<_> = out.iter().map(|c| (c.min, c.max)).collect();
        let expected =
            [(0, 25), (25, 50), (50, 75), (75, 100), (100, 100), (100, 100), (100, 100), (100, 100)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_peak_within_a_column_is_kept() {
        let out = columns(&[(0, &[0, 100, 0, 0])], 0.75, 0, 4);
        assert_eq!((out[1].min, out[1].max), (50, 100), "0.75..1.5 holds the peak at 1");
    }

    #[test]
    fn no_line_crosses_a_gap() {
        let out = columns(&[(0, &[0, 100]), (4, &[-100, -100])], 0.5, 0, 11);
        assert!(out[4].is_empty() && out[4].coverage == Coverage::Gap);
        assert!(out.iter().all(|c| c.is_empty() || c.min >= 0 || c.max <= -100), "{out:?}");
    }
}
