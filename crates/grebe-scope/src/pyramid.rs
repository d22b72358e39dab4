//! A long stream within a fixed budget: recent samples, and nodes over ever longer spans of older ones.
//!
//! ```text
//! level 4   |------------- nodes of 16 Mi samples -------------|   hours
//! level 3              |---- 1 Mi ----|----|----|----|----|----|
//! level 2                             |-- 64 Ki --|--|--|--|--||   minutes
//! level 1                                         |- 4 Ki -||||    seconds
//! level 0                                                |256||
//! samples                                                   |||    newest
//! ```
//! Each level is a separate ring, so resolution ages instead of history ending. Node `n` of a level covers
//! samples `n * size..(n + 1) * size`, counted from the absolute index 0 for any blocks: a node's numbers depend on
//! the samples alone. A node is written once, when the stream has passed its end. Finer levels answer for newer parts
//! of the stream, and the samples themselves for the newest.

mod shape;
mod track;

use std::ops::Range;

use crate::column::{Column, ColumnGrid, Coverage};
use crate::error::{Error, Result, check_block};
use crate::simd;
use crate::stats::Stats;
use crate::value::{Sums, Value};
use shape::Shape;
use track::{ChannelTracks, CountTracks, Presence};

/// The recent past of a multi-channel stream at every zoom, within a fixed number of bytes.
///
/// All memory is reserved at the start; appending and asking allocate nothing. Indices are absolute: gaps are
/// jumps of the index, kept as gaps and never filled in.
///
/// ```
/// use grebe_scope::{Column, ColumnGrid, Coverage, Pyramid};
/// let mut pyramid = Pyramid::new(2, 4 << 20)?;
/// pyramid.append(1000, &[&[1, 5, 3], &[0, 0, -7]])?;
/// pyramid.append(1005, &[&[9], &[9]])?; // 1003 and 1004 were lost
///
/// let mut columns = [Column::OUTSIDE; 3];
/// let grid = ColumnGrid::new(3.0);
/// pyramid.columns(0, grid, grid.column_at(999), &mut columns);
/// assert_eq!((columns[0].min, columns[0].max, columns[0].coverage), (1, 5, Coverage::Partial));
/// assert_eq!((columns[1].min, columns[1].max, columns[1].coverage), (3, 3, Coverage::Gap));
/// assert_eq!((pyramid.oldest(), pyramid.newest()), (Some(1000), Some(1005)));
/// # Ok::<(), grebe_scope::Error>(())
/// ```
#[derive(Debug)]
pub struct Pyramid<V: Value = i16> {
    shape: Shape,
    channels: Vec<ChannelTracks<V>>,
    counts: CountTracks,
    presence: Presence,
    /// Where the stream was joined; `None` before the first block.
    begin: Option<u64>,
    next: u64,
    lost: u64,
}

impl<V: Value> Pyramid<V> {
    /// A pyramid of `channels` channels (1 to 510; a complex channel counts as two) within `budget_bytes`, at least about
    /// 8 KiB a channel of `i16`, 13 KiB of `f32`.
    ///
    /// A budget of 1 GB holds, of 4 channels at 1 GSPS: samples for 30 ms, 256-sample nodes for 0.2 s, 4 Ki
    /// nodes for 9 s, 64 Ki nodes for 2 minutes, 1 Mi nodes for more than an hour. At 48 kHz, samples alone last
    /// for 10 minutes.
    ///
    /// # Errors
    /// [`Error::Setting`] for the channel count, [`Error::Budget`] for too few bytes,
    /// [`Error::OutOfMemory`] for more than the machine lends.
    pub fn new(channels: usize, budget_bytes: usize) -> Result<Pyramid<V>> {
        if !(1..=CHANNELS_MAX).contains(&channels) {
            return Err(Error::Setting {
                what: "channels",
                got: channels.to_string(),
                must: "between 1 and 510",
            });
        }
        Ok(Pyramid::with_shape(channels, Shape::for_budget(track::bytes::<V>(), channels, budget_bytes)?))
    }

