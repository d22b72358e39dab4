//! Measures the offset of another host's monotonic clock, with its uncertainty.
//!
//! ```text
//!   ClockClient --request--> Responder      ours:    sent ............... returned
//!              <--reply---                theirs:       received, replied
//! ```
//!
//! The method does not assume how the two directions share a round trip. It only assumes that messages do not
//! arrive before they were sent. Each exchange bounds the other clock from both sides. The [`Estimator`]
//! combines the last exchanges to bounds of offset and drift. A queue in one direction widens the interval
//! but never makes it wrong.
//!
//! ```
//! use grebe_clock::{Echo, Estimator};
//!
//! let mut estimator = Estimator::default();
//! // Their clock is 37 ms ahead; 80 us there, 20 us back.
//! estimator.add(Echo { sent_ns: 1_000_000, received_ns: 38_080_000, replied_ns: 38_085_000, returned_ns: 1_105_000 });
//! let relation = estimator.at(1_105_000).unwrap();
//! assert!((relation.offset_ns - 37_000_000).abs() <= relation.error_ns as i64 && relation.error_ns <= 51_000);
//! ```
#![forbid(unsafe_code)]

mod client;
mod estimator;
mod message;
mod responder;

#[cfg(test)]
mod simulated;

pub use client::ClockClient;
pub use estimator::{Echo, Estimator, Relation};
pub use responder::Responder;

/// Monotonic clock that other hosts can query.
#[derive(Debug, Clone, Copy)]
pub struct HostClock {
    /// Identifier among all hosts and boots.
    pub id: u64,
    /// Present reading in nanoseconds.
    pub now_ns: fn() -> u64,
}

/// Messages, for this workspace's fuzz targets. They may change in any release.
#[doc(hidden)]
pub mod internals {
    pub use crate::message::{Answer, MESSAGE_BYTES, Question};
}
