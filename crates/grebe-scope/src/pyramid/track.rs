//! The rings of one channel, and the data that all channels share: counts, and which samples are present.

use std::ops::Range;

use super::shape::{Shape, TrackBytes};
use crate::simd;
use crate::stats::Stats;
use crate::value::{Number, Sums, Value};

/// Samples and nodes of one channel.
#[derive(Debug)]
pub(super) struct ChannelTracks<V: Value> {
    /// The ring begins at `raw_start`, on the border of a cache line.
    raw: Vec<V>,
    raw_start: usize,
    levels: Vec<Track<V>>,
}

const LINE_BYTES: usize = 64;
/// From this many bytes per channel on, samples are stored past the caches: a smaller ring stays in them.
const PAST_CACHES_BYTES: usize = 4 << 20;

/// Finished nodes of one level, as rings side by side, and the node that is being filled.
#[derive(Debug)]
struct Track<V: Value> {
    min_max: Vec<(V, V)>,
    sums: Vec<Stored<V>>,
    open: Stats<V>,
}

/// Sums of a node, as stored.
type Stored<V> = <<V as Number>::Sums as Sums>::Stored;

/// Bytes per channel for a sample and for a node.
pub(super) fn bytes<V: Value>() -> TrackBytes {
    TrackBytes { sample: size_of::<V>(), node: size_of::<(V, V)>() + size_of::<Stored<V>>() }
}

impl<V: Value> ChannelTracks<V> {
    const LINE_SAMPLES: usize = LINE_BYTES / size_of::<V>();

    pub(super) fn new(shape: &Shape) -> ChannelTracks<V> {
        let track = |level| {
            let nodes = shape.nodes(level) as usize;
            Track {
                min_max: vec![(V::default(), V::default()); nodes],
                sums: vec![Stored::<V>::default(); nodes],
                open: Stats::empty(),
            }
        };
        let raw = vec![V::default(); shape.raw_samples as usize + Self::LINE_SAMPLES];
        // If no aligned place exists, any place works: alignment only affects speed.
        let raw_start =
            Some(raw.as_ptr().align_offset(LINE_BYTES)).filter(|&at| at <= Self::LINE_SAMPLES).unwrap_or(0);
        ChannelTracks { raw, raw_start, levels: (0..shape.levels()).map(track).collect() }
    }

    pub(super) fn append(&mut self, shape: &Shape, first: u64, mut samples: &[V]) {
        let node = shape.node_samples(0);
        let past_caches = shape.raw_samples as usize * size_of::<V>() >= PAST_CACHES_BYTES;
        let mut stores = past_caches.then(simd::StreamingStores::begin);
        let mut at = first;
        let mut slot = at % shape.raw_samples;
        while !samples.is_empty() {
            // A ring is a whole number of nodes: a piece of one node never wraps.
            let len = (node - at % node).min(samples.len() as u64);
            let (piece, rest) = samples.split_at(len as usize);
            let from = self.raw_start + slot as usize;
            let to = &mut self.raw[from..from + piece.len()];
            let stats = match &mut stores {
                Some(stores) => stores.stats(piece, to),
                None => {
                    to.copy_from_slice(piece);
                    simd::stats(piece)
                }
            };
            self.levels[0].open.merge(&stats);
            at += len;
            slot = if slot + len == shape.raw_samples { 0 } else { slot + len };
            samples = rest;
            if at.is_multiple_of(node) {
                self.close(shape, at);
            }
        }
    }

    /// Passes from `from` to `to` without samples.
    pub(super) fn skip(&mut self, shape: &Shape, from: u64, to: u64) {
        for level in 0..self.levels.len() {
            let log2 = shape.node_log2(level);
            let (first, end) = (from >> log2, to >> log2);
            if first == end {
                return;
            }
            let open = std::mem::replace(&mut self.levels[level].open, Stats::empty());
            self.levels[level].write(first, &open);
            if let Some(above) = self.levels.get_mut(level + 1) {
                above.open.merge(&open);
            }
            let nodes = shape.nodes(level);
            for number in (first + 1).max(end.saturating_sub(nodes))..end {
                self.levels[level].write(number, &Stats::empty());
            }
        }
    }

