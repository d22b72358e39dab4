//! The line between samples that are farther apart than columns.

use grebe_scope::{Column, ColumnGrid, Interpolation, SINC_REACH, SampleLine};

use crate::data::samples::Kind;
use crate::data::tracks::{Runs, Track};

/// The line through the samples of `columns`, never across a gap, with the samples themselves. Each column becomes
/// the extremes of the line in it; where the history has no single samples, line and columns equal the previous
/// columns.
pub(crate) fn line_between<K: Kind>(
    track: Track<'_, K>,
    grid: ColumnGrid,
    first_column: u64,
    interpolation: Interpolation,
    columns: &mut [Column<K>],
) -> (SampleLine<K>, Vec<(u64, Vec<f32>)>) {
    let step = grid.samples_per_column();
    let edge = |place: usize| (first_column + place as u64) as f64 * step;
    let (from, to) = (edge(0).floor() as u64, edge(columns.len()).ceil() as u64 + 1);
    let mut copied = Runs::default();
    copied.copy(track, from.saturating_sub(SINC_REACH)..to + SINC_REACH);
    let held_from = copied.iter().next().map_or(u64::MAX, |(first, _)| first);
    let mut line = SampleLine::new(columns.len());
    for ((span, column), number) in line.spans.iter_mut().zip(&*columns).zip(first_column..) {
        if grid.span(number).start < held_from && !column.is_empty() {
            *span = Some((column.min.to_f32(), column.max.to_f32()));
        }
    }
    for (first, samples) in copied.iter() {
        line.add(grid, first_column, first, samples, interpolation);
    }
    line.round_into(columns);
    let runs = copied.iter().map(|(first, run)| (first, run.iter().map(|sample| sample.to_f32()).collect()));
    (line, runs.collect())
}

#[cfg(test)]
mod tests {
    use grebe_scope::{Coverage, Pyramid};

    use super::*;

    fn columns(blocks: &[(u64, &[i16])], step: f64, first: u64, count: usize) -> Vec<Column> {
        let mut pyramid = Pyramid::new(1, 64 << 10).unwrap();
        for (first, samples) in blocks {
            pyramid.append(*first, &[samples]).unwrap();
        }
        let grid = ColumnGrid::new(step);
        let mut out = vec![Column::OUTSIDE; count];
        pyramid.columns(0, grid, first, &mut out);
        line_between(Track { pyramid: &pyramid, place: 0 }, grid, first, Interpolation::Linear, &mut out);
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

    #[test]
    fn what_is_no_longer_held_singly_stays_as_columns() {
        let mut pyramid = Pyramid::new(1, 64 << 10).unwrap();
        let samples: Vec<i16> = (0..60_000).map(|at| (at % 500) as i16).collect();
        pyramid.append(0, &[&samples]).unwrap();
        let grid = ColumnGrid::new(0.5);
        for (first, is_held) in [(0, false), (119_000, true)] {
            let mut columns = vec![Column::OUTSIDE; 100];
            pyramid.columns(0, grid, first, &mut columns);
            let before = columns.clone();
            let (line, _) = line_between(
                Track { pyramid: &pyramid, place: 0 },
                grid,
                first,
                Interpolation::Sinc,
                &mut columns,
            );
            assert_eq!(
                (line.samples.len(), columns == before),
                if is_held { (50, false) } else { (0, true) }
            );
            assert!(line.spans.iter().all(Option::is_some));
        }
    }
}
