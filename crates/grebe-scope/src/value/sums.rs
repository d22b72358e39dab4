//! Sums over samples, with mean, RMS and deviation.

use std::fmt::Debug;

/// Sums of `i16`, exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct IntegerSums {
    /// Sum of the samples.
    pub sum: i64,
    /// Sum of the squares of the samples: 2^34 squares at full scale exceed 64 bits.
    pub sum_sq: u128,
}

/// Sums of the finite values of some `f32`, in `f64`. A square is exact; a sum is accurate to about 2 in 10^16 of the
/// sum of the magnitudes, so the cut of a stream into blocks may change its last digits.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RealSums {
    /// Sum of the finite samples.
    pub sum: f64,
    /// Sum of the squares of the finite samples.
    pub sum_sq: f64,
    /// Samples that are infinite or not a number.
    pub not_finite: u64,
}

/// Results of both kinds of sums. `count` is the number of samples, finite or not; `None` without a finite one.
pub trait Sums: Copy + Debug + Default + PartialEq + Send + Sync {
    /// The stored form, a tuple: for tuples of zeros, `vec!` takes zeroed pages from the system without touching them.
    type Stored: Copy + Debug + Default + Send + Sync;
    /// Converts to the stored form.
    fn store(self) -> Self::Stored;
    /// Converts from the stored form.
    fn restore(stored: Self::Stored) -> Self;
    /// Sum, sum of squares, and the number of samples in neither, to be stored elsewhere.
    fn totals(&self) -> (f64, f64, u64);
    /// From stored sums.
    fn of(sum: f64, sum_sq: f64, not_finite: u64) -> Self;
    /// Adds the sums of further samples.
    fn merge(&mut self, other: &Self);
    /// Number of samples in no sum.
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

    /// Sums of a node, which has at most 2^24 samples, fit.
    #[inline]
    fn store(self) -> (i64, u64) {
        (self.sum, self.sum_sq as u64)
    }

    #[inline]
    fn restore((sum, sum_sq): (i64, u64)) -> Self {
        IntegerSums { sum, sum_sq: sum_sq.into() }
    }

    fn totals(&self) -> (f64, f64, u64) {
        (self.sum as f64, self.sum_sq as f64, 0)
    }

    fn of(sum: f64, sum_sq: f64, _: u64) -> Self {
        IntegerSums { sum: sum as i64, sum_sq: sum_sq as u128 }
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
        // In integers, up to 2^48 samples, so that a large offset does not cost the digits of a small deviation.
        let exact =
            i128::try_from(self.sum_sq).ok().and_then(|sum_sq| n.checked_mul(sum_sq)?.checked_sub(sum * sum));
        let (mean, mean_sq) = (self.mean(count)?, self.mean_sq(count)?);
        Some(match exact {
            Some(exact) => (exact as f64).sqrt() / n as f64,
            None => (mean_sq - mean * mean).max(0.0).sqrt(),
        })
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
        // The sums of equal samples differ by their rounding; a 24-bit sample cannot deviate by that little.
        Some(if variance > mean_sq * ROUNDING { variance.sqrt() } else { 0.0 })
    }
}

/// Limit of the variance relative to the mean square: a step of the last of 24 bits is 60 million times the root of this.
const ROUNDING: f64 = 1e-15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_a_day_at_full_scale_say_the_rms_that_it_has() {
        // 2^46 samples that alternate between both ends of the range: twenty hours at 1 GS/s.
        let mut sums = IntegerSums { sum: -1, sum_sq: (1 << 30) + 32_767 * 32_767 };
        for _ in 0..45 {
            let half = sums;
            sums.merge(&half);
        }
        let (count, rms) = (1 << 46, (((1u64 << 30) + 32_767 * 32_767) as f64 / 2.0).sqrt());
        let close = |value: Option<f64>, expected: f64| (value.unwrap() - expected).abs() < expected * 1e-12;
        assert!(
            close(sums.mean_sq(count).map(f64::sqrt), rms) && close(sums.deviation(count), 32_767.5),
            "{sums:?}"
        );
        assert_eq!(sums.mean(count), Some(-0.5));
        let (sum, sum_sq, _) = sums.totals();
        assert_eq!(IntegerSums::of(sum, sum_sq, 0), sums, "as a summary keeps them");
    }
}
