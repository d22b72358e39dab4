//! A long stream within a fixed budget: recent samples, and nodes over ever longer spans of older ones.
//!
//! ```text
//! level 4   |-------------- 16 Mi samples a node --------------|   hours
//! level 3              |---- 1 Mi ----|----|----|----|----|----|
//! level 2                             |-- 64 Ki --|--|--|--|--||   minutes
//! level 1                                         |- 4 Ki -||||    seconds
//! level 0                                                |256||
//! samples                                                   |||    newest
//! ```
//! Each level is a ring of its own, so resolution ages instead of history ending. Node `n` of a level covers
//! samples `n * size..(n + 1) * size`, counted from the absolute index 0 whatever the blocks were: a node's
//! numbers depend on the samples alone. A node is written once, when the stream has passed its end; what is
//! newer is answered from finer levels and in the end from the samples themselves.

mod answer;
mod presence;
mod shape;
mod track;

use std::ops::Range;

use crate::{Column, ColumnGrid, ScopeError, block};
pub use answer::RangeStats;
use presence::Presence;
use shape::Shape;
use track::{ChannelTracks, CountTracks};

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
/// # Ok::<(), grebe_scope::ScopeError>(())
/// ```
#[derive(Debug)]
pub struct Pyramid {
    shape: Shape,
    channels: Vec<ChannelTracks>,
    counts: CountTracks,
    presence: Presence,
    /// Where the stream was joined; `None` before the first block.
    begin: Option<u64>,
    next: u64,
    lost: u64,
}

/// One ring of a pyramid: for a status line, and to know how long history lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelInfo {
    /// Samples a node; 1 for the samples themselves.
    pub samples_per_node: u64,
    /// Nodes the ring holds.
    pub nodes: u64,
    /// Bytes of the ring, over all channels.
    pub bytes: usize,
}

impl LevelInfo {
    /// Samples of history at this resolution.
    pub fn samples(&self) -> u64 {
        self.samples_per_node * self.nodes
    }
}

impl Pyramid {
    /// A pyramid of `channels` channels (1 to 64) within `budget_bytes`, at least about 8 KiB a channel.
    ///
    /// A budget of 1 GB holds, of 4 channels at 1 GSPS: samples for 30 ms, 256-sample nodes for 0.2 s, 4 Ki
    /// nodes for 9 s, 64 Ki nodes for 2 minutes, 1 Mi nodes for more than an hour. At 48 kHz, samples alone last
    /// for 10 minutes.
    ///
    /// # Errors
    /// [`ScopeError::Setting`] for the channel count, [`ScopeError::Budget`] for too few bytes,
    /// [`ScopeError::OutOfMemory`] for more than the machine lends.
    pub fn new(channels: usize, budget_bytes: usize) -> Result<Pyramid, ScopeError> {
        if !(1..=64).contains(&channels) {
            return Err(ScopeError::Setting {
                what: "channels",
                got: channels.to_string(),
                must: "between 1 and 64",
            });
        }
        Ok(Pyramid::with_shape(channels, Shape::for_budget(channels, budget_bytes)?))
    }

    fn with_shape(channels: usize, shape: Shape) -> Pyramid {
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

    /// Takes the next block: one slice a channel, the first sample of each at `first_sample_index`.
    ///
    /// An index beyond the expected one is a gap of that many samples. A block without samples still tells
    /// how far the stream went.
    ///
    /// # Errors
    /// Another number of channels, channels of different lengths, an index that moves back, or one beyond
    /// 2^62. Nothing changes then; a stream that began anew needs [`clear`](Pyramid::clear).
    pub fn append(&mut self, first_sample_index: u64, block: &[&[i16]]) -> Result<(), ScopeError> {
        let next = self.begin.map(|_| self.next);
        let len = block::check(block, self.channels.len(), first_sample_index, next)?;
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
    /// Where a span reaches into history whose nodes are longer than the grid's quantum, it is widened
    /// outwards to whole nodes (see [`resolution_at`](Pyramid::resolution_at)): no peak is ever lost. A channel
    /// that does not exist yields [`Column::OUTSIDE`].
    pub fn columns(&self, channel: usize, grid: ColumnGrid, first_column: u64, out: &mut [Column]) {
        for (column, number) in out.iter_mut().zip(first_column..) {
            *column = self.column(channel, grid.span(number));
        }
    }

    /// Statistics of all samples in `range`, widened outwards to whole nodes where it reaches into history.
    pub fn range_stats(&self, channel: usize, range: Range<u64>) -> RangeStats {
        self.stats_of(channel, range)
    }

    /// Calls `each` with every unbroken run of kept samples in `range`, oldest first: the index of the first
    /// sample, and the samples. Runs end at gaps, and once where the ring wraps.
    pub fn samples<'a>(&'a self, channel: usize, range: Range<u64>, mut each: impl FnMut(u64, &'a [i16])) {
        let (Some(tracks), Some(begin)) = (self.channels.get(channel), self.begin) else { return };
        let start = range.start.max(self.oldest_sample()).max(begin);
        let end = range.end.min(self.next);
        self.presence.runs(start..end, |run| each(run.start, tracks.raw(run)));
    }

    /// Samples a node of the finest history kept at `index`; 1 where the samples themselves are.
    pub fn resolution_at(&self, index: u64) -> u64 {
        self.finest_at(index).map_or(1, |level| self.shape.node_samples(level))
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

    /// Samples a channel lost in gaps since the stream was joined.
    pub fn lost_samples(&self) -> u64 {
        self.lost
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Bytes reserved, all of them from the start; the operating system lends them as they are first used.
    pub fn memory_bytes(&self) -> usize {
        self.levels().map(|level| level.bytes).sum()
    }

    /// The rings, finest first: the samples themselves, then each level of nodes.
    pub fn levels(&self) -> impl Iterator<Item = LevelInfo> + '_ {
        self.shape.rings(self.channels.len())
    }

    /// Passes over samples that were lost, up to `index`.
    fn skip_to(&mut self, index: u64) {
        for channel in &mut self.channels {
            channel.skip(&self.shape, self.next, index);
        }
        self.counts.skip(&self.shape, self.next, index);
        self.presence.clear(self.next, index - self.next);
        self.lost += index - self.next;
        self.next = index;
    }
}

#[cfg(test)]
mod tests;
