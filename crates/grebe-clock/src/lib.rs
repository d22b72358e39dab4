//! How far the monotonic clock of another host is from ours, and how sure that is.
//!
//! ```text
//!   Asker --question--> Responder        ours:    sent ............... back
//!         <--answer----                  theirs:       there, answered
//! ```
//!
//! Nothing is assumed of how the two directions share a round trip: a question cannot arrive before it was sent, and an answer not
//! before it was given. Each exchange bounds the other clock from both sides, and the [`Estimator`] keeps what all of the last ones
//! allow together, of offset and drift. A queue in one direction makes the interval wider and never wrong.
//!
//! ```
//! use grebe_clock::{Echo, Estimator};
//!
//! let mut estimator = Estimator::default();
//! // Their clock is 37 ms ahead; 80 us there, 20 us back.
//! estimator.add(Echo { sent_ns: 1_000_000, there_ns: 38_080_000, answered_ns: 38_085_000, back_ns: 1_105_000 });
//! let relation = estimator.at(1_105_000).unwrap();
//! assert!((relation.offset_ns - 37_000_000).abs() <= relation.error_ns as i64 && relation.error_ns <= 51_000);
//! ```
#![forbid(unsafe_code)]

mod asker;
mod estimator;
mod message;
mod responder;

#[cfg(test)]
mod simulated;

pub use asker::Asker;
pub use estimator::{Echo, Estimator, Relation};
pub use responder::Responder;

/// A monotonic clock that others may be measured by.
#[derive(Debug, Clone, Copy)]
pub struct HostClock {
    /// Which one, of all hosts and boots.
    pub id: u64,
    /// What it shows, in nanoseconds.
    pub now_ns: fn() -> u64,
}

/// The messages for this workspace's fuzz targets. They may change in any release.
#[doc(hidden)]
pub mod internals {
    pub use crate::message::{Answer, MESSAGE_BYTES, Question};
}
