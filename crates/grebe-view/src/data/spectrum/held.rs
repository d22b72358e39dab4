//! The waterfall of held samples: each row has the levels of all transforms that cover it. Each row is made once, a few
//! per picture.
//!
//! ```text
//!   row    |---0---|---1---|---2---|-3-|..t     from multiples of its length on; the last one grows
//!                                                of `size` samples each, side by side, and one that ends with the row
//! ```

use std::collections::BTreeMap;

use grebe_scope::Averaging;

use super::transform::{Samples, Transform, was_lost};
use crate::data::samples::Kind;
use crate::data::spectrum::cells::Cells;
use crate::data::spectrum::row_levels::RowLevels;
use crate::data::spectrum::waterfall_view::{Sampled, WaterfallView};
use crate::data::tracks::Tracks;
use crate::data::viewport::{Detector, SpectrumSettings};

/// Makes waterfalls, and keeps their rows.
#[derive(Debug, Default)]
pub(super) struct HeldWaterfall<K: Kind> {
    asked: Option<RowKey>,
    transform: Option<Transform<K>>,
    /// By place: row `n` covers the indices from `n * hop` on.
    rows: BTreeMap<u64, Row>,
    samples: Samples<K>,
}

/// Parameters that rows depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RowKey {
    channel: usize,
    size: usize,
    /// The lines of the transforms.
    kept: (usize, usize),
    window: grebe_scope::Window,
    detector: Detector,
    hop: u64,
    full_scale: f64,
}

/// The levels of the transforms of one row.
#[derive(Debug)]
struct Row {
    levels: RowLevels,
    /// Finished transforms, of those side by side.
    made: u64,
    /// Finished transforms whose samples were no longer held.
    missed: u64,
    /// The transform at the row's end, or at the newest sample: its place, and for a growing row its levels.
    end: Option<u64>,
    tail: RowLevels,
    is_lost: bool,
}

/// A request for a waterfall.
#[derive(Debug)]
pub(super) struct Fall {
    pub(super) channel: usize,
    pub(super) cells: Cells,
    /// The index after the newest sample.
    pub(super) end: u64,
    pub(super) span_samples: f64,
    /// Maximum number of transforms.
    pub(super) most: u64,
}

impl<K: Kind> HeldWaterfall<K> {
    /// Called when another stream starts, or other samples are held.
    pub(super) fn forget(&mut self) {
        self.rows.clear();
    }

    /// The rows up to the newest sample.
    pub(super) fn view(
        &mut self,
        tracks: &Tracks<K>,
        settings: SpectrumSettings,
        fall: Fall,
    ) -> Option<WaterfallView> {
        let Fall { channel, cells: grid, end, span_samples, mut most } = fall;
        let size = grid.size;
        let hop = ((span_samples / ROWS as f64) as u64).max(1);
        let full_scale = tracks.full_scale();
        let SpectrumSettings { window, detector, .. } = settings;
        let kept = (grid.kept.start, grid.kept.end);
        let asked = RowKey { channel, size, kept, window, detector, hop, full_scale };
        if self.asked != Some(asked) {
            self.rows.clear();
            self.transform =
                Some(Transform::new(tracks.format(), full_scale, settings, size, Averaging::None)?);
            self.asked = Some(asked);
        }
        let newest = end.div_ceil(hop).saturating_sub(1);
        let numbers: Vec<u64> = (0..ROWS as u64).map_while(|back| newest.checked_sub(back)).collect();
        let oldest = numbers.last().copied().unwrap_or(0);
        self.rows.retain(|number, _| (oldest..=newest).contains(number));
        for &number in &numbers {
            self.rows.entry(number).or_insert_with(|| Row::new(detector, grid.kept.len()));
        }
        // One of each row, then the others, newest row first.
        for pass in [1, u64::MAX] {
            for &number in &numbers {
                most -= self.go_on(tracks, asked, number, end, pass.min(most));
            }
        }
        let width = grid.width;
        let (mut cells, mut sampled) =
            (Vec::with_capacity(width * ROWS), Sampled { done: 0, all: 0, is_summary: false });
        for number in &numbers {
            let row = &self.rows[number];
            let all = blocks(*number, hop, size, end);
            sampled.done += row.made - row.missed;
            sampled.all += all;
            let nothing = if row.is_lost { f32::NAN } else { f32::NEG_INFINITY };
            cells.extend(row.levels.dbfs(&row.tail, grid.lines(), nothing));
        }
        cells.resize(width * ROWS, f32::NEG_INFINITY);
        let sampled = (hop > size as u64).then_some(sampled);
        Some(WaterfallView {
            channel,
            width,
            band: grid.band(),
            cells,
            span_samples: (hop * ROWS as u64) as f64,
            sampled,
            number: 0,
        })
    }

    /// Makes at most `most` of a row's transforms; returns how many.
    fn go_on(&mut self, tracks: &Tracks<K>, asked: RowKey, number: u64, end: u64, most: u64) -> u64 {
        let RowKey { channel, size, hop, kept: (first, last), .. } = asked;
        let (Some(row), Some(transform)) = (self.rows.get_mut(&number), &mut self.transform) else {
            return 0;
        };
        let samples = &mut self.samples;
        let mut add = |end: u64, levels: &mut RowLevels| {
            let is_there = samples.copy(tracks, channel, end, size);
            if is_there {
                transform.append(end - size as u64, samples, |lines| levels.add(&lines[first..last], 0.0));
            }
            is_there
        };
        let is_lost = |end: u64| was_lost(tracks.sampled(), end, size as u64);
        let (start, blocks, mut made) = (number * hop, blocks(number, hop, size, end), 0);
        while row.made < blocks && made < most {
            let end = start + (row.made + 1) * size as u64;
            match add(end, &mut row.levels) {
                true => {}
                false if is_lost(end) => row.is_lost = true,
                false => row.missed += 1,
            }
            (row.made, made) = (row.made + 1, made + 1);
        }
        let row_end = (start + hop).min(end);
        let has_tail = row_end > start + blocks * size as u64;
        if has_tail && row.made == blocks && row.end != Some(row_end) && made < most {
            row.tail = RowLevels::new(asked.detector, row.levels.line_count());
            add(row_end, &mut row.tail);
            row.is_lost |= is_lost(row_end);
            row.end = Some(row_end);
            made += 1;
            if row_end == start + hop {
                row.levels.join(&row.tail);
                row.tail = RowLevels::new(asked.detector, 0);
            }
        }
        made
    }
}

impl Row {
    fn new(detector: Detector, lines: usize) -> Row {
        Row {
            levels: RowLevels::new(detector, lines),
            made: 0,
            missed: 0,
            end: None,
            tail: RowLevels::new(detector, 0),
            is_lost: false,
        }
    }
}

/// Transforms side by side in a row, up to the newest sample.
fn blocks(number: u64, hop: u64, size: usize, end: u64) -> u64 {
    ((number + 1) * hop).min(end).saturating_sub(number * hop) / size as u64
}

/// Rows of a waterfall.
pub(crate) const ROWS: usize = 128;
