/// Smallest, largest, sum and sum of squares of some samples, exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stats {
    /// Smallest sample; `i16::MAX` without samples.
    pub min: i16,
    /// Largest sample; `i16::MIN` without samples.
    pub max: i16,
    /// Sum of the samples.
    pub sum: i64,
    /// Sum of the squares of the samples.
    pub sum_sq: u64,
}

impl Stats {
    /// The statistics of no samples.
    pub(crate) const EMPTY: Stats = Stats { min: i16::MAX, max: i16::MIN, sum: 0, sum_sq: 0 };

    /// Adds those of further samples.
    #[inline]
    pub(crate) fn merge(&mut self, other: &Stats) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_sq += other.sum_sq;
    }
}
