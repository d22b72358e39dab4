//! The kernels in plain Rust over fixed-size chunks, for any processor.

use crate::simd::words::{RealThresholds, Words};
use crate::stats::Stats;
use crate::value::RealSums;

/// Places in which sums are made: two registers of AVX-512, four of AVX2.
pub(super) const LANES: usize = 16;

/// Extremes and sums by place. A comparison with not-a-number is false, which keeps it out of the extremes.
pub(super) struct Lanes {
    low: [f32; LANES],
    high: [f32; LANES],
    sum: [f64; LANES],
    sum_sq: [f64; LANES],
    not_finite: [u32; LANES],
}

impl Lanes {
    #[inline(always)]
    pub(super) fn new() -> Lanes {
        let (low, high) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
        Lanes { low, high, sum: [0.0; LANES], sum_sq: [0.0; LANES], not_finite: [0; LANES] }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, chunk: &[f32; LANES]) {
        for (lane, &sample) in chunk.iter().enumerate() {
            self.add_one(lane, sample);
        }
    }

    /// Adds up to 15 samples in their places, and all places in one order.
    #[inline(always)]
    pub(super) fn finish(mut self, rest: &[f32]) -> Stats<f32> {
        for (lane, &sample) in rest.iter().enumerate() {
            self.add_one(lane % LANES, sample);
        }
        let mut half = LANES / 2;
        while half > 0 {
            for lane in 0..half {
                self.low[lane] = smaller(self.low[lane + half], self.low[lane]);
                self.high[lane] = larger(self.high[lane + half], self.high[lane]);
                self.sum[lane] += self.sum[lane + half];
                self.sum_sq[lane] += self.sum_sq[lane + half];
                self.not_finite[lane] += self.not_finite[lane + half];
            }
            half /= 2;
        }
        let not_finite = self.not_finite[0].into();
        let sums = RealSums { sum: self.sum[0], sum_sq: self.sum_sq[0], not_finite };
        Stats { min: self.low[0], max: self.high[0], sums }
    }

    #[inline(always)]
    fn add_one(&mut self, lane: usize, sample: f32) {
        self.low[lane] = smaller(sample, self.low[lane]);
        self.high[lane] = larger(sample, self.high[lane]);
        let is_finite = sample.abs() < f32::INFINITY;
        let value = f64::from(if is_finite { sample } else { 0.0 });
        self.sum[lane] += value;
        // A square of 24 bits fits into 53: exact, so that fusing it with the addition would change nothing.
        self.sum_sq[lane] += value * value;
        self.not_finite[lane] += u32::from(!is_finite);
    }
}

/// Samples whose sums are made at once: rounding errors grow with the number in a place.
pub(super) const PIECE: usize = 4096;

#[inline(always)]
pub(super) fn stats_chunked(samples: &[f32]) -> Stats<f32> {
    let mut all = Stats::empty();
    for piece in samples.chunks(PIECE) {
        let (chunks, rest) = piece.as_chunks::<LANES>();
        let mut lanes = Lanes::new();
        chunks.iter().for_each(|chunk| lanes.add(chunk));
        all.merge(&lanes.finish(rest));
    }
    all
}

#[inline(always)]
pub(super) fn min_max_chunked(samples: &[f32]) -> (f32, f32) {
    // Four of each, so that steps do not wait for each other.
    const WIDE: usize = 4 * LANES;
    let (mut low, mut high) = ([f32::INFINITY; WIDE], [f32::NEG_INFINITY; WIDE]);
    let (wide, rest) = samples.as_chunks::<WIDE>();
    for chunk in wide {
        for lane in 0..WIDE {
            low[lane] = smaller(chunk[lane], low[lane]);
            high[lane] = larger(chunk[lane], high[lane]);
        }
    }
    let (chunks, rest) = rest.as_chunks::<LANES>();
    // The last chunk may overlap: no extreme changes.
    let last = samples.last_chunk::<LANES>();
    for chunk in chunks.iter().chain(last) {
        for lane in 0..LANES {
            low[lane] = smaller(chunk[lane], low[lane]);
            high[lane] = larger(chunk[lane], high[lane]);
        }
    }
    if last.is_none() {
        return rest.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(least, most), &sample| {
            (smaller(sample, least), larger(sample, most))
        });
    }
    let mut half = WIDE / 2;
    while half > 0 {
        for lane in 0..half {
            low[lane] = smaller(low[lane + half], low[lane]);
            high[lane] = larger(high[lane + half], high[lane]);
        }
        half /= 2;
    }
    (low[0], high[0])
}

/// `sample` where it is smaller, else `least`: also where `sample` is not a number.
#[inline(always)]
fn smaller(sample: f32, least: f32) -> f32 {
    if sample < least { sample } else { least }
}

#[inline(always)]
fn larger(sample: f32, most: f32) -> f32 {
    if sample > most { sample } else { most }
}

pub(super) fn compare_portable(chunks: &[[f32; 64]], thresholds: RealThresholds, words: &mut [Words]) {
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = Words::default();
        // Bytes of eight bits first: short chains, which compilers vectorise.
        for (byte, eight) in chunk.as_chunks::<8>().0.iter().enumerate() {
            let (mut above, mut below) = (0u64, 0u64);
            for (bit, &sample) in eight.iter().enumerate() {
                above |= u64::from(sample >= thresholds.high) << bit;
                below |= u64::from(sample < thresholds.low) << bit;
            }
            word.above |= above << (8 * byte);
            word.below |= below << (8 * byte);
        }
    }
}
