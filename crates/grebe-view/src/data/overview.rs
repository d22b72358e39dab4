//! The overview: columns of the whole history, a few times a second.

use std::sync::Arc;

use grebe_scope::{Column, ColumnGrid};

use crate::data::lane::LaneId;
use crate::data::samples::{Kind, drawn};
use crate::data::tracks::Tracks;
use crate::data::viewport::{Viewport, columns_max};

/// The whole history of the lanes that are shown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OverviewView {
    /// Absolute sample index of the left edge.
    pub(crate) left_index: f64,
    /// Samples from the left to the right edge.
    pub(crate) span_samples: f64,
    /// Each lane with its columns.
    pub(crate) lanes: Vec<(LaneId, Vec<Column<f32>>)>,
}

/// Makes overviews, and keeps the last until another is due.
#[derive(Debug, Default)]
pub(crate) struct Overview {
    made_ns: u64,
    /// Source of the last overview: the viewport, and the extent of the history.
    made_of: Option<(Viewport, u64, u64)>,
    view: Option<Arc<OverviewView>>,
}

impl Overview {
    /// The whole history as `viewport.overview` columns, if it asks for them.
    pub(crate) fn view<K: Kind>(
        &mut self,
        tracks: &Tracks<K>,
        viewport: &Viewport,
        is_ended: bool,
        now_ns: u64,
    ) -> Option<Arc<OverviewView>> {
        let Some(columns) = viewport.overview.filter(|&columns| columns > 0) else {
            *self = Overview::default();
            return None;
        };
        let history = tracks.sampled();
        let (from, to) = (history.oldest().unwrap_or(0), history.next_index());
        if to <= from {
            return None;
        }
        // The overview does not change when only the picture moves.
        let columns = columns.min(COLUMNS_MAX).min(columns_max(tracks.lanes(viewport.lanes).count()));
        let asked = Viewport { overview: Some(columns), lanes: viewport.lanes, ..Viewport::latest(1) };
        let is_recent = now_ns.saturating_sub(self.made_ns) < INTERVAL_NS;
        let is_same_kind = self.made_of.as_ref().is_some_and(|(made, ..)| *made == asked);
        let is_same = is_same_kind && self.made_of.as_ref().is_some_and(|of| (of.1, of.2) == (from, to));
        if is_same || (is_same_kind && is_recent && !is_ended) {
            return self.view.clone();
        }
        self.view = Some(Arc::new(OverviewView::of(tracks, &asked, columns)));
        (self.made_of, self.made_ns) = (Some((asked, from, to)), now_ns);
        self.view.clone()
    }
}

impl OverviewView {
    fn of<K: Kind>(tracks: &Tracks<K>, viewport: &Viewport, columns: usize) -> OverviewView {
        let history = tracks.sampled();
        let (from, to) = (history.oldest().unwrap_or(0), history.next_index());
        let grid = ColumnGrid::new((to - from) as f64 / columns as f64);
        let first = grid.column_at(from);
        let count = (grid.column_at(to - 1) + 1 - first) as usize;
        let of = |lane: LaneId| {
            let track = tracks.track(lane)?;
            let mut out = vec![Column::OUTSIDE; count];
            track.pyramid.columns(track.place, grid, first, &mut out);
            Some((lane, drawn(&out)))
        };
        let step = grid.samples_per_column();
        OverviewView {
            left_index: first as f64 * step,
            span_samples: count as f64 * step,
            lanes: tracks.lanes(viewport.lanes).filter_map(of).collect(),
        }
    }
}

const COLUMNS_MAX: usize = 2048;
/// Bounds the cost for the data path.
const INTERVAL_NS: u64 = 250_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::core::ScopeCore;
    use crate::data::viewport::Window;
    use crate::testing::batch;

    fn viewport() -> Viewport {
        Viewport { span: Some(0.1), overview: Some(500), ..Viewport::latest(100) }
    }

    #[test]
    fn the_whole_history_is_there_with_its_peak_and_its_gap() {
        let mut core = ScopeCore::new(64 << 10);
        let value = |_: usize, index: u64| if index == 12_345 { 9000 } else { (index % 100) as i16 };
        for block in (0..400).filter(|block| !(200..220).contains(block)) {
            core.ingest(&batch(block * 100, 2, 100, 1e3, value), 1).unwrap();
        }
        let view = core.answer(&viewport(), 1).overview.unwrap();
        assert_eq!(view.lanes.len(), 2);
        assert!(view.left_index <= 0.0 && view.left_index + view.span_samples >= 40_000.0, "{view:?}");
        let columns = &view.lanes[0].1;
        let place =
            |index: f64| ((index - view.left_index) / view.span_samples * columns.len() as f64) as usize;
        let highest = columns.iter().position(|column| column.max == 9000.0).unwrap();
        assert!(highest.abs_diff(place(12_345.0)) <= 4, "{highest}");
        assert!(columns[place(21_000.0)].has_gap() && !columns[place(30_000.0)].has_gap());
    }

    #[test]
    fn it_is_made_anew_for_new_data_and_not_for_another_place() {
        let mut core = ScopeCore::new(1 << 20);
        core.ingest(&batch(0, 1, 1000, 1e3, |_, index| index as i16), 1).unwrap();
        let first = core.answer(&viewport(), 1).overview.unwrap();
        let moved = Viewport { window: Window::Ending { at: 500.0 }, ..viewport() };
        assert!(Arc::ptr_eq(&core.answer(&moved, 2).overview.unwrap(), &first));
        core.ingest(&batch(1000, 1, 1000, 1e3, |_, index| index as i16), 1).unwrap();
        assert!(Arc::ptr_eq(&core.answer(&viewport(), 3).overview.unwrap(), &first), "not yet");
        let later = core.answer(&viewport(), INTERVAL_NS + 1).overview.unwrap();
        assert!(later.span_samples >= 2000.0);
        core.ingest(&batch(2000, 1, 1000, 1e3, |_, index| index as i16), 1).unwrap();
        core.end();
        let last = core.answer(&viewport(), INTERVAL_NS + 2).overview.unwrap();
        assert!(last.span_samples >= 3000.0, "what is over is shown whole");
        assert!(core.answer(&Viewport { overview: None, ..viewport() }, 1).overview.is_none());
    }
}
