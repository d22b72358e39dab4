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

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use grebe_scope::Averaging;

use crate::data::recorded::samples::Reader;
use crate::data::recording::{Recording, RecordingOutline};
use crate::data::samples::{Kind, full_scale};
use crate::data::spectrum::{Cells, ROW_SIZE_MAX, ROWS, RowLevels, Sampled, Transform, WaterfallView};
use crate::data::viewport::{Detector, SpectrumSettings};
use known::KnownPower;

/// Makes waterfalls, and keeps the rows of the last.
#[derive(Debug)]
pub(super) struct WideWaterfall<K: Kind> {
    asked: Option<RowKey>,
    transform: Option<Transform<K>>,
    /// By place: row `n` covers the indices from `n * hop` on.
    rows: BTreeMap<u64, Row>,
    lanes: Lanes<K>,
    known: KnownPower,
    is_exact: bool,
    is_settled: bool,
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
}

/// The levels of the transforms of one row.
#[derive(Debug)]
struct Row {
    /// Its indices.
    indices: Range<u64>,
    levels: RowLevels,
    /// The same per bin of the spectral summary, if that covers the whole row.
    known: Option<Vec<f32>>,
    /// Finished transforms: of those far apart, and of those side by side.
    spread: usize,
    blocks: u64,
}

/// The read samples of a channel; I and Q of a complex one.
#[derive(Debug, Default)]
struct Lanes<K> {
    decoded: Vec<K>,
    first: Vec<K>,
    q: Vec<K>,
}

/// Time per picture for transforms: for those far apart, and for all others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most {
    pub(super) spread: Duration,
    pub(super) blocks: Duration,
}

/// Source of the samples.
pub(super) struct Disk<'a> {
    pub(super) recording: &'a mut dyn Recording,
    pub(super) reader: &'a mut Reader,
}

impl<K: Kind> Default for WideWaterfall<K> {
    fn default() -> Self {
        let (rows, lanes, known) = (BTreeMap::new(), Lanes::default(), KnownPower::default());
        Self { asked: None, transform: None, rows, lanes, known, is_exact: true, is_settled: true }
    }
}

/// Whether rows of a window of `span_samples` samples are longer than a transform.
pub(super) fn is_wide(settings: &SpectrumSettings, span_samples: f64) -> bool {
    span_samples / ROWS as f64 > settings.size.min(ROW_SIZE_MAX) as f64
}

