//! A comparator with hysteresis, 64 samples at a time.
//!
//! The state is high after a sample at or above `high`, low after one below `low`, else what it was:
//! `state[i] = above[i] | state[i-1] & !below[i]`. That is how carries run through an addition of `!below`
//! and `above`, so one 64-bit add with carry yields 64 states.

use crate::simd::{self, WORDS_MAX, Words};
use crate::value::Value;

#[derive(Debug, Clone)]
pub(crate) struct Comparator<V: Value> {
    thresholds: V::Thresholds,
    /// `None` until a sample lies beyond one of the thresholds.
    state: Option<bool>,
}

/// Where the state changed within a word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) rises: u64,
    pub(crate) falls: u64,
}

impl<V: Value> Comparator<V> {
    /// High from samples `>= high`, low from samples `< low`; `low` may not be above `high` where the state
    /// matters. Thresholds beyond the range of samples are never, or always, passed.
    pub(crate) fn new(high: V::Level, low: V::Level) -> Comparator<V> {
        Comparator { thresholds: V::thresholds(high, low), state: None }
    }

    /// Writes one word of comparisons for each 64 samples of `strip`, and returns how many.
    pub(crate) fn compare(&self, strip: &[V], words: &mut [Words; WORDS_MAX]) -> usize {
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

    /// Calls `found` with each sample of an unbroken run at which the state changes, and whether it becomes high.
    pub(crate) fn each_change(&mut self, run: &[V], mut found: impl FnMut(usize, bool)) {
        self.forget();
        let mut words = [Words::default(); WORDS_MAX];
        for (strip_place, strip) in run.chunks(64 * WORDS_MAX).enumerate() {
            let count = self.compare(strip, &mut words);
            for (place, word) in words[..count].iter().enumerate() {
                let step = self.step(*word);
                let mut bits = step.rises | step.falls;
                while bits != 0 {
                    let bit = bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    found((strip_place * WORDS_MAX + place) * 64 + bit, step.rises >> bit & 1 != 0);
                }
            }
        }
    }
}
