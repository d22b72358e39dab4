//! AVX2 with FMA.

use std::arch::x86_64::*;

use super::portable;

#[inline]
pub(super) fn is_usable() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn convolve(taps: &[f32], stride: usize, line: &mut [f32]) {
    portable::convolve::<true>(taps, stride, line);
}

/// Several results at once, so that the taps are loaded once for all and sums do not depend on each other. By
/// hand, because compilers do not keep this many sums in registers.
#[target_feature(enable = "avx2,fma")]
pub(super) fn products(taps: &[f32], line: &[f32], step: usize, sums: &mut [[f32; 2]]) {
    let (groups, rest) = sums.as_chunks_mut::<ROWS>();
    let mut at = 0;
    for group in groups {
        *group = rows(taps, &line[at..], step);
        at += ROWS * step;
    }
    for sum in rest {
        [*sum] = rows(taps, &line[at..], step);
        at += step;
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn rows<const ROWS: usize>(taps: &[f32], line: &[f32], step: usize) -> [[f32; 2]; ROWS] {
    let rows: [&[f32]; ROWS] = std::array::from_fn(|row| &line[row * step..row * step + taps.len()]);
    let (pairs, _) = taps.as_chunks::<{ 2 * LANES }>();
    let mut sums = [[_mm256_setzero_ps(); 2]; ROWS];
    for (at, pair) in pairs.iter().enumerate() {
        // SAFETY: the pair has 16 numbers.
        let pair = unsafe { [_mm256_loadu_ps(pair.as_ptr()), _mm256_loadu_ps(pair.as_ptr().add(LANES))] };
        for (row, sums) in rows.iter().zip(&mut sums) {
            for (half, sum) in sums.iter_mut().enumerate() {
                // SAFETY: a row is as long as the taps, of which 16 are at this position.
                let numbers = unsafe { _mm256_loadu_ps(row.as_ptr().add(at * 2 * LANES + half * LANES)) };
                *sum = _mm256_fmadd_ps(pair[half], numbers, *sum);
            }
        }
    }
    let mut at = pairs.len() * 2 * LANES;
    while at < taps.len() {
        // Up to eight. Masked numbers are not read, so nothing beyond the taps contributes, not even NaN.
        let mask = mask(taps.len() - at);
        // SAFETY: the mask ends with the taps.
        let last = unsafe { _mm256_maskload_ps(taps.as_ptr().add(at), mask) };
        for (row, sums) in rows.iter().zip(&mut sums) {
            // SAFETY: a row is as long as the taps.
            let numbers = unsafe { _mm256_maskload_ps(row.as_ptr().add(at), mask) };
            sums[0] = _mm256_fmadd_ps(last, numbers, sums[0]);
        }
        at += LANES;
    }
    sums.map(|[low, high]| {
        let eight = _mm256_add_ps(low, high);
        let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        [_mm_cvtss_f32(two), _mm_cvtss_f32(_mm_movehdup_ps(two))]
    })
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn copy_swapped(number_bytes: usize, from: &[u8], to: &mut [u8]) {
    portable::copy_swapped(number_bytes, from, to);
}

/// Sets the sign of the first `count` lanes of eight.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn mask(count: usize) -> __m256i {
    let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_cmpgt_epi32(_mm256_set1_epi32(count.min(LANES) as i32), places)
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn turn(numbers: &mut [f32], cosines: &[f32], sines: &[f32], [cos, sin]: [f32; 2]) {
    let (eights, rest) = numbers.as_chunks_mut::<LANES>();
    let (cosines, last_cosines) = (cosines.as_chunks::<LANES>().0, &cosines[eights.len() * LANES..]);
    let (sines, last_sines) = (sines.as_chunks::<LANES>().0, &sines[eights.len() * LANES..]);
    let (all_cos, all_sin) = (_mm256_set1_ps(cos), _mm256_set1_ps(sin));
    for ((eight, cos), sin) in eights.iter_mut().zip(cosines).zip(sines) {
        // SAFETY: each has eight numbers.
        let (number, cos, sin) = unsafe {
            (_mm256_loadu_ps(eight.as_ptr()), _mm256_loadu_ps(cos.as_ptr()), _mm256_loadu_ps(sin.as_ptr()))
        };
        let turned = times(times(number, cos, sin), all_cos, all_sin);
        // SAFETY: it has eight numbers.
        unsafe { _mm256_storeu_ps(eight.as_mut_ptr(), turned) };
    }
    portable::turn(rest, last_cosines, last_sines, [cos, sin]);
}

/// Four complex products: I cos - Q sin, Q cos + I sin.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn times(number: __m256, cos: __m256, sin: __m256) -> __m256 {
    const SWAPPED: i32 = 0b10_11_00_01;
    _mm256_fmaddsub_ps(number, cos, _mm256_mul_ps(_mm256_permute_ps::<SWAPPED>(number), sin))
}

const LANES: usize = 8;
/// Results at once: two sums each, and the taps, fill the sixteen registers.
const ROWS: usize = 6;
