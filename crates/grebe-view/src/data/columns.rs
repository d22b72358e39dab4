//! The columns of a picture: their places and their values.

use std::ops::Range;

use grebe_scope::{Column, ColumnGrid, Interpolation, SampleLine};

use crate::data::clip::is_clipped;
use crate::data::interpolate::line_between;
use crate::data::lane::LaneId;
use crate::data::picture::LaneColumns;
use crate::data::samples::{Kind, drawn};
use crate::data::tracks::Track;
use crate::data::viewport::{Viewport, Window, columns_max};

/// Places of a picture's columns.
pub(crate) struct Extent {
    pub(crate) grid: ColumnGrid,
    pub(crate) columns: usize,
    pub(crate) first_column: i64,
    pub(crate) left_index: f64,
    pub(crate) span_samples: f64,
}

impl Extent {
    /// For `lanes` lanes of a history that covers the indices `all`.
    pub(crate) fn of(
        viewport: &Viewport,
        lanes: usize,
        span_samples: f64,
        right_edge: Option<f64>,
        all: &Range<u64>,
    ) -> Extent {
        let columns = viewport.columns_in_range().min(columns_max(lanes));
        let window = right_edge.map_or(viewport.window, |at| Window::Ending { at });
        let mut grid = ColumnGrid::new(span_samples / columns as f64);
        let mut first_column = end_column(all, grid, window) - columns as i64;
        let is_all = (all.end - all.start) as f64 <= span_samples;
        if viewport.is_exact
            && is_all
            && window == Window::Latest
            && first_column > grid.column_at(all.start) as i64
        {
            // A part of a column may be missing, so that a picture of a whole file shows all of it.
            grid = ColumnGrid::new(span_samples / (columns as f64 - 1.0).max(1.0));
            first_column = end_column(all, grid, window) - columns as i64;
        }
        Extent {
            grid,
            columns,
            first_column,
            left_index: first_column as f64 * grid.samples_per_column(),
            span_samples: columns as f64 * grid.samples_per_column(),
        }
    }

    /// The visible samples.
    pub(crate) fn window(&self) -> Range<f64> {
        self.left_index..self.left_index + self.span_samples
    }

    /// The columns of a lane. `ends` is the range of its samples, if it has one.
    pub(crate) fn lane<K: Kind>(
        &self,
        lane: LaneId,
        track: Track<'_, K>,
        ends: Option<(K, K)>,
        interpolation: Interpolation,
    ) -> LaneColumns {
        let Extent { grid, columns, first_column, .. } = *self;
        let mut out = vec![Column::OUTSIDE; columns];
        let before = usize::try_from(-first_column).unwrap_or(0).min(columns);
        let (first, out_inside) = (first_column.max(0) as u64, &mut out[before..]);
        track.pyramid.columns(track.place, grid, first, out_inside);
        let is_clipped = ends.is_some_and(|ends| is_clipped(track, ends, grid, first, out_inside));
        let mut line_runs = Vec::new();
        let line = (grid.samples_per_column() < 1.0).then(|| {
            let (mut line, runs) = line_between(track, grid, first, interpolation, out_inside);
            line.shift_right(before);
            line_runs = runs;
            drawn_line(line)
        });
        LaneColumns {
            lane,
            columns: drawn(&out),
            line,
            line_runs,
            is_clipped,
            mean: mean(track, self.window()),
            at_cursors: [None; 2],
        }
    }
}

/// The sample at an index, if the history still holds it.
pub(crate) fn sample_at<K: Kind>(track: Track<'_, K>, index: u64) -> Option<f64> {
    let mut found = None;
    track.samples(index..index.saturating_add(1), |_, samples| found = samples.first().copied());
    found.map(|sample| sample.to_f64())
}

fn drawn_line<K: Kind>(line: SampleLine<K>) -> SampleLine<f32> {
    let samples = line.samples.into_iter().map(|(place, sample)| (place, sample.to_f32()));
    SampleLine { spans: line.spans, samples: samples.collect() }
}

/// Mean of the visible samples in raw counts; 0 without samples.
fn mean<K: Kind>(track: Track<'_, K>, window: Range<f64>) -> f64 {
    let range = window.start.max(0.0) as u64..window.end.max(0.0) as u64;
    track.pyramid.range_stats(track.place, range).mean().unwrap_or(0.0)
}

/// Number of the column after the right edge.
fn end_column(all: &Range<u64>, grid: ColumnGrid, window: Window) -> i64 {
    let newest = all.end.checked_sub(1).filter(|&newest| newest >= all.start);
    let column = match window {
        Window::Latest => newest.map_or(0, |newest| grid.column_at(newest) + 1) as i64,
        Window::Ending { at } => grid.position(at).round() as i64,
    };
    column.clamp(-COLUMN_END, COLUMN_END)
}

/// Beyond any stream, and far from overflow in both directions.
const COLUMN_END: i64 = 1 << 62;
