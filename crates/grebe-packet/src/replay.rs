//! Replay window over packet numbers.

/// Sliding bitmap over packet numbers. Accepts each number once, and refuses numbers below the window.
///
/// Covers `WORDS` x 64 numbers, minus at most 63 in the newest word. A path that reorders by more loses
/// packets.
///
/// ```
/// let mut window = grebe_packet::ReplayWindow::<64>::default();
/// assert!(window.accept(7));
/// assert!(!window.accept(7), "a replay");
/// assert_eq!(window.highest(), Some(7));
/// ```
#[derive(Debug, Clone)]
pub struct ReplayWindow<const WORDS: usize> {
    words: Box<[u64; WORDS]>,
    /// Highest accepted number plus 1.
    next: u64,
}

impl<const WORDS: usize> Default for ReplayWindow<WORDS> {
    fn default() -> Self {
        Self { words: Box::new([0; WORDS]), next: 0 }
    }
}

impl<const WORDS: usize> ReplayWindow<WORDS> {
    /// Packet numbers in the bitmap.
    pub const PACKETS: u64 = WORDS as u64 * 64;

    /// Accepts a packet number; `false` if it was accepted before, or is below the window. `u64::MAX` is
    /// never accepted.
    #[inline]
    pub fn accept(&mut self, number: u64) -> bool {
        if !self.would_accept(number) {
            return false;
        }
        if number >= self.next {
            self.slide_to(number + 1);
        }
        self.words[Self::word(number)] |= bit(number);
        true
    }

    /// Whether [`accept`](Self::accept) would succeed.
    #[inline]
    pub fn would_accept(&self, number: u64) -> bool {
        if number >= self.next {
            return number != u64::MAX;
        }
        number >= self.floor() && self.words[Self::word(number)] & bit(number) == 0
    }

    /// Highest accepted number.
    #[inline]
    pub fn highest(&self) -> Option<u64> {
        self.next.checked_sub(1)
    }

    /// Lowest number in the window.
    #[inline]
    pub fn floor(&self) -> u64 {
        // One word less, because the word that the highest number starts is cleared as a whole.
        self.next.saturating_sub(Self::PACKETS - 64)
    }

    /// Runs of accepted numbers down to `floor`, highest first: lowest and highest number of each.
    pub fn runs_down_to(&self, floor: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let floor = floor.max(self.floor());
        let mut below = self.next;
        std::iter::from_fn(move || {
            let top = self.walk_down(below, floor, false);
            if top <= floor {
                return None;
            }
            below = self.walk_down(top, floor, true);
            Some((below, top - 1))
        })
    }

    /// End of the run that starts just below `below`, down to `floor`, in which the flags equal `set`.
    fn walk_down(&self, mut below: u64, floor: u64, set: bool) -> u64 {
        while below > floor {
            let number = below - 1;
            let mut flags = self.words[Self::word(number)];
            if set {
                flags = !flags;
            }
            // A whole word, or its part above the floor, in one step.
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
        self.next = next;
    }

    fn word(number: u64) -> usize {
        (number / 64) as usize % WORDS
    }
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    type Window = ReplayWindow<64>;

    #[test]
    fn a_number_below_the_window_is_refused() {
        let mut window = Window::default();
        assert!(window.accept(5 * Window::PACKETS));
        assert!(!window.accept(4 * Window::PACKETS - 1));
        assert!(window.accept(window.floor()));
        assert!(!window.accept(u64::MAX));
    }

    #[test]
    fn a_jump_ahead_forgets_older_numbers() {
        let mut window = Window::default();
        assert!(window.accept(5) && !window.accept(5));
        assert!(window.accept(1 << 40) && !window.accept(6) && window.accept((1 << 40) - 1));
        let runs: Vec<_> = window.runs_down_to(0).collect();
        assert_eq!(runs, [((1 << 40) - 1, 1 << 40)]);
    }

    proptest! {
        #[test]
        fn the_window_is_a_set_of_the_newest_numbers(
            steps in prop::collection::vec((any::<bool>(), 0..300_u64, 0..3_u64), 1..300), floor in 0..400_u64,
        ) {
            let mut window = Window::default();
            let mut model = BTreeSet::new();
            let mut at = 0_u64;
            for (forward, step, jump) in steps {
                let leap = if jump == 2 { Window::PACKETS / 3 } else { 0 };
                at = if forward { at + step % 70 + leap } else { at.saturating_sub(step) };
                let fresh = at >= window.floor() && !model.contains(&at);
                prop_assert_eq!(window.accept(at), fresh, "{}", at);
                model.insert(at);
            }
            let floor = window.floor() + floor;
            let listed: BTreeSet<u64> = window.runs_down_to(floor).flat_map(|(low, high)| low..=high).collect();
            let expected: BTreeSet<u64> = model.into_iter().filter(|number| *number >= floor).collect();
            prop_assert_eq!(listed, expected);
            let runs: Vec<_> = window.runs_down_to(floor).collect();
            prop_assert!(runs.windows(2).all(|pair| pair[1].1 + 1 < pair[0].0), "descending and apart");
        }
    }
}
