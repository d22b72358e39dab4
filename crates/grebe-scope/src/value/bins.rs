//! Bins of a histogram.

use std::fmt::Debug;

/// Operations of a histogram on each kind of value.
pub trait Bins: Sized {
    /// Sum of the samples of a bin.
    type Sum: Copy + Debug + Send + Default;
    /// The sum as a number.
    fn sum_to_f64(sum: Self::Sum) -> f64;
    /// The smallest and the largest finite sample of `runs`, whose extremes are `all`; `None` without any.
    fn finite_extremes(all: (Self, Self), runs: &[&[Self]]) -> Option<(Self, Self)>;
    /// Height of all bins between two extremes.
    fn span(min: Self, max: Self) -> f64;
    /// Counts the finite samples in bins of equal height from `min` to `max`.
    fn count(samples: &[Self], min: Self, max: Self, bins: &mut [(u64, Self::Sum)]);
    /// Whether two levels differ enough for edges between them.
    fn are_apart(base: f64, top: f64) -> bool;
}

impl Bins for i16 {
    type Sum = i64;

    fn sum_to_f64(sum: i64) -> f64 {
        sum as f64
    }

    fn finite_extremes((min, max): (i16, i16), _: &[&[i16]]) -> Option<(i16, i16)> {
        (min <= max).then_some((min, max))
    }

    fn span(min: i16, max: i16) -> f64 {
        f64::from(max) - f64::from(min) + 1.0
    }

    fn count(samples: &[i16], min: i16, max: i16, bins: &mut [(u64, i64)]) {
        let (min, max) = (i32::from(min), i32::from(max));
        let bins_per_count = ((bins.len() as u64) << 32) / (max - min + 1) as u64;
        for &sample in samples {
            let bin = ((i32::from(sample) - min) as u64 * bins_per_count) >> 32;
            let (count, sum) = &mut bins[bin as usize];
            *count += 1;
            *sum += i64::from(sample);
        }
    }

    fn are_apart(base: f64, top: f64) -> bool {
        top - base >= 1.0
    }
}

impl Bins for f32 {
    type Sum = f64;

    fn sum_to_f64(sum: f64) -> f64 {
        sum
    }

    fn finite_extremes((min, max): (f32, f32), runs: &[&[f32]]) -> Option<(f32, f32)> {
        if min.is_finite() && max.is_finite() {
            return (min <= max).then_some((min, max));
        }
        let finite = runs.iter().copied().flatten().copied().filter(|sample| sample.is_finite());
        finite.fold(None, |found, sample| {
            let (min, max) = found.unwrap_or((sample, sample));
            Some((sample.min(min), sample.max(max)))
        })
    }

    fn span(min: f32, max: f32) -> f64 {
        f64::from(max) - f64::from(min)
    }

    fn count(samples: &[f32], min: f32, max: f32, bins: &mut [(u64, f64)]) {
        let last = bins.len() - 1;
        // A flat signal has one bin.
        let bins_per_unit = (bins.len() as f64 / f32::span(min, max).max(f64::MIN_POSITIVE)).min(f64::MAX);
        for &sample in samples.iter().filter(|sample| sample.is_finite()) {
            let bin = ((f64::from(sample) - f64::from(min)) * bins_per_unit) as usize;
            let (count, sum) = &mut bins[bin.min(last)];
            *count += 1;
            *sum += f64::from(sample);
        }
    }

    fn are_apart(base: f64, top: f64) -> bool {
        // Sums of equal samples are exact, so averaging does not change a level.
        top > base
    }
}