    /// Samples per channel that such a pyramid keeps singly.
    ///
    /// # Errors
    /// As [`Pyramid::new`].
    pub fn samples_within(channels: usize, budget_bytes: usize) -> Result<u64> {
        Ok(Shape::for_budget(track::bytes::<V>(), channels.max(1), budget_bytes)?.raw_samples)
    }

    fn with_shape(channels: usize, shape: Shape) -> Pyramid<V> {
        Pyramid {
            channels: (0..channels).map(|_| ChannelTracks::new(&shape)).collect(),
            counts: CountTracks::new(&shape),
            presence: Presence::new(shape.raw_samples),
            shape,
            begin: None,
            next: 0,
            lost: 0,
        }
    }

    /// Takes the next block: one slice per channel, the first sample of each at `first_sample_index`.
    ///
    /// An index beyond the expected one is a gap of that many samples. A block without samples still reports the
    /// progress of the stream.
    ///
    /// # Errors
    /// Another number of channels, channels of different lengths, an index that moves back, or one beyond
    /// 2^62. Nothing changes then; a restarted stream needs [`clear`](Pyramid::clear).
    pub fn append(&mut self, first_sample_index: u64, block: &[&[V]]) -> Result<()> {
        let next = self.begin.map(|_| self.next);
        let len = check_block(block, self.channels.len(), first_sample_index, next)?;
        if self.begin.is_none() {
            self.begin = Some(first_sample_index);
            self.next = first_sample_index;
        } else if first_sample_index > self.next {
            self.skip_to(first_sample_index);
        }
        for (channel, samples) in self.channels.iter_mut().zip(block) {
            channel.append(&self.shape, self.next, samples);
        }
        self.counts.append(&self.shape, self.next, len as u64);
        self.presence.set(self.next, len as u64);
        self.next += len as u64;
        Ok(())
    }

    /// Forgets everything; the memory stays reserved.
    pub fn clear(&mut self) {
        self.begin = None;
        self.next = 0;
        self.lost = 0;
        self.channels.iter_mut().for_each(ChannelTracks::reset);
        self.counts.reset();
    }

    /// Fills `out` with the columns `first_column..` of `grid`, exact: each is the smallest and the largest of
    /// all samples of its span.
    ///
    /// In history whose nodes are longer than a sixteenth of a column, the span is widened outwards to whole nodes,
    /// so that no peak is lost. A channel that does not exist yields [`Column::OUTSIDE`].
    pub fn columns(&self, channel: usize, grid: ColumnGrid, first_column: u64, out: &mut [Column<V>]) {
        for (column, number) in out.iter_mut().zip(first_column..) {
            *column = self.column(channel, grid.span(number));
        }
    }

    /// Statistics of all samples in `range`, widened outwards to whole nodes in older history.
    pub fn range_stats(&self, channel: usize, range: Range<u64>) -> RangeStats<V> {
        let (Some(tracks), Some(range)) = (self.channels.get(channel), self.covered(range)) else {
            return RangeStats { stats: Stats::empty(), count: 0, range: 0..0 };
        };
        let (mut stats, mut count) = (Stats::empty(), 0);
        self.walk(range.clone(), |piece| match piece {
            Piece::Node { level, number } => {
                stats.merge(&tracks.node(level, number));
                count += u64::from(self.counts.node(level, number));
            }
            Piece::Raw(range) => self.presence.runs(range, |run| {
                count += run.end - run.start;
                stats.merge(&simd::stats(tracks.raw(run)));
            }),
        });
        RangeStats { stats, count, range }
    }

    /// Calls `each` with every unbroken run of kept samples in `range`, oldest first: the index of the first
    /// sample, and the samples. Runs end at gaps, and once where the ring wraps.
    pub fn samples<'a>(&'a self, channel: usize, range: Range<u64>, mut each: impl FnMut(u64, &'a [V])) {
        let (Some(tracks), Some(oldest)) = (self.channels.get(channel), self.oldest_sample()) else { return };
        let start = range.start.max(oldest);
        let end = range.end.min(self.next);
        self.presence.runs(start..end, |run| each(run.start, tracks.raw(run)));
    }

