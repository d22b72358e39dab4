//! The columns of pictures of a recording: of the visible window, and of all of it.

use std::sync::Arc;
use std::time::Duration;

use grebe_scope::ColumnGrid;

use super::Recorded;
use super::wide::WideColumns;
use crate::data::columns::Extent;
use crate::data::history::{IntoExtract, Viewer};
use crate::data::lane::{LaneId, Part};
use crate::data::overview::OverviewView;
use crate::data::picture::Picture;
use crate::data::samples::Kind;
use crate::data::viewport::{Viewport, columns_max};

impl<K: Kind + IntoExtract> Recorded<K> {
    /// Adds columns, means and gaps from outside the held samples to the picture.
    pub(super) fn widen(&mut self, viewer: Viewer, extent: &Extent, is_exact: bool, picture: &mut Picture) {
        let (tracks, recording) = (&mut self.kept.tracks, &mut *self.recording);
        let places: Vec<usize> = picture.lanes.iter().filter_map(|lane| tracks.place(lane.lane)).collect();
        let wide = WideColumns {
            grid: extent.grid,
            first_column: extent.first_column,
            count: extent.columns,
            places: &places,
        };
        // A picture to be saved has no next one that could improve it.
        let most = if is_exact { EXACT } else { PICTURE };
        let made = self.pictures.entry(viewer).or_default();
        let columns = made.columns(recording, &mut self.reader, tracks, &wide, most);
        picture.is_estimated |= made.is_estimated();
        let means: Vec<_> = places.iter().map(|&place| made.mean(&wide, place)).collect();
        let (ends, sampled) = (tracks.ends(), tracks.sampled().channels());
        let range = self.positions(extent.window());
        let mut columns = columns.into_iter().zip(means);
        for lane in &mut picture.lanes {
            let Some(place) = self.kept.tracks.place(lane.lane) else { continue };
            let mean;
            (lane.columns, mean) = columns.next().unwrap_or_default();
            lane.line = None;
            if place >= sampled {
                lane.mean = mean.unwrap_or(0.0);
                continue;
            }
            lane.is_clipped = ends.is_some_and(|(low, high)| {
                let is_end = |min: f32, max: f32| f64::from(max) >= high || f64::from(min) <= low;
                lane.columns.iter().any(|column| !column.is_empty() && is_end(column.min, column.max))
            });
            let sums = self.recording.sums(place, range.clone());
            let finite = sums.count.saturating_sub(sums.not_finite);
            if finite > 0 {
                lane.mean = sums.sum / finite as f64;
            }
        }
    }

    /// Columns of the whole recording.
    pub(super) fn overview(&mut self, viewport: &Viewport, picture: &mut Picture) {
        let all = self.recording.outline().indices();
        let Some(columns) = viewport.overview.filter(|&columns| columns > 0 && !all.is_empty()) else {
            return;
        };
        let (tracks, recording) = (&mut self.kept.tracks, &mut *self.recording);
        let is_own = |lane: &LaneId| !Part::DERIVED.contains(&lane.part);
        let lanes: Vec<LaneId> = tracks.lanes(viewport.lanes).filter(is_own).collect();
        let columns = columns.min(OVERVIEW_COLUMNS_MAX).min(columns_max(lanes.len()));
        let grid = ColumnGrid::new((all.end - all.start) as f64 / columns as f64);
        let first = grid.column_at(all.start);
        let count = (grid.column_at(all.end - 1) + 1 - first) as usize;
        let places: Vec<usize> = lanes.iter().filter_map(|&lane| tracks.place(lane)).collect();
        let wide = WideColumns { grid, first_column: first as i64, count, places: &places };
        let columns = self.overview.columns(recording, &mut self.reader, tracks, &wide, OVERVIEW);
        let step = grid.samples_per_column();
        picture.overview = Some(Arc::new(OverviewView {
            left_index: first as f64 * step,
            span_samples: count as f64 * step,
            lanes: lanes.into_iter().zip(columns).collect(),
        }));
    }
}

const OVERVIEW_COLUMNS_MAX: usize = 2048;
/// Time per picture for samples of unknown columns. Keys must respond within 0.1 s, and the next picture continues.
const PICTURE: Duration = Duration::from_millis(30);
const OVERVIEW: Duration = Duration::from_millis(10);
const EXACT: Duration = Duration::from_secs(1);