    pub(super) fn node(&self, level: usize, number: u64) -> Stats<V> {
        let track = &self.levels[level];
        let slot = track.slot(number);
        let (min, max) = track.min_max[slot];
        Stats { min, max, sums: V::Sums::restore(track.sums[slot]) }
    }

    pub(super) fn node_min_max(&self, level: usize, number: u64) -> (V, V) {
        let track = &self.levels[level];
        track.min_max[track.slot(number)]
    }

    /// Samples of a range that does not wrap.
    pub(super) fn raw(&self, range: Range<u64>) -> &[V] {
        let samples = (self.raw.len() - Self::LINE_SAMPLES) as u64;
        let from = self.raw_start + (range.start % samples) as usize;
        &self.raw[from..from + (range.end - range.start) as usize]
    }

    pub(super) fn reset(&mut self) {
        self.levels.iter_mut().for_each(|track| track.open = Stats::empty());
    }

    /// Finishes the nodes, from the finest level up, that end at `end`.
    fn close(&mut self, shape: &Shape, end: u64) {
        for level in 0..self.levels.len() {
            let log2 = shape.node_log2(level);
            if end & ((1 << log2) - 1) != 0 {
                return;
            }
            let open = std::mem::replace(&mut self.levels[level].open, Stats::empty());
            self.levels[level].write((end >> log2) - 1, &open);
            if let Some(above) = self.levels.get_mut(level + 1) {
                above.open.merge(&open);
            }
        }
    }
}

impl<V: Value> Track<V> {
    fn slot(&self, number: u64) -> usize {
        (number % self.min_max.len() as u64) as usize
    }

    fn write(&mut self, number: u64, node: &Stats<V>) {
        let slot = self.slot(number);
        self.min_max[slot] = (node.min, node.max);
        self.sums[slot] = node.sums.store();
    }
}

/// Number of samples in each node: fewer than its size means a gap.
#[derive(Debug)]
pub(super) struct CountTracks {
    levels: Vec<(Vec<u32>, u32)>,
}

impl CountTracks {
    pub(super) fn new(shape: &Shape) -> CountTracks {
        let track = |level| (vec![0; shape.nodes(level) as usize], 0);
        CountTracks { levels: (0..shape.levels()).map(track).collect() }
    }

    #[inline]
    pub(super) fn append(&mut self, shape: &Shape, first: u64, len: u64) {
        let node = shape.node_samples(0);
        let (mut at, end) = (first, first + len);
        while at < end {
            let piece = (node - at % node).min(end - at);
            self.levels[0].1 += piece as u32;
            at += piece;
            if at.is_multiple_of(node) {
                self.skip(shape, at - 1, at);
            }
        }
    }

    #[inline]
    pub(super) fn skip(&mut self, shape: &Shape, from: u64, to: u64) {
        for level in 0..self.levels.len() {
            let log2 = shape.node_log2(level);
            let (first, end) = (from >> log2, to >> log2);
            if first == end {
                return;
            }
            let (ring, open) = &mut self.levels[level];
            let nodes = ring.len() as u64;
            let held = std::mem::take(open);
            ring[(first % nodes) as usize] = held;
            for number in (first + 1).max(end.saturating_sub(nodes))..end {
                ring[(number % nodes) as usize] = 0;
            }
            if let Some((_, above)) = self.levels.get_mut(level + 1) {
                *above += held;
            }
        }
    }

    #[inline]
    pub(super) fn node(&self, level: usize, number: u64) -> u32 {
        let (ring, _) = &self.levels[level];
        ring[(number % ring.len() as u64) as usize]
    }

    pub(super) fn reset(&mut self) {
        self.levels.iter_mut().for_each(|(_, open)| *open = 0);
    }
}

/// Which of the kept samples were received: one bit each, the same for all channels.
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

    #[inline]
    pub(super) fn set(&mut self, first: u64, len: u64) {
        self.write(first, len, |word, mask| *word |= mask);
    }

    #[inline]
    pub(super) fn clear(&mut self, first: u64, len: u64) {
        self.write(first, len, |word, mask| *word &= !mask);
    }

    /// Calls `each` with every unbroken run in `range`, which must lie within the newest ring of samples.
    /// A run also ends where the ring wraps, so that its samples lie side by side.
    #[inline]
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
    #[inline]
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

    #[inline]
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
