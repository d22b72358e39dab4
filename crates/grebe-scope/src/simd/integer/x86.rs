//! AVX2 and AVX-512BW.

use std::arch::x86_64::*;

use super::portable::{min_max_chunked, stats_chunked};
use crate::simd::words::{IntegerThresholds, Words};
use crate::stats::Stats;
use crate::value::IntegerSums;

#[target_feature(enable = "avx2")]
pub(super) fn min_max_avx2(samples: &[i16]) -> (i16, i16) {
    const LANES: usize = 16;
    let Some(last) = samples.last_chunk::<LANES>() else { return min_max_chunked::<8>(samples) };
    // SAFETY: a chunk is 32 readable bytes; the load asks no alignment.
    let load = |chunk: &[i16; LANES]| unsafe { _mm256_loadu_si256(chunk.as_ptr().cast()) };
    // Four of each, so that steps do not wait for each other. The last chunk may overlap: no extreme changes.
    let (mut low, mut high) = ([load(last); 4], [load(last); 4]);
    let (fours, rest) = samples.as_chunks::<{ 4 * LANES }>();
    for four in fours {
        for (place, chunk) in four.as_chunks::<LANES>().0.iter().enumerate() {
            let v = load(chunk);
            low[place] = _mm256_min_epi16(low[place], v);
            high[place] = _mm256_max_epi16(high[place], v);
        }
    }
    for (place, chunk) in rest.as_chunks::<LANES>().0.iter().enumerate() {
        let v = load(chunk);
        low[place] = _mm256_min_epi16(low[place], v);
        high[place] = _mm256_max_epi16(high[place], v);
    }
    let [a, b, c, d] = low;
    let low = _mm256_min_epi16(_mm256_min_epi16(a, b), _mm256_min_epi16(c, d));
    let [a, b, c, d] = high;
    let high = _mm256_max_epi16(_mm256_max_epi16(a, b), _mm256_max_epi16(c, d));
    extremes(low, high)
}

#[target_feature(enable = "avx512bw")]
pub(super) fn min_max_avx512(samples: &[i16]) -> (i16, i16) {
    const LANES: usize = 32;
    let Some(last) = samples.last_chunk::<LANES>() else { return min_max_chunked::<8>(samples) };
    // SAFETY: a chunk is 64 readable bytes; the load asks no alignment.
    let load = |chunk: &[i16; LANES]| unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) };
    // Four of each, so that steps do not wait for each other. The last chunk may overlap: no extreme changes.
    let (mut low, mut high) = ([load(last); 4], [load(last); 4]);
    let (fours, rest) = samples.as_chunks::<{ 4 * LANES }>();
    for four in fours {
        for (place, chunk) in four.as_chunks::<LANES>().0.iter().enumerate() {
            let v = load(chunk);
            low[place] = _mm512_min_epi16(low[place], v);
            high[place] = _mm512_max_epi16(high[place], v);
        }
    }
    for (place, chunk) in rest.as_chunks::<LANES>().0.iter().enumerate() {
        let v = load(chunk);
        low[place] = _mm512_min_epi16(low[place], v);
        high[place] = _mm512_max_epi16(high[place], v);
    }
    let [a, b, c, d] = low;
    let low = _mm512_min_epi16(_mm512_min_epi16(a, b), _mm512_min_epi16(c, d));
    let [a, b, c, d] = high;
    let high = _mm512_max_epi16(_mm512_max_epi16(a, b), _mm512_max_epi16(c, d));
    let half = |v| (_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64::<1>(v));
    let ((low_a, low_b), (high_a, high_b)) = (half(low), half(high));
    extremes(_mm256_min_epi16(low_a, low_b), _mm256_max_epi16(high_a, high_b))
}

