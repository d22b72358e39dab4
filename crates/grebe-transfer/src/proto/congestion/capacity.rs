//! The path's capacity: what it carries for all flows together. Beside others the delivery rate says less than that.

use super::constants::{ALONE_ROUNDS, CAPACITY_TRAIN_BYTES_MIN};
use crate::proto::wire::Train;

#[derive(Debug, Default)]
pub(super) struct Capacity {
    /// The greatest delivery rate since the queue was last empty, in bytes per second.
    rate_alone: f64,
    /// What a train's dispersion told, in bytes per second; 0: nothing.
    rate_by_train: f64,
    /// Rounds in a row without a queue.
    rounds_alone: u32,
    is_known: bool,
}

impl Capacity {
    pub(super) fn on_bandwidth(&mut self, bandwidth: f64) {
        self.rate_alone = self.rate_alone.max(bandwidth);
    }

    /// The first packets leave at once: the path's capacity spreads them, whoever else sends.
    pub(super) fn on_first_train(&mut self, train: Train) {
        if u64::from(train.bytes) >= CAPACITY_TRAIN_BYTES_MIN && train.span_us > train.jitter_us {
            self.on_train_rate(f64::from(train.bytes) * 1e6 / f64::from(train.span_us));
        }
    }

    /// What others sent into a train makes the capacity look less than it is, never more.
    pub(super) fn on_train_rate(&mut self, rate: f64) {
        (self.is_known, self.rate_by_train) = (true, self.rate_by_train.max(rate));
    }

    /// Takes a round in which the queue was empty at least once, and the bandwidth then.
    pub(super) fn on_empty_round(&mut self, bandwidth: f64) {
        self.rate_alone = bandwidth;
        self.rounds_alone = self.rounds_alone.saturating_add(1);
        if self.rounds_alone >= ALONE_ROUNDS {
            (self.rate_by_train, self.is_known) = (0.0, true);
        }
    }

    pub(super) fn rate_alone(&self) -> f64 {
        self.rate_alone
    }

    /// In bytes per second, as far as it showed.
    pub(super) fn rate(&self) -> f64 {
        self.rate_alone.max(self.rate_by_train)
    }

    /// Whether [`rate`](Self::rate) is the capacity, and not only what others left of it.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_train_tells_the_capacity_until_the_flow_was_alone() {
        let mut capacity = Capacity::default();
        capacity.on_first_train(Train { mark: 1, span_us: 3_000, bytes: 9_000, jitter_us: 0 });
        assert!(!capacity.is_known(), "too few came");
        capacity.on_first_train(Train { mark: 1, span_us: 3_000, bytes: 36_000, jitter_us: 0 });
        assert!(capacity.is_known());
        assert_eq!(capacity.rate(), 12e6);
        for _ in 0..ALONE_ROUNDS {
            capacity.on_empty_round(10e6);
        }
        assert_eq!(capacity.rate(), 10e6);
        capacity.on_bandwidth(11e6);
        assert_eq!(capacity.rate(), 11e6);
    }
}
