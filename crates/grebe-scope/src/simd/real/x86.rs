//! AVX2 and AVX-512F.

use std::arch::x86_64::*;

use super::portable::{LANES, Lanes, PIECE, min_max_chunked};
use crate::simd::words::{RealThresholds, Words};
use crate::stats::Stats;

#[target_feature(enable = "avx2")]
pub(super) fn min_max_avx2(samples: &[f32]) -> (f32, f32) {
    min_max_chunked(samples)
}

#[target_feature(enable = "avx512f")]
pub(super) fn min_max_avx512(samples: &[f32]) -> (f32, f32) {
    min_max_chunked(samples)
}

/// Statistics of `samples`; with `STORE` also copies them to `to`, past the caches. `to` must then be as long,
/// begin on a border of 32 bytes, and be fenced before another thread may read it.
#[target_feature(enable = "avx2")]
pub(super) fn stats_avx2<const STORE: bool>(samples: &[f32], to: &mut [f32]) -> Stats<f32> {
    debug_assert!(!STORE || (to.len() == samples.len() && to.as_ptr().addr().is_multiple_of(32)));
    let (to_chunks, to_rest) = to.as_chunks_mut::<LANES>();
    let mut to_chunks = to_chunks.iter_mut();
    let mut all = Stats::empty();
    for piece in samples.chunks(PIECE) {
        let (chunks, rest) = piece.as_chunks::<LANES>();
        let mut lanes = Lanes::new();
        for chunk in chunks {
            if STORE && let Some(to) = to_chunks.next() {
                for (to, from) in to.as_chunks_mut::<8>().0.iter_mut().zip(chunk.as_chunks::<8>().0) {
                    // SAFETY: both are 32 bytes, and `to` is aligned, as the caller promised for the first of them.
                    unsafe { _mm256_stream_ps(to.as_mut_ptr(), _mm256_loadu_ps(from.as_ptr())) };
                }
            }
            lanes.add(chunk);
        }
        all.merge(&lanes.finish(rest));
        if STORE && !rest.is_empty() {
            to_rest.copy_from_slice(rest);
        }
    }
    all
}

/// As `stats_avx2`, with 64 bytes for 32.
#[target_feature(enable = "avx512f")]
pub(super) fn stats_avx512<const STORE: bool>(samples: &[f32], to: &mut [f32]) -> Stats<f32> {
    debug_assert!(!STORE || (to.len() == samples.len() && to.as_ptr().addr().is_multiple_of(64)));
    let (to_chunks, to_rest) = to.as_chunks_mut::<LANES>();
    let mut to_chunks = to_chunks.iter_mut();
    let mut all = Stats::empty();
    for piece in samples.chunks(PIECE) {
        let (chunks, rest) = piece.as_chunks::<LANES>();
        let mut lanes = Lanes::new();
        for chunk in chunks {
            if STORE && let Some(to) = to_chunks.next() {
                // SAFETY: both are 64 bytes, and `to` is aligned, as the caller promised for the first of them.
                unsafe { _mm512_stream_ps(to.as_mut_ptr(), _mm512_loadu_ps(chunk.as_ptr())) };
            }
            lanes.add(chunk);
        }
        all.merge(&lanes.finish(rest));
        if STORE && !rest.is_empty() {
            to_rest.copy_from_slice(rest);
        }
    }
    all
}

#[target_feature(enable = "avx2")]
pub(super) fn compare_avx2(chunks: &[[f32; 64]], thresholds: RealThresholds, words: &mut [Words]) {
    let (high, low) = (_mm256_set1_ps(thresholds.high), _mm256_set1_ps(thresholds.low));
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = Words::default();
        for (place, eight) in chunk.as_chunks::<8>().0.iter().enumerate() {
            // SAFETY: 32 readable bytes; the load asks no alignment.
            let v = unsafe { _mm256_loadu_ps(eight.as_ptr()) };
            let bits = |mask| u64::from(_mm256_movemask_ps(mask) as u32) << (8 * place);
            word.above |= bits(_mm256_cmp_ps::<_CMP_GE_OQ>(v, high));
            word.below |= bits(_mm256_cmp_ps::<_CMP_LT_OQ>(v, low));
        }
    }
}

#[target_feature(enable = "avx512f")]
pub(super) fn compare_avx512(chunks: &[[f32; 64]], thresholds: RealThresholds, words: &mut [Words]) {
    let (high, low) = (_mm512_set1_ps(thresholds.high), _mm512_set1_ps(thresholds.low));
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = Words::default();
        for (place, quarter) in chunk.as_chunks::<16>().0.iter().enumerate() {
            // SAFETY: 64 readable bytes; the load asks no alignment.
            let v = unsafe { _mm512_loadu_ps(quarter.as_ptr()) };
            word.above |= u64::from(_mm512_cmp_ps_mask::<_CMP_GE_OQ>(v, high)) << (16 * place);
            word.below |= u64::from(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(v, low)) << (16 * place);
        }
    }
}
