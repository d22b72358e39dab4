//! When a sample is due.

use std::time::{Duration, Instant};

use grebe_flow::{Context, monotonic_ns};

/// Paces a stream to its rate: sample `first + k` is due `k / rate` after the start, whatever happened before.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    began: Instant,
    began_ns: u64,
    first: u64,
    /// Samples per second and channel; 0 = as fast as it goes.
    rate_hz: f64,
    /// The sample up to which the present burst goes.
    burst_end: u64,
}

impl Pacer {
    /// Sample `first` is due now.
    pub(crate) fn start(rate_hz: f64, first: u64) -> Self {
        Self { began: Instant::now(), began_ns: monotonic_ns(), first, rate_hz, burst_end: first }
    }

    /// Up to which sample the stream is due, once `wanted` samples are; `next` is the end of the block to make next. Without a rate,
    /// all are due.
    ///
    /// A burst holds what was due when it began. What falls due while it is made waits for the next one: at a high rate there is
    /// always one more block due, and each block on its own would cost a wake-up and a system call.
    pub(crate) fn due_samples(&mut self, next: u64, wanted: u64) -> Option<u64> {
        if self.is_free() {
            return Some(u64::MAX);
        }
        if next > self.burst_end {
            let due = self.first + (self.began.elapsed().as_secs_f64() * self.rate_hz) as u64;
            if due < wanted {
                return None;
            }
            self.burst_end = due;
        }
        Some(self.burst_end)
    }

    /// Sleeps until `samples` are due or the graph is stopped, and for 100 ms at most, so that a change of the rate is seen.
    pub(crate) fn sleep_until_due(&self, samples: u64, ctx: &Context) {
        if !self.is_free() {
            ctx.sleep_until((self.began + self.offset(samples)).min(Instant::now() + LOOK_INTERVAL));
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
        Duration::from_secs_f64((samples.saturating_sub(self.first) as f64 / self.rate_hz).min(1e10))
    }
}

/// How soon a source sees that its settings were changed.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_follow_the_rate_and_not_the_load() {
        let pacer = Pacer::start(1000.0, 0);
        assert_eq!(pacer.stamp_ns(2500) - pacer.stamp_ns(500), 2_000_000_000);
        assert!(pacer.stamp_ns(u64::MAX) > 0);
        let later = Pacer::start(1000.0, 500);
        assert_eq!(later.stamp_ns(1500) - later.stamp_ns(500), 1_000_000_000);
        assert_eq!(later.stamp_ns(500), later.began_ns);
    }

    #[test]
    fn what_falls_due_while_a_burst_is_made_waits_for_the_next() {
        let mut pacer = Pacer::start(1e9, 0);
        std::thread::sleep(Duration::from_micros(10));
        let burst = pacer.due_samples(1, 10_000).expect("10 us have gone by");
        std::thread::sleep(Duration::from_micros(10));
        assert_eq!(pacer.due_samples(burst, 1), Some(burst));
        assert_eq!(pacer.due_samples(burst + 1, u64::MAX), None);
        assert!(pacer.due_samples(burst + 1, burst + 1) > Some(burst));
    }

    #[test]
    fn without_a_rate_everything_is_due() {
        assert_eq!(Pacer::start(0.0, 0).due_samples(1, 1), Some(u64::MAX));
    }
}