    /// Index of the oldest sample that any level still covers; `None` before the first block.
    pub fn oldest(&self) -> Option<u64> {
        self.begin.map(|begin| begin.max(self.covered_from(self.shape.levels() - 1)))
    }

    /// Index of the newest sample, or of the last one known to be lost; `None` before the first sample.
    pub fn newest(&self) -> Option<u64> {
        self.begin.filter(|&begin| self.next > begin).map(|_| self.next - 1)
    }

    /// Index that would follow without a gap; 0 before the first block.
    pub fn next_index(&self) -> u64 {
        self.next
    }

    /// Samples per channel that were lost in gaps since the stream was joined.
    pub fn lost_samples(&self) -> u64 {
        self.lost
    }

    /// Samples per channel that are kept singly.
    pub fn samples_held(&self) -> u64 {
        self.shape.raw_samples
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Bytes reserved, all of them from the start; the operating system provides them at the first use.
    pub fn memory_bytes(&self) -> usize {
        self.shape.bytes(track::bytes::<V>(), self.channels.len())
    }

    /// Skips lost samples, up to `index`.
    fn skip_to(&mut self, index: u64) {
        for channel in &mut self.channels {
            channel.skip(&self.shape, self.next, index);
        }
        self.counts.skip(&self.shape, self.next, index);
        self.presence.clear(self.next, index - self.next);
        self.lost += index - self.next;
        self.next = index;
    }

    fn column(&self, channel: usize, span: Range<u64>) -> Column<V> {
        let (Some(tracks), Some(range)) = (self.channels.get(channel), self.covered(span.clone())) else {
            return Column::OUTSIDE;
        };
        let (mut min, mut max, mut count) = (V::HIGHEST, V::LOWEST, 0);
        self.walk(range.clone(), |piece| match piece {
            Piece::Node { level, number } => {
                let (low, high) = tracks.node_min_max(level, number);
                (min, max) = (lower(low, min), higher(high, max));
                count += u64::from(self.counts.node(level, number));
            }
            Piece::Raw(range) => self.presence.runs(range, |run| {
                count += run.end - run.start;
                let (low, high) = simd::min_max(tracks.raw(run));
                (min, max) = (lower(low, min), higher(high, max));
            }),
        });
        let coverage = if count < range.end - range.start {
            Coverage::Gap
        } else if span.start < range.start || span.end > range.end {
            Coverage::Partial
        } else {
            Coverage::Complete
        };
        Column { min, max, coverage }
    }

    /// The level of the finest nodes at `index`, `None` if the samples are kept.
    fn finest_at(&self, index: u64) -> Option<usize> {
        if index >= self.kept_from() {
            return None;
        }
        let last = self.shape.levels() - 1;
        Some((0..last).find(|&level| index >= self.covered_from(level)).unwrap_or(last))
    }

    /// Index of the oldest sample that is kept singly, on a border of level 0 or at the start of the stream; `None` before
    /// the first block.
    pub fn oldest_sample(&self) -> Option<u64> {
        self.begin.map(|begin| begin.max(self.kept_from()))
    }

    fn kept_from(&self) -> u64 {
        let kept_from = self.next.saturating_sub(self.shape.raw_samples);
        kept_from.next_multiple_of(self.shape.node_samples(0))
    }

    /// First index that `level` covers, on a border of the next level, so that a range never ends inside the only node that
    /// covers it.
    fn covered_from(&self, level: usize) -> u64 {
        let log2 = self.shape.node_log2(level);
        let oldest = (self.next >> log2).saturating_sub(self.shape.nodes(level)) << log2;
        match level + 1 < self.shape.levels() {
            true => oldest.next_multiple_of(self.shape.node_samples(level + 1)),
            false => oldest,
        }
    }

    /// `range`, widened to whole nodes and limited to the kept part of the stream; `None` if nothing is left.
    fn covered(&self, range: Range<u64>) -> Option<Range<u64>> {
        let oldest = self.oldest()?;
        let (start, end) = (range.start.max(oldest), range.end.min(self.next));
        if start >= end {
            return None;
        }
        let down = self.finest_at(start).map_or(start, |level| start & !(self.shape.node_samples(level) - 1));
        let up = self.finest_at(end - 1).map_or(end, |l| end.next_multiple_of(self.shape.node_samples(l)));
        Some(down.max(oldest)..up)
    }

    /// Splits `range` (from `covered`) into the largest finished nodes, and into samples where none fits.
    fn walk(&self, range: Range<u64>, mut each: impl FnMut(Piece)) {
        let mut at = range.start;
        while at < range.end {
            match self.largest_node(at, range.end) {
                Some(level) => {
                    let log2 = self.shape.node_log2(level);
                    each(Piece::Node { level, number: at >> log2 });
                    at = ((at >> log2) + 1) << log2;
                }
                None => {
                    let end = (at + 1).next_multiple_of(self.shape.node_samples(0)).min(range.end);
                    each(Piece::Raw(at..end));
                    at = end;
                }
            }
        }
    }

    /// The coarsest level that has a finished node from `at` that ends by `end`.
    fn largest_node(&self, at: u64, end: u64) -> Option<usize> {
        // A node with the stream's first sample may begin before it.
        let joined = self.begin == Some(at);
        let mut best = None;
        for level in 0..self.shape.levels() {
            let size = self.shape.node_samples(level);
            let start = at & !(size - 1);
            if (start != at && !joined) || start + size > end {
                break;
            }
            if at >= self.covered_from(level) {
                best = Some(level);
            }
        }
        best
    }
}

/// Statistics of the samples of a range.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeStats<V: Value = i16> {
    /// Smallest, largest and sums.
    pub stats: Stats<V>,
    /// Samples that were there, finite or not.
    pub count: u64,
    /// The requested range, widened to whole nodes where only nodes are kept, and limited to the stream.
    pub range: Range<u64>,
}

