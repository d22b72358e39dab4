//! How a budget is divided among the rings.

use crate::error::{Error, Result};

/// Sizes of all rings of a pyramid.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    /// log2 of the samples per node of level 0.
    base_log2: u32,
    /// log2 of the nodes of a level that make one of the next.
    fanout_log2: u32,
    /// Samples kept as they are; a multiple of 64 and of level 0's node size.
    pub(super) raw_samples: u64,
    /// Nodes kept, by level.
    nodes: Vec<u64>,
}

impl Shape {
    /// Each ring covers at least as long as the finer one, and a level at least two nodes of the next: what a
    /// level has dropped is then always in a finished node of a coarser one.
    pub(super) fn new(base_log2: u32, fanout_log2: u32, raw_samples: u64, nodes: &[u64]) -> Shape {
        let multiple = 64.max(2 << base_log2);
        let raw_samples = raw_samples.max(2).next_multiple_of(multiple);
        let mut shape = Shape { base_log2, fanout_log2, raw_samples, nodes: Vec::with_capacity(nodes.len()) };
        let mut covered = raw_samples;
        for (level, &wanted) in nodes.iter().enumerate() {
            let size = shape.node_samples(level);
            // Answers begin on a border of the next level, up to one of its nodes late.
            let count = wanted.max(2 << fanout_log2).max(covered.div_ceil(size) + (1 << fanout_log2) + 2);
            covered = count * size;
            shape.nodes.push(count);
        }
        shape
    }

    pub(super) fn for_budget(of: TrackBytes, channels: usize, budget_bytes: usize) -> Result<Shape> {
        let least = Shape::new(BASE_LOG2, FANOUT_LOG2, 0, &[0; NODE_SHARES.len()]);
        let least_bytes = least.bytes(of, channels);
        let Some(rest) = budget_bytes.checked_sub(least_bytes) else {
            return Err(Error::Budget { asked: budget_bytes, least: least_bytes });
        };
        // Asked here as a whole, so that a budget beyond the machine is an error and no abort later.
        if Vec::<u8>::new().try_reserve_exact(budget_bytes).is_err() {
            return Err(Error::OutOfMemory { asked: budget_bytes });
        }
        let part = |share: f64, bytes: f64| (rest as f64 * share / bytes) as u64;
        let whole_nodes = !((2 << BASE_LOG2) - 1);
        let raw = (least.raw_samples + part(RAW_SHARE, of.samples(channels))) & whole_nodes;
        let mut nodes = NODE_SHARES.map(|share| part(share, of.nodes(channels)));
        for (nodes, least) in nodes.iter_mut().zip(&least.nodes) {
            *nodes += least;
        }
        Ok(Shape::new(BASE_LOG2, FANOUT_LOG2, raw, &nodes))
    }

    // Asked for each piece of an answer, by code that is compiled where the kind of value is chosen: in another crate.

    #[inline]
    pub(super) fn levels(&self) -> usize {
        self.nodes.len()
    }

    #[inline]
    pub(super) fn node_log2(&self, level: usize) -> u32 {
        self.base_log2 + level as u32 * self.fanout_log2
    }

    #[inline]
    pub(super) fn node_samples(&self, level: usize) -> u64 {
        1 << self.node_log2(level)
    }

    #[inline]
    pub(super) fn nodes(&self, level: usize) -> u64 {
        self.nodes[level]
    }

    /// Bytes of all rings.
    pub(super) fn bytes(&self, of: TrackBytes, channels: usize) -> usize {
        // And a cache line per channel, so that the samples can begin on the border of one.
        let raw = (self.raw_samples as f64 * of.samples(channels)) as usize + 64 * channels;
        let levels = self.nodes.iter().map(|&nodes| (nodes as f64 * of.nodes(channels)) as usize);
        raw + levels.sum::<usize>()
    }
}

/// Bytes that one channel keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TrackBytes {
    pub(super) sample: usize,
    /// Extremes and sums.
    pub(super) node: usize,
}

impl TrackBytes {
    /// A sample of all channels, and one bit that says whether it was there.
    fn samples(self, channels: usize) -> f64 {
        (self.sample * channels) as f64 + 0.125
    }

    /// A node of all channels, and one count of samples.
    fn nodes(self, channels: usize) -> f64 {
        (self.node * channels) as f64 + 4.0
    }
}

const BASE_LOG2: u32 = 8;
const FANOUT_LOG2: u32 = 4;

/// Shares of the budget: samples, then nodes of 256, 4 Ki, 64 Ki, 1 Mi and 16 Mi samples.
const RAW_SHARE: f64 = 0.24;
const NODE_SHARES: [f64; 5] = [0.07, 0.18, 0.155, 0.32, 0.03];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pyramid::track::bytes;

    const I16: TrackBytes = TrackBytes { sample: 2, node: 20 };

    #[test]
    fn the_budget_is_kept_and_used() {
        for of in [I16, bytes::<f32>()] {
            for channels in [1, 2, 4, 8, 64, 510] {
                for budget in [8 << 10, 64 << 10, 1 << 20, 100 << 20, 1_000_000_000usize] {
                    match Shape::for_budget(of, channels, budget) {
                        Ok(shape) => {
                            let bytes = shape.bytes(of, channels);
                            let used = bytes as f64 / budget as f64;
                            let granules = 1e5 + 2000.0 * channels as f64;
                            assert!(
                                used <= 1.0 && bytes as f64 + granules >= budget as f64 * 0.9,
                                "{of:?} {channels} {budget}: {bytes}"
                            );
                        }
                        Err(Error::Budget { least, .. }) => {
                            assert!(least > budget);
                            assert!(Shape::for_budget(of, channels, least).is_ok());
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            }
        }
    }

    #[test]
    fn one_gigabyte_holds_hours_of_four_channels_at_1_gsps() {
        let shape = Shape::for_budget(bytes::<i16>(), 4, 1_000_000_000).unwrap();
        let levels = (0..shape.levels()).map(|level| shape.node_samples(level) * shape.nodes(level));
        let seconds: Vec<f64> =
            std::iter::once(shape.raw_samples).chain(levels).map(|samples| samples as f64 / 1e9).collect();
        let at_least = [0.029, 0.2, 8.5, 120.0, 3900.0, 5900.0];
        for (ring, (&has, least)) in seconds.iter().zip(at_least).enumerate() {
            assert!(has >= least, "ring {ring}: {has} s");
        }
    }
}
