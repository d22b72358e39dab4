//! The inner loops, compiled for what the processor has and chosen at run time.
//!
//! The loops are plain Rust over fixed-size chunks, which the compiler turns into vector code for each set of
//! features; what it does not find by itself is written by hand: multiply-add, and ends of short pieces.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use portable::Stats;
pub(crate) use portable::{Thresholds, WORDS_MAX, Words};
use portable::{compare_portable, min_max_chunked, stats_chunked, word_portable};

/// Smallest and largest of `samples`; `(i16::MAX, i16::MIN)` where there are none.
#[inline]
pub fn min_max(samples: &[i16]) -> (i16, i16) {
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

/// Smallest, largest, sum and sum of squares of `samples`.
///
/// At most 2^31 samples per call, so that no sum can overflow; more are refused by a panic in debug builds.
#[inline]
pub fn stats(samples: &[i16]) -> Stats {
    debug_assert!(samples.len() <= 1 << 31);
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

/// Stores past the caches, which saves reading memory that is overwritten anyway. Such stores are ordered with no other: they
/// can only be made through this, and its end orders them before whatever tells other threads of them.
pub(crate) struct StreamingStores(());

impl StreamingStores {
    pub(crate) fn begin() -> Self {
        Self(())
    }

    /// As [`stats`], and copies the samples to `to`, which must be as long (else nothing is copied beyond the shorter); past
    /// the caches where `to` is aligned.
    pub(crate) fn stats(&mut self, samples: &[i16], to: &mut [i16]) -> Stats {
        #[cfg(target_arch = "x86_64")]
        if samples.len() == to.len() && to.as_ptr().addr().is_multiple_of(64) {
            if is_x86_feature_detected!("avx512bw") {
                // SAFETY: the processor has AVX-512BW, as just detected.
                return unsafe { x86::stats_avx512::<true>(samples, to) };
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, as just detected.
                return unsafe { x86::stats_avx2::<true>(samples, to) };
            }
        }
        for (to, sample) in to.iter_mut().zip(samples) {
            *to = *sample;
        }
        stats(samples)
    }
}

impl Drop for StreamingStores {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        x86::fence();
    }
}

/// Asks for the 64 samples from `from` on, if there are any, to be brought into the first-level cache.
#[inline]
pub(crate) fn prefetch(samples: &[i16], from: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(lines) = samples.get(from..from + 64) {
        x86::prefetch(lines);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (samples, from);
}

/// Compares up to `64 * WORDS_MAX` samples and returns how many words were written.
pub(crate) fn compare(strip: &[i16], thresholds: Thresholds, words: &mut [Words; WORDS_MAX]) -> usize {
    debug_assert!(strip.len() <= 64 * WORDS_MAX);
    let (chunks, rest) = strip.as_chunks::<64>();
    chunks_dispatched(chunks, thresholds, words);
    let mut used = chunks.len();
    if !rest.is_empty() && used < WORDS_MAX {
        // Padded with a sample that is neither above nor below would not always exist: mask instead.
        let mut padded = [0; 64];
        padded[..rest.len()].copy_from_slice(rest);
        let word = word_portable(&padded, thresholds);
        let valid = (1u64 << rest.len()) - 1;
        words[used] = Words { above: word.above & valid, below: word.below & valid };
        used += 1;
    }
    if thresholds.above_always | thresholds.below_always == 0 {
        return used;
    }
    for (word, chunk) in words[..used].iter_mut().zip(strip.chunks(64)) {
        let valid = if chunk.len() == 64 { u64::MAX } else { (1 << chunk.len()) - 1 };
        word.above |= thresholds.above_always & valid;
        word.below |= thresholds.below_always & valid;
    }
    used
}

fn chunks_dispatched(chunks: &[[i16; 64]], thresholds: Thresholds, words: &mut [Words; WORDS_MAX]) {
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
