//! The waterfall of a window whose rows are longer than a transform. Each row has the levels of transforms spread over
//! its samples, and each picture adds more of them, until every sample was in one.
//!
//! ```text
//!   row    |--0--|--1--|--2--|--3--| ... |--m--|     of `size` samples each, side by side
//!   first  0, then m/2, m/4, 3m/4, ...               64 of them, far apart
//!   then   64 neighbours at a time, read together    all of them
//! ```
//! Where a spectral summary knows a row, it is drawn from that at once (`known.rs`). If its bins are wider than the picture
//! shows, and the window is not too long, transforms of all samples replace it.

mod known;
mod rows;

use std::ops::Range;
use std::time::Duration;

use grebe_scope::Averaging;

use crate::data::history::Viewer;
use crate::data::samples::{Kind, full_scale};
use crate::data::spectrum::{Cells, ROW_SIZE_MAX, ROWS, RowLevels, Sampled, Transform, WaterfallView};
use crate::data::viewport::SpectrumSettings;
use known::KnownPower;
pub(super) use rows::{Disk, Most};
use rows::{Lanes, Row, RowKey, RowSet, spread};

/// Makes waterfalls, and keeps the rows that viewers look at.
#[derive(Debug, Default)]
pub(super) struct WideWaterfall<K: Kind> {
    /// The last of each viewer, in the order of their pictures.
    looks: Vec<Look>,
    /// One per key that a viewer looks at.
    sets: Vec<RowSet<K>>,
    lanes: Lanes<K>,
    known: KnownPower,
}

/// The rows of a viewer's last picture.
#[derive(Debug)]
struct Look {
    viewer: Viewer,
    key: RowKey,
    rows: Range<u64>,
    is_exact: bool,
    is_settled: bool,
}

/// Whether rows of a window of `span_samples` samples are longer than a transform.
pub(super) fn is_wide(settings: &SpectrumSettings, span_samples: f64) -> bool {
    span_samples / ROWS as f64 > settings.size.min(ROW_SIZE_MAX) as f64
}

impl<K: Kind> WideWaterfall<K> {
    /// Whether another picture would not be better than the last.
    pub(super) fn is_exact(&self) -> bool {
        self.looks.last().is_none_or(|look| look.is_exact)
    }

    /// Whether each row of the last has its transforms far apart: enough for a single picture.
    pub(super) fn is_settled(&self) -> bool {
        self.looks.last().is_none_or(|look| look.is_settled)
    }

    /// Forgets a viewer, and rows that nobody else looks at.
    pub(super) fn forget(&mut self, viewer: Viewer) {
        self.looks.retain(|look| look.viewer != viewer);
        self.drop_unseen();
    }

    fn drop_unseen(&mut self) {
        self.sets.retain(|set| self.looks.iter().any(|look| look.key == set.key));
    }

