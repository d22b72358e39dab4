//! How fast bytes arrive, as the receiver reports it, and the maximum of that: the path's bandwidth for this flow.

use std::collections::VecDeque;

use super::constants::BANDWIDTH_ROUNDS;
use crate::proto::windowed_filter::RoundMax;

#[derive(Debug)]
pub(super) struct DeliveryRate {
    /// The receiver's clock, and the bytes that had come by then.
    history: VecDeque<(u64, u64)>,
    recent: f64,
    bandwidth: RoundMax<BANDWIDTH_ROUNDS>,
}

impl DeliveryRate {
    pub(super) fn new() -> Self {
        Self { history: VecDeque::with_capacity(HISTORY_REPORTS), recent: 0.0, bandwidth: RoundMax::new() }
    }

    /// Takes the bytes that had come by `at_us` of the receiver's clock; the rate is that over the last `span_us`.
    pub(super) fn on_sample(&mut self, at_us: u64, delivered_bytes: u64, span_us: u64) {
        let newest = (at_us, delivered_bytes);
        // An older report came late.
        if self.history.back().is_some_and(|last| last.0 >= newest.0 || last.1 > newest.1) {
            return;
        }
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
    }

    /// The rate of late, in bytes per second; 0: not known.
    pub(super) fn recent(&self) -> f64 {
        self.recent
    }

    /// The greatest rate of the last rounds, in bytes per second.
    pub(super) fn bandwidth(&self) -> f64 {
        self.bandwidth.greatest()
    }

    pub(super) fn next_round(&mut self) {
        self.bandwidth.next_round();
        self.bandwidth.add(self.recent);
    }

    /// Forgets all greater rates: the path does not give them any more.
    pub(super) fn forget_greater(&mut self) {
        if self.recent > 0.0 {
            self.bandwidth.reset(self.recent);
        }
    }

    /// Begins a new measurement: what came until now was sent at another rate.
    pub(super) fn measure_anew(&mut self) {
        self.history.clear();
        self.recent = 0.0;
    }
}

/// Eight reports per round trip, and a rate is measured over eight rounds at most.
const HISTORY_REPORTS: usize = 64;
