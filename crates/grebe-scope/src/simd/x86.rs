//! x86-64: AVX2 and AVX-512BW.

use std::arch::x86_64::*;

use super::compare::{Thresholds, WORDS_MAX, Words};
use super::{Stats, min_max_chunked, stats_chunked};

#[target_feature(enable = "avx2")]
pub(super) fn min_max_avx2(samples: &[i16]) -> (i16, i16) {
    min_max_chunked::<64>(samples)
}

#[target_feature(enable = "avx512bw")]
pub(super) fn min_max_avx512(samples: &[i16]) -> (i16, i16) {
    min_max_chunked::<128>(samples)
}

#[target_feature(enable = "avx2")]
pub(super) fn stats_avx2(samples: &[i16]) -> Stats {
    const LANES: usize = 16;
    let mut all = Stats::EMPTY;
    let ones = _mm256_set1_epi16(1);
    let low_half = _mm256_set1_epi64x(0xffff_ffff);
    let (chunks, rest) = samples.as_chunks::<LANES>();
    // A 32-bit lane of `sum` takes at most 2^16 a step: 2^14 steps a piece cannot overflow it.
    for piece in chunks.chunks(1 << 14) {
        let (mut low, mut high) = (_mm256_set1_epi16(i16::MAX), _mm256_set1_epi16(i16::MIN));
        let (mut sum, mut sq_even, mut sq_odd) =
            (_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256());
        for chunk in piece {
            // SAFETY: `chunk` is 32 readable bytes; the load asks no alignment.
            let v = unsafe { _mm256_loadu_si256(chunk.as_ptr().cast()) };
            low = _mm256_min_epi16(low, v);
            high = _mm256_max_epi16(high, v);
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(v, ones));
            // Two squares are at most 2^31: right as an unsigned number, so widen without sign.
            let sq = _mm256_madd_epi16(v, v);
            sq_even = _mm256_add_epi64(sq_even, _mm256_and_si256(sq, low_half));
            sq_odd = _mm256_add_epi64(sq_odd, _mm256_srli_epi64::<32>(sq));
        }
        let (mut lows, mut highs) = ([0i16; LANES], [0i16; LANES]);
        let (mut sums, mut sqs) = ([0i32; 8], [0u64; 4]);
        // SAFETY: each array is 32 writable bytes; the stores ask no alignment.
        unsafe {
            _mm256_storeu_si256(lows.as_mut_ptr().cast(), low);
            _mm256_storeu_si256(highs.as_mut_ptr().cast(), high);
            _mm256_storeu_si256(sums.as_mut_ptr().cast(), sum);
            _mm256_storeu_si256(sqs.as_mut_ptr().cast(), _mm256_add_epi64(sq_even, sq_odd));
        }
        all.merge(&Stats {
            min: lows.into_iter().fold(i16::MAX, i16::min),
            max: highs.into_iter().fold(i16::MIN, i16::max),
            sum: sums.into_iter().map(i64::from).sum(),
            sum_sq: sqs.into_iter().sum(),
        });
    }
    all.merge(&stats_chunked(rest));
    all
}

#[target_feature(enable = "avx512bw")]
pub(super) fn stats_avx512(samples: &[i16]) -> Stats {
    const LANES: usize = 32;
    let mut all = Stats::EMPTY;
    let ones = _mm512_set1_epi16(1);
    let low_half = _mm512_set1_epi64(0xffff_ffff);
    let (chunks, rest) = samples.as_chunks::<LANES>();
    for piece in chunks.chunks(1 << 14) {
        let (mut low, mut high) = (_mm512_set1_epi16(i16::MAX), _mm512_set1_epi16(i16::MIN));
        let (mut sum, mut sq_even, mut sq_odd) =
            (_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512());
        for chunk in piece {
            // SAFETY: `chunk` is 64 readable bytes; the load asks no alignment.
            let v = unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) };
            low = _mm512_min_epi16(low, v);
            high = _mm512_max_epi16(high, v);
            sum = _mm512_add_epi32(sum, _mm512_madd_epi16(v, ones));
            let sq = _mm512_madd_epi16(v, v);
            sq_even = _mm512_add_epi64(sq_even, _mm512_and_si512(sq, low_half));
            sq_odd = _mm512_add_epi64(sq_odd, _mm512_srli_epi64::<32>(sq));
        }
        let (mut lows, mut highs) = ([0i16; LANES], [0i16; LANES]);
        // SAFETY: each array is 64 writable bytes; the stores ask no alignment.
        unsafe {
            _mm512_storeu_si512(lows.as_mut_ptr().cast(), low);
            _mm512_storeu_si512(highs.as_mut_ptr().cast(), high);
        }
        let (mut sums, mut sqs) = ([0i32; 16], [0u64; 8]);
        // SAFETY: each array is 64 writable bytes; the stores ask no alignment.
        unsafe {
            _mm512_storeu_si512(sums.as_mut_ptr().cast(), sum);
            _mm512_storeu_si512(sqs.as_mut_ptr().cast(), _mm512_add_epi64(sq_even, sq_odd));
        }
        all.merge(&Stats {
            min: lows.into_iter().fold(i16::MAX, i16::min),
            max: highs.into_iter().fold(i16::MIN, i16::max),
            sum: sums.into_iter().map(i64::from).sum(),
            sum_sq: sqs.into_iter().sum(),
        });
    }
    all.merge(&stats_chunked(rest));
    all
}

#[target_feature(enable = "avx2")]
pub(super) fn compare_avx2(chunks: &[[i16; 64]], thresholds: Thresholds, words: &mut [Words; WORDS_MAX]) {
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
pub(super) fn compare_avx512(chunks: &[[i16; 64]], thresholds: Thresholds, words: &mut [Words; WORDS_MAX]) {
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