/// Statistics of `samples`; with `STORE` also copies them to `to`, past the caches. `to` must then be as long,
/// begin on a border of 32 bytes, and be fenced before another thread may read it.
#[target_feature(enable = "avx2")]
pub(super) fn stats_avx2<const STORE: bool>(samples: &[i16], to: &mut [i16]) -> Stats {
    const LANES: usize = 16;
    debug_assert!(!STORE || (to.len() == samples.len() && to.as_ptr().addr().is_multiple_of(32)));
    let mut all = Stats::empty();
    let ones = _mm256_set1_epi16(1);
    let low_half = _mm256_set1_epi64x(0xffff_ffff);
    let (chunks, rest) = samples.as_chunks::<LANES>();
    let (to_chunks, to_rest) = to.as_chunks_mut::<LANES>();
    let mut to_chunks = to_chunks.iter_mut();
    // A 32-bit lane of `sum` takes at most 2^16 a step: 2^14 steps a piece cannot overflow it.
    for piece in chunks.chunks(1 << 14) {
        let (mut low, mut high) = (_mm256_set1_epi16(i16::MAX), _mm256_set1_epi16(i16::MIN));
        let (mut sum, mut sq_even, mut sq_odd) =
            (_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256());
        for chunk in piece {
            // SAFETY: `chunk` is 32 readable bytes; the load asks no alignment.
            let v = unsafe { _mm256_loadu_si256(chunk.as_ptr().cast()) };
            if STORE && let Some(to) = to_chunks.next() {
                // SAFETY: `to` is 32 writable bytes and aligned, as the caller promised for the first of them.
                unsafe { _mm256_stream_si256(to.as_mut_ptr().cast(), v) };
            }
            low = _mm256_min_epi16(low, v);
            high = _mm256_max_epi16(high, v);
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(v, ones));
            // Two squares are at most 2^31: right as an unsigned number, so widen without sign.
            let sq = _mm256_madd_epi16(v, v);
            sq_even = _mm256_add_epi64(sq_even, _mm256_and_si256(sq, low_half));
            sq_odd = _mm256_add_epi64(sq_odd, _mm256_srli_epi64::<32>(sq));
        }
        all.merge(&reduce(low, high, sum, _mm256_add_epi64(sq_even, sq_odd)));
    }
    if STORE {
        to_rest.copy_from_slice(rest);
    }
    all.merge(&stats_chunked(rest));
    all
}

/// As `stats_avx2`, with 64 bytes for 32.
#[target_feature(enable = "avx512bw")]
pub(super) fn stats_avx512<const STORE: bool>(samples: &[i16], to: &mut [i16]) -> Stats {
    const LANES: usize = 32;
    debug_assert!(!STORE || (to.len() == samples.len() && to.as_ptr().addr().is_multiple_of(64)));
    let mut all = Stats::empty();
    let ones = _mm512_set1_epi16(1);
    let low_half = _mm512_set1_epi64(0xffff_ffff);
    let (chunks, rest) = samples.as_chunks::<LANES>();
    let (to_chunks, to_rest) = to.as_chunks_mut::<LANES>();
    let mut to_chunks = to_chunks.iter_mut();
    for piece in chunks.chunks(1 << 13) {
        let (mut low, mut high) = (_mm512_set1_epi16(i16::MAX), _mm512_set1_epi16(i16::MIN));
        let (mut sum, mut sq_even, mut sq_odd) =
            (_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512());
        for chunk in piece {
            // SAFETY: `chunk` is 64 readable bytes; the load asks no alignment.
            let v = unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) };
            if STORE && let Some(to) = to_chunks.next() {
                // SAFETY: `to` is 64 writable bytes and aligned, as the caller promised for the first of them.
                unsafe { _mm512_stream_si512(to.as_mut_ptr().cast(), v) };
            }
            low = _mm512_min_epi16(low, v);
            high = _mm512_max_epi16(high, v);
            sum = _mm512_add_epi32(sum, _mm512_madd_epi16(v, ones));
            let sq = _mm512_madd_epi16(v, v);
            sq_even = _mm512_add_epi64(sq_even, _mm512_and_si512(sq, low_half));
            sq_odd = _mm512_add_epi64(sq_odd, _mm512_srli_epi64::<32>(sq));
        }
        let sq = _mm512_add_epi64(sq_even, sq_odd);
        let half = |v| (_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64::<1>(v));
        let ((low_a, low_b), (high_a, high_b)) = (half(low), half(high));
        let ((sum_a, sum_b), (sq_a, sq_b)) = (half(sum), half(sq));
        all.merge(&reduce(
            _mm256_min_epi16(low_a, low_b),
            _mm256_max_epi16(high_a, high_b),
            _mm256_add_epi32(sum_a, sum_b),
            _mm256_add_epi64(sq_a, sq_b),
        ));
    }
    if STORE {
        to_rest.copy_from_slice(rest);
    }
    all.merge(&stats_chunked(rest));
    all
}