    /// The rows of a channel up to the end of `window`, for a viewer's picture of `columns`, from transforms of up to `size`
    /// samples. Makes as many as time allows.
    pub(super) fn view(
        &mut self,
        disk: &mut Disk<'_>,
        viewer: Viewer,
        settings: SpectrumSettings,
        (channel, size, columns): (usize, usize, usize),
        window: Range<f64>,
        most: Most,
    ) -> Option<WaterfallView> {
        let outline = disk.recording.outline();
        let (all, format) = (outline.indices(), outline.format);
        let full_scale = outline.bits_full_scale().unwrap_or_else(|| full_scale(format));
        let SpectrumSettings { window: weighting, detector, band, .. } = settings;
        let lines = Cells::of(format.is_complex(), size, band, columns);
        let size = lines.size;
        let hop = ((window.end - window.start) / ROWS as f64).ceil().max(1.0) as u64;
        let end = (window.end.max(0.0).ceil() as u64).min(all.end);
        let kept = (lines.kept.start, lines.kept.end);
        let key = RowKey { channel, size, kept, window: weighting, detector, hop };
        let mut set = match self.sets.iter().position(|set| set.key == key) {
            Some(place) => self.sets.swap_remove(place),
            None => RowSet::new(key, Transform::new(format, full_scale, settings, size, Averaging::None)?),
        };
        let newest = end.div_ceil(hop).saturating_sub(1);
        let numbers: Vec<u64> = (0..ROWS as u64).map_while(|back| newest.checked_sub(back)).collect();
        for &number in &numbers {
            let indices = (number * hop).max(all.start)..((number + 1) * hop).min(all.end);
            // The recording grew, or was cut.
            if set.rows.get(&number).is_none_or(|row| row.indices != indices) {
                set.rows.insert(number, Row::new(indices, detector, lines.kept.len()));
            }
        }
        let rows = numbers.last().copied().unwrap_or(0)..newest + 1;
        self.looks.retain(|look| look.viewer != viewer);
        let moved_rows = MOVED_BYTES / (self.sets.len() + 1) / key.row_bytes();
        if set.rows.len() > moved_rows.clamp(ROWS, ROWS_MOVED) {
            let others = || self.looks.iter().filter(|look| look.key == key);
            let is_seen =
                |number: &u64| rows.contains(number) || others().any(|look| look.rows.contains(number));
            set.rows.retain(|number, _| is_seen(number));
        }
        let offset_db = 20.0 * (crate::data::samples::full_scale(format) / full_scale).log10() as f32;
        let is_coming = self.known.begin(disk.recording, hop);
        for number in &numbers {
            let Some(row) = set.rows.get_mut(number).filter(|row| row.known.is_none()) else { continue };
            row.known = self.known.bins(disk.recording, channel, &row.indices, detector, offset_db);
        }
        let known = || numbers.iter().map(|number| set.rows[number].known.as_ref());
        let bins = known().flatten().map(Vec::len).max();
        let bins = bins.map(|bins| Cells::of_bins(format.is_complex(), bins, band, columns));
        let is_enough = bins.as_ref().is_none_or(|bins| {
            let wanted = if band.is_some() { columns } else { columns.min(known::WHOLE_BINS) };
            bins.width >= wanted.min(lines.width)
        });
        let is_known = known().all(|row| row.is_some());
        let is_too_long = hop > known::REPLACED_SAMPLES / ROWS as u64;
        // A picture to be saved has no next one, and no rows of two kinds.
        let is_last = most.spread > most.blocks && !is_too_long;
        let is_long = is_too_long || hop >= known::FINAL_SAMPLES && is_enough && (is_known || !is_last);
        // Of rows that the summary will have, and of those whose bins are fine enough, there will be few transforms.
        let blocks = match is_coming && !is_known && hop >= known::FINAL_SAMPLES {
            _ if is_last && !is_long => most.spread,
            true => Duration::ZERO,
            false => most.blocks,
        };
        set.go_on(disk, &mut self.lanes, &numbers, Most { blocks, ..most }, is_long);
        // Until then, the row of the summary.
        let of_summary = |row: &Row| {
            let is_waiting = is_long || row.levels.is_empty() || row.done(size) < row.transforms(size);
            row.known.is_some() && is_waiting
        };
        let is_all_summary = numbers.iter().all(|number| of_summary(&set.rows[number]));
        let cells_of = bins.filter(|_| is_all_summary).unwrap_or_else(|| lines.clone());
        let width = cells_of.width;
        let mut cells = Vec::with_capacity(width * ROWS);
        let mut sampled = Sampled { done: 0, all: 0, is_summary: false };
        for number in &numbers {
            let row = &set.rows[number];
            let is_final = is_long && row.known.is_some();
            let made = |of: u64| if is_final { KnownPower::transforms(&row.indices) } else { of };
            sampled.done += made(row.done(size));
            sampled.all += made(row.transforms(size));
            if let Some(known) = row.known.as_ref().filter(|_| of_summary(row)) {
                cells.extend(cells_of.of_row(detector, known));
                // A row in a gap has a single bin.
                sampled.is_summary |= known.len() > 1;
                continue;
            }
            let is_lost = row.spread > 0;
            let nothing = if is_lost { f32::NAN } else { f32::NEG_INFINITY };
            cells.extend(row.levels.dbfs(&RowLevels::new(detector, 0), lines.lines(), nothing));
        }
        cells.resize(width * ROWS, f32::NEG_INFINITY);
        let is_over = |row: &Row| row.done(size) == row.transforms(size) || is_long && row.known.is_some();
        let is_exact = numbers.iter().all(|number| is_over(&set.rows[number]));
        let is_settled =
            |row: &Row| row.known.is_some() || row.spread == spread(row.transforms(size), size).count();
        let is_settled = numbers.iter().all(|number| is_settled(&set.rows[number]));
        self.sets.push(set);
        self.looks.push(Look { viewer, key, rows, is_exact, is_settled });
        while self.looks.len() > 1 && self.looks.iter().map(Look::bytes).sum::<usize>() > LOOKS_BYTES {
            self.looks.remove(0);
        }
        self.drop_unseen();
        let (band, span_samples) = (cells_of.band(), (hop * ROWS as u64) as f64);
        Some(WaterfallView { channel, width, band, cells, span_samples, sampled: Some(sampled), number: 0 })
    }
}

impl Look {
    fn bytes(&self) -> usize {
        (self.rows.end - self.rows.start) as usize * self.key.row_bytes()
    }
}

/// Maximum memory for the rows that viewers look at: 10 viewers with the longest transforms, 32 or 64 with those of the whole
/// band. Beyond it, those of the oldest picture are made again for its next.
const LOOKS_BYTES: usize = 128 << 20;
/// Limits of the rows that are kept while windows move.
const ROWS_MOVED: usize = 4 * ROWS;
const MOVED_BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod viewers;
#[cfg(test)]
mod zooms;
