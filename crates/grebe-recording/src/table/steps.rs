//! How each sample follows the one before it, by their times.

/// An even spacing of times, and how closely they keep to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spacing {
    /// Samples per second, the number with the fewest digits of those that explain the times.
    pub rate_hz: f64,
    /// Its reciprocal.
    pub period_s: f64,
    /// How far the rate may be off, as a part of it.
    pub error: f64,
    /// How coarsely the times are written.
    pub resolution_s: f64,
    /// How far times are off beyond that; 0 where that explains them all.
    pub jitter_s: f64,
    /// How far a time may be from its place.
    pub tolerance_s: f64,
    /// How far the grid may move from one sample to the next.
    pub(super) drift_s: f64,
    /// No shorter step is a gap.
    pub(super) gap_s: f64,
}

/// How a sample follows the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// No sample is missing between them.
    Next,
    /// Number of missing samples between them.
    Gap(u64),
    /// It has the time of the previous one, although the times are fine enough to differ.
    Doubled,
    /// It is older than the previous one: the clock was set, or the lines are not in order.
    Back,
}

/// Follows times along an even spacing.
///
/// ```text
///  low .. high   where the newest grid point can be: every time since the last gap is within `tolerance` of its own grid point
///        a time within that   Next; it narrows the range
///        one outside          a gap, if the times after it are as far off; else jitter, and the range moves
/// ```
#[derive(Debug, Clone)]
pub struct Steps {
    spacing: Spacing,
    last: Option<Last>,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    time_s: f64,
    low: f64,
    high: f64,
}

impl Steps {
    /// Steps along this spacing; the next time is the first.
    pub fn new(spacing: Spacing) -> Self {
        Self { spacing, last: None }
    }

    /// Classifies the step to the time at this place; the later times help.
    pub fn take(&mut self, times_s: &[f64], at: usize) -> Step {
        let Spacing { period_s, tolerance_s, drift_s, gap_s, .. } = self.spacing;
        let time_s = times_s[at];
        let begin = Last { time_s, low: time_s - tolerance_s, high: time_s + tolerance_s };
        let Some(last) = self.last.replace(begin) else { return Step::Next };
        let (low, high) = (last.low + period_s - drift_s, last.high + period_s + drift_s);
        if begin.low <= high && begin.high >= low {
            self.last = Some(Last { time_s, low: low.max(begin.low), high: high.min(begin.high) });
            return Step::Next;
        }
        let middle = (low + high) / 2.0;
        let step_s = time_s - last.time_s;
        if (time_s - middle).abs() <= period_s / 2.0 || (step_s > 0.0 && step_s < gap_s) {
            // The grid moved a little: both ends as little as possible.
            let moved = if begin.low > high { begin.low - high } else { begin.high - low };
            self.last = Some(Last { time_s, low: low + moved, high: high + moved });
            return Step::Next;
        }
        let shift = (self.shift(times_s, at, middle) / period_s).round();
        if shift >= 1.0 {
            let grid = Last { time_s, low: low + shift * period_s, high: high + shift * period_s };
            if begin.low <= grid.high && begin.high >= grid.low {
                self.last =
                    Some(Last { time_s, low: grid.low.max(begin.low), high: grid.high.min(begin.high) });
            }
            return if shift < STEPS_MAX { Step::Gap(shift as u64) } else { Step::Back };
        }
        if time_s < last.time_s - self.spacing.resolution_s.max(tolerance_s) {
            return Step::Back;
        }
        if shift <= -1.0 && time_s <= last.time_s && self.spacing.resolution_s < period_s / 2.0 {
            self.last = Some(last);
            return Step::Doubled;
        }
        if shift == 0.0 {
            // One time alone is off.
            self.last = Some(Last { time_s, low, high });
        }
        Step::Next
    }

    /// Forgets where it was: the next time is a first one.
    pub fn restart(&mut self) {
        self.last = None;
    }

    /// How far this time and those after it are off, up to the next jump.
    fn shift(&self, times_s: &[f64], at: usize, middle: f64) -> f64 {
        let Spacing { period_s, resolution_s, jitter_s, .. } = self.spacing;
        let jump_s = 1.05 * period_s + resolution_s + (2.0 * jitter_s).min(0.6 * period_s);
        // Few are enough for a mean, and fewer have another gap among them.
        let count = if jitter_s > 0.0 { LOOKAHEAD / 4 } else { LOOKAHEAD };
        let ahead = &times_s[at..times_s.len().min(at + count)];
        let (mut sum, mut count, mut low, mut high) = (0.0, 0.0, f64::MAX, f64::MIN);
        let mut before = ahead[0];
        for (number, &time_s) in ahead.iter().enumerate() {
            if (time_s - before) > jump_s || time_s < before - jump_s {
                break;
            }
            let off = time_s - middle - number as f64 * period_s;
            (sum, count, low, high, before) = (sum + off, count + 1.0, low.min(off), high.max(off), time_s);
        }
        if jitter_s > 0.0 { sum / count } else { (low + high) / 2.0 }
    }
}

/// Number of times examined after an irregular one.
pub const LOOKAHEAD: usize = 64;
const STEPS_MAX: f64 = 1e15;
