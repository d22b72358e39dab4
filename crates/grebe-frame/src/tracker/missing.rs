//! Frames of a stream that have not arrived.

use std::collections::VecDeque;
use std::ops::Range;

/// Ranges of sequence numbers, in order. The oldest are forgotten.
#[derive(Debug, Clone)]
pub(super) struct Missing(VecDeque<Range<u64>>);

pub(super) const RANGES_MAX: usize = 256;

impl Missing {
    pub(super) fn new() -> Self {
        Self(VecDeque::with_capacity(RANGES_MAX))
    }

    /// Adds frames after all that are missing.
    pub(super) fn add(&mut self, range: Range<u64>) {
        if self.0.len() == RANGES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(range);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether the frame was missing; from now on it is not.
    pub(super) fn take(&mut self, sequence: u64) -> bool {
        let Some(at) = self.0.iter().position(|range| range.contains(&sequence)) else { return false };
        let range = self.0[at].clone();
        let (before, after) = (range.start..sequence, sequence + 1..range.end);
        match (before.is_empty(), after.is_empty()) {
            (true, true) => drop(self.0.remove(at)),
            (true, false) => self.0[at] = after,
            (false, true) => self.0[at] = before,
            (false, false) => {
                if self.0.len() == RANGES_MAX {
                    // Forget the oldest; where that is this range itself, only its later part is kept.
                    self.0.pop_front();
                    match at.checked_sub(1) {
                        None => self.0.push_front(after),
                        Some(at) => {
                            self.0[at] = before;
                            self.0.insert(at + 1, after);
                        }
                    }
                    return true;
                }
                self.0[at] = before;
                self.0.insert(at + 1, after);
            }
        }
        true
    }
}
