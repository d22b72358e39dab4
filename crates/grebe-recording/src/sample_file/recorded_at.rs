//! When samples were made or received.

use std::time::SystemTime;

use grebe_frame::{AxisTime, Description, Header};

/// When a sample was made or received, and how far that may be off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordedAt {
    pub(crate) time: SystemTime,
    pub(crate) error_ns: Option<u64>,
    pub(crate) axis: Option<AxisTime>,
}

impl RecordedAt {
    /// Seconds without samples from here, the end of `lasted_s` of a stream, to the begin of the next one. `None`
    /// below the precision of the clocks.
    pub(crate) fn missing_until(&self, begin: &Self, lasted_s: f64) -> Option<f64> {
        let seconds = begin.time.duration_since(self.time).ok()?.as_secs_f64();
        let error_ns = self.error_ns.unwrap_or(0) as f64 + begin.error_ns.unwrap_or(0) as f64;
        (seconds > CLOCK_GAP_MIN_S + CRYSTAL * lasted_s + error_ns * 1e-9).then_some(seconds)
    }
}

/// When a sample of a frame was made, by the producer's clock, or arrived.
#[cold]
pub(crate) fn made_at(
    description: Option<&Description>,
    header: &Header,
    sample_index: u64,
) -> Option<RecordedAt> {
    let Some(description) = description else { return now() };
    match description.time_of(header, sample_index) {
        Some(time) => Some(RecordedAt {
            time,
            error_ns: description.time_error_ns(),
            axis: description.axis_time_of(header, sample_index),
        }),
        // Samples played from a recording were not made now, even if their time is known.
        None if description.recorded_at.is_some() || description.is_undated => None,
        None => now(),
    }
}

/// A sample that arrives now.
pub(crate) fn now() -> Option<RecordedAt> {
    Some(RecordedAt { time: SystemTime::now(), error_ns: None, axis: None })
}

/// A smaller jump is not a loss: senders and the system buffer.
const CLOCK_GAP_MIN_S: f64 = 0.05;
/// How far crystals are off.
const CRYSTAL: f64 = 150e-6;
