//! Arithmetic of the kernel's drop counter, and the sampler for start and end of dropping.

use std::time::{Duration, Instant};

/// Poll interval of the counter, which otherwise arrives only with a later datagram that may never come.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Start or end of kernel drops due to a full receive buffer, sampled once per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    /// The counter grew within the last second, but not in the one before.
    Began,
    /// A second passed without a drop.
    Cleared,
}

/// Kernel buffers dropped since the socket was opened. The kernel's counter has 32 bits and wraps.
#[derive(Debug, Default)]
pub(super) struct DropCounter {
    last: Option<u32>,
    total: u64,
}

impl DropCounter {
    /// Starts at `baseline`; `None` if the platform has no counter.
    pub(super) fn from_baseline(baseline: Option<u32>) -> Self {
        Self { last: baseline, total: 0 }
    }

    /// Takes a reading. Ignores one older than the last: a datagram carries the count at its queueing, a poll
    /// the present one.
    pub(super) fn read(&mut self, now: u32) {
        let Some(last) = self.last else {
            self.last = Some(now);
            return;
        };
        let grown = now.wrapping_sub(last);
        if grown.cast_signed() > 0 {
            self.total += u64::from(grown);
            self.last = Some(now);
        }
    }

    pub(super) fn total(&self) -> Option<u64> {
        self.last.map(|_| self.total)
    }
}

/// Samples the counter once per second: one event when drops begin, one after a whole second without drops.
#[derive(Debug)]
pub(super) struct Sampler {
    at: Instant,
    seen: u64,
    dropping: bool,
}

impl Sampler {
    pub(super) fn new(now: Instant) -> Self {
        Self { at: now, seen: 0, dropping: false }
    }

    pub(super) fn due(&self, now: Instant) -> bool {
        now.duration_since(self.at) >= POLL_EVERY
    }

    pub(super) fn sample(&mut self, now: Instant, total: u64) -> Option<Congestion> {
        self.at = now;
        let grew = total > self.seen;
        self.seen = total;
        let event = match (self.dropping, grew) {
            (false, true) => Some(Congestion::Began),
            (true, false) => Some(Congestion::Cleared),
            _ => None,
        };
        self.dropping = grew;
        event
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_counter_survives_the_wrap_of_32_bits() {
        let mut drops = DropCounter::from_baseline(Some(u32::MAX - 1));
        drops.read(3);
        assert_eq!(drops.total(), Some(5));
    }

    #[test]
    fn the_baseline_is_not_a_drop() {
        let mut drops = DropCounter::from_baseline(Some(1_000));
        drops.read(1_000);
        assert_eq!(drops.total(), Some(0));
    }

    #[test]
    fn a_missing_counter_is_none_not_zero() {
        assert_eq!(DropCounter::from_baseline(None).total(), None);
    }

    #[test]
    fn a_reading_from_before_the_last_poll_changes_nothing() {
        let mut drops = DropCounter::from_baseline(Some(0));
        drops.read(10);
        drops.read(7);
        drops.read(12);
        assert_eq!(drops.total(), Some(12));
    }

    #[test]
    fn congestion_is_reported_at_its_begin_and_its_end() {
        let now = Instant::now();
        let mut sampler = Sampler::new(now);
        let mut at = |second: u64, total| sampler.sample(now + Duration::from_secs(second), total);
        assert_eq!(at(1, 0), None);
        assert_eq!(at(2, 5), Some(Congestion::Began));
        assert_eq!(at(3, 9), None);
        assert_eq!(at(4, 9), Some(Congestion::Cleared));
        assert_eq!(at(5, 9), None);
        assert_eq!(at(6, 10), Some(Congestion::Began));
    }

    proptest! {
        #[test]
        fn any_growth_below_half_the_range_is_counted_whole(
            start: u32, steps in prop::collection::vec(0_u32..1 << 30, 0..40),
        ) {
            let mut drops = DropCounter::from_baseline(Some(start));
            let (mut now, mut sum) = (start, 0_u64);
            for step in steps {
                now = now.wrapping_add(step);
                sum += u64::from(step);
                drops.read(now);
            }
            prop_assert_eq!(drops.total(), Some(sum));
        }
    }
}