impl<V: Value> RangeStats<V> {
    /// Statistics from outside: extremes of `count` samples in `range`, and the sums of the finite ones.
    pub fn known(
        (min, max): (V, V),
        (sum, sum_sq, not_finite): (f64, f64, u64),
        count: u64,
        range: Range<u64>,
    ) -> RangeStats<V> {
        RangeStats { stats: Stats { min, max, sums: V::Sums::of(sum, sum_sq, not_finite) }, count, range }
    }

    /// Statistics of some runs.
    pub(crate) fn of(runs: &[&[V]]) -> RangeStats<V> {
        let mut all = RangeStats { stats: Stats::empty(), count: 0, range: 0..0 };
        for run in runs {
            all.stats.merge(&simd::stats(run));
            all.count += run.len() as u64;
        }
        all
    }

    /// Samples that are infinite or NaN: no mean includes them.
    pub fn not_finite(&self) -> u64 {
        self.stats.sums.not_finite()
    }

    /// Mean of the finite samples, in their own unit; `None` without any.
    pub fn mean(&self) -> Option<f64> {
        self.stats.sums.mean(self.count)
    }

    /// Root of the mean square of the finite samples; `None` without any.
    pub fn rms(&self) -> Option<f64> {
        self.stats.sums.mean_sq(self.count).map(f64::sqrt)
    }

    /// Standard deviation (RMS of the AC part) of the finite samples; `None` without any.
    pub fn deviation(&self) -> Option<f64> {
        self.stats.sums.deviation(self.count)
    }
}

#[inline(always)]
fn lower<V: Value>(value: V, least: V) -> V {
    if value < least { value } else { least }
}

#[inline(always)]
fn higher<V: Value>(value: V, most: V) -> V {
    if value > most { value } else { most }
}

/// Both components of 255 channels, the most that a stream has.
pub(crate) const CHANNELS_MAX: usize = 510;

/// One step of a walk over a range.
enum Piece {
    Node { level: usize, number: u64 },
    Raw(Range<u64>),
}

#[cfg(test)]
mod tests;