impl<K: Kind> WideWaterfall<K> {
    /// Whether another picture would not be better.
    pub(super) fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Whether each row has its transforms far apart: enough for a single picture.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// The rows of a channel up to the end of `window`, for a picture of `columns`, from transforms of up to `size` samples.
    /// Makes as many as time allows.
    pub(super) fn view(
        &mut self,
        disk: &mut Disk<'_>,
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
        let asked = RowKey { channel, size, kept, window: weighting, detector, hop };
        if self.asked != Some(asked) {
            self.rows.clear();
            self.transform = Some(Transform::new(format, full_scale, settings, size, Averaging::None)?);
            self.asked = Some(asked);
        }
        let newest = end.div_ceil(hop).saturating_sub(1);
        let numbers: Vec<u64> = (0..ROWS as u64).map_while(|back| newest.checked_sub(back)).collect();
        for &number in &numbers {
            let indices = (number * hop).max(all.start)..((number + 1) * hop).min(all.end);
            // The recording grew, or was cut.
            if self.rows.get(&number).is_none_or(|row| row.indices != indices) {
                self.rows.insert(number, Row::new(indices, detector, lines.kept.len()));
            }
        }
        let rows_kept = ROWS_BYTES / (lines.kept.len() * size_of::<f64>());
        if self.rows.len() > rows_kept.clamp(ROWS, ROWS_KEPT) {
            let oldest = numbers.last().copied().unwrap_or(0);
            self.rows.retain(|number, _| (oldest..=newest).contains(number));
        }
        let offset_db = 20.0 * (crate::data::samples::full_scale(format) / full_scale).log10() as f32;
        let is_coming = self.known.begin(disk.recording, hop);
        for number in &numbers {
            let Some(row) = self.rows.get_mut(number).filter(|row| row.known.is_none()) else { continue };
            row.known = self.known.bins(disk.recording, channel, &row.indices, detector, offset_db);
        }
        let known = || numbers.iter().map(|number| self.rows[number].known.as_ref());
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
        self.go_on(disk, asked, &numbers, Most { blocks, ..most }, is_long);
        // Until then, the row of the summary.
        let of_summary = |row: &Row| {
            let is_waiting = is_long || row.levels.is_empty() || row.done(size) < row.transforms(size);
            row.known.is_some() && is_waiting
        };
        let is_all_summary = numbers.iter().all(|number| of_summary(&self.rows[number]));
        let cells_of = bins.filter(|_| is_all_summary).unwrap_or_else(|| lines.clone());
        let width = cells_of.width;
        let mut cells = Vec::with_capacity(width * ROWS);
        let mut sampled = Sampled { done: 0, all: 0, is_summary: false };
        for number in &numbers {
            let row = &self.rows[number];
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
        self.is_exact = numbers.iter().all(|number| is_over(&self.rows[number]));
        let is_settled =
            |row: &Row| row.known.is_some() || row.spread == spread(row.transforms(size), size).count();
        self.is_settled = numbers.iter().all(|number| is_settled(&self.rows[number]));
        let (band, span_samples) = (cells_of.band(), (hop * ROWS as u64) as f64);
        Some(WaterfallView { channel, width, band, cells, span_samples, sampled: Some(sampled), number: 0 })
    }

    /// Makes transforms until the time is up or all are made.
    fn go_on(
        &mut self,
        disk: &mut Disk<'_>,
        asked: RowKey,
        numbers: &[u64],
        most: Most,
        is_known_final: bool,
    ) {
        let begun = Instant::now();
        let mut made = 0;
        let mut may = |most: Duration| {
            made += 1;
            // A picture needs a few, even from a slow disk.
            made <= TRANSFORMS_MIN || begun.elapsed() < most
        };
        for pass in 0..SPREAD {
            for number in far_apart(numbers.len()).map(|at| numbers[at]) {
                let Some(row) = self.rows.get_mut(&number) else { continue };
                if row.spread > pass || is_known_final && row.known.is_some() {
                    continue;
                }
                let Some(next) = spread(row.transforms(asked.size), asked.size).nth(row.spread) else {
                    continue;
                };
                if !may(most.spread) {
                    return;
                }
                row.spread += 1;
                let start = row.start(next, asked.size);
                let Some(transform) = &mut self.transform else { return };
                let mut work = Work { disk: &mut *disk, lanes: &mut self.lanes, transform, asked };
                work.transform(start, &mut row.levels);
            }
        }
        for number in numbers {
            let Some(row) = self.rows.get_mut(number) else { continue };
            if is_known_final && row.known.is_some() {
                continue;
            }
            let (transforms, block) = (row.transforms(asked.size), block(asked.size));
            while transforms > spread(transforms, asked.size).count() as u64
                && row.blocks * block < transforms
            {
                if !may(most.blocks) {
                    return;
                }
                let numbers = row.blocks * block..(row.blocks * block + block).min(transforms);
                // A mean counts each once.
                let made = spread(transforms, asked.size).take(row.spread);
                let made: Vec<u64> = made.filter(|it| numbers.contains(it)).collect();
                let Some(transform) = &mut self.transform else { return };
                let mut work = Work { disk: &mut *disk, lanes: &mut self.lanes, transform, asked };
                let (first, last) =
                    (row.start(numbers.start, asked.size), row.start(numbers.end - 1, asked.size));
                if work.read(first..last + asked.size as u64) {
                    for number in numbers.filter(|number| !made.contains(number)) {
                        let at = (row.start(number, asked.size) - first) as usize;
                        work.append(first + at as u64, at, &mut row.levels);
                    }
                } else {
                    // There is a gap within, so read the rows around it one by one.
                    for number in numbers.filter(|number| !made.contains(number)) {
                        let start = row.start(number, asked.size);
                        work.transform(start, &mut row.levels);
                    }
                }
                row.blocks += 1;
            }
        }
    }
}

impl Row {
    fn new(indices: Range<u64>, detector: Detector, lines: usize) -> Self {
        Self { indices, levels: RowLevels::new(detector, lines), known: None, spread: 0, blocks: 0 }
    }

    /// Number of transforms that cover it.
    fn transforms(&self, size: usize) -> u64 {
        self.indices.end.saturating_sub(self.indices.start).div_ceil(size as u64)
    }

