//! Samples compared with two thresholds, as bits.

/// Words per call: those of 4096 samples stay in the first-level cache.
pub(crate) const WORDS_MAX: usize = 64;

/// Bit `i` says how sample `i` of 64 compares. Bits beyond the last sample are zero, and both of not-a-number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Words {
    /// At or above the upper threshold.
    pub(crate) above: u64,
    /// Below the lower threshold.
    pub(crate) below: u64,
}

/// Thresholds of 16-bit comparisons.
#[derive(Debug, Clone, Copy)]
pub struct IntegerThresholds {
    /// Above: `sample > over`.
    pub(super) over: i16,
    /// Below: `sample < under`.
    pub(super) under: i16,
    /// All ones where every sample is above (or below): no 16-bit threshold says so.
    pub(super) above_always: u64,
    pub(super) below_always: u64,
}

impl IntegerThresholds {
    /// Above is `sample >= high`, below is `sample < low`.
    pub(crate) fn new(high: i32, low: i32) -> IntegerThresholds {
        let (least, most) = (i32::from(i16::MIN), i32::from(i16::MAX));
        IntegerThresholds {
            over: (high - 1).clamp(least, most) as i16,
            under: low.clamp(least, most) as i16,
            above_always: if high <= least { u64::MAX } else { 0 },
            below_always: if low > most { u64::MAX } else { 0 },
        }
    }
}

/// Thresholds of `f32`: above is `sample >= high`, below is `sample < low`; not-a-number is neither.
#[derive(Debug, Clone, Copy)]
pub struct RealThresholds {
    pub(crate) high: f32,
    pub(crate) low: f32,
}
