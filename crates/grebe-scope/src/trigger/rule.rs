//! From a condition to comparators, and what their bits mean.

use std::ops::RangeInclusive;

use super::condition::{Condition, Passage, Polarity, Slope};
use crate::comparator::Comparator;
use crate::error::{Error, Result};

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
