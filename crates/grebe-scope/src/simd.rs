//! The inner loops, compiled for what the processor has and chosen at run time, for each kind of [`Value`](crate::Value).
//!
//! The loops are plain Rust over fixed-size chunks, which the compiler turns into vector code for each set of
//! features; what it does not find by itself is written by hand: multiply-add, comparisons, and ends of short pieces.

mod integer;
mod real;
mod words;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::fmt::Debug;

use crate::stats::Stats;
use crate::value::Number;
pub(crate) use words::{IntegerThresholds, RealThresholds, WORDS_MAX, Words};

/// The loops that each kind of value has for itself.
pub trait Kernels: Number {
    /// Two thresholds in a form that comparisons of 64 samples can take.
    type Thresholds: Copy + Debug + Send;

    /// See [`min_max`].
    fn min_max(samples: &[Self]) -> (Self, Self);

    /// See [`stats`].
    fn stats(samples: &[Self]) -> Stats<Self>;

    /// As `stats`, and copies the samples to `to`, which is as long and begins on a border of 64 bytes, past the caches.
    /// `None`, and nothing done, where the processor has no way to. Only for [`StreamingStores`].
    fn stats_streaming(samples: &[Self], to: &mut [Self]) -> Option<Stats<Self>>;

    /// Writes one word for each chunk, as far as there is room.
    fn compare(chunks: &[[Self; 64]], thresholds: Self::Thresholds, words: &mut [Words]);
}

/// Smallest and largest of `samples`; [`Number::HIGHEST`] and [`Number::LOWEST`] where there are none (not-a-number is none).
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

/// Stores past the caches, which saves reading memory that is overwritten anyway. Such stores are ordered with no other: they
/// can only be made through this, and its end orders them before whatever tells other threads of them.
pub(crate) struct StreamingStores(());

impl StreamingStores {
    pub(crate) fn begin() -> Self {
        Self(())
    }

    /// As [`stats`], and copies the samples to `to`, which must be as long (else nothing is copied beyond the shorter); past
    /// the caches where `to` is aligned.
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

/// Asks for the 64 samples from `from` on, if there are any, to be brought into the first-level cache.
#[inline]
pub(crate) fn prefetch<V: Kernels>(samples: &[V], from: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(lines) = samples.get(from..from + 64) {
        x86::prefetch(lines);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (samples, from);
}

/// Compares up to `64 * WORDS_MAX` samples and returns how many words were written.
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
    // Padded with a sample that is neither above nor below would not always exist: mask instead.
    let mut padded = [V::default(); 64];
    padded[..rest.len()].copy_from_slice(rest);
    V::compare(&[padded], thresholds, &mut words[used..]);
    let valid = (1u64 << rest.len()) - 1;
    words[used].above &= valid;
    words[used].below &= valid;
    used + 1
}
