//! Estimators of the path's round trip, queueing delay and delivery rate, and the windowed filters under them.

use std::collections::VecDeque;

use super::constants::*;
use crate::proto::wire::report_interval_us;

/// Round-trip time: its minimum, mean and variation.
#[derive(Debug)]
pub(super) struct RttEstimator {
    min: RecentMin<u64>,
    smoothed_us: f64,
    variation_us: f64,
}

impl RttEstimator {
    pub(super) fn new(handshake_us: Option<u64>) -> Self {
        let mut min = RecentMin::new(PATH_WINDOW_US);
        if let Some(rtt_us) = handshake_us {
            min.add(0, rtt_us);
        }
        let rtt_us = handshake_us.unwrap_or(0) as f64;
        Self { min, smoothed_us: rtt_us, variation_us: rtt_us / 16.0 }
    }

    /// RFC 9002, section 5.3.
    pub(super) fn on_sample(&mut self, now_us: u64, rtt_us: u64) {
        self.min.add(now_us, rtt_us.max(1));
        let rtt = rtt_us as f64;
        if self.smoothed_us == 0.0 {
            (self.smoothed_us, self.variation_us) = (rtt, rtt / 2.0);
        } else {
            self.variation_us += ((self.smoothed_us - rtt).abs() - self.variation_us) / 4.0;
            self.smoothed_us += (rtt - self.smoothed_us) / 8.0;
        }
    }

    pub(super) fn min_us(&self) -> u64 {
        self.min.least().unwrap_or(INITIAL_RTT_US)
    }

    pub(super) fn smoothed_us(&self) -> u64 {
        self.smoothed_us as u64
    }

    pub(super) fn variation_us(&self) -> u64 {
        self.variation_us as u64
    }

    /// Interval of the receiver's reports.
    pub(super) fn report_interval_us(&self) -> u64 {
        report_interval_us(self.min_us())
    }

    /// Time to wait for a report before a probe packet asks for one. RFC 9002, section 6.2.1.
    pub(super) fn probe_timeout_us(&self) -> u64 {
        if self.smoothed_us == 0.0 {
            return 10 * INITIAL_RTT_US;
        }
        let wait_us = self.smoothed_us + (4.0 * self.variation_us).max(HOST_DELAY_US as f64);
        wait_us as u64 + REPORT_DELAY_US_MAX
    }
}

/// Queue delay of the path, from one-way delays.
#[derive(Debug)]
pub(super) struct QueueDelay {
    /// First delay, from which all others count: the clocks of both hosts differ by an unknown constant.
    origin: Option<u32>,
    base: RecentMin<i64>,
    /// Latest queue delay.
    pub(super) now_us: u64,
    /// Minimum queue delay over the span of the jitter, on paths that reorder packets.
    least: Option<RecentMin<u64>>,
    /// Longest mean queue of a round, negated.
    longest_us: RecentMin<i64>,
}

impl QueueDelay {
    pub(super) fn new() -> Self {
        Self {
            origin: None,
            base: RecentMin::new(PATH_WINDOW_US),
            now_us: 0,
            least: None,
            longest_us: RecentMin::new(PATH_WINDOW_US),
        }
    }

    /// Sets the jitter: packets may be this late without a queue, so only the minimum delay over this span
    /// shows one.
    pub(super) fn expect_jitter(&mut self, jitter_us: u64) {
        self.least = (jitter_us > 0).then(|| RecentMin::new(jitter_us));
    }

    pub(super) fn on_sample(&mut self, now_us: u64, one_way_delay_us: u32) {
        let origin = *self.origin.get_or_insert(one_way_delay_us);
        let delay = i64::from(one_way_delay_us.wrapping_sub(origin).cast_signed());
        self.base.add(now_us, delay);
        self.now_us = (delay - self.base.least().unwrap_or(delay)).unsigned_abs();
        if let Some(least) = &mut self.least {
            least.add(now_us, self.now_us);
            self.now_us = least.least().unwrap_or(self.now_us);
        }
    }

    /// Takes the mean queue of a round and returns whether a queue stood. A delay beyond `queue_us_max`
    /// always counts. With a shorter buffer, the longest queue so far distinguishes a full one from an empty
    /// one.
    pub(super) fn on_round(&mut self, now_us: u64, mean_us: u64, queue_us_max: u64) -> bool {
        self.longest_us.add(now_us, -(mean_us as i64));
        let longest_us = self.longest_us.least().unwrap_or(0).unsigned_abs();
        mean_us
            > (longest_us / LONGEST_QUEUE_SHARE)
                .clamp(EMPTY_QUEUE_US_MIN, queue_us_max.max(EMPTY_QUEUE_US_MIN))
    }
}

/// Rate of arriving bytes as the receiver reports it, and its maximum: the path's bandwidth for this flow.
#[derive(Debug)]
pub(super) struct DeliveryRate {
    /// Receiver's clock, and the bytes delivered by then.
    history: VecDeque<(u64, u64)>,
    /// Recent rate in bytes per second; 0 while unknown.
    pub(super) recent: f64,
    bandwidth: RoundMax<BANDWIDTH_ROUNDS>,
    /// Time of the last arrival, by the receiver's clock.
    came_us: Option<u64>,
}

impl DeliveryRate {
    pub(super) fn new() -> Self {
        Self {
            history: VecDeque::with_capacity(HISTORY_REPORTS),
            recent: 0.0,
            bandwidth: RoundMax::new(),
            came_us: None,
        }
    }

