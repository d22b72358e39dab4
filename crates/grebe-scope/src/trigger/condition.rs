//! Trigger conditions, their comparators, and the meaning of the comparators' bits.

use std::ops::RangeInclusive;

use crate::comparator::Comparator;
use crate::error::{Error, Result};
use crate::value::Value;

/// Direction of a crossing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Slope {
    /// From below to above.
    Rising,
    /// From above to below.
    Falling,
    /// Both.
    Either,
}

/// The side of the level on which a pulse lies.
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

/// A trigger condition. Levels and hysteresis are values of the stream (raw counts for `i16`), widths and times are
/// in samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition<V: Value = i16> {
    /// Rising: a sample at or above `level` after one below `level - hysteresis`. Falling: a sample at or below
    /// `level` after one above `level + hysteresis`.
    Edge {
        /// Direction.
        slope: Slope,
        /// Level to cross.
        level: V,
        /// Distance that the signal must return before it counts again.
        hysteresis: V::Distance,
    },
    /// The end of a pulse whose width lies in `samples`. The signal is high from a sample at or above `level` to
    /// one below `level - hysteresis`.
    PulseWidth {
        /// Which pulses.
        polarity: Polarity,
        /// Level between low and high.
        level: V,
        /// How far below the level a sample must lie to be low.
        hysteresis: V::Distance,
        /// Widths that trigger.
        samples: RangeInclusive<u64>,
    },
    /// The end of a pulse that passes one level and not the other: for `Positive` it rises to `low` or more and
    /// falls back below `low` without reaching `high`; for `Negative` mirrored.
    Runt {
        /// Which pulses.
        polarity: Polarity,
        /// Lower level.
        low: V,
        /// Upper level.
        high: V,
    },
    /// The signal enters `low..=high`, or leaves it. It counts as outside once it lies outside, and as inside
    /// once it lies inside by `hysteresis` or more.
    Window {
        /// Entering or leaving.
        passage: Passage,
        /// Lower edge of the window.
        low: V,
        /// Upper edge of the window.
        high: V,
        /// Distance inside the edges that counts as inside.
        hysteresis: V::Distance,
    },
    /// No crossing in either direction for `samples` samples after the last one (crossings as for `PulseWidth`).
    Dropout {
        /// Level between low and high.
        level: V,
        /// How far below the level a sample must lie to be low.
        hysteresis: V::Distance,
        /// Samples without a crossing, at least 1.
        samples: u64,
    },
}

impl<V: Value> Condition<V> {
    /// The level of a condition (the upper one of two), and the lower one.
    pub(super) fn levels(&self) -> (V, V) {
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

/// Meaning of the comparator bits.
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

/// The parts of a trigger for one condition.
pub(super) struct Setup<V: Value> {
    pub(super) rule: Rule,
    pub(super) primary: Comparator<V>,
    /// Second pair of thresholds, for the conditions that need one.
    pub(super) secondary: Option<Comparator<V>>,
}

impl<V: Value> Setup<V> {
    pub(super) fn new(condition: &Condition<V>) -> Result<Setup<V>> {
        check(condition)?;
        let (rule, primary, secondary) = match *condition {
            Condition::Edge { slope, level, hysteresis } => {
                let (level, hysteresis) = (V::level(level), V::distance(hysteresis));
                let rising = Comparator::new(level, level - hysteresis);
                let falling = Comparator::new(V::next(level + hysteresis), V::next(level));
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
                let (low, high) = (V::level(low), V::level(high));
                let (near, far) = match polarity {
                    Polarity::Positive => (low, high),
                    Polarity::Negative => (V::next(high), V::next(low)),
                };
                (Rule::Runt(polarity), Comparator::new(near, near), Some(Comparator::new(far, far)))
            }
            Condition::Window { passage, low, high, hysteresis } => {
                let (low, high, hysteresis) = (V::level(low), V::level(high), V::distance(hysteresis));
                let outside = Comparator::new(V::next(high), low);
                // Both at once: well inside.
                let inside = Comparator::new(low + hysteresis, V::next(high - hysteresis));
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
fn high_above<V: Value>(level: V, hysteresis: V::Distance) -> Comparator<V> {
    Comparator::new(V::level(level), V::level(level) - V::distance(hysteresis))
}

fn check<V: Value>(condition: &Condition<V>) -> Result<()> {
    let refuse = |what, got: String, must| Err(Error::Setting { what, got, must });
    let levels = match *condition {
        Condition::Runt { low, high, .. } | Condition::Window { low, high, .. } => [low, high],
        Condition::Edge { level, .. }
        | Condition::PulseWidth { level, .. }
        | Condition::Dropout { level, .. } => [level, level],
    };
    if let Some(level) = levels.into_iter().find(|&level| !V::is_level(level)) {
        return refuse("trigger level", level.to_string(), "a finite number");
    }
    match condition {
        Condition::Edge { hysteresis, .. }
        | Condition::PulseWidth { hysteresis, .. }
        | Condition::Window { hysteresis, .. }
        | Condition::Dropout { hysteresis, .. }
            if !V::is_distance(*hysteresis) =>
        {
            refuse("hysteresis", format!("{hysteresis:?}"), "a finite number that is not negative")
        }
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
