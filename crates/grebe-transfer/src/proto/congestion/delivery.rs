//! How fast bytes arrive, by what the receiver says.

use std::collections::VecDeque;

use crate::proto::windowed_filter::RoundMax;

#[derive(Debug)]
pub(super) struct Delivery {
    /// The receiver's clock and what had come by then.
    history: VecDeque<(u64, u64)>,
    recent: f64,
    greatest: RoundMax<8>,
}

impl Delivery {
    pub fn new() -> Self {
        Self { history: VecDeque::with_capacity(HISTORY), recent: 0.0, greatest: RoundMax::new() }
    }

    /// Takes what had come by `at_us` of the receiver's clock; the rate is that over the last `span_us`.
    pub fn take(&mut self, at_us: u64, delivered_bytes: u64, span_us: u64) {
        let newest = (at_us, delivered_bytes);
        if self.history.back().is_some_and(|last| last.0 >= newest.0 || last.1 > newest.1) {
            return;
        }
        // A report that brings nothing new is only worth its time.
        while self.history.len() >= HISTORY
            || self.history.get(1).is_some_and(|second| second.0 + span_us <= newest.0)
        {
            self.history.pop_front();
        }
        if let Some(oldest) = self.history.front()
            && newest.0 - oldest.0 >= span_us / 2
            && newest.0 - oldest.0 < span_us * 4
        {
            self.recent = (newest.1 - oldest.1) as f64 * 1e6 / (newest.0 - oldest.0) as f64;
            self.greatest.add(self.recent);
        }
        self.history.push_back(newest);
    }

    /// Bytes a second that came lately; 0: not known.
    pub fn recent(&self) -> f64 {
        self.recent
    }

    /// The greatest rate of the last rounds.
    pub fn greatest(&self) -> f64 {
        self.greatest.greatest()
    }

    pub fn next_round(&mut self) {
        self.greatest.next_round();
        self.greatest.add(self.recent);
    }

    /// What was faster than what came lately is over.
    pub fn forget_greater(&mut self) {
        if self.recent > 0.0 {
            self.greatest.reset(self.recent);
        }
    }

    /// What came until now says nothing about what comes next.
    pub fn measure_anew(&mut self) {
        self.history.clear();
        self.recent = 0.0;
    }
}

const HISTORY: usize = 64;
