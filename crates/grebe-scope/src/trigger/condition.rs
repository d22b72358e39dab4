//! What to trigger on.

use std::ops::RangeInclusive;

/// Direction of a crossing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slope {
    /// From below to above.
    Rising,
    /// From above to below.
    Falling,
    /// Both.
    Either,
}

/// On which side of the level a pulse lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Polarity {
    /// Above the level.
    Positive,
    /// Below the level.
    Negative,
}

/// Whether a window is entered or left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Passage {
    /// From outside to inside.
    Enters,
    /// From inside to outside.
    Leaves,
}

/// What to trigger on. Levels and hysteresis are raw counts, widths and times are samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Rising: a sample at or above `level` after one below `level - hysteresis`. Falling: a sample at or below
    /// `level` after one above `level + hysteresis`.
    Edge {
        /// Direction.
        slope: Slope,
        /// Level to cross.
        level: i16,
        /// How far the signal must have gone back before it counts again.
        hysteresis: u16,
    },
    /// The end of a pulse whose width lies in `samples`. The signal is high from a sample at or above `level` to
    /// one below `level - hysteresis`.
    PulseWidth {
        /// Which pulses.
        polarity: Polarity,
        /// Level between low and high.
        level: i16,
        /// How far below the level a sample must lie to be low.
        hysteresis: u16,
        /// Widths that trigger.
        samples: RangeInclusive<u64>,
    },
    /// The end of a pulse that passes one level and not the other: for `Positive` it rises to `low` or more and
    /// falls back below `low` without reaching `high`; for `Negative` mirrored.
    Runt {
        /// Which pulses.
        polarity: Polarity,
        /// Lower level.
        low: i16,
        /// Upper level.
        high: i16,
    },
    /// The signal enters `low..=high`, or leaves it. It counts as outside once it lies outside, and as inside
    /// once it lies inside by `hysteresis` or more.
    Window {
        /// Entering or leaving.
        passage: Passage,
        /// Lower edge of the window.
        low: i16,
        /// Upper edge of the window.
        high: i16,
        /// How far inside counts as inside.
        hysteresis: u16,
    },
    /// No crossing in either direction for `samples` samples after the last one (crossings as for `PulseWidth`).
    Dropout {
        /// Level between low and high.
        level: i16,
        /// How far below the level a sample must lie to be low.
        hysteresis: u16,
        /// Samples without a crossing, at least 1.
        samples: u64,
    },
}

impl Condition {
    /// The level of a condition (the upper one of two), and the lower one.
    pub(super) fn levels(&self) -> (i16, i16) {
        match *self {
            Condition::Edge { level, .. }
            | Condition::PulseWidth { level, .. }
            | Condition::Dropout { level, .. } => (level, level),
            Condition::Runt { polarity: Polarity::Positive, low, .. } => (low, low),
            Condition::Runt { polarity: Polarity::Negative, high, .. } => (high, high),
            Condition::Window { low, high, .. } => (high, low),
        }
    }
}
