//! The two kinds of arithmetic inside a scope.

use std::fmt::{Debug, Display};

use crate::comparator::Levels;
use crate::measure::Bins;
use crate::simd::Kernels;
use crate::trigger::HighPass;

/// What a scope computes with: `i16` or `f32`, and nothing else.
///
/// Every structure of this crate takes either, and is compiled for each: the kind is chosen once, where a structure is made.
/// Samples of other formats become one of the two without loss of what a picture shows: 8 bits fit `i16`, longer
/// integers and `f64` become `f32`, and a complex sample is two channels, I and Q.
///
/// # Not-a-number and infinity in `f32`
///
/// - Not-a-number is never an extreme, and passes no level: a comparator keeps its state over it. A column of nothing else is
///   empty, and complete all the same: nothing was lost.
/// - Infinity is an extreme, and passes levels; a picture clips it at the edge of its lane.
/// - Neither enters a sum. Means, RMS and everything that stands on them are those of the finite samples;
///   [`RangeStats::not_finite`](crate::RangeStats::not_finite) says how many others there were.
pub trait Value:
    Kernels + Levels + HighPass + Bins + Copy + Default + PartialOrd + Debug + Display + Send + Sync + 'static
{
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

    /// The nearest value; what is beyond the range becomes its end, not-a-number stays one or becomes 0.
    fn from_f64(value: f64) -> Self;
}

impl Value for i16 {
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

impl Value for f32 {
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