    /// Takes the bytes delivered by `at_us` of the receiver's clock. The rate covers the last `span_us`.
    /// Returns the pause before these bytes.
    pub(super) fn on_sample(&mut self, at_us: u64, delivered_bytes: u64, span_us: u64) -> u64 {
        let newest = (at_us, delivered_bytes);
        // A reordered, older report.
        if self.history.back().is_some_and(|last| last.0 >= newest.0 || last.1 > newest.1) {
            return 0;
        }
        let is_new = self.history.back().is_none_or(|last| newest.1 > last.1);
        let gap_us = if is_new {
            self.came_us.replace(at_us).map_or(0, |came_us| at_us.saturating_sub(came_us))
        } else {
            0
        };
        while self.history.len() >= HISTORY_REPORTS
            || self.history.get(1).is_some_and(|second| second.0 + span_us <= newest.0)
        {
            self.history.pop_front();
        }
        if let Some(oldest) = self.history.front()
            && newest.0 - oldest.0 >= span_us / 2
            && newest.0 - oldest.0 < span_us * 4
        {
            self.recent = (newest.1 - oldest.1) as f64 * 1e6 / (newest.0 - oldest.0) as f64;
            self.bandwidth.add(self.recent);
        }
        self.history.push_back(newest);
        gap_us
    }

    /// Maximum rate of the last rounds, in bytes per second.
    pub(super) fn bandwidth(&self) -> f64 {
        self.bandwidth.greatest()
    }

    pub(super) fn next_round(&mut self) {
        self.bandwidth.next_round();
        self.bandwidth.add(self.recent);
    }

    /// Forgets higher rates, because the path no longer delivers them.
    pub(super) fn forget_greater(&mut self) {
        if self.recent > 0.0 {
            self.bandwidth.reset(self.recent);
        }
    }

    /// Lowers the bandwidth to the recent rate, but not below this share.
    pub(super) fn yield_to(&mut self, share: f64) {
        self.bandwidth.reset(self.recent.max(share * self.bandwidth()));
    }

    /// Restores a bandwidth that was wrongly reduced.
    pub(super) fn restore(&mut self, bandwidth: f64) {
        self.bandwidth.add(bandwidth);
    }

    /// Starts a new measurement, because earlier bytes were sent at another rate.
    pub(super) fn measure_anew(&mut self) {
        self.history.clear();
        self.recent = 0.0;
    }
}

/// Eight reports per round trip, for measurements over at most eight rounds.
const HISTORY_REPORTS: usize = 64;

/// Minimum of the last one to two spans, in two alternating buckets.
#[derive(Debug, Clone)]
pub(super) struct RecentMin<T> {
    span_us: u64,
    since_us: u64,
    before: Option<T>,
    now: Option<T>,
}

impl<T: PartialOrd + Copy> RecentMin<T> {
    pub(super) fn new(span_us: u64) -> Self {
        Self { span_us, since_us: 0, before: None, now: None }
    }

    pub(super) fn add(&mut self, now_us: u64, value: T) {
        if now_us >= self.since_us + self.span_us {
            self.before = self.now.take();
            self.since_us = now_us;
        }
        if self.now.is_none_or(|least| value < least) {
            self.now = Some(value);
        }
    }

    pub(super) fn least(&self) -> Option<T> {
        match (self.before, self.now) {
            (Some(before), Some(now)) => Some(if now < before { now } else { before }),
            (before, now) => before.or(now),
        }
    }
}

/// Maximum of the last `N` rounds.
#[derive(Debug, Clone)]
pub(super) struct RoundMax<const N: usize> {
    rounds: [f64; N],
    at: usize,
}

impl<const N: usize> RoundMax<N> {
    pub(super) fn new() -> Self {
        Self { rounds: [0.0; N], at: 0 }
    }

    pub(super) fn add(&mut self, value: f64) {
        self.rounds[self.at] = self.rounds[self.at].max(value);
    }

    pub(super) fn next_round(&mut self) {
        self.at = (self.at + 1) % N;
        self.rounds[self.at] = 0.0;
    }

    /// Replaces all values by this one.
    pub(super) fn reset(&mut self, value: f64) {
        self.rounds = [0.0; N];
        self.rounds[self.at] = value;
    }

    pub(super) fn greatest(&self) -> f64 {
        self.rounds.iter().copied().fold(0.0, f64::max)
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
        assert_eq!(queue.now_us, 0);
        for (now_us, delay_us) in [(30_000, 109_000), (31_000, 104_000), (45_000, 106_000)] {
            queue.on_sample(now_us, delay_us);
        }
        assert_eq!(queue.now_us, 4_000);
    }

    #[test]
    fn the_least_is_forgotten_after_two_spans_at_most() {
        let mut least = RecentMin::new(10);
        least.add(0, 3);
        least.add(5, 7);
        assert_eq!(least.least(), Some(3));
        least.add(12, 8);
        assert_eq!(least.least(), Some(3));
        least.add(23, 9);
        assert_eq!(least.least(), Some(8));
    }

    #[test]
    fn the_greatest_is_forgotten_after_its_rounds() {
        let mut greatest = RoundMax::<3>::new();
        greatest.add(5.0);
        greatest.next_round();
        greatest.add(2.0);
        assert_eq!(greatest.greatest(), 5.0);
        greatest.next_round();
        greatest.next_round();
        assert_eq!(greatest.greatest(), 2.0);
        greatest.reset(1.0);
        assert_eq!(greatest.greatest(), 1.0);
    }
}
