//! Smallest and largest of some samples, and their sums.

use crate::value::{Number, Sums};

/// Smallest and largest of some samples, and their sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stats<V: Number = i16> {
    /// Smallest sample; [`Number::HIGHEST`] without samples.
    pub min: V,
    /// Largest sample; [`Number::LOWEST`] without samples.
    pub max: V,
    /// Sums of the samples: [`IntegerSums`](crate::IntegerSums) or [`RealSums`](crate::RealSums).
    pub sums: V::Sums,
}

impl<V: Number> Stats<V> {
    /// The statistics of no samples.
    pub(crate) fn empty() -> Stats<V> {
        Stats { min: V::HIGHEST, max: V::LOWEST, sums: V::Sums::default() }
    }

    /// Sum of the finite samples, sum of their squares, and how many samples are in neither.
    pub fn totals(&self) -> (f64, f64, u64) {
        self.sums.totals()
    }

    /// Adds those of further samples.
    #[inline]
    pub(crate) fn merge(&mut self, other: &Stats<V>) {
        if other.min < self.min {
            self.min = other.min;
        }
        if other.max > self.max {
            self.max = other.max;
        }
        self.sums.merge(&other.sums);
    }
}
