//! Rows of one kind, and the transforms that fill them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::data::recorded::samples::Reader;
use crate::data::recording::{Recording, RecordingOutline};
use crate::data::samples::Kind;
use crate::data::spectrum::{ROW_SIZE_MAX, RowLevels, Transform};
use crate::data::viewport::Detector;

/// Time per picture for transforms: for those far apart, and for all others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    pub(crate) spread: Duration,
    pub(crate) blocks: Duration,
}

impl Most {
    /// For a picture while this many other viewers wait for better ones. One to be saved has no next one that could improve it.
    pub(crate) fn of(is_saved: bool, waiting: usize) -> Self {
        let blocks = SHARED_TIME / (waiting as u32 + 1);
        Self { spread: if is_saved { SAVED_TIME } else { blocks }, blocks }
    }
}

/// Source of the samples.
pub(crate) struct Disk<'a> {
    pub(crate) recording: &'a mut dyn Recording,
    pub(crate) reader: &'a mut Reader,
}

/// The rows of one key.
#[derive(Debug)]
pub(super) struct RowSet<K: Kind> {
    pub(super) key: RowKey,
    transform: Transform<K>,
    /// By place: row `n` covers the indices from `n * hop` on.
    pub(super) rows: BTreeMap<u64, Row>,
}

/// Parameters that rows depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RowKey {
    pub(super) channel: usize,
    pub(super) size: usize,
    /// The lines of the transforms.
    pub(super) kept: (usize, usize),
    pub(super) window: grebe_scope::Window,
    pub(super) detector: Detector,
    pub(super) hop: u64,
}

impl RowKey {
    pub(super) fn row_bytes(&self) -> usize {
        (self.kept.1 - self.kept.0) * size_of::<f64>()
    }
}

/// The levels of the transforms of one row.
#[derive(Debug)]
pub(super) struct Row {
    /// Its indices.
    pub(super) indices: Range<u64>,
    pub(super) levels: RowLevels,
    /// The same per bin of the spectral summary, if that covers the whole row.
    pub(super) known: Option<Vec<f32>>,
    /// Finished transforms: of those far apart, and of those side by side.
    pub(super) spread: usize,
    blocks: u64,
}

/// The read samples of a channel; I and Q of a complex one.
#[derive(Debug, Default)]
pub(super) struct Lanes<K> {
    decoded: Vec<K>,
    first: Vec<K>,
    q: Vec<K>,
}

impl<K: Kind> RowSet<K> {
    pub(super) fn new(key: RowKey, transform: Transform<K>) -> Self {
        Self { key, transform, rows: BTreeMap::new() }
    }

    /// Makes transforms until the time is up or all are made.
    pub(super) fn go_on(
        &mut self,
        disk: &mut Disk<'_>,
        lanes: &mut Lanes<K>,
        numbers: &[u64],
        most: Most,
        is_known_final: bool,
    ) {
        let (begun, size) = (Instant::now(), self.key.size);
        let mut work = Work { disk, lanes, transform: &mut self.transform, key: self.key };
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
                let Some(next) = spread(row.transforms(size), size).nth(row.spread) else {
                    continue;
                };
                if !may(most.spread) {
                    return;
                }
                row.spread += 1;
                let start = row.start(next, size);
                work.transform(start, &mut row.levels);
            }
        }
        for number in numbers {
            let Some(row) = self.rows.get_mut(number) else { continue };
            if is_known_final && row.known.is_some() {
                continue;
            }
            let (transforms, block) = (row.transforms(size), block(size));
            while transforms > spread(transforms, size).count() as u64 && row.blocks * block < transforms {
                if !may(most.blocks) {
                    return;
                }
                let numbers = row.blocks * block..(row.blocks * block + block).min(transforms);
                // A mean counts each once.
                let made = spread(transforms, size).take(row.spread);
                let made: Vec<u64> = made.filter(|it| numbers.contains(it)).collect();
                let (first, last) = (row.start(numbers.start, size), row.start(numbers.end - 1, size));
                if work.read(first..last + size as u64) {
                    for number in numbers.filter(|number| !made.contains(number)) {
                        let at = (row.start(number, size) - first) as usize;
                        work.append(first + at as u64, at, &mut row.levels);
                    }
                } else {
                    // There is a gap within, so read the rows around it one by one.
                    for number in numbers.filter(|number| !made.contains(number)) {
                        let start = row.start(number, size);
                        work.transform(start, &mut row.levels);
                    }
                }
                row.blocks += 1;
            }
        }
    }
}

impl Row {
    pub(super) fn new(indices: Range<u64>, detector: Detector, lines: usize) -> Self {
        Self { indices, levels: RowLevels::new(detector, lines), known: None, spread: 0, blocks: 0 }
    }

    /// Number of transforms that cover it.
    pub(super) fn transforms(&self, size: usize) -> u64 {
        self.indices.end.saturating_sub(self.indices.start).div_ceil(size as u64)
    }

    /// The first index of a transform. The last one ends with the row.
    fn start(&self, number: u64, size: usize) -> u64 {
        let start = self.indices.start + number * size as u64;
        start.min(self.indices.end.saturating_sub(size as u64))
    }

    /// Number of finished transforms.
    pub(super) fn done(&self, size: usize) -> u64 {
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
    key: RowKey,
}

impl<K: Kind> Work<'_, '_, K> {
    /// Makes one from an index on, unless samples are missing.
    fn transform(&mut self, start: u64, levels: &mut RowLevels) {
        if self.read(start..start + self.key.size as u64) {
            self.append(start, 0, levels);
        }
    }

    /// Makes one from a place in the read samples.
    fn append(&mut self, start: u64, at: usize, levels: &mut RowLevels) {
        let own = at..at + self.key.size;
        let q = self.lanes.q.get(own.clone()).unwrap_or_default();
        let Some(first) = self.lanes.first.get(own) else { return };
        let (from, to) = self.key.kept;
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
        let (length, place) = (indices.end - indices.start, self.key.channel * components);
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
pub(super) fn spread(transforms: u64, size: usize) -> impl Iterator<Item = u64> {
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
pub(super) const TRANSFORMS_MIN: usize = 16;
/// Time for transforms per picture of each viewer in turn. Keys must respond within 0.1 s, and columns take up to 40 ms of it.
pub(super) const SHARED_TIME: Duration = Duration::from_millis(50);
pub(super) const SAVED_TIME: Duration = Duration::from_secs(20);
