//! Received packets: one bitmap is the replay window and the source of feedback.

/// Packet numbers that are remembered below the highest one. A path that reorders by more than this loses packets.
pub(crate) const WINDOW_PACKETS: u64 = 1 << 16;

const WORDS: usize = (WINDOW_PACKETS / 64) as usize;

/// A sliding bitmap over packet numbers. A number is accepted once; what lies below the window is refused.
#[derive(Debug, Clone)]
pub struct ReceivedPackets {
    words: Box<[u64; WORDS]>,
    /// One above the highest number accepted.
    next: u64,
}

impl Default for ReceivedPackets {
    fn default() -> Self {
        Self { words: Box::new([0; WORDS]), next: 0 }
    }
}

impl ReceivedPackets {
    /// Adds a packet number; `false` where it came before or lies below the window. `u64::MAX` is never accepted.
    pub fn accept(&mut self, number: u64) -> bool {
        if !self.would_accept(number) {
            return false;
        }
        if number >= self.next {
            self.slide_to(number + 1);
        }
        self.words[word(number)] |= bit(number);
        true
    }

    /// Whether [`accept`](Self::accept) would take the number.
    pub(crate) fn would_accept(&self, number: u64) -> bool {
        if number >= self.next {
            return number != u64::MAX;
        }
        number >= self.floor() && self.words[word(number)] & bit(number) == 0
    }

    /// The highest number accepted.
    pub(crate) fn highest(&self) -> Option<u64> {
        self.next.checked_sub(1)
    }

    /// The number that is expected next.
    pub(crate) fn expected(&self) -> u64 {
        self.next
    }

    /// The lowest number that the window covers.
    pub(crate) fn floor(&self) -> u64 {
        // A word less than the whole: the word that the highest number begins is cleared as a whole.
        self.next.saturating_sub(WINDOW_PACKETS - 64)
    }

    /// Runs of numbers that arrived, highest first, both ends included, down to `floor`.
    pub(crate) fn runs_down_to(&self, floor: u64) -> RunsDown<'_> {
        RunsDown { received: self, below: self.next, floor: floor.max(self.floor()) }
    }

    /// Walks down from `below` as long as the flags are `set`, and returns where the run begins.
    fn walk_down(&self, mut below: u64, floor: u64, set: bool) -> u64 {
        while below > floor {
            let number = below - 1;
            let mut flags = self.words[word(number)];
            if set {
                flags = !flags;
            }
            // A whole word, or as much of it as lies above the floor, in one step.
            let above = flags << (63 - number % 64);
            let steps = u64::from(above.leading_zeros()).min(number % 64 + 1);
            below = below.saturating_sub(steps).max(floor);
            if steps < number % 64 + 1 {
                break;
            }
        }
        below
    }

    fn slide_to(&mut self, next: u64) {
        let (from, to) = (self.next.div_ceil(64), next.div_ceil(64));
        for index in from..to.min(from + WORDS as u64) {
            self.words[(index % WORDS as u64) as usize] = 0;
        }
        if to > from + WORDS as u64 {
            self.words.fill(0);
        }
        self.next = next;
    }
}

/// Runs of packet numbers that arrived: see [`ReceivedPackets::runs_down_to`].
#[derive(Debug, Clone)]
pub(crate) struct RunsDown<'a> {
    received: &'a ReceivedPackets,
    below: u64,
    floor: u64,
}

impl Iterator for RunsDown<'_> {
    /// Lowest and highest number of the run.
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let top = self.received.walk_down(self.below, self.floor, false);
        if top <= self.floor {
            return None;
        }
        let bottom = self.received.walk_down(top, self.floor, true);
        self.below = bottom;
        Some((bottom, top - 1))
    }
}

fn word(number: u64) -> usize {
    (number / 64) as usize % WORDS
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_replay_is_refused() {
        let mut received = ReceivedPackets::default();
        assert!(received.accept(7));
        assert!(!received.accept(7));
        assert_eq!(received.highest(), Some(7));
    }

    #[test]
    fn a_number_below_the_window_is_refused() {
        let mut received = ReceivedPackets::default();
        assert!(received.accept(5 * WINDOW_PACKETS));
        assert!(!received.accept(4 * WINDOW_PACKETS - 1));
        assert!(received.accept(received.floor()));
        assert!(!received.accept(u64::MAX));
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_the_newest_numbers(
            steps in prop::collection::vec((any::<bool>(), 0..300_u64, 0..3_u64), 1..300), floor in 0..400_u64,
        ) {
            let mut received = ReceivedPackets::default();
            let mut model = BTreeSet::new();
            let mut at = 0_u64;
            for (forward, step, jump) in steps {
                let leap = if jump == 2 { WINDOW_PACKETS / 3 } else { 0 };
                at = if forward { at + step % 70 + leap } else { at.saturating_sub(step) };
                let fresh = at >= received.floor() && !model.contains(&at);
                prop_assert_eq!(received.accept(at), fresh, "{}", at);
                model.insert(at);
            }
            let floor = received.floor() + floor;
            let listed: BTreeSet<u64> = received.runs_down_to(floor).flat_map(|(low, high)| low..=high).collect();
            let expected: BTreeSet<u64> = model.into_iter().filter(|number| *number >= floor).collect();
            prop_assert_eq!(listed, expected);
            let runs: Vec<_> = received.runs_down_to(floor).collect();
            prop_assert!(runs.windows(2).all(|pair| pair[1].1 + 1 < pair[0].0), "descending and apart");
        }
    }
}
