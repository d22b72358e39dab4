use super::*;
use crate::RealSums;
use crate::simd::{StreamingStores, WORDS_MAX, compare, min_max, stats};
use proptest::prelude::*;

/// One way to compute statistics, with its name.
type Kernel = (&'static str, fn(&[f32]) -> Stats<f32>);

fn kernels() -> Vec<Kernel> {
    let all: [Kernel; 2] = [("dispatched", stats::<f32>), ("portable", |s| stats_chunked(s))];
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
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has AVX-512F, as just detected.
        all.push(("avx512", |s| unsafe { x86::stats_avx512::<false>(s, &mut []) }));
    }
    all
}

/// One sample at a time; sums only if they are exact in any order.
fn naive(samples: &[f32]) -> Stats<f32> {
    let mut all = Stats { min: f32::INFINITY, max: f32::NEG_INFINITY, sums: RealSums::default() };
    for &sample in samples.iter().filter(|sample| !sample.is_nan()) {
        (all.min, all.max) = (all.min.min(sample), all.max.max(sample));
    }
    for &sample in samples {
        if sample.is_finite() {
            all.sums.sum += f64::from(sample);
            all.sums.sum_sq += f64::from(sample).powi(2);
        } else {
            all.sums.not_finite += 1;
        }
    }
    all
}

/// Integers, whose sums are exact, mixed with values that are not finite.
fn whole() -> impl Strategy<Value = f32> {
    prop_oneof![
        40 => any::<i16>().prop_map(f32::from),
        2 => Just(f32::NAN),
        1 => Just(f32::INFINITY),
        1 => Just(f32::NEG_INFINITY)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]
    #[test]
    fn every_kernel_equals_the_naive_loop(samples in proptest::collection::vec(whole(), 0..700), from in 0usize..65) {
        let samples = &samples[from.min(samples.len())..];
        let expected = naive(samples);
        for (name, kernel) in kernels() {
            prop_assert_eq!(kernel(samples), expected, "{}", name);
        }
        prop_assert_eq!(min_max(samples), (expected.min, expected.max));
        prop_assert_eq!(min_max_chunked(samples), (expected.min, expected.max));
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, as just detected.
            prop_assert_eq!(unsafe { x86::min_max_avx2(samples) }, (expected.min, expected.max));
        }

        let mut room = vec![[0f32; 16]; 46];
        let room = room.as_flattened_mut();
        let aligned = room.as_ptr().align_offset(64);
        for start in [aligned, aligned + 1] {
            let to = &mut room[start..start + samples.len()];
            prop_assert_eq!(StreamingStores::begin().stats(samples, to), expected);
            prop_assert!(to.iter().zip(samples).all(|(to, from)| to.to_bits() == from.to_bits()));
        }
    }

    /// Numbers of every size: each kernel rounds at the same places, and little.
    #[test]
    fn all_kernels_agree_to_the_last_bit(samples in proptest::collection::vec(proptest::num::f32::NORMAL, 0..9000)) {
        let expected = stats_chunked(&samples);
        for (name, kernel) in kernels() {
            prop_assert_eq!(kernel(&samples), expected, "{}", name);
        }
        let exact = naive(&samples);
        let magnitudes: f64 = samples.iter().map(|&sample| f64::from(sample.abs())).sum();
        prop_assert!((expected.sums.sum - exact.sums.sum).abs() <= magnitudes * 1e-12);
        prop_assert!((expected.sums.sum_sq - exact.sums.sum_sq).abs() <= exact.sums.sum_sq * 1e-12);
    }

    #[test]
    fn an_integer_has_the_same_statistics_in_either_arithmetic(samples in proptest::collection::vec(any::<i16>(), 0..3000)) {
        let real: Vec<f32> = samples.iter().map(|&sample| sample.into()).collect();
        let (a, b) = (stats(&samples), stats(&real));
        prop_assert_eq!((a.sums.sum as f64, a.sums.sum_sq as f64), (b.sums.sum, b.sums.sum_sq));
        if !samples.is_empty() {
            prop_assert_eq!((f32::from(a.min), f32::from(a.max)), (b.min, b.max));
        }
    }

    #[test]
    fn every_comparison_equals_the_naive_one(
        samples in proptest::collection::vec(prop_oneof![4 => -5.0f32..5.0, 1 => Just(1.5), 1 => Just(-1.5), 1 => whole()], 1..300),
        high in prop_oneof![Just(1.5f32), Just(f32::INFINITY), -6.0f32..6.0],
        low in prop_oneof![Just(-1.5f32), Just(f32::NEG_INFINITY), -6.0f32..6.0],
    ) {
        let thresholds = RealThresholds { high, low };
        let mut expected = [Words::default(); WORDS_MAX];
        for (place, &sample) in samples.iter().enumerate() {
            let word = &mut expected[place / 64];
            word.above |= u64::from(sample >= high) << (place % 64);
            word.below |= u64::from(sample < low) << (place % 64);
        }
        let mut words = [Words::default(); WORDS_MAX];
        let used = compare(&samples, thresholds, &mut words);
        prop_assert_eq!(used, samples.len().div_ceil(64));
        prop_assert_eq!(words, expected);

        let whole = samples.as_chunks::<64>().0;
        let mut portable = [Words::default(); WORDS_MAX];
        compare_portable(whole, thresholds, &mut portable);
        prop_assert_eq!(&portable[..whole.len()], &expected[..whole.len()]);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            let mut avx2 = [Words::default(); WORDS_MAX];
            // SAFETY: the processor has AVX2, as just detected.
            unsafe { x86::compare_avx2(whole, thresholds, &mut avx2) };
            prop_assert_eq!(avx2, portable);
        }
    }
}

#[test]
fn without_a_number_there_is_no_extreme() {
    let none = stats(&[f32::NAN; 100]);
    assert_eq!((none.min, none.max, none.sums.not_finite), (f32::INFINITY, f32::NEG_INFINITY, 100));
    assert_eq!(stats::<f32>(&[]), Stats::empty());
    assert_eq!(min_max(&[f32::NAN, f32::INFINITY, 3.0]), (3.0, f32::INFINITY));
}
