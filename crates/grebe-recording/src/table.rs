//! Tables of numbers of any origin: finds the time column, and from the times the rate and the gaps.
//!
//! ```text
//!  above a column   Heading    its name, its unit, whether it is the time
//!  its times        Clock      seconds since the first, and how coarsely they are written
//!  all of them      Spacing    the even spacing that explains them: the rate
//!  one by one       Steps      the next sample, or a gap
//! ```
//!
//! Files of comma-separated values are read with it, and lines that come over pipes and serial ports.

mod clock;
mod heading;
mod moment;
mod number;
mod spacing;
mod steps;

pub(crate) use number::leading;
pub(crate) use spacing::reciprocal;

pub use clock::Clock;
pub use heading::{Heading, TimeUnit};
pub use number::{number, number_and_unit};
pub use spacing::Uneven;
pub use steps::{LOOKAHEAD, Spacing, Step, Steps};

#[cfg(test)]
mod tests;
