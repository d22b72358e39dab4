//! What to trigger on, from the condition to comparators and what their bits mean.

use std::ops::RangeInclusive;

use crate::comparator::Comparator;
use crate::error::{Error, Result};

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

/// What the comparator bits mean.
#[derive(Debug, Clone)]
pub(super) enum Rule {
    Rises,
    Falls,
    Both,
    Pulse(Polarity, RangeInclusive<u64>),
    Runt(Polarity),
    Window(Passage),
    Dropout(u64),
}

/// What a trigger is made of for one condition.
pub(super) struct Setup {
    pub(super) rule: Rule,
    pub(super) primary: Comparator,
    /// Second pair of thresholds, for the conditions that need one.
    pub(super) secondary: Option<Comparator>,
}

impl Setup {
    pub(super) fn new(condition: &Condition) -> Result<Setup> {
        check(condition)?;
        let (rule, primary, secondary) = match *condition {
            Condition::Edge { slope, level, hysteresis } => {
                let (level, hysteresis) = (i32::from(level), i32::from(hysteresis));
                let rising = Comparator::new(level, level - hysteresis);
                let falling = Comparator::new(level + hysteresis + 1, level + 1);
                match slope {
                    Slope::Rising => (Rule::Rises, rising, None),
                    Slope::Falling => (Rule::Falls, falling, None),
                    Slope::Either => (Rule::Both, rising, Some(falling)),
                }
            }
            Condition::PulseWidth { polarity, level, hysteresis, ref samples } => {
                (Rule::Pulse(polarity, samples.clone()), high_above(level, hysteresis), None)
            }
            Condition::Runt { polarity, low, high } => {
                let (low, high) = (i32::from(low), i32::from(high));
                let (near, far) = match polarity {
                    Polarity::Positive => (low, high),
                    Polarity::Negative => (high + 1, low + 1),
                };
                (Rule::Runt(polarity), Comparator::new(near, near), Some(Comparator::new(far, far)))
            }
            Condition::Window { passage, low, high, hysteresis } => {
                let (low, high, hysteresis) = (i32::from(low), i32::from(high), i32::from(hysteresis));
                let outside = Comparator::new(high + 1, low);
                let inside = Comparator::new(high - hysteresis + 1, low + hysteresis);
                (Rule::Window(passage), outside, Some(inside))
            }
            Condition::Dropout { level, hysteresis, samples } => {
                (Rule::Dropout(samples), high_above(level, hysteresis), None)
            }
        };
        Ok(Setup { rule, primary, secondary })
    }
}

/// High from `level` on, low below `level - hysteresis`.
fn high_above(level: i16, hysteresis: u16) -> Comparator {
    Comparator::new(i32::from(level), i32::from(level) - i32::from(hysteresis))
}

fn check(condition: &Condition) -> Result<()> {
    let refuse = |what, got: String, must| Err(Error::Setting { what, got, must });
    match condition {
        Condition::Runt { low, high, .. } | Condition::Window { low, high, .. } if low >= high => {
            refuse("trigger levels", format!("{low} to {high}"), "the lower level below the upper one")
        }
        Condition::PulseWidth { samples, .. } if samples.is_empty() => {
            refuse("pulse width", format!("{samples:?} samples"), "a range that is not empty")
        }
        Condition::Dropout { samples: 0, .. } => {
            refuse("dropout time", "0 samples".into(), "at least 1 sample")
        }
        _ => Ok(()),
    }
}
