//! Which packet numbers have been seen.

/// A window over the numbers of one direction: each is accepted once, and those far behind the newest not at all.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    seen: [u64; WORDS],
    /// One beyond the newest.
    next: u64,
}

impl Window {
    pub fn new() -> Self {
        Self { seen: [0; WORDS], next: 0 }
    }

    /// Whether the number is new. It is not new a second time.
    pub fn accept(&mut self, number: u64) -> bool {
        if number == u64::MAX || number + SPAN < self.next {
            return false;
        }
        if number >= self.next {
            // Words that the window moves onto are empty.
            let (from, to) = (self.next.div_ceil(64), number / 64);
            for word in (from..=to).rev().take(WORDS) {
                self.seen[(word % WORDS as u64) as usize] = 0;
            }
            self.next = number + 1;
        }
        let bit = 1 << (number % 64);
        let word = &mut self.seen[(number / 64 % WORDS as u64) as usize];
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

const WORDS: usize = 64;
/// One word less than there is: the newest word is not full yet.
const SPAN: u64 = (WORDS as u64 - 1) * 64;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_agrees_with_a_set(steps in prop::collection::vec((0_u64..9_000, any::<bool>()), 1..400)) {
            let mut window = Window::new();
            let (mut seen, mut next) = (HashSet::new(), 0_u64);
            for (step, back) in steps {
                let number = if back { next.saturating_sub(step) } else { next + step % 200 };
                let expected = number + SPAN >= next && seen.insert(number);
                prop_assert_eq!(window.accept(number), expected, "{}", number);
                next = next.max(number + 1);
            }
        }
    }

    #[test]
    fn a_leap_forgets_what_is_behind_it() {
        let mut window = Window::new();
        assert!(window.accept(5) && !window.accept(5));
        assert!(window.accept(1 << 40) && !window.accept(6) && window.accept((1 << 40) - 1));
        assert!(!window.accept(u64::MAX));
    }
}
