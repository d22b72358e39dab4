//! A comparator with hysteresis, 64 samples at a time.
//!
//! The state is high after a sample at or above `high`, low after one below `low`, else what it was:
//! `state[i] = above[i] | state[i-1] & !below[i]`. That is how carries run through an addition of `!below`
//! and `above`, so one 64-bit add with carry yields 64 states.

use crate::simd::{self, Thresholds, WORDS_MAX, Words};

#[derive(Debug, Clone)]
pub(crate) struct Comparator {
    thresholds: Thresholds,
    /// `None` until a sample lies beyond one of the thresholds.
    state: Option<bool>,
}

/// Where the state changed within a word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) rises: u64,
    pub(crate) falls: u64,
}

impl Comparator {
    /// High from samples `>= high`, low from samples `< low`; `low` may not be above `high` where the state
    /// matters. Thresholds beyond the range of samples are never, or always, passed.
    pub(crate) fn new(high: i32, low: i32) -> Comparator {
        Comparator { thresholds: Thresholds::new(high, low), state: None }
    }

    /// Writes one word of comparisons for each 64 samples of `strip`, and returns how many.
    pub(crate) fn compare(&self, strip: &[i16], words: &mut [Words; WORDS_MAX]) -> usize {
        simd::compare(strip, self.thresholds, words)
    }

    /// Whether the state stays as it is over these samples.
    #[inline]
    pub(crate) fn rests(&self, words: Words) -> bool {
        match self.state {
            Some(true) => words.below == 0,
            Some(false) => words.above == 0,
            None => words.above | words.below == 0,
        }
    }

    #[inline]
    pub(crate) fn step(&mut self, words: Words) -> Step {
        let Words { above, below } = words;
        let known = above | below;
        let before = match self.state {
            Some(state) => state,
            None if known == 0 => return Step { rises: 0, falls: 0 },
            // The first sample that says anything sets the state without an event.
            None => above >> known.trailing_zeros() & 1 != 0,
        };
        let (keep, set) = (!below, above);
        let (sum, carry_one) = keep.overflowing_add(set);
        let (sum, carry_two) = sum.overflowing_add(u64::from(before));
        let carry = carry_one | carry_two;
        // Carries into each bit: the state before each sample.
        let previous = sum ^ keep ^ set;
        let states = previous >> 1 | u64::from(carry) << 63;
        self.state = Some(carry);
        Step { rises: states & !previous, falls: !states & previous }
    }

    pub(crate) fn forget(&mut self) {
        self.state = None;
    }
}
