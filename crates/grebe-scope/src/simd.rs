//! The inner loops, compiled for what the processor has and chosen at run time.
//!
//! The loops are plain Rust over fixed-size chunks, which the compiler turns into vector code for each set of
//! features; what it does not find by itself is written by hand: multiply-add, and ends of short pieces.

mod compare;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use compare::{Thresholds, WORDS_MAX, Words, compare};

/// Smallest, largest, sum and sum of squares of some samples, exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stats {
    /// Smallest sample; `i16::MAX` without samples.
    pub min: i16,
    /// Largest sample; `i16::MIN` without samples.
    pub max: i16,
    /// Sum of the samples.
    pub sum: i64,
    /// Sum of the squares of the samples.
    pub sum_sq: u64,
}

impl Stats {
    /// The statistics of no samples.
    pub const EMPTY: Stats = Stats { min: i16::MAX, max: i16::MIN, sum: 0, sum_sq: 0 };

    /// Adds those of further samples.
    #[inline]
    pub fn merge(&mut self, other: &Stats) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_sq += other.sum_sq;
    }
}

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
/// At most 2^31 samples a call, so that no sum can overflow; more are refused by a panic in debug builds.
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

/// As [`stats`], and copies the samples to `to`, which must be as long (else nothing is copied beyond the
/// shorter). Goes past the caches where `to` allows it, which saves reading what is overwritten anyway; call
/// [`fence`] before another thread may read it.
pub(crate) fn stats_storing(samples: &[i16], to: &mut [i16]) -> Stats {
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

/// Orders what [`stats_storing`] wrote before whatever tells other threads of it.
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    x86::fence();
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

#[inline(always)]
fn min_max_chunked<const LANES: usize>(samples: &[i16]) -> (i16, i16) {
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
fn stats_chunked(samples: &[i16]) -> Stats {
    const LANES: usize = 16;
    let mut all = Stats::EMPTY;
    // 4096 samples a piece keep 32-bit lane sums far from overflow.
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
        let mut part = Stats { min, max, sum: 0, sum_sq: 0 };
        for lane in 0..LANES {
            part.sum += i64::from(sum[lane]);
            part.sum_sq += u64::from(sq_low[lane]) + (u64::from(sq_high[lane]) << 16);
        }
        for &sample in rest {
            part.sum += i64::from(sample);
            part.sum_sq += u64::from(sample.unsigned_abs()).pow(2);
        }
        all.merge(&part);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One way to compute statistics, with its name.
    type Kernel = (&'static str, fn(&[i16]) -> Stats);

    fn kernels() -> Vec<Kernel> {
        let all: [Kernel; 2] = [("dispatched", stats), ("portable", |s| stats_chunked(s))];
        all.into_iter().chain(by_processor()).collect()
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn by_processor() -> Vec<Kernel> {
        Vec::new()
    }

    #[cfg(target_arch = "x86_64")]
    fn by_processor() -> Vec<Kernel> {
        let mut all: Vec<Kernel> = Vec::new();
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, as just detected.
            all.push(("avx2", |s| unsafe { x86::stats_avx2::<false>(s, &mut []) }));
        }
        if is_x86_feature_detected!("avx512bw") {
            // SAFETY: the processor has AVX-512BW, as just detected.
            all.push(("avx512", |s| unsafe { x86::stats_avx512::<false>(s, &mut []) }));
        }
        all
    }

    fn naive(samples: &[i16]) -> Stats {
        let mut all = Stats::EMPTY;
        for &s in samples {
            all.merge(&Stats { min: s, max: s, sum: s.into(), sum_sq: u64::from(s.unsigned_abs()).pow(2) });
        }
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]
        #[test]
        fn every_kernel_equals_the_naive_loop(samples in proptest::collection::vec(any::<i16>(), 0..700), from in 0usize..65) {
            let samples = &samples[from.min(samples.len())..];
            let expected = naive(samples);
            for (name, kernel) in kernels() {
                prop_assert_eq!(kernel(samples), expected, "{}", name);
            }
            prop_assert_eq!(min_max(samples), (expected.min, expected.max));
            prop_assert_eq!(min_max_chunked::<64>(samples), (expected.min, expected.max));
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, as just detected.
                prop_assert_eq!(unsafe { x86::min_max_avx2(samples) }, (expected.min, expected.max));
            }

            let mut room = vec![[0i16; 32]; 24];
            let room = room.as_flattened_mut();
            let aligned = room.as_ptr().align_offset(64);
            for start in [aligned, aligned + 1] {
                let to = &mut room[start..start + samples.len()];
                prop_assert_eq!(stats_storing(samples, to), expected);
                fence();
                prop_assert_eq!(to, samples);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]
        #[test]
        fn every_comparison_equals_the_naive_one(
            samples in proptest::collection::vec(prop_oneof![any::<i16>(), Just(i16::MIN), Just(i16::MAX)], 1..300),
            high in -32769i32..32770,
            low in -32769i32..32770,
        ) {
            let mut expected = [Words::default(); WORDS_MAX];
            for (place, &sample) in samples.iter().enumerate() {
                let word = &mut expected[place / 64];
                word.above |= u64::from(i32::from(sample) >= high) << (place % 64);
                word.below |= u64::from(i32::from(sample) < low) << (place % 64);
            }
            let mut words = [Words::default(); WORDS_MAX];
            let used = compare(&samples, Thresholds::new(high, low), &mut words);
            prop_assert_eq!(used, samples.len().div_ceil(64));
            prop_assert_eq!(words, expected);

            let whole = samples.as_chunks::<64>().0;
            let plain = Thresholds::new(high.clamp(-32767, 32768), low.clamp(-32768, 32767));
            let mut portable = [Words::default(); WORDS_MAX];
            compare::compare_portable(whole, plain, &mut portable);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                let mut avx2 = [Words::default(); WORDS_MAX];
                // SAFETY: the processor has AVX2, as just detected.
                unsafe { x86::compare_avx2(whole, plain, &mut avx2) };
                prop_assert_eq!(avx2, portable);
            }
        }
    }

    #[test]
    fn the_largest_sums_do_not_overflow() {
        let samples = vec![i16::MIN; 300_000];
        for (name, kernel) in kernels() {
            assert_eq!(kernel(&samples), naive(&samples), "{name}");
        }
    }
}
