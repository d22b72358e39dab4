//! Round trips, and the queue that one-way delays tell of.

use super::REPORTS_LATE_US;
use crate::proto::windowed_filter::RecentMin;

#[derive(Debug)]
pub(super) struct Delays {
    min_rtt: RecentMin<u64>,
    smoothed_rtt_us: f64,
    variation_us: f64,
    origin: Option<u32>,
    least: RecentMin<i64>,
    queue_us: u64,
    /// The shortest of late, where packets overtake each other.
    queue_least: Option<RecentMin<u64>>,
}

impl Delays {
    pub fn new(rtt_us: Option<u64>) -> Self {
        let mut min_rtt = RecentMin::new(RTT_SPAN_US);
        if let Some(rtt_us) = rtt_us {
            min_rtt.add(0, rtt_us);
        }
        Self {
            min_rtt,
            smoothed_rtt_us: rtt_us.unwrap_or(0) as f64,
            variation_us: rtt_us.unwrap_or(0) as f64 / 16.0,
            origin: None,
            least: RecentMin::new(DELAY_SPAN_US),
            queue_us: 0,
            queue_least: None,
        }
    }

    /// Packets are late by up to this whatever the queue: only the least delay of as long tells of a queue.
    pub fn expect_jitter(&mut self, jitter_us: u64) {
        self.queue_least = (jitter_us > 0).then(|| RecentMin::new(jitter_us));
    }

    pub fn take_rtt(&mut self, now_us: u64, rtt_us: u64) {
        self.min_rtt.add(now_us, rtt_us.max(1));
        let rtt = rtt_us as f64;
        if self.smoothed_rtt_us == 0.0 {
            (self.smoothed_rtt_us, self.variation_us) = (rtt, rtt / 2.0);
        } else {
            self.variation_us += ((self.smoothed_rtt_us - rtt).abs() - self.variation_us) / 4.0;
            self.smoothed_rtt_us += (rtt - self.smoothed_rtt_us) / 8.0;
        }
    }

    /// The clocks of both ends differ by an unknown constant: only differences count.
    pub fn take_one_way(&mut self, now_us: u64, delay_us: u32) {
        let origin = *self.origin.get_or_insert(delay_us);
        let delay = i64::from(delay_us.wrapping_sub(origin).cast_signed());
        self.least.add(now_us, delay);
        self.queue_us = (delay - self.least.least().unwrap_or(delay)).unsigned_abs();
        if let Some(queue_least) = &mut self.queue_least {
            queue_least.add(now_us, self.queue_us);
            self.queue_us = queue_least.least().unwrap_or(self.queue_us);
        }
    }

    pub fn min_rtt_us(&self) -> u64 {
        self.min_rtt.least().unwrap_or(DEFAULT_RTT_US)
    }

    pub fn smoothed_rtt_us(&self) -> u64 {
        self.smoothed_rtt_us as u64
    }

    pub fn variation_us(&self) -> u64 {
        self.variation_us as u64
    }

    /// The queueing delay last seen.
    pub fn queue_us(&self) -> u64 {
        self.queue_us
    }

    /// How long to wait for a report before something is sent to ask for one.
    pub fn probe_timeout_us(&self) -> u64 {
        if self.smoothed_rtt_us == 0.0 {
            return 1_000_000;
        }
        (self.smoothed_rtt_us + (4.0 * self.variation_us).max(10_000.0)) as u64 + REPORTS_LATE_US
    }
}

const DEFAULT_RTT_US: u64 = 100_000;
const RTT_SPAN_US: u64 = 30_000_000;
const DELAY_SPAN_US: u64 = 15_000_000;
