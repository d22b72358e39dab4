//! Begin of samples after a gap, or with another description.

use std::ops::Range;
use std::sync::Arc;

use grebe_frame::{ChannelDescription, Description};

use super::described::Tuning;
use super::layout::{Capture, datetime};
use crate::sample_file::RecordedAt;

/// Begin of samples after a gap, or with another description.
#[derive(Debug, Clone)]
pub(super) struct Captured {
    pub(super) position: u64,
    pub(super) first_sample_index: u64,
    pub(super) recorded_at: Option<RecordedAt>,
    pub(super) description: Option<Arc<Description>>,
    /// For alternating recordings: the samples of the whole before it.
    pub(super) stripe_start: Option<u64>,
}

impl Captured {
    /// `described` is the description of these channels in `global`.
    pub(super) fn capture(
        &self,
        channels: Range<usize>,
        described: Option<&[ChannelDescription]>,
        sample_rate_hz: f64,
    ) -> Capture {
        let mut capture = Capture {
            sample_start: self.position,
            // SigMF's largest index.
            global_index: Some(self.first_sample_index.min(i64::MAX as u64)),
            stripe_start: self.stripe_start,
            datetime: self.recorded_at.and_then(|at| datetime(at, sample_rate_hz)),
            datetime_error_ns: self.recorded_at.and_then(|at| at.error_ns),
            axis: self.recorded_at.and_then(|at| at.axis),
            ..Capture::default()
        };
        Tuning::of(self.description.as_deref(), channels).write(described, &mut capture);
        capture
    }
}
