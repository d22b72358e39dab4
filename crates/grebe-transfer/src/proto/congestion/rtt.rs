//! Round-trip time: its minimum, mean and variation.

use super::constants::{
    INITIAL_RTT_US, MIN_RTT_WINDOW_US, PROBE_TIMEOUT_GRANULARITY_US, REPORT_DELAY_US_MAX,
    REPORT_INTERVAL_US_MAX, REPORTS_PER_RTT,
};
use crate::proto::windowed_filter::RecentMin;

#[derive(Debug)]
pub(super) struct RttEstimator {
    min: RecentMin<u64>,
    smoothed_us: f64,
    variation_us: f64,
}

impl RttEstimator {
    pub(super) fn new(handshake_us: Option<u64>) -> Self {
        let mut min = RecentMin::new(MIN_RTT_WINDOW_US);
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

    /// How often the receiver reports.
    pub(super) fn report_interval_us(&self) -> u64 {
        self.min_us().div_ceil(REPORTS_PER_RTT).min(REPORT_INTERVAL_US_MAX)
    }

    /// How long to wait for a report before a packet is sent to ask for one. RFC 9002, section 6.2.1.
    pub(super) fn probe_timeout_us(&self) -> u64 {
        if self.smoothed_us == 0.0 {
            return 10 * INITIAL_RTT_US;
        }
        let wait_us = self.smoothed_us + (4.0 * self.variation_us).max(PROBE_TIMEOUT_GRANULARITY_US);
        wait_us as u64 + REPORT_DELAY_US_MAX
    }
}
