//! Rate probing: sends at the measured delivery rate, asks for more now and then, and drains the resulting
//! queue. Loss slows nothing down unless it rises with the rate.

use super::constants::*;
use super::loss::LossVerdict;
use super::path_model::{Mode, PathModel, Round};
use super::phase::{NextState, Overrun, Phase};
use super::rate_response::PaceClass;

#[derive(Debug)]
pub(super) struct RateProbing {
    step: Step,
    since_us: u64,
    rounds: u32,
    cruise_rounds: u32,
    /// The previous "up" also raised the rate.
    grew_before: bool,
    /// Bandwidth before "up"; 0 if it did not ask for more.
    bandwidth_before: f64,
    detector: Detector,
    random: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Cruise,
    Up,
    Down,
}

impl RateProbing {
    pub(super) fn cruise(now_us: u64, seed: u64) -> Self {
        let mut probing = Self {
            step: Step::Cruise,
            since_us: now_us,
            rounds: 0,
            cruise_rounds: 0,
            grew_before: false,
            bandwidth_before: 0.0,
            detector: Detector::default(),
            random: seed | 1,
        };
        probing.cruise_rounds = probing.draw_rounds();
        probing
    }

    pub(super) fn drain(now_us: u64, seed: u64) -> Self {
        Self { step: Step::Down, ..Self::cruise(now_us, seed) }
    }

    pub(super) fn probe_up(now_us: u64, seed: u64, path: &PathModel) -> Self {
        Self { step: Step::Up, bandwidth_before: path.bandwidth(), ..Self::cruise(now_us, seed) }
    }

    pub(super) fn phase(&self) -> Phase {
        match self.step {
            Step::Cruise => Phase::Cruise,
            Step::Up => Phase::Up,
            Step::Down => Phase::Down,
        }
    }

    /// Pace in bytes per second.
    pub(super) fn pace(&self, path: &PathModel) -> f64 {
        if path.is_over_ceiling() && path.excess_bytes() > 0.0 {
            return path.full_rate() * DOWN_GAIN;
        }
        path.full_rate() * self.gain(path)
    }

    pub(super) fn cap_bytes(&self, path: &PathModel) -> u64 {
        path.rate_cap_bytes(path.full_rate())
    }

    /// Gain relative to the path's full rate.
    pub(super) fn gain(&self, path: &PathModel) -> f64 {
        match self.step {
            Step::Cruise if path.mode == Mode::Greedy => 1.0,
            Step::Cruise => {
                let queue = path.queue.now_us as f64 / path.queue_ceiling_us() as f64;
                1.0 - (1.0 - BELOW_SHARE) * queue.min(1.0)
            }
            Step::Up => UP_GAIN,
            Step::Down => DOWN_GAIN,
        }
    }

    pub(super) fn pace_class(&self, path: &PathModel) -> PaceClass {
        match self.step {
            _ if path.is_over_ceiling() => PaceClass::Unknown,
            Step::Cruise => PaceClass::At,
            Step::Up => PaceClass::Above,
            Step::Down => PaceClass::Below,
        }
    }

    pub(super) fn on_report(
        &mut self,
        now_us: u64,
        path: &mut PathModel,
        round: Option<&Round>,
    ) -> Option<NextState> {
        if path.cut_to_recent() && self.step == Step::Up {
            self.enter(Step::Down, now_us);
        }
        if let Some(round) = round.filter(|_| !path.is_sparse()) {
            self.rounds += 1;
            if path.mode == Mode::Fair && self.sees_competitors(path, round) {
                return Some(NextState::CompetingWindow);
            }
            if path.mode != Mode::Greedy && path.is_loss_ours(round) {
                let overrun = round
                    .overrun
                    .or(path.untested_loss())
                    .map(|loss| Overrun { loss, passing_rate: path.passing_rate() });
                return Some(NextState::LossWindow { overrun });
            }
            self.end_round(now_us, path, round);
        }
        if self.step == Step::Down && self.is_drained(now_us, path) {
            return self.leave_down(now_us, path);
        }
        None
    }

    fn sees_competitors(&mut self, path: &mut PathModel, round: &Round) -> bool {
        let Some(shortest_us) = round.shortest_queue_us else { return false };
        if shortest_us > path.queue_seen_us() {
            path.capacity.on_full_round();
            return self.detector.on_round(shortest_us);
        }
        self.detector.on_empty_round();
        path.capacity.on_empty_round(path.bandwidth());
        false
    }

