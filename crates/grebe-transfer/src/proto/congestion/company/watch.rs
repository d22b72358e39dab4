//! Whether somebody else fills the queue.

use crate::proto::wire::Train;

/// Sees from the queue whether somebody else fills it.
#[derive(Debug, Default)]
pub struct Watch {
    /// The shortest queue of the last rounds, oldest first.
    shortest_us: [u64; ROUNDS],
    rounds: usize,
    /// The greatest rate since the queue was last empty.
    rate_alone: f64,
    /// What spread the first packets.
    rate_first: f64,
    /// Rounds without a queue.
    rounds_alone: u32,
    capacity_known: bool,
    doubted: bool,
}

impl Watch {
    /// Takes a round in which we went slower while a queue stood; says whether the queue is somebody else's.
    pub fn is_crowded(&mut self, shortest_us: u64, empty_us: u64, rate: f64) -> bool {
        if shortest_us <= empty_us {
            (self.rounds, self.rate_alone) = (0, rate);
            self.rounds_alone = self.rounds_alone.saturating_add(1);
            if self.rounds_alone >= ROUNDS_ALONE {
                (self.rate_first, self.capacity_known) = (0.0, true);
            }
            return false;
        }
        self.shortest_us.rotate_left(1);
        self.shortest_us[ROUNDS - 1] = shortest_us;
        self.rounds += 1;
        let (early, late) = self.shortest_us.split_at(ROUNDS / 2);
        // Ours alone shrinks from round to round.
        self.rounds >= ROUNDS && late.iter().sum::<u64>() * 10 > early.iter().sum::<u64>() * 7
    }

    pub fn note_rate(&mut self, rate: f64) {
        self.rate_alone = self.rate_alone.max(rate);
    }

    /// Packets that left at once are spread by the path's rate, whoever else is there.
    pub fn note_first(&mut self, train: Train) {
        if train.bytes >= TRAIN_BYTES_MIN && train.span_us > train.jitter_us {
            self.note_capacity(f64::from(train.bytes) * 1e6 / f64::from(train.span_us));
        }
    }

    /// A train told the path's rate. What others sent into it made that look less than it is, never more.
    pub fn note_capacity(&mut self, rate: f64) {
        (self.capacity_known, self.rate_first) = (true, self.rate_first.max(rate));
    }

    pub fn rate_alone(&self) -> f64 {
        self.rate_alone
    }

    /// The path's rate, as far as it showed: a neighbour that pauses lets it show again.
    pub fn capacity(&self) -> f64 {
        self.rate_alone.max(self.rate_first)
    }

    /// Whether that is the path's rate, and not only what was left of it by others.
    pub fn is_capacity_known(&self) -> bool {
        self.capacity_known
    }

    /// Nobody else is there any more.
    pub fn forget(&mut self, doubted: bool) {
        self.rounds = 0;
        self.doubted = doubted;
    }

    /// Whether the last neighbour's kind was mistaken.
    pub fn is_doubted(&self) -> bool {
        self.doubted
    }
}

/// A queue must stay for so many rounds before it is somebody else's.
const ROUNDS: usize = 8;

/// So many rounds without a queue were ours alone.
const ROUNDS_ALONE: u32 = 32;

/// A train of which half was lost tells little.
const TRAIN_BYTES_MIN: u32 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_stays_is_somebody_elses() {
        let stays = |round: u64| 40_000 + round % 2 * 5_000;
        let shrinks = |round: u64| 80_000 - round * 8_000;
        for (queue_us, crowded) in [(&stays as &dyn Fn(u64) -> u64, true), (&shrinks, false)] {
            let mut watch = Watch::default();
            let seen = (0..8).any(|round| watch.is_crowded(queue_us(round), 6_000, 1e6));
            assert_eq!(seen, crowded);
        }
    }

    #[test]
    fn a_queue_that_was_empty_once_is_ours() {
        let mut watch = Watch::default();
        assert!(!(0..40).any(|round| watch.is_crowded(
            if round % 7 == 0 { 100 } else { 40_000 },
            6_000,
            1e6
        )));
        watch.note_rate(2e6);
        assert_eq!(watch.rate_alone(), 2e6);
    }

    #[test]
    fn the_first_packets_tell_the_paths_rate_until_it_showed_alone() {
        let mut watch = Watch::default();
        watch.note_first(Train { mark: 1, span_us: 3_000, bytes: 9_000, jitter_us: 0 });
        assert!(!watch.is_capacity_known(), "too few came");
        watch.note_first(Train { mark: 1, span_us: 3_000, bytes: 36_000, jitter_us: 0 });
        assert!(watch.is_capacity_known());
        assert_eq!(watch.capacity(), 12e6);
        for _ in 0..ROUNDS_ALONE {
            watch.is_crowded(100, 6_000, 10e6);
        }
        assert_eq!(watch.capacity(), 10e6);
    }
}
