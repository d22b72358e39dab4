//! Sets of byte ranges: received data, or data to retransmit.

use std::ops::Range;

/// Disjoint ranges in ascending order; ranges that touch are one.
///
/// A transfer nearly always changes the set near its end, so a sorted vector serves best. It allocates only
/// for a new maximum of holes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: Vec<Range<u64>>,
    covered: u64,
}

impl RangeSet {
    /// Adds a range and returns how many of its bytes were new.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let first = self.ranges.partition_point(|held| held.end < range.start);
        let touching = self.ranges[first..].iter().take_while(|held| held.start <= range.end).count();
        if touching == 0 {
            self.covered += range.end - range.start;
            let new = range.end - range.start;
            self.ranges.insert(first, range);
            return new;
        }
        let last = first + touching - 1;
        let merged = range.start.min(self.ranges[first].start)..range.end.max(self.ranges[last].end);
        let before: u64 = self.ranges[first..=last].iter().map(|held| held.end - held.start).sum();
        let new = (merged.end - merged.start) - before;
        self.ranges[first] = merged;
        self.ranges.drain(first + 1..=last);
        self.covered += new;
        new
    }

    /// Removes a range, as far as it is in the set.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let mut at = self.ranges.partition_point(|held| held.end <= range.start);
        while let Some(held) = self.ranges.get(at).cloned() {
            if held.start >= range.end {
                break;
            }
            let cut = held.start.max(range.start)..held.end.min(range.end);
            self.covered -= cut.end - cut.start;
            match (held.start < cut.start, cut.end < held.end) {
                (true, true) => {
                    self.ranges[at].end = cut.start;
                    self.ranges.insert(at + 1, cut.end..held.end);
                    break;
                }
                (true, false) => {
                    self.ranges[at].end = cut.start;
                    at += 1;
                }
                (false, true) => {
                    self.ranges[at].start = cut.end;
                    break;
                }
                (false, false) => {
                    self.ranges.remove(at);
                }
            }
        }
    }

    /// Removes up to `bytes_max` from the lowest range and returns them.
    pub(crate) fn pop_first(&mut self, bytes_max: u64) -> Option<Range<u64>> {
        let first = self.ranges.first_mut().filter(|_| bytes_max > 0)?;
        let taken = first.start..first.end.min(first.start + bytes_max);
        first.start = taken.end;
        if first.is_empty() {
            self.ranges.remove(0);
        }
        self.covered -= taken.end - taken.start;
        Some(taken)
    }

    /// Whether the whole range is in the set.
    pub fn contains(&self, range: &Range<u64>) -> bool {
        let at = self.ranges.partition_point(|held| held.end < range.end);
        range.is_empty() || self.ranges.get(at).is_some_and(|held| held.start <= range.start)
    }

    /// Whether any part of the range is in the set.
    pub(crate) fn touches(&self, range: &Range<u64>) -> bool {
        let at = self.ranges.partition_point(|held| held.end <= range.start);
        self.ranges.get(at).is_some_and(|held| held.start < range.end)
    }

    /// Calls `each` with every part of `range` that is missing from the set.
    pub(crate) fn missing(&self, range: Range<u64>, mut each: impl FnMut(Range<u64>)) {
        let mut from = range.start;
        let first = self.ranges.partition_point(|held| held.end <= range.start);
        for held in self.ranges[first..].iter().take_while(|held| held.start < range.end) {
            if from < held.start {
                each(from..held.start);
            }
            from = held.end;
        }
        if from < range.end {
            each(from..range.end);
        }
    }

    /// End of the range that begins at 0, or 0 if there is none.
    pub fn prefix_end(&self) -> u64 {
        self.ranges.first().filter(|first| first.start == 0).map_or(0, |first| first.end)
    }

    /// End of the last range, or 0 if the set is empty.
    pub(crate) fn end(&self) -> u64 {
        self.ranges.last().map_or(0, |last| last.end)
    }

    /// End of the range that contains `at`.
    pub(crate) fn end_of(&self, at: u64) -> Option<u64> {
        let index = self.ranges.partition_point(|held| held.end <= at);
        self.ranges.get(index).filter(|held| held.start <= at).map(|held| held.end)
    }

    /// Start of the first range above `at`.
    pub(crate) fn start_after(&self, at: u64) -> Option<u64> {
        self.ranges.get(self.ranges.partition_point(|held| held.start <= at)).map(|held| held.start)
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().cloned()
    }

    /// Bytes in all ranges.
    pub fn covered(&self) -> u64 {
        self.covered
    }

    /// Whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Bytes of memory that the set holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.ranges.capacity() * size_of::<Range<u64>>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SPACE: usize = 64;

    /// The set as one flag per byte.
    fn flags(set: &RangeSet) -> Vec<bool> {
        let mut flags = vec![false; SPACE];
        for range in &set.ranges {
            flags[range.start as usize..range.end as usize].fill(true);
        }
        flags
    }

    fn steps() -> impl Strategy<Value = Vec<(u8, u64, u64)>> {
        prop::collection::vec((0..4_u8, 0..SPACE as u64, 0..20_u64), 0..40)
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let mut set = RangeSet::default();
        assert_eq!(set.insert(0..1_000), 1_000);
        assert_eq!(set.insert(2_000..3_000), 1_000);
        assert_eq!(set.insert(500..2_000), 1_000, "500 of them were there");
        assert_eq!((set.ranges.len(), set.prefix_end()), (1, 3_000));
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_bytes(steps in steps()) {
            let mut set = RangeSet::default();
            let mut model = vec![false; SPACE];
            for (what, start, length) in steps {
                let range = start..(start + length).min(SPACE as u64);
                let index = range.start as usize..range.end as usize;
                match what {
                    0 | 1 => {
                        let new = model[index.clone()].iter().filter(|held| !**held).count() as u64;
                        model[index].fill(true);
                        prop_assert_eq!(set.insert(range), new);
                    }
                    2 => {
                        model[index].fill(false);
                        set.remove(range);
                    }
                    _ => {
                        let first = model.iter().position(|held| *held);
                        let taken = set.pop_first(length);
                        prop_assert_eq!(taken.is_some(), first.is_some() && length > 0);
                        if let Some(taken) = taken {
                            prop_assert_eq!(taken.start as usize, first.unwrap());
                            model[taken.start as usize..taken.end as usize].fill(false);
                        }
                    }
                }
                prop_assert_eq!(&flags(&set), &model);
                prop_assert_eq!(set.covered(), model.iter().filter(|held| **held).count() as u64);
                prop_assert!(set.ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "merged: {:?}", set);
                let prefix = model.iter().position(|held| !*held).unwrap_or(SPACE) as u64;
                prop_assert_eq!(set.prefix_end(), prefix);
                let end = model.iter().rposition(|held| *held).map_or(0, |last| last as u64 + 1);
                prop_assert_eq!(set.end(), end);
                for at in 0..SPACE {
                    let end = (at..SPACE).find(|byte| !model[*byte]).unwrap_or(SPACE);
                    prop_assert_eq!(set.end_of(at as u64), (end > at).then_some(end as u64));
                    let start = (at + 1..SPACE).find(|byte| model[*byte] && !model[byte - 1]);
                    prop_assert_eq!(set.start_after(at as u64), start.map(|start| start as u64));
                }
            }
        }

        #[test]
        fn what_is_missing_and_what_is_in_make_the_whole(steps in steps(), start in 0..SPACE as u64, length in 0..64_u64) {
            let mut set = RangeSet::default();
            for (_, start, length) in steps {
                set.insert(start..(start + length).min(SPACE as u64));
            }
            let range = start..(start + length).min(SPACE as u64);
            let mut missing = Vec::new();
            set.missing(range.clone(), |part| missing.extend(part));
            let expected: Vec<u64> = range.clone().filter(|byte| !flags(&set)[*byte as usize]).collect();
            prop_assert_eq!(set.contains(&range), missing.is_empty());
            prop_assert_eq!(missing, expected);
        }
    }
}
