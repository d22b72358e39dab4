//! The queueing delay of the path, from one-way delays.

use super::constants::{BASE_DELAY_WINDOW_US, LONGEST_QUEUE_WINDOW_US, QUIET_QUEUE_US_MIN};
use crate::proto::windowed_filter::RecentMin;

#[derive(Debug)]
pub(super) struct QueueDelay {
    /// The clocks of both hosts differ by an unknown constant: delays are counted from the first one.
    origin: Option<u32>,
    base: RecentMin<i64>,
    queue_us: u64,
    /// Where packets overtake each other: the least queueing delay of as long as the jitter.
    least: Option<RecentMin<u64>>,
    /// The longest mean queue of a round, as a negative number.
    longest_us: RecentMin<i64>,
}

impl QueueDelay {
    pub(super) fn new() -> Self {
        Self {
            origin: None,
            base: RecentMin::new(BASE_DELAY_WINDOW_US),
            queue_us: 0,
            least: None,
            longest_us: RecentMin::new(LONGEST_QUEUE_WINDOW_US),
        }
    }

    /// Packets are late by up to this much without a queue: only the least delay of as long a time tells of one.
    pub(super) fn expect_jitter(&mut self, jitter_us: u64) {
        self.least = (jitter_us > 0).then(|| RecentMin::new(jitter_us));
    }

    pub(super) fn on_sample(&mut self, now_us: u64, one_way_delay_us: u32) {
        let origin = *self.origin.get_or_insert(one_way_delay_us);
        let delay = i64::from(one_way_delay_us.wrapping_sub(origin).cast_signed());
        self.base.add(now_us, delay);
        self.queue_us = (delay - self.base.least().unwrap_or(delay)).unsigned_abs();
        if let Some(least) = &mut self.least {
            least.add(now_us, self.queue_us);
            self.queue_us = least.least().unwrap_or(self.queue_us);
        }
    }

    /// The queueing delay last seen.
    pub(super) fn now_us(&self) -> u64 {
        self.queue_us
    }

    /// Takes the mean queue of a round; whether that was a queue at all. One beyond `queue_us_max` always is; where the buffer is
    /// shorter than that, a full one is told from an empty one by the longest seen.
    pub(super) fn on_round(&mut self, now_us: u64, mean_us: u64, queue_us_max: u64) -> bool {
        self.longest_us.add(now_us, -(mean_us as i64));
        let longest_us = self.longest_us.least().unwrap_or(0).unsigned_abs();
        mean_us > (longest_us / 3).clamp(QUIET_QUEUE_US_MIN, queue_us_max.max(QUIET_QUEUE_US_MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_buffer_that_is_full_is_told_from_an_empty_one() {
        let mut queue = QueueDelay::new();
        assert!(queue.on_round(0, 5_500, 6_000));
        assert!(queue.on_round(1, 5_000, 6_000));
        assert!(!queue.on_round(2, 1_000, 6_000));
        assert!(queue.on_round(3, 7_000, 6_000), "longer than any is allowed to be");
    }

    #[test]
    fn only_the_least_delay_counts_where_packets_overtake_each_other() {
        let mut queue = QueueDelay::new();
        queue.expect_jitter(10_000);
        for (now_us, delay_us) in [(0, 100_000), (1_000, 109_000), (2_000, 104_000)] {
            queue.on_sample(now_us, delay_us);
        }
        assert_eq!(queue.now_us(), 0);
        for (now_us, delay_us) in [(30_000, 109_000), (31_000, 104_000), (45_000, 106_000)] {
            queue.on_sample(now_us, delay_us);
        }
        assert_eq!(queue.now_us(), 4_000);
    }
}
