//! The loops over `i16`, exact.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::Kernels;
use super::words::{IntegerThresholds, Words};
use crate::stats::Stats;
use portable::{compare_portable, min_max_chunked, stats_chunked};

impl Kernels for i16 {
    type Thresholds = IntegerThresholds;

    #[inline]
    fn min_max(samples: &[i16]) -> (i16, i16) {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512bw") {
                // SAFETY: the processor has AVX-512BW, as just detected.
                return unsafe { x86::min_max_avx512(samples) };
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, as just detected.
                return unsafe { x86::min_max_avx2(samples) };
            }
        }
        min_max_chunked::<64>(samples)
    }

    #[inline]
    fn stats(samples: &[i16]) -> Stats {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512bw") {
                // SAFETY: the processor has AVX-512BW (which implies AVX-512F), as just detected.
                return unsafe { x86::stats_avx512::<false>(samples, &mut []) };
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, as just detected.
                return unsafe { x86::stats_avx2::<false>(samples, &mut []) };
            }
        }
        stats_chunked(samples)
    }

    fn stats_streaming(samples: &[i16], to: &mut [i16]) -> Option<Stats> {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512bw") {
                // SAFETY: the processor has AVX-512BW, as just detected.
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

    fn compare(chunks: &[[i16; 64]], thresholds: IntegerThresholds, words: &mut [Words]) {
        compare_dispatched(chunks, thresholds, words);
        if thresholds.above_always | thresholds.below_always == 0 {
            return;
        }
        for word in &mut words[..chunks.len()] {
            word.above |= thresholds.above_always;
            word.below |= thresholds.below_always;
        }
    }
}

fn compare_dispatched(chunks: &[[i16; 64]], thresholds: IntegerThresholds, words: &mut [Words]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") {
            // SAFETY: the processor has AVX-512BW, as just detected.
            return unsafe { x86::compare_avx512(chunks, thresholds, words) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, as just detected.
            return unsafe { x86::compare_avx2(chunks, thresholds, words) };
        }
    }
    compare_portable(chunks, thresholds, words);
}

#[cfg(test)]
mod tests;
