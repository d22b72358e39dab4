//! From a range of samples to numbers: the walk over nodes and samples.

use std::ops::Range;

use super::Pyramid;
use crate::{Column, Coverage, Stats};

/// Statistics of the samples of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeStats {
    /// Smallest, largest, sum and sum of squares.
    pub stats: Stats,
    /// Samples that were there.
    pub count: u64,
    /// The range that was asked for, widened to whole nodes where only those are kept, and cut to the stream.
    pub range: Range<u64>,
}

impl RangeStats {
    /// Mean, in counts; `None` without samples.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.stats.sum as f64 / self.count as f64)
    }

    /// Root of the mean square, in counts; `None` without samples.
    pub fn rms(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.stats.sum_sq as f64 / self.count as f64).sqrt())
    }

    /// Standard deviation (RMS of the AC part), in counts; `None` without samples.
    pub fn deviation(&self) -> Option<f64> {
        let n = i128::from(self.count);
        let sum = i128::from(self.stats.sum);
        // In whole numbers, so that a large offset does not eat the digits of a small deviation.
        (n > 0).then(|| ((n * i128::from(self.stats.sum_sq) - sum * sum) as f64).sqrt() / n as f64)
    }
}

/// What one step of the walk met.
enum Piece {
    Node { level: usize, number: u64 },
    Raw(Range<u64>),
}

impl Pyramid {
    pub(super) fn column(&self, channel: usize, span: Range<u64>) -> Column {
        let (Some(tracks), Some(range)) = (self.channels.get(channel), self.covered(span.clone())) else {
            return Column::OUTSIDE;
        };
        let (mut min, mut max, mut count) = (i16::MAX, i16::MIN, 0);
        self.walk(range.clone(), |piece| match piece {
            Piece::Node { level, number } => {
                let (low, high) = tracks.node_min_max(level, number);
                min = min.min(low);
                max = max.max(high);
                count += u64::from(self.counts.node(level, number));
            }
            Piece::Raw(range) => self.presence.runs(range, |run| {
                count += run.end - run.start;
                let (low, high) = crate::min_max(tracks.raw(run));
                min = min.min(low);
                max = max.max(high);
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

    pub(super) fn stats_of(&self, channel: usize, range: Range<u64>) -> RangeStats {
        let (Some(tracks), Some(range)) = (self.channels.get(channel), self.covered(range)) else {
            return RangeStats { stats: Stats::EMPTY, count: 0, range: 0..0 };
        };
        let (mut stats, mut count) = (Stats::EMPTY, 0);
        self.walk(range.clone(), |piece| match piece {
            Piece::Node { level, number } => {
                stats.merge(&tracks.node(level, number));
                count += u64::from(self.counts.node(level, number));
            }
            Piece::Raw(range) => self.presence.runs(range, |run| {
                count += run.end - run.start;
                stats.merge(&crate::stats(tracks.raw(run)));
            }),
        });
        RangeStats { stats, count, range }
    }

    /// The level of the finest nodes kept at `index`, `None` where the samples are.
    pub(super) fn finest_at(&self, index: u64) -> Option<usize> {
        if index >= self.oldest_sample() {
            return None;
        }
        let last = self.shape.levels() - 1;
        Some((0..last).find(|&level| index >= self.covered_from(level)).unwrap_or(last))
    }

    /// First index that the samples answer, on a border of level 0 (or where the stream was joined).
    pub(super) fn oldest_sample(&self) -> u64 {
        let kept_from = self.next.saturating_sub(self.shape.raw_samples);
        kept_from.next_multiple_of(self.shape.node_samples(0))
    }

    /// First index that `level` answers, on a border of the next level, so that a range never ends inside the
    /// one node that is all there is.
    pub(super) fn covered_from(&self, level: usize) -> u64 {
        let log2 = self.shape.node_log2(level);
        let oldest = (self.next >> log2).saturating_sub(self.shape.nodes(level)) << log2;
        match level + 1 < self.shape.levels() {
            true => oldest.next_multiple_of(self.shape.node_samples(level + 1)),
            false => oldest,
        }
    }

    /// `range` widened to what is kept and cut to the stream; `None` where nothing is left.
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

    /// Takes `range` (as from `covered`) apart into the largest finished nodes and, where none fits, samples.
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
        // A node that holds the stream's first sample may begin before it.
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
