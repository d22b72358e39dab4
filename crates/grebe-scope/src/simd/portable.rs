//! What every kernel takes and yields, and the kernels in plain Rust over fixed-size chunks, for any processor.

/// Words per call: those of 4096 samples stay in the first-level cache.
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
    pub(super) above_always: u64,
    pub(super) below_always: u64,
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
    pub(crate) const EMPTY: Stats = Stats { min: i16::MAX, max: i16::MIN, sum: 0, sum_sq: 0 };

    /// Adds those of further samples.
    #[inline]
    pub(crate) fn merge(&mut self, other: &Stats) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_sq += other.sum_sq;
    }
}

#[inline(always)]
pub(super) fn min_max_chunked<const LANES: usize>(samples: &[i16]) -> (i16, i16) {
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
pub(super) fn stats_chunked(samples: &[i16]) -> Stats {
    const LANES: usize = 16;
    let mut all = Stats::EMPTY;
    // 4096 samples per piece keep 32-bit lane sums far from overflow.
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

pub(super) fn compare_portable(chunks: &[[i16; 64]], thresholds: Thresholds, words: &mut [Words; WORDS_MAX]) {
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = word_portable(chunk, thresholds);
    }
}

pub(super) fn word_portable(chunk: &[i16; 64], thresholds: Thresholds) -> Words {
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
