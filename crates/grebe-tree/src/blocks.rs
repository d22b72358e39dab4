//! Files that travel in blocks, in any order: their division, the map of received blocks, and the order of
//! sending.

use std::ops::Range;

use crate::wire::GROUP_BYTES;

/// Division of a file into blocks. Both ends derive it from the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub(crate) bytes: u64,
    pub(crate) log2: u32,
}

impl Blocks {
    /// Divides a file of this length. Blocks have 256 KiB, or more if a map could not hold their number.
    pub(crate) fn of(bytes: u64) -> Self {
        let least = bytes.div_ceil(BLOCKS_MAX).next_power_of_two().ilog2();
        Self { bytes, log2: least.max((GROUP_BYTES as u64).ilog2()) }
    }

    pub(crate) fn count(self) -> u64 {
        self.bytes.div_ceil(1 << self.log2)
    }

    /// Byte range of a block.
    pub(crate) fn range(self, block: u64) -> Range<u64> {
        (block << self.log2).min(self.bytes)..((block + 1) << self.log2).min(self.bytes)
    }

    /// Blocks that overlap a byte range.
    pub(crate) fn reached_by(self, stretch: &Range<u64>) -> Range<u64> {
        let end = stretch.end.min(self.bytes);
        if stretch.start >= end {
            return 0..0;
        }
        stretch.start >> self.log2..end.div_ceil(1 << self.log2)
    }
}

/// Map of the received blocks of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockMap {
    pub(crate) blocks: Blocks,
    bits: Vec<u8>,
    come: u64,
}

impl BlockMap {
    pub(crate) fn none(blocks: Blocks) -> Self {
        Self { blocks, bits: vec![0; map_bytes(blocks)], come: 0 }
    }

    /// Makes a map from its bits; `None` if they are for another number of blocks.
    pub(crate) fn from_bits(blocks: Blocks, bits: &[u8]) -> Option<Self> {
        let beyond = blocks.count() % 8;
        let is_clean = beyond == 0 || bits.last().is_some_and(|last| last >> beyond == 0);
        let come = bits.iter().map(|byte| u64::from(byte.count_ones())).sum();
        (bits.len() == map_bytes(blocks) && is_clean).then(|| Self { blocks, bits: bits.to_vec(), come })
    }

    /// Map of the blocks that lie entirely before `prefix`.
    pub(crate) fn of_prefix(blocks: Blocks, prefix: u64) -> Self {
        let mut map = Self::none(blocks);
        let whole = if prefix >= blocks.bytes { blocks.count() } else { prefix >> blocks.log2 };
        (0..whole).for_each(|block| map.add(block));
        map
    }

    /// End of the contiguous part at the start.
    pub(crate) fn prefix(&self) -> u64 {
        let first = (0..self.blocks.count()).find(|&block| !self.has(block));
        first.map_or(self.blocks.bytes, |block| self.blocks.range(block).start)
    }

    pub(crate) fn bits(&self) -> &[u8] {
        &self.bits
    }

    /// Index and value of the byte with a block's bit.
    pub(crate) fn byte_of(&self, block: u64) -> (usize, u8) {
        let at = (block / 8) as usize;
        (at, self.bits.get(at).copied().unwrap_or_default())
    }

    pub(crate) fn has(&self, block: u64) -> bool {
        self.bits.get((block / 8) as usize).is_some_and(|byte| byte >> (block % 8) & 1 == 1)
    }

    /// Marks a block as received.
    pub(crate) fn add(&mut self, block: u64) {
        if block < self.blocks.count() && !self.has(block) {
            self.bits[(block / 8) as usize] |= 1 << (block % 8);
            self.come += 1;
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.come == self.blocks.count()
    }

    /// Bytes of the received blocks.
    pub(crate) fn come_bytes(&self) -> u64 {
        let Some(last) = self.blocks.count().checked_sub(1) else { return 0 };
        let whole = self.come << self.blocks.log2;
        let short = (1 << self.blocks.log2) - (self.blocks.range(last).end - self.blocks.range(last).start);
        if self.has(last) { whole - short } else { whole }
    }

    /// Received bytes of a range.
    pub(crate) fn come_of(&self, stretch: &Range<u64>) -> u64 {
        let here = |block: u64| {
            let range = self.blocks.range(block);
            range.end.min(stretch.end) - range.start.max(stretch.start)
        };
        self.blocks.reached_by(stretch).filter(|&block| self.has(block)).map(here).sum()
    }

    /// First contiguous received part of `within`; empty if there is none.
    pub(crate) fn first_here(&self, within: &Range<u64>) -> Range<u64> {
        let reached = self.blocks.reached_by(within);
        let Some(first) = reached.clone().find(|&block| self.has(block)) else {
            return within.start..within.start;
        };
        let behind = (first..reached.end).find(|&block| !self.has(block)).unwrap_or(reached.end);
        let (start, end) = (self.blocks.range(first).start, self.blocks.range(behind - 1).end);
        start.max(within.start)..end.min(within.end)
    }
}

/// Visits each block of a file once and halves the gaps in each round: 0, 1/2, 1/4, 3/4, 1/8, ...
#[derive(Debug, Clone)]
pub(crate) struct Halving {
    count: u64,
    bits: u32,
    next: u64,
}

impl Halving {
    pub(crate) fn new(count: u64) -> Self {
        Self { count, bits: count.next_power_of_two().ilog2(), next: 0 }
    }
}

impl Iterator for Halving {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        while self.next < 1 << self.bits {
            let turned = if self.bits == 0 { 0 } else { self.next.reverse_bits() >> (64 - self.bits) };
            self.next += 1;
            if turned < self.count {
                return Some(turned);
            }
        }
        None
    }
}

