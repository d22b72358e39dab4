//! The inner loops, compiled for several instruction sets and selected at run time, for each kind of
//! [`Value`](crate::Value).
//!
//! The loops are plain Rust over fixed-size chunks, which the compiler vectorizes for each instruction set. Multiply-add,
//! comparisons, and the ends of short pieces are written by hand.

mod integer;
pub(crate) mod lines;
mod real;
mod words;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::fmt::Debug;

use crate::stats::Stats;
use crate::value::Number;
pub(crate) use words::{IntegerThresholds, RealThresholds, WORDS_MAX, Words};

/// The loops of each kind of value.
pub trait Kernels: Number {
    /// Two thresholds in a form that comparisons of 64 samples can take.
    type Thresholds: Copy + Debug + Send;

    /// See [`min_max`].
    fn min_max(samples: &[Self]) -> (Self, Self);

    /// See [`stats`].
    fn stats(samples: &[Self]) -> Stats<Self>;

    /// As `stats`, and also copies the samples to `to`, past the caches. `to` has the same length and starts on a
    /// border of 64 bytes. `None`, and no effect, if the CPU cannot do it. Only for [`StreamingStores`].
    fn stats_streaming(samples: &[Self], to: &mut [Self]) -> Option<Stats<Self>>;

    /// Writes one word per chunk, as far as there is room.
    fn compare(chunks: &[[Self; 64]], thresholds: Self::Thresholds, words: &mut [Words]);
}

/// Smallest and largest of `samples`; [`Number::HIGHEST`] and [`Number::LOWEST`] without any (NaN does not count).
#[inline]
pub fn min_max<V: Kernels>(samples: &[V]) -> (V, V) {
    V::min_max(samples)
}

/// Smallest, largest and sums of `samples`.
///
/// At most 2^31 samples per call, so that no sum can overflow; more are refused by a panic in debug builds.
#[inline]
pub fn stats<V: Kernels>(samples: &[V]) -> Stats<V> {
    debug_assert!(samples.len() <= 1 << 31);
    V::stats(samples)
}

/// Stores past the caches, which avoids reading memory that will be overwritten. Such stores are not ordered with
/// others. They need this type, and its drop orders them before any later store that publishes them to other threads.
pub(crate) struct StreamingStores(());

impl StreamingStores {
    pub(crate) fn begin() -> Self {
        Self(())
    }

    /// As [`stats`], and copies the samples to `to` of the same length; past the caches if `to` is aligned. Copies at
    /// most the shorter length.
    pub(crate) fn stats<V: Kernels>(&mut self, samples: &[V], to: &mut [V]) -> Stats<V> {
        if samples.len() == to.len()
            && to.as_ptr().addr().is_multiple_of(64)
            && let Some(stats) = V::stats_streaming(samples, to)
        {
            return stats;
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

/// Prefetches the 64 samples from `from` on, if there are any, into the first-level cache.
#[inline]
pub(crate) fn prefetch<V: Kernels>(samples: &[V], from: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(lines) = samples.get(from..from + 64) {
        x86::prefetch(lines);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (samples, from);
}

/// Compares up to `64 * WORDS_MAX` samples and returns the number of written words.
pub(crate) fn compare<V: Kernels>(
    strip: &[V],
    thresholds: V::Thresholds,
    words: &mut [Words; WORDS_MAX],
) -> usize {
    debug_assert!(strip.len() <= 64 * WORDS_MAX);
    let (chunks, rest) = strip.as_chunks::<64>();
    V::compare(chunks, thresholds, words);
    let used = chunks.len();
    if rest.is_empty() || used == WORDS_MAX {
        return used;
    }
    // A padding sample that is neither above nor below may not exist, so mask the result.
    let mut padded = [V::default(); 64];
    padded[..rest.len()].copy_from_slice(rest);
    V::compare(&[padded], thresholds, &mut words[used..]);
    let valid = (1u64 << rest.len()) - 1;
    words[used].above &= valid;
    words[used].below &= valid;
    used + 1
}
