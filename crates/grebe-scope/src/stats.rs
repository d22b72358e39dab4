//! Sums over samples, and what they say: mean, RMS, deviation.

use std::fmt::Debug;

use crate::value::Value;

/// Smallest and largest of some samples, and their sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stats<V: Value = i16> {
    /// Smallest sample; [`Value::HIGHEST`] where there is none.
    pub min: V,
    /// Largest sample; [`Value::LOWEST`] where there is none.
    pub max: V,
    /// Sums of the samples: [`IntegerSums`] or [`RealSums`].
    pub sums: V::Sums,
}

/// Sums of `i16`, exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct IntegerSums {
    /// Sum of the samples.
    pub sum: i64,
    /// Sum of the squares of the samples.
    pub sum_sq: u64,
}

/// Sums of the finite ones of some `f32`, in `f64`. A square is exact; a sum is right to about 2 in 10^16 of the sum of the
/// magnitudes, and where a stream is cut into blocks may change its last digits.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RealSums {
    /// Sum of the finite samples.
    pub sum: f64,
    /// Sum of the squares of the finite samples.
    pub sum_sq: f64,
    /// Samples that are infinite or not a number.
    pub not_finite: u64,
}

impl<V: Value> Stats<V> {
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

/// What both kinds of sums yield. `count` is the number of samples, finite or not; `None` where no finite one is among them.
pub trait Sums: Copy + Debug + Default + PartialEq + Send + Sync {
    /// The same as a tuple: of tuples `vec!` takes zeros from the system as they are, without touching the memory.
    type Stored: Copy + Debug + Default + Send + Sync;
    /// As it is kept.
    fn store(self) -> Self::Stored;
    /// From how it was kept.
    fn restore(stored: Self::Stored) -> Self;
    /// Sum, sum of squares, and samples that are in neither: to be kept elsewhere.
    fn totals(&self) -> (f64, f64, u64);
    /// From sums that were kept elsewhere.
    fn of(sum: f64, sum_sq: f64, not_finite: u64) -> Self;
    /// Adds those of further samples.
    fn merge(&mut self, other: &Self);
    /// Samples that are in no sum.
    fn not_finite(&self) -> u64;
    /// Mean.
    fn mean(&self, count: u64) -> Option<f64>;
    /// Mean of the squares.
    fn mean_sq(&self, count: u64) -> Option<f64>;
    /// Standard deviation.
    fn deviation(&self, count: u64) -> Option<f64>;
}

impl Sums for IntegerSums {
    type Stored = (i64, u64);

    #[inline]
    fn store(self) -> (i64, u64) {
        (self.sum, self.sum_sq)
    }

    #[inline]
    fn restore((sum, sum_sq): (i64, u64)) -> Self {
        IntegerSums { sum, sum_sq }
    }

    fn totals(&self) -> (f64, f64, u64) {
        (self.sum as f64, self.sum_sq as f64, 0)
    }

    fn of(sum: f64, sum_sq: f64, _: u64) -> Self {
        IntegerSums { sum: sum as i64, sum_sq: sum_sq as u64 }
    }

    #[inline]
    fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        self.sum_sq += other.sum_sq;
    }

    fn not_finite(&self) -> u64 {
        0
    }

    fn mean(&self, count: u64) -> Option<f64> {
        (count > 0).then(|| self.sum as f64 / count as f64)
    }

    fn mean_sq(&self, count: u64) -> Option<f64> {
        (count > 0).then(|| self.sum_sq as f64 / count as f64)
    }

    fn deviation(&self, count: u64) -> Option<f64> {
        let (n, sum) = (i128::from(count), i128::from(self.sum));
        // In whole numbers, so that a large offset does not eat the digits of a small deviation.
        (n > 0).then(|| ((n * i128::from(self.sum_sq) - sum * sum) as f64).sqrt() / n as f64)
    }
}

impl RealSums {
    fn per_finite(&self, count: u64, sum: f64) -> Option<f64> {
        let finite = count.saturating_sub(self.not_finite);
        (finite > 0).then(|| sum / finite as f64)
    }
}

impl Sums for RealSums {
    type Stored = (f64, f64, u64);

    #[inline]
    fn store(self) -> (f64, f64, u64) {
        (self.sum, self.sum_sq, self.not_finite)
    }

    #[inline]
    fn restore((sum, sum_sq, not_finite): (f64, f64, u64)) -> Self {
        RealSums { sum, sum_sq, not_finite }
    }

    fn totals(&self) -> (f64, f64, u64) {
        (self.sum, self.sum_sq, self.not_finite)
    }

    fn of(sum: f64, sum_sq: f64, not_finite: u64) -> Self {
        RealSums { sum, sum_sq, not_finite }
    }

    #[inline]
    fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        self.sum_sq += other.sum_sq;
        self.not_finite += other.not_finite;
    }

    fn not_finite(&self) -> u64 {
        self.not_finite
    }

    fn mean(&self, count: u64) -> Option<f64> {
        self.per_finite(count, self.sum)
    }

    fn mean_sq(&self, count: u64) -> Option<f64> {
        self.per_finite(count, self.sum_sq)
    }

    fn deviation(&self, count: u64) -> Option<f64> {
        let (mean, mean_sq) = (self.mean(count)?, self.mean_sq(count)?);
        let variance = mean_sq - mean * mean;
        // The sums of equal samples differ by their rounding; a sample of 24 bits cannot deviate by so little.
        Some(if variance > mean_sq * ROUNDING { variance.sqrt() } else { 0.0 })
    }
}

/// Of a variance beside the mean square: a step of the last of 24 bits is 60 million times the root of this.
const ROUNDING: f64 = 1e-15;
