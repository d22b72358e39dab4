//! Comparisons of 64 samples at a time with two thresholds, as bits.

/// Words a call: 4096 samples, whose words stay in the first-level cache.
pub(crate) const WORDS_MAX: usize = 64;

/// Bit `i` says how sample `i` of 64 compares. Bits beyond the last sample are zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// At or above the upper threshold.
    pub(crate) above: u64,
    /// Below the lower threshold.
    pub(crate) below: u64,
}

/// Two thresholds in a form that 16-bit comparisons can take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Thresholds {
    /// Above: `sample > over`.
    pub(super) over: i16,
    /// Below: `sample < under`.
    pub(super) under: i16,
    /// All ones where every sample is above (or below): no 16-bit threshold says so.
    above_always: u64,
    below_always: u64,
}

impl Thresholds {
    /// Above is `sample >= high`, below is `sample < low`.
    pub(crate) fn new(high: i32, low: i32) -> Thresholds {
        let (least, most) = (i32::from(i16::MIN), i32::from(i16::MAX));
        Thresholds {
            over: (high - 1).clamp(least, most) as i16,
            under: low.clamp(least, most) as i16,
            above_always: if high <= least { u64::MAX } else { 0 },
            below_always: if low > most { u64::MAX } else { 0 },
        }
    }
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
            return unsafe { super::x86::compare_avx512(chunks, thresholds, words) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, as just detected.
            return unsafe { super::x86::compare_avx2(chunks, thresholds, words) };
        }
    }
    compare_portable(chunks, thresholds, words);
}

pub(super) fn compare_portable(chunks: &[[i16; 64]], thresholds: Thresholds, words: &mut [Words; WORDS_MAX]) {
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = word_portable(chunk, thresholds);
    }
}

fn word_portable(chunk: &[i16; 64], thresholds: Thresholds) -> Words {
    let mut word = Words::default();
    // Bytes of eight bits first: short chains, which compilers vectorise.
    for (byte, eight) in chunk.as_chunks::<8>().0.iter().enumerate() {
        let (mut above, mut below) = (0u64, 0u64);
        for (bit, &sample) in eight.iter().enumerate() {
            above |= u64::from(sample > thresholds.over) << bit;
            below |= u64::from(sample < thresholds.under) << bit;
        }
        word.above |= above << (8 * byte);
        word.below |= below << (8 * byte);
    }
    word
}