    /// The first index of a transform. The last one ends with the row.
    fn start(&self, number: u64, size: usize) -> u64 {
        let start = self.indices.start + number * size as u64;
        start.min(self.indices.end.saturating_sub(size as u64))
    }

    /// Number of finished transforms.
    fn done(&self, size: usize) -> u64 {
        let all = self.transforms(size);
        let in_blocks = (self.blocks * block(size)).min(all);
        let far_apart = spread(all, size).take(self.spread);
        in_blocks + far_apart.filter(|&number| number >= in_blocks).count() as u64
    }
}

/// Makes transforms of samples on the disk.
struct Work<'a, 'b, K: Kind> {
    disk: &'a mut Disk<'b>,
    lanes: &'a mut Lanes<K>,
    transform: &'a mut Transform<K>,
    asked: RowKey,
}

impl<K: Kind> Work<'_, '_, K> {
    /// Makes one from an index on, unless samples are missing.
    fn transform(&mut self, start: u64, levels: &mut RowLevels) {
        if self.read(start..start + self.asked.size as u64) {
            self.append(start, 0, levels);
        }
    }

    /// Makes one from a place in the read samples.
    fn append(&mut self, start: u64, at: usize, levels: &mut RowLevels) {
        let own = at..at + self.asked.size;
        let q = self.lanes.q.get(own.clone()).unwrap_or_default();
        let Some(first) = self.lanes.first.get(own) else { return };
        let (from, to) = self.asked.kept;
        self.transform.append_samples(start, first, q, |lines| levels.add(&lines[from..to], 0.0));
    }

    /// Reads the samples of these indices; returns whether none is missing.
    fn read(&mut self, indices: Range<u64>) -> bool {
        let Lanes { decoded, first, q } = &mut *self.lanes;
        first.clear();
        q.clear();
        let outline = self.disk.recording.outline();
        let Some(position) = position_without_gap(outline, &indices) else { return false };
        let components = outline.format.components();
        let (length, place) = (indices.end - indices.start, self.asked.channel * components);
        let read = self.disk.reader.read(self.disk.recording, position, length, indices.start, |frame, _| {
            let block = frame.header().block_length_samples as usize;
            let all = match K::borrowed(frame) {
                Some(all) => all,
                None => {
                    K::decode(frame, decoded);
                    &decoded[..]
                }
            };
            let lane = |place: usize| all.get(place * block..(place + 1) * block).unwrap_or_default();
            first.extend_from_slice(lane(place));
            if components > 1 {
                q.extend_from_slice(lane(place + 1));
            }
            true
        });
        read.is_ok() && first.len() as u64 == length
    }
}

/// File position of consecutive samples.
fn position_without_gap(outline: &RecordingOutline, indices: &Range<u64>) -> Option<u64> {
    let [stretch] = outline.stretches_in(indices.clone()) else { return None };
    let into = indices.start.checked_sub(stretch.first_sample_index)?;
    (indices.end <= stretch.end_index()).then_some(stretch.position + into)
}

/// The first transforms of a row of `transforms`, ordered by distance, the most distant first.
fn spread(transforms: u64, size: usize) -> impl Iterator<Item = u64> {
    let count = transforms.min(block(size).max(SPREAD_MIN));
    far_apart(count as usize).map(move |at| at as u64 * transforms / count)
}

/// Transforms of `size` samples per read.
fn block(size: usize) -> u64 {
    (SPREAD * ROW_SIZE_MAX / size).clamp(1, SPREAD) as u64
}

/// All places below `count`, distant ones first.
fn far_apart(count: usize) -> impl Iterator<Item = usize> {
    let bits = count.next_power_of_two().ilog2();
    (0..1usize << bits)
        .map(move |at| if bits == 0 { 0 } else { at.reverse_bits() >> (usize::BITS - bits) })
        .filter(move |&at| at < count)
}

/// Transforms of a row before any neighbours of them, and neighbours per read: 512 KiB of 16-bit samples. Fewer of long ones.
const SPREAD: usize = 64;
const SPREAD_MIN: u64 = 4;
/// Minimum per picture.
const TRANSFORMS_MIN: usize = 16;
/// Limits of the rows that are kept while the window moves.
const ROWS_KEPT: usize = 4 * ROWS;
const ROWS_BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod zooms;
