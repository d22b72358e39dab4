//! When a sample is due.

use std::time::{Duration, Instant};

use grebe_flow::{Context, monotonic_ns};

/// Paces a stream to its rate: sample `k` is due `k / rate` after the start, whatever happened before.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    began: Instant,
    began_ns: u64,
    /// Samples a second and channel; 0 = as fast as it goes.
    rate_hz: f64,
}

impl Pacer {
    pub(crate) fn start(rate_hz: f64) -> Self {
        Self { began: Instant::now(), began_ns: monotonic_ns(), rate_hz }
    }

    /// Samples that are due now; all of them where there is no rate.
    pub(crate) fn due_samples(&self) -> u64 {
        if self.is_free() { u64::MAX } else { (self.began.elapsed().as_secs_f64() * self.rate_hz) as u64 }
    }

    /// Sleeps until `samples` are due, or the graph is stopped.
    pub(crate) fn sleep_until_due(&self, samples: u64, ctx: &Context) {
        if !self.is_free() {
            ctx.sleep_until(self.began + self.offset(samples));
        }
    }

    /// The stamp of a sample: when it was due; now, where there is no rate.
    pub(crate) fn stamp_ns(&self, sample: u64) -> u64 {
        if self.is_free() { monotonic_ns() } else { self.began_ns + self.offset(sample).as_nanos() as u64 }
    }

    pub(crate) fn is_free(&self) -> bool {
        self.rate_hz <= 0.0
    }

    fn offset(&self, samples: u64) -> Duration {
        // Beyond a thousand years the schedule no longer matters.
        Duration::from_secs_f64((samples as f64 / self.rate_hz).min(1e10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_follow_the_rate_and_not_the_load() {
        let pacer = Pacer::start(1000.0);
        assert_eq!(pacer.stamp_ns(2500) - pacer.stamp_ns(500), 2_000_000_000);
        assert!(pacer.stamp_ns(u64::MAX) > 0);
    }

    #[test]
    fn without_a_rate_everything_is_due() {
        assert_eq!(Pacer::start(0.0).due_samples(), u64::MAX);
    }
}
