//! The kernels in plain Rust over fixed-size chunks, for any processor.

use crate::simd::words::{IntegerThresholds, Words};
use crate::stats::Stats;
use crate::value::IntegerSums;

#[inline(always)]
pub(super) fn min_max_chunked<const LANES: usize>(samples: &[i16]) -> (i16, i16) {
    let (mut low, mut high) = ([i16::MAX; LANES], [i16::MIN; LANES]);
    let (chunks, rest) = samples.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            low[lane] = low[lane].min(chunk[lane]);
            high[lane] = high[lane].max(chunk[lane]);
        }
    }
    let least = low.iter().chain(rest).fold(i16::MAX, |least, &sample| least.min(sample));
    let most = high.iter().chain(rest).fold(i16::MIN, |most, &sample| most.max(sample));
    (least, most)
}

#[inline(always)]
pub(super) fn stats_chunked(samples: &[i16]) -> Stats {
    const LANES: usize = 16;
    let mut all = Stats::empty();
    // 4096 samples per piece keep 32-bit lane sums far from overflow.
    for piece in samples.chunks(4096) {
        let (mut sum, mut sq_low, mut sq_high) = ([0i32; LANES], [0u32; LANES], [0u32; LANES]);
        let (chunks, rest) = piece.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                let sample = i32::from(chunk[lane]);
                let sq = (sample * sample) as u32;
                sum[lane] += sample;
                sq_low[lane] += sq & 0xffff;
                sq_high[lane] += sq >> 16;
            }
        }
        let (min, max) = min_max_chunked::<64>(piece);
        let mut sums = IntegerSums::default();
        for lane in 0..LANES {
            sums.sum += i64::from(sum[lane]);
            sums.sum_sq += u128::from(u64::from(sq_low[lane]) + (u64::from(sq_high[lane]) << 16));
        }
        for &sample in rest {
            sums.sum += i64::from(sample);
            sums.sum_sq += u128::from(sample.unsigned_abs()).pow(2);
        }
        all.merge(&Stats { min, max, sums });
    }
    all
}

pub(super) fn compare_portable(chunks: &[[i16; 64]], thresholds: IntegerThresholds, words: &mut [Words]) {
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = word_portable(chunk, thresholds);
    }
}

fn word_portable(chunk: &[i16; 64], thresholds: IntegerThresholds) -> Words {
    let mut word = Words::default();
    // Bytes of eight bits first: short chains, which compilers vectorise.
    for (byte, eight) in chunk.as_chunks::<8>().0.iter().enumerate() {
        let (mut above, mut below) = (0u64, 0u64);
        for (bit, &sample) in eight.iter().enumerate() {
            above |= u64::from(sample > thresholds.over) << bit;
            below |= u64::from(sample < thresholds.under) << bit;
        }
        word.above |= above << (8 * byte);
        word.below |= below << (8 * byte);
    }
    word
}
