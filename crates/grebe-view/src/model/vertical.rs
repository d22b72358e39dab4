//! The vertical range of a lane: set, or fitted to the signal in round steps, without jumping about.

use grebe_scope::step_125_up;

/// A vertical scale that is set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VerticalScale {
    /// Units per division; a lane has eight.
    pub per_division: f64,
    /// Position of 0, in divisions above the middle.
    pub position: f64,
}

/// The range a lane shows, in the channel's units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ValueRange {
    pub(crate) bottom: f64,
    pub(crate) top: f64,
}

/// Follows a signal: grows at once, shrinks when the signal stayed small for two seconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct AutoRange {
    range: Option<ValueRange>,
    /// Since when the range is larger than needed, and the extremes since then.
    small: Option<(u64, ValueRange)>,
}

impl AutoRange {
    pub(crate) fn current(&self) -> Option<ValueRange> {
        self.range
    }

    /// Takes the extremes seen at `now_ns`, and returns the range to show. Differences below `resolution` are noise of the
    /// converter.
    pub(crate) fn follow(&mut self, seen: Option<ValueRange>, resolution: f64, now_ns: u64) -> ValueRange {
        let Some(seen) = seen else {
            return self.range.unwrap_or(ValueRange { bottom: -resolution, top: resolution });
        };
        let fitted = fit(seen, resolution);
        let Some(range) = self.range else {
            return *self.range.insert(fitted);
        };
        if seen.bottom < range.bottom || seen.top > range.top {
            self.small = None;
            return *self.range.insert(fit(range.union(seen), resolution).min_by_height(fitted, seen));
        }
        if fitted.height() > range.height() * 0.6 {
            self.small = None;
            return range;
        }
        let (since_ns, extremes) = self.small.get_or_insert((now_ns, seen));
        *extremes = extremes.union(seen);
        if now_ns.saturating_sub(*since_ns) < SHRINK_AFTER_NS {
            return range;
        }
        let shrunk = fit(*extremes, resolution);
        self.small = None;
        *self.range.insert(shrunk)
    }
}

impl ValueRange {
    pub(crate) fn of(scale: VerticalScale) -> ValueRange {
        let half = DIVISIONS_VERTICAL / 2.0;
        let at = |divisions: f64| (divisions - scale.position) * scale.per_division;
        ValueRange { bottom: at(-half), top: at(half) }
    }

    /// A range of decibel levels, if they differ by at least 1 dB.
    pub(crate) fn of_levels(bottom: f64, top: f64) -> Option<ValueRange> {
        (bottom.is_finite() && top.is_finite() && top >= bottom + 1.0).then_some(ValueRange { bottom, top })
    }

    /// The value at a part of the height: 0.0 bottom, 1.0 top.
    pub(crate) fn at(&self, part: f64) -> f64 {
        self.bottom + part * self.height()
    }

    /// The part of the height at which a value lies.
    pub(crate) fn part_of(&self, value: f64) -> f64 {
        (value - self.bottom) / self.height()
    }

    pub(crate) fn height(&self) -> f64 {
        self.top - self.bottom
    }

    fn union(self, other: ValueRange) -> ValueRange {
        ValueRange { bottom: self.bottom.min(other.bottom), top: self.top.max(other.top) }
    }

    /// The smaller of both that holds `seen`.
    fn min_by_height(self, other: ValueRange, seen: ValueRange) -> ValueRange {
        let holds = other.bottom <= seen.bottom && other.top >= seen.top;
        if holds && other.height() < self.height() * 0.4 { other } else { self }
    }
}

/// The smallest range with round borders that holds `seen` with a margin.
fn fit(seen: ValueRange, resolution: f64) -> ValueRange {
    let height = seen.height().max(resolution * 8.0);
    let (middle, margin) = ((seen.bottom + seen.top) / 2.0, 0.54);
    // Eighths, so that a range is at most a quarter larger than needed.
    let step = step_125_up(height / 8.0);
    let bottom = ((middle - height * margin) / step).floor() * step;
    let top = ((middle + height * margin) / step).ceil() * step;
    // A signal around zero looks right with zero in the middle.
    if -bottom > top * 0.6 && -bottom < top / 0.6 {
        let side = top.max(-bottom);
        return ValueRange { bottom: -side, top: side };
    }
    ValueRange { bottom, top }
}

/// Divisions of a vertical scale that is set.
pub(crate) const DIVISIONS_VERTICAL: f64 = 8.0;
const SHRINK_AFTER_NS: u64 = 2_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn seen(bottom: f64, top: f64) -> Option<ValueRange> {
        Some(ValueRange { bottom, top })
    }

    #[test]
    fn it_grows_at_once_and_shrinks_late() {
        let mut auto = AutoRange::default();
        let first = auto.follow(seen(-900.0, 900.0), 1.0, 0);
        assert!(first.top >= 900.0 && first.top <= 1300.0 && first.bottom == -first.top, "{first:?}");
        let grown = auto.follow(seen(-900.0, 5000.0), 1.0, SECOND);
        assert!(grown.top >= 5000.0);
        assert_eq!(auto.follow(seen(-900.0, 900.0), 1.0, 2 * SECOND), grown);
        assert_eq!(auto.follow(seen(-900.0, 900.0), 1.0, 3 * SECOND), grown);
        assert_eq!(auto.follow(seen(-900.0, 900.0), 1.0, 5 * SECOND), first);
    }

    #[test]
    fn silence_and_nothing_have_a_range_too() {
        let mut auto = AutoRange::default();
        let nothing = auto.follow(None, 1.0, 0);
        assert!(nothing.height() > 0.0);
        let flat = auto.follow(seen(37.0, 37.0), 1.0, 0);
        assert!(flat.bottom < 37.0 && flat.top > 37.0 && flat.height() >= 8.0, "{flat:?}");
    }

    #[test]
    fn it_stays_calm_on_a_signal_that_breathes() {
        let mut auto = AutoRange::default();
        let range = auto.follow(seen(-1000.0, 1000.0), 1.0, 0);
        for step in 0..600 {
            let top = 1000.0 + 30.0 * (step as f64 * 0.1).sin();
            assert_eq!(auto.follow(seen(-top, top), 1.0, step * SECOND / 60), range);
        }
    }
}
