//! The two kinds of arithmetic of a scope, and their differences, one per submodule.

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

/// The sample type of a scope: `i16` or `f32`.
///
/// Every structure of this crate takes either kind, and is compiled for each; the caller selects the kind when it
/// makes one. Other formats become one of the two without a visible loss: 8 bits fit `i16`, longer integers and `f64`
/// become `f32`, and a complex sample is two channels, I and Q.
///
/// # Not-a-number and infinity in `f32`
///
/// - NaN is never an extreme, and passes no level: a comparator keeps its state over it. A column with nothing else is
///   empty, but complete, because nothing was lost.
/// - Infinity is an extreme, and passes levels; a picture clips it at the edge of its lane.
/// - Neither enters a sum. Means, RMS and everything based on them use the finite samples only;
///   [`RangeStats::not_finite`](crate::RangeStats::not_finite) is the number of the others.
pub trait Value: Kernels + Levels + HighPass + Bins {}

impl Value for i16 {}

impl Value for f32 {}
