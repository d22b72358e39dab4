//! Values minus a baseline.

/// Operations of a high-pass filter on each kind of value.
pub trait HighPass: Sized {
    /// `sample - baseline`, rounded to a possible value.
    fn less(sample: Self, baseline: Self) -> Self;
    /// Sum and number of the finite ones of at most 64 samples.
    fn sum_finite(samples: &[Self]) -> (f64, u32);
}

impl HighPass for i16 {
    #[inline]
    fn less(sample: i16, baseline: i16) -> i16 {
        sample.saturating_sub(baseline)
    }

    #[inline]
    fn sum_finite(samples: &[i16]) -> (f64, u32) {
        let sum = samples.iter().map(|&sample| i32::from(sample)).sum::<i32>();
        (sum.into(), samples.len() as u32)
    }
}

impl HighPass for f32 {
    #[inline]
    fn less(sample: f32, baseline: f32) -> f32 {
        sample - baseline
    }

    #[inline]
    fn sum_finite(samples: &[f32]) -> (f64, u32) {
        let finite = samples.iter().filter(|sample| sample.is_finite());
        finite.fold((0.0, 0), |(sum, count), &sample| (sum + f64::from(sample), count + 1))
    }
}
