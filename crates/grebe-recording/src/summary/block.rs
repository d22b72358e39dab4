//! The nodes of one block of samples, and their layout.

use super::nodes::{Extremes, Lanes, LevelSums, NODE_SAMPLES};

/// log2 of the samples of a node, for the levels in blocks; each has a quarter of the nodes of the previous
/// one.
pub(super) const FINE: [u32; 4] = [NODE_SAMPLES.ilog2(), 10, 12, 14];
/// The same for the levels in memory, stored together after the blocks.
pub(super) const COARSE: [u32; 7] = [16, 18, 20, 22, 24, 26, 28];
/// log2 of the samples of a stretch with sums.
pub(super) const SUMS_LOG2: u32 = 18;

/// Layout of the nodes of a block: by level, then by lane; a checksum at the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockLayout {
    lanes: Lanes,
    samples: u64,
}

impl BlockLayout {
    pub(super) fn new(lanes: Lanes, samples: u64) -> Self {
        Self { lanes, samples }
    }

    /// With the checksum.
    pub(super) fn bytes(self) -> usize {
        self.row_at(FINE.len(), 0) + CHECKSUM_BYTES
    }

    /// Offset of the nodes of a lane.
    pub(super) fn row_at(self, level: usize, lane: usize) -> usize {
        let levels = FINE.iter().take(level).map(|&log2| self.row_bytes(log2) * self.lanes.count);
        let own = FINE.get(level).map_or(0, |&log2| self.row_bytes(log2) * lane);
        levels.sum::<usize>() + own
    }

    fn row_bytes(self, log2: u32) -> usize {
        self.samples.div_ceil(1 << log2) as usize * self.node_bytes()
    }

    pub(super) fn node_bytes(self) -> usize {
        self.lanes.value_bytes() * 2
    }
}

/// Whether the bytes of a block are those that were written.
pub(super) fn is_whole(block: &[u8]) -> bool {
    let Some((nodes, checksum)) = block.split_last_chunk::<CHECKSUM_BYTES>() else { return false };
    crc32c::crc32c(nodes).to_le_bytes() == *checksum
}

/// The nodes of a block while its samples come.
#[derive(Debug)]
pub(super) struct BlockBuilder {
    lanes: Lanes,
    /// By lane, of the finest level; the last one may still grow.
    finest: Vec<Vec<Extremes>>,
    samples: u64,
}

impl BlockBuilder {
    pub(super) fn new(lanes: Lanes, block_log2: u32) -> Self {
        let nodes = 1 << (block_log2 - FINE[0]);
        Self { lanes, finest: (0..lanes.count).map(|_| Vec::with_capacity(nodes)).collect(), samples: 0 }
    }

    pub(super) fn samples(&self) -> u64 {
        self.samples
    }

    /// Takes samples of all channels, not more than fit into the block; `sums` gets those of each lane.
    pub(super) fn add(&mut self, channels: &[&[u8]], samples: u64, mut sums: impl FnMut(usize, LevelSums)) {
        let begun = self.samples % NODE_SAMPLES as u64;
        // Samples that the last node lacks.
        let missing = (NODE_SAMPLES as u64 - begun) % NODE_SAMPLES as u64;
        let head_bytes = missing.min(samples) as usize * self.lanes.format.bytes();
        for (lane, nodes) in self.finest.iter_mut().enumerate() {
            let (head, rest) = channels[lane / self.lanes.of_channel].split_at(head_bytes);
            self.lanes.measure(lane, head, |extremes, sum| {
                if let Some(node) = nodes.last_mut() {
                    node.merge(extremes);
                }
                sums(lane, sum);
            });
            self.lanes.measure(lane, rest, |extremes, sum| {
                nodes.push(extremes);
                sums(lane, sum);
            });
        }
        self.samples += samples;
    }

    /// The bytes of the block, and its nodes of the first coarse level, by lane. The next one begins.
    pub(super) fn take(&mut self, bytes: &mut Vec<u8>) -> Vec<Vec<Extremes>> {
        bytes.clear();
        let mut level = std::mem::take(&mut self.finest);
        for _ in FINE {
            level.iter().for_each(|nodes| self.lanes.encode(nodes, bytes));
            level = level.iter().map(|nodes| coarser(nodes)).collect();
        }
        bytes.extend_from_slice(&crc32c::crc32c(bytes).to_le_bytes());
        self.finest = vec![Vec::new(); self.lanes.count];
        self.samples = 0;
        level
    }
}

/// The nodes of the next level: of four each.
pub(super) fn coarser(nodes: &[Extremes]) -> Vec<Extremes> {
    nodes.chunks(4).map(merged).collect()
}

pub(super) fn merged(nodes: &[Extremes]) -> Extremes {
    let mut all = Extremes::NONE;
    nodes.iter().for_each(|&node| all.merge(node));
    all
}

const CHECKSUM_BYTES: usize = 4;
