//! The two kinds of arithmetic inside a scope, and what differs between them, subject by subject.

mod bins;
mod high_pass;
mod levels;
mod number;
mod sums;

use crate::simd::Kernels;
pub(crate) use bins::Bins;
pub(crate) use high_pass::HighPass;
pub(crate) use levels::Levels;
pub use number::Number;
pub(crate) use sums::Sums;
pub use sums::{IntegerSums, RealSums};

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
pub trait Value: Kernels + Levels + HighPass + Bins {}

impl Value for i16 {}

impl Value for f32 {}
