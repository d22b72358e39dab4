//! What lies in the new file already, written there before the plan that says what belongs there.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::wire::ShortHash;

/// Which stretches lie where, and their hashes: of the very bytes that were written. What is written over others takes their place.
#[derive(Debug, Default)]
pub(crate) struct Laid {
    /// Where each begins, where it ends, its hash. None overlaps another.
    stretches: BTreeMap<u64, (u64, ShortHash)>,
    /// Nothing was written from here on.
    end: u64,
}

/// With some 50 bytes each. What is written beyond does not count.
const STRETCHES_MAX: usize = 1 << 20;

impl Laid {
    /// Bytes of this hash were written there.
    pub(crate) fn add(&mut self, place: Range<u64>, hash: ShortHash) {
        while let Some((&start, &(end, _))) = self.stretches.range(..place.end).next_back()
            && end > place.start
        {
            self.stretches.remove(&start);
        }
        self.end = self.end.max(place.end);
        if self.stretches.len() < STRETCHES_MAX {
            self.stretches.insert(place.start, (place.end, hash));
        }
    }

    /// The hash of what lies exactly there.
    pub(crate) fn hash(&self, place: &Range<u64>) -> Option<&ShortHash> {
        let (end, hash) = self.stretches.get(&place.start)?;
        (*end == place.end).then_some(hash)
    }

    /// Nothing was written from here on.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever was written over what: what is said to lie somewhere lies there whole.
        #[test]
        fn what_is_said_to_lie_somewhere_lies_there(writes in prop::collection::vec((0..200_u64, 1..40_u64), 0..60)) {
            let (mut laid, mut file) = (Laid::default(), [usize::MAX; 300]);
            for (number, (start, len)) in writes.iter().enumerate() {
                file[*start as usize..(start + len) as usize].fill(number);
                laid.add(*start..start + len, [number as u8; 16]);
            }
            for (number, (start, len)) in writes.iter().enumerate() {
                let place = *start..start + len;
                let lies = file[place.start as usize..place.end as usize].iter().all(|lies| *lies == number);
                prop_assert_eq!(laid.hash(&place) == Some(&[number as u8; 16]), lies);
                prop_assert_eq!(laid.hash(&(place.start..place.end + 1)).is_some_and(|hash| hash[0] == number as u8), false);
            }
            prop_assert!(file[laid.end() as usize..].iter().all(|lies| *lies == usize::MAX));
        }
    }
}
