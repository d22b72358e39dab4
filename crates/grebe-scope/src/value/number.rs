//! Common properties of the two kinds of samples.

use std::fmt::{Debug, Display};

use super::sums::{IntegerSums, RealSums, Sums};

/// A sample as a number: `i16` or `f32`.
pub trait Number: Copy + Default + PartialOrd + Debug + Display + Send + Sync + 'static {
    /// Sums over samples.
    type Sums: Sums;
    /// Not above any value.
    const LOWEST: Self;
    /// Not below any value.
    const HIGHEST: Self;
    /// The amplitude of a sine that uses the whole range, as streams of this kind mean it: 32768 or 1.0.
    const FULL_SCALE: f64;
    /// Whether there are values that are infinite or not a number.
    const MAY_BE_NAN: bool;

    /// The value, exact.
    fn to_f64(self) -> f64;

    /// The value, exact.
    fn to_f32(self) -> f32;

    /// The nearest value. Values beyond the range become its end; NaN stays NaN or becomes 0.
    fn from_f64(value: f64) -> Self;
}

impl Number for i16 {
    type Sums = IntegerSums;

    const LOWEST: i16 = i16::MIN;
    const HIGHEST: i16 = i16::MAX;
    const FULL_SCALE: f64 = 32768.0;
    const MAY_BE_NAN: bool = false;

    #[inline]
    fn to_f64(self) -> f64 {
        self.into()
    }

    #[inline]
    fn to_f32(self) -> f32 {
        self.into()
    }

    #[inline]
    fn from_f64(value: f64) -> i16 {
        value.round_ties_even() as i16
    }
}

impl Number for f32 {
    type Sums = RealSums;

    const LOWEST: f32 = f32::NEG_INFINITY;
    const HIGHEST: f32 = f32::INFINITY;
    const FULL_SCALE: f64 = 1.0;
    const MAY_BE_NAN: bool = true;

    #[inline]
    fn to_f64(self) -> f64 {
        self.into()
    }

    #[inline]
    fn to_f32(self) -> f32 {
        self
    }

    #[inline]
    fn from_f64(value: f64) -> f32 {
        value as f32
    }
}