/// One number of each vector: nodes are short, so this counts as much as the loop. In line also where another crate compiles the
/// loop: as a call, it made a node a tenth slower.
#[inline]
#[target_feature(enable = "avx2")]
fn reduce(low: __m256i, high: __m256i, sum: __m256i, sq: __m256i) -> Stats {
    let (min, max) = extremes(low, high);
    let half = |v| (_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
    let ((sum_a, sum_b), (sq_a, sq_b)) = (half(sum), half(sq));
    // Widen before adding further: the lanes of a full piece nearly fill 32 bits.
    let (wide_a, wide_b) = (_mm256_cvtepi32_epi64(sum_a), _mm256_cvtepi32_epi64(sum_b));
    let (wide_a, wide_b) = half(_mm256_add_epi64(wide_a, wide_b));
    let (sum, sq) = (_mm_add_epi64(wide_a, wide_b), _mm_add_epi64(sq_a, sq_b));
    let sums = IntegerSums {
        sum: _mm_cvtsi128_si64(sum) + _mm_extract_epi64::<1>(sum),
        sum_sq: (_mm_cvtsi128_si64(sq) as u64 + _mm_extract_epi64::<1>(sq) as u64).into(),
    };
    Stats { min, max, sums }
}

/// The smallest of `low` and the largest of `high`.
#[inline]
#[target_feature(enable = "avx2")]
fn extremes(low: __m256i, high: __m256i) -> (i16, i16) {
    let half = |v| (_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
    let ((low_a, low_b), (high_a, high_b)) = (half(low), half(high));
    // The one horizontal minimum there is takes unsigned numbers: flip the sign bit, or for the maximum all others.
    let (sign, others) = (_mm_set1_epi16(i16::MIN), _mm_set1_epi16(i16::MAX));
    let least = _mm_minpos_epu16(_mm_xor_si128(_mm_min_epi16(low_a, low_b), sign));
    let most = _mm_minpos_epu16(_mm_xor_si128(_mm_max_epi16(high_a, high_b), others));
    let (least, most) = (_mm_extract_epi16::<0>(least) as u16, _mm_extract_epi16::<0>(most) as u16);
    ((least ^ 0x8000) as i16, (most ^ 0x7fff) as i16)
}

#[target_feature(enable = "avx2")]
pub(super) fn compare_avx2(chunks: &[[i16; 64]], thresholds: IntegerThresholds, words: &mut [Words]) {
    let over = _mm256_set1_epi16(thresholds.over);
    let under = _mm256_set1_epi16(thresholds.under);
    for (word, chunk) in words.iter_mut().zip(chunks) {
        let mut bits = [0u64; 2];
        for half in 0..2 {
            let at = chunk[32 * half..].as_ptr();
            // SAFETY: 32 of the chunk's 64 samples are left from `at`: two loads of 32 bytes, unaligned.
            let (a, b) = unsafe { (_mm256_loadu_si256(at.cast()), _mm256_loadu_si256(at.add(16).cast())) };
            let pack = |x, y| {
                // Packing works within 128-bit lanes: put the quarters back in order.
                let bytes = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(x, y));
                u64::from(_mm256_movemask_epi8(bytes) as u32)
            };
            bits[0] |= pack(_mm256_cmpgt_epi16(a, over), _mm256_cmpgt_epi16(b, over)) << (32 * half);
            bits[1] |= pack(_mm256_cmpgt_epi16(under, a), _mm256_cmpgt_epi16(under, b)) << (32 * half);
        }
        *word = Words { above: bits[0], below: bits[1] };
    }
}

#[target_feature(enable = "avx512bw")]
pub(super) fn compare_avx512(chunks: &[[i16; 64]], thresholds: IntegerThresholds, words: &mut [Words]) {
    let over = _mm512_set1_epi16(thresholds.over);
    let under = _mm512_set1_epi16(thresholds.under);
    for (word, chunk) in words.iter_mut().zip(chunks) {
        // SAFETY: the chunk is 128 bytes: two loads of 64, which ask no alignment.
        let (a, b) = unsafe {
            (_mm512_loadu_si512(chunk.as_ptr().cast()), _mm512_loadu_si512(chunk.as_ptr().add(32).cast()))
        };
        let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        *word = Words {
            above: join(_mm512_cmpgt_epi16_mask(a, over), _mm512_cmpgt_epi16_mask(b, over)),
            below: join(_mm512_cmplt_epi16_mask(a, under), _mm512_cmplt_epi16_mask(b, under)),
        };
    }
}