/// Blocks at both ends of a file. A summary holds the overview of its recording there.
pub(crate) fn ends(blocks: Blocks) -> impl Iterator<Item = u64> {
    let count = blocks.count();
    let behind = (count / ENDS_PART + 1).min(count);
    (0..count.min(1)).chain((count - behind).max(1).min(count)..count)
}

/// Whether a file of this name travels in blocks: the data of a recording, or its summary.
pub(crate) fn comes_in_blocks(name: &[u8], bytes: u64) -> bool {
    bytes >= BLOCKED_BYTES_MIN && (name.ends_with(DATA) || is_summary(name))
}

pub(crate) fn is_summary(name: &[u8]) -> bool {
    name.ends_with(SUMMARY)
}

/// Whether a file describes others and so precedes them.
pub(crate) fn describes(name: &[u8]) -> bool {
    [&b".sigmf-meta"[..], b".sigmf-collection", SUMMARY].iter().any(|end| name.ends_with(end))
}

fn map_bytes(blocks: Blocks) -> usize {
    blocks.count().div_ceil(8) as usize
}

/// Maximum blocks, for a map of 128 KiB.
const BLOCKS_MAX: u64 = 1 << 20;
/// Minimum length. A shorter file arrives before anybody looks at it.
const BLOCKED_BYTES_MIN: u64 = 2 << 20;
/// Share of each end: the part of a summary after its fine nodes is a hundredth of it, or slightly more.
const ENDS_PART: u64 = 64;
const DATA: &[u8] = b".sigmf-data";
const SUMMARY: &[u8] = b".grebe-summary";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_block_comes_once_and_the_gaps_halve(count in 0_u64..5_000) {
            let order: Vec<u64> = Halving::new(count).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert!(sorted.into_iter().eq(0..count));
            // After each round, no gap exceeds its distance, up to the end of the file.
            let mut step = count.next_power_of_two();
            while step > 0 {
                let sent = count.div_ceil(step) as usize;
                let mut first = order[..sent].to_vec();
                first.sort_unstable();
                prop_assert!(first.into_iter().eq((0..count).step_by(step as usize)), "{step}");
                step /= 2;
            }
        }

        #[test]
        fn blocks_cover_a_file_and_stretches_find_theirs(
            bytes in 0_u64..1 << 45, start in 0_u64..1 << 45, length in 0_u64..1 << 30,
        ) {
            let blocks = Blocks::of(bytes);
            prop_assert!(blocks.count() <= BLOCKS_MAX);
            let last = blocks.count().saturating_sub(1);
            prop_assert_eq!(blocks.range(last).end, bytes);
            let stretch = start..start + length;
            for block in blocks.reached_by(&stretch).take(3) {
                let range = blocks.range(block);
                prop_assert!(range.start < stretch.end && stretch.start < range.end);
            }
        }

        #[test]
        fn a_map_knows_what_has_come(
            bytes in 1_u64..40 << 18, come in prop::collection::vec(0_u64..45, 0..40), from: u32, length in 0_u64..9 << 18,
        ) {
            let blocks = Blocks::of(bytes);
            let mut map = BlockMap::none(blocks);
            come.iter().for_each(|&block| map.add(block));
            let has = |byte: u64| come.contains(&(byte >> blocks.log2));
            let there: u64 = (0..blocks.count()).filter(|&block| map.has(block)).map(|block| {
                let range = blocks.range(block);
                range.end - range.start
            }).sum();
            prop_assert_eq!(map.come_bytes(), there);
            prop_assert_eq!(map.is_whole(), there == bytes);
            prop_assert_eq!(BlockMap::from_bits(blocks, map.bits()), Some(map.clone()));
            let from = u64::from(from) % bytes;
            let within = from..(from + length).min(bytes);
            let here = map.first_here(&within);
            prop_assert!(within.start <= here.start && here.end <= within.end.max(within.start));
            let edge = |at: u64| here.is_empty() || has(at);
            prop_assert!(edge(here.start) && edge(here.end.saturating_sub(1)));
            if !here.is_empty() {
                prop_assert!(here.start == within.start || !has(here.start - 1));
                prop_assert!(here.end == within.end || !has(here.end));
            }
            let prefix = map.prefix();
            prop_assert!(prefix == bytes || !has(prefix));
            prop_assert_eq!(BlockMap::of_prefix(blocks, prefix).prefix(), prefix);
        }
    }

    #[test]
    fn bits_of_other_files_are_not_a_map() {
        let blocks = Blocks::of(9 << 18);
        assert_eq!(BlockMap::from_bits(blocks, &[0; 3]), None);
        assert_eq!(BlockMap::from_bits(blocks, &[0, 2]), None, "it has nine blocks");
        assert!(BlockMap::from_bits(blocks, &[0xff, 1]).unwrap().is_whole());
    }

    #[test]
    fn both_ends_of_a_summary_come_first_each_block_once() {
        for (count, expected) in [(0, vec![]), (1, vec![0]), (2, vec![0, 1]), (130, vec![0, 127, 128, 129])] {
            assert_eq!(ends(Blocks::of(count << 18)).collect::<Vec<_>>(), expected, "{count}");
        }
    }

    #[test]
    fn recordings_come_in_blocks() {
        assert!(
            comes_in_blocks(b"run7.sigmf-data", 2 << 20) && comes_in_blocks(b"run7.grebe-summary", 1 << 30)
        );
        assert!(!comes_in_blocks(b"run7.sigmf-data", 1 << 20) && !comes_in_blocks(b"run7.bin", 1 << 30));
        assert!(describes(b"run7.sigmf-meta") && !describes(b"run7.sigmf-data"));
    }
}
