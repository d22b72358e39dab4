//! Which of the kept samples were received: one bit each, the same for all channels.

use std::ops::Range;

#[derive(Debug)]
pub(super) struct Presence {
    words: Vec<u64>,
    samples: u64,
}

impl Presence {
    /// For a ring of `samples`, a multiple of 64.
    pub(super) fn new(samples: u64) -> Presence {
        debug_assert!(samples.is_multiple_of(64));
        Presence { words: vec![0; (samples / 64) as usize], samples }
    }

    pub(super) fn set(&mut self, first: u64, len: u64) {
        self.write(first, len, |word, mask| *word |= mask);
    }

    pub(super) fn clear(&mut self, first: u64, len: u64) {
        self.write(first, len, |word, mask| *word &= !mask);
    }

    /// Calls `each` with every unbroken run in `range`, which must lie within the newest ring of samples.
    /// A run also ends where the ring wraps, so that its samples lie side by side.
    pub(super) fn runs(&self, range: Range<u64>, mut each: impl FnMut(Range<u64>)) {
        let mut at = range.start;
        while at < range.end {
            let wrap = at + (self.samples - at % self.samples);
            let end = range.end.min(wrap);
            while at < end {
                let start = self.scan(at..end, true);
                at = self.scan(start..end, false);
                if at > start {
                    each(start..at);
                }
            }
        }
    }

    /// The first index of `range` whose bit is `wanted`, or its end; `range` does not wrap.
    fn scan(&self, range: Range<u64>, wanted: bool) -> u64 {
        let mut at = range.start;
        while at < range.end {
            let slot = at % self.samples;
            let word = self.words[(slot / 64) as usize];
            let rest = (if wanted { word } else { !word }) >> (slot % 64);
            if rest != 0 {
                return range.end.min(at + u64::from(rest.trailing_zeros()));
            }
            at += 64 - slot % 64;
        }
        range.end
    }

    fn write(&mut self, first: u64, len: u64, apply: impl Fn(&mut u64, u64)) {
        // Only the newest ring of samples is kept.
        let end = first + len;
        let mut at = first.max(end.saturating_sub(self.samples));
        while at < end {
            let slot = at % self.samples;
            let bits = (64 - slot % 64).min(end - at);
            let mask = (u64::MAX >> (64 - bits)) << (slot % 64);
            apply(&mut self.words[(slot / 64) as usize], mask);
            at += bits;
        }
    }
}
