//! Detects competing flows that fill the queue.

use super::constants::{STANDING_QUEUE_ROUNDS, STANDING_QUEUE_SHARE_MIN};

/// Watches for a queue that stands although this flow drains its own in each probing cycle.
#[derive(Debug, Default)]
pub(super) struct Detector {
    /// The shortest queue of each of the last rounds, oldest first.
    shortest_us: [u64; STANDING_QUEUE_ROUNDS],
    rounds: usize,
}

impl Detector {
    /// Takes the shortest queue of a round; `true`: it has stood for so long that it is another flow's.
    pub(super) fn on_round(&mut self, shortest_us: u64) -> bool {
        self.shortest_us.rotate_left(1);
        self.shortest_us[STANDING_QUEUE_ROUNDS - 1] = shortest_us;
        self.rounds += 1;
        let (early, late) = self.shortest_us.split_at(STANDING_QUEUE_ROUNDS / 2);
        let sum = |queues_us: &[u64]| queues_us.iter().sum::<u64>() as f64;
        self.rounds >= STANDING_QUEUE_ROUNDS && sum(late) > STANDING_QUEUE_SHARE_MIN * sum(early)
    }

    /// The queue was empty: whatever stood was this flow's own.
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
