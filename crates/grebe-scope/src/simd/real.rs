//! The loops over `f32`. Sums are made in sixteen places, sample `i` of a piece in place `i % 16`, and added in one order: so all
//! kernels yield the same to the last bit.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::Kernels;
use super::words::{RealThresholds, Words};
use crate::stats::Stats;
use portable::{compare_portable, min_max_chunked, stats_chunked};

impl Kernels for f32 {
    type Thresholds = RealThresholds;

    #[inline]
    fn min_max(samples: &[f32]) -> (f32, f32) {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                // SAFETY: the processor has AVX-512F, as just detected.
                return unsafe { x86::min_max_avx512(samples) };
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, as just detected.
                return unsafe { x86::min_max_avx2(samples) };
            }
        }
        min_max_chunked(samples)
    }

    #[inline]
    fn stats(samples: &[f32]) -> Stats<f32> {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                // SAFETY: the processor has AVX-512F, as just detected.
                return unsafe { x86::stats_avx512::<false>(samples, &mut []) };
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, as just detected.
                return unsafe { x86::stats_avx2::<false>(samples, &mut []) };
            }
        }
        stats_chunked(samples)
    }

    fn stats_streaming(samples: &[f32], to: &mut [f32]) -> Option<Stats<f32>> {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                // SAFETY: the processor has AVX-512F, as just detected.
                return Some(unsafe { x86::stats_avx512::<true>(samples, to) });
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, as just detected.
                return Some(unsafe { x86::stats_avx2::<true>(samples, to) });
            }
        }
        let _ = (samples, to);
        None
    }

    fn compare(chunks: &[[f32; 64]], thresholds: RealThresholds, words: &mut [Words]) {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                // SAFETY: the processor has AVX-512F, as just detected.
                return unsafe { x86::compare_avx512(chunks, thresholds, words) };
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, as just detected.
                return unsafe { x86::compare_avx2(chunks, thresholds, words) };
            }
        }
        compare_portable(chunks, thresholds, words);
    }
}

#[cfg(test)]
mod tests;
