//! Bits of comparisons, 64 samples to a word.

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