    fn end_round(&mut self, now_us: u64, path: &mut PathModel, round: &Round) {
        match (self.step, round.losses) {
            (Step::Cruise | Step::Up, LossVerdict::Excessive) | (Step::Cruise, LossVerdict::Queued) => {
                path.delivery.forget_greater();
                self.enter(Step::Down, now_us);
            }
            (Step::Cruise, _) if self.rounds >= self.cruise_rounds && !round.app_limited => {
                self.bandwidth_before = path.bandwidth();
                self.enter(Step::Up, now_us);
            }
            (Step::Up, _) => self.enter(Step::Down, now_us),
            (Step::Cruise | Step::Down, _) => {}
        }
    }

    /// Whether the bytes in flight fit into the path without a queue. For one round trip after "down" begins,
    /// reports still cover older packets.
    fn is_drained(&self, now_us: u64, path: &PathModel) -> bool {
        let took_us = now_us.saturating_sub(self.since_us);
        took_us >= path.loop_us()
            && (path.excess_bytes() <= 0.0 || took_us >= DRAIN_ROUNDS * path.rtt.min_us())
    }

    fn leave_down(&mut self, now_us: u64, path: &PathModel) -> Option<NextState> {
        let grew = self.bandwidth_before > 0.0 && BELOW_SHARE * path.bandwidth() > self.bandwidth_before;
        if !grew || path.queue.now_us >= path.queue_seen_us() {
            (self.grew_before, self.bandwidth_before) = (false, 0.0);
            self.cruise_rounds = self.draw_rounds();
            self.enter(Step::Cruise, now_us);
            return None;
        }
        if std::mem::replace(&mut self.grew_before, true) {
            return Some(NextState::RampFrom(path.full_rate()));
        }
        self.bandwidth_before = path.bandwidth();
        self.enter(Step::Up, now_us);
        None
    }

    fn enter(&mut self, step: Step, now_us: u64) {
        (self.step, self.since_us, self.rounds) = (step, now_us, 0);
    }

    /// Draws the number of rounds to cruise, by an xorshift generator.
    fn draw_rounds(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        BANDWIDTH_ROUNDS as u32 / 2 + (self.random >> 33) as u32 % (BANDWIDTH_ROUNDS as u32 / 2)
    }
}

/// Detects a queue that stands although this flow drains its own in each probing cycle.
#[derive(Debug, Default)]
pub(super) struct Detector {
    /// Shortest queue of each of the last rounds, oldest first.
    shortest_us: [u64; BANDWIDTH_ROUNDS],
    rounds: usize,
}

impl Detector {
    /// Takes the shortest queue of a round. `true`: it has stood long enough to be another flow's.
    pub(super) fn on_round(&mut self, shortest_us: u64) -> bool {
        self.shortest_us.rotate_left(1);
        self.shortest_us[BANDWIDTH_ROUNDS - 1] = shortest_us;
        self.rounds += 1;
        let (early, late) = self.shortest_us.split_at(BANDWIDTH_ROUNDS / 2);
        let sum = |queues_us: &[u64]| queues_us.iter().sum::<u64>() as f64;
        self.rounds >= BANDWIDTH_ROUNDS && sum(late) > DOWN_GAIN * sum(early)
    }

    /// The queue was empty, so any earlier queue was this flow's own.
    pub(super) fn on_empty_round(&mut self) {
        self.rounds = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_stays_is_another_flows() {
        let stays = |round: u64| 40_000 + round % 2 * 5_000;
        let shrinks = |round: u64| 80_000 - round * 8_000;
        for (queue_us, expected) in [(&stays as &dyn Fn(u64) -> u64, true), (&shrinks, false)] {
            let mut detector = Detector::default();
            assert_eq!((0..8).any(|round| detector.on_round(queue_us(round))), expected);
        }
    }

    #[test]
    fn a_queue_that_was_empty_once_is_our_own() {
        let mut detector = Detector::default();
        for _ in 0..5 {
            assert!(!(0..7).any(|_| detector.on_round(40_000)));
            detector.on_empty_round();
        }
    }
}
