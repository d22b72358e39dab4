use super::*;
use crate::IntegerSums;
use crate::simd::{StreamingStores, WORDS_MAX, compare, min_max, stats};
use proptest::prelude::*;

/// One way to compute statistics, with its name.
type Kernel = (&'static str, fn(&[i16]) -> Stats);

fn kernels() -> Vec<Kernel> {
    let all: [Kernel; 2] = [("dispatched", stats::<i16>), ("portable", |s| stats_chunked(s))];
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
    let mut all = Stats::empty();
    for &s in samples {
        let sums = IntegerSums { sum: s.into(), sum_sq: u128::from(s.unsigned_abs()).pow(2) };
        all.merge(&Stats { min: s, max: s, sums });
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
            prop_assert_eq!(StreamingStores::begin().stats(samples, to), expected);
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
        let used = compare(&samples, IntegerThresholds::new(high, low), &mut words);
        prop_assert_eq!(used, samples.len().div_ceil(64));
        prop_assert_eq!(words, expected);

        let whole = samples.as_chunks::<64>().0;
        let plain = IntegerThresholds::new(high.clamp(-32767, 32768), low.clamp(-32768, 32767));
        let mut portable = [Words::default(); WORDS_MAX];
        compare_portable(whole, plain, &mut portable);
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
