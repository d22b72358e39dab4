//! Base loss of the path, and the distinction from losses by too high a rate.

use super::constants::*;

#[derive(Debug, Default)]
pub(super) struct LossModel {
    /// Share of packets that the path loses at any rate.
    pub(super) base: f64,
    /// Loss below the path's rate, and the number of packets behind the figure.
    slow: Option<(f64, f64)>,
}

/// The losses of one round.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoundLosses {
    pub(super) acked: u64,
    pub(super) lost: u64,
    /// A queue stood. It may have caused the losses, so they say nothing about the path.
    pub(super) had_queue: bool,
    /// The round was sent below the path's rate.
    pub(super) is_slow: bool,
    /// Competing flows fill the queue, so losses say nothing about the path.
    pub(super) has_competitors: bool,
    /// Loss beyond the base loss, as a share, that halts growth.
    pub(super) excess_max: f64,
}

/// Assessment of a round's losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LossVerdict {
    /// No more than the base loss.
    Usual,
    /// More, while a queue stood: the path is full.
    Queued,
    /// Far more: the rate must fall at once.
    Excessive,
}

impl LossModel {
    pub(super) fn on_round(&mut self, round: &RoundLosses) -> LossVerdict {
        let packets = (round.acked + round.lost) as f64;
        if packets < 1.0 {
            return LossVerdict::Usual;
        }
        let loss = round.lost as f64 / packets;
        if !round.has_competitors {
            self.learn(loss, packets, round);
        }
        let noise = (PACKETS_PER_LOSS_EVENT * loss.max(1.0 / packets) / packets).sqrt();
        if loss > self.base + round.excess_max + DEVIATIONS * noise {
            LossVerdict::Excessive
        } else if round.had_queue && loss > self.base + QUEUED_LOSS_EXCESS_MAX + noise {
            LossVerdict::Queued
        } else {
            LossVerdict::Usual
        }
    }

    /// Maximum losses that the path alone may cause in a round of `packets`.
    pub(super) fn usual(&self, packets: u64) -> f64 {
        let expected = self.base * packets as f64;
        expected + DEVIATIONS * (PACKETS_PER_LOSS_EVENT * expected).sqrt()
    }

    /// Whether a lower rate has shown that the path alone may lose `lost` of `packets` in one round.
    pub(super) fn explains(&self, lost: u64, packets: u64) -> bool {
        let is_known = self.slow.is_some_and(|(_, packets)| packets >= BASE_LOSS_PACKETS_MIN);
        is_known && lost as f64 <= self.usual(packets)
    }

    /// Whether this loss exceeds anything that the path alone is known to lose.
    pub(super) fn is_beyond_the_paths(&self, loss: f64, packets: f64) -> bool {
        let noise = (PACKETS_PER_LOSS_EVENT * self.base.max(1.0 / packets) / packets).sqrt();
        loss > UNTESTED_BASE_LOSS_MAX.max(self.base + DEVIATIONS * noise)
    }

    /// Learns the loss below the path's rate. Loss there belongs to the path, whatever its size.
    pub(super) fn learn_slow(&mut self, loss: f64, packets: f64) {
        let (mean, packets_before) = self.slow.unwrap_or((0.0, 0.0));
        let packets_sum = (packets_before + packets).min(BASE_LOSS_PACKETS);
        self.base = (mean + (loss - mean) * (packets / packets_sum).min(1.0)).min(BASE_LOSS_MAX);
        self.slow = Some((self.base, packets_sum));
    }

    /// Forgets the base loss after too high a rate, unless a rate below the arrivals has confirmed it.
    pub(super) fn forget_untested(&mut self) {
        if self.slow.is_none() || self.base > UNTESTED_BASE_LOSS_MAX {
            (self.base, self.slow) = (0.0, None);
        }
    }

    fn learn(&mut self, loss: f64, packets: f64, round: &RoundLosses) {
        let base = self.base + (loss - self.base) * packets / (packets + BASE_LOSS_PACKETS);
        if !round.had_queue && round.is_slow {
            self.learn_slow(loss, packets);
        } else if loss < self.base {
            self.base = base;
        } else if !round.had_queue && self.slow.is_none() {
            self.base = base.min(UNTESTED_BASE_LOSS_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(lost: u64, had_queue: bool) -> RoundLosses {
        RoundLosses {
            acked: 400 - lost,
            lost,
            had_queue,
            is_slow: true,
            has_competitors: false,
            excess_max: 0.05,
        }
    }

    #[test]
    fn loss_without_a_queue_is_the_paths_own() {
        let mut losses = LossModel::default();
        for _ in 0..20 {
            assert_eq!(losses.on_round(&round(40, false)), LossVerdict::Usual);
        }
        assert!((losses.base - 0.1).abs() < 0.001, "{}", losses.base);
    }

    #[test]
    fn loss_while_a_queue_stands_is_not() {
        let mut losses = LossModel::default();
        for _ in 0..20 {
            assert_eq!(losses.on_round(&round(40, true)), LossVerdict::Queued);
        }
        assert_eq!(losses.base, 0.0);
        assert_eq!(losses.on_round(&round(140, true)), LossVerdict::Excessive);
    }

    #[test]
    fn what_too_high_a_rate_lost_is_forgotten_and_what_a_lower_one_lost_is_not() {
        for (lost, is_slow, base) in [(40, false, 0.0), (40, true, 0.1), (160, true, 0.0)] {
            let mut losses = LossModel::default();
            losses.on_round(&RoundLosses { is_slow, ..round(lost, false) });
            assert!(losses.base > 0.02);
            losses.forget_untested();
            assert_eq!(losses.base, base);
        }
    }

    #[test]
    fn losses_of_competing_flows_say_nothing_about_the_path() {
        let mut losses = LossModel::default();
        losses.on_round(&RoundLosses { has_competitors: true, ..round(40, false) });
        assert_eq!(losses.base, 0.0);
    }
}
