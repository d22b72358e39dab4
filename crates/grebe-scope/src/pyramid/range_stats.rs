use std::ops::Range;

use crate::simd::Stats;

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
