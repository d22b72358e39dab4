//! Data in the new file that was written ahead of the plan.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::wire::ShortHash;

/// Ranges of written data and their hashes, computed from the bytes as written. A later write replaces
/// overlapping ranges.
#[derive(Debug, Default)]
pub(crate) struct Laid {
    /// End and hash of each range by its start. Ranges do not overlap.
    stretches: BTreeMap<u64, (u64, ShortHash)>,
    /// End of the highest write.
    end: u64,
}

/// Maximum ranges, some 50 bytes each. Further writes do not count.
const STRETCHES_MAX: usize = 1 << 20;

impl Laid {
    /// Notes a write with this hash.
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

    /// Hash of exactly this range.
    pub(crate) fn hash(&self, place: &Range<u64>) -> Option<&ShortHash> {
        let (end, hash) = self.stretches.get(&place.start)?;
        (*end == place.end).then_some(hash)
    }

    /// End of the highest write.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every listed range is intact after any overwrites.
        #[test]
        fn ranges_claimed_to_be_in_place_are_in_place(writes in prop::collection::vec((0..200_u64, 1..40_u64), 0..60)) {
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
