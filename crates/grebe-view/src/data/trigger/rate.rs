//! How often the trigger comes: the counter of a bench scope.

use grebe_scope::Running;

/// Intervals between the last triggers: at most 64, as far as the history holds them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TriggerRate {
    /// From each trigger to the next, in seconds (samples where the rate is unknown). Intervals across missing samples are
    /// left out: more triggers may lie in them.
    pub intervals: Running,
    /// Intervals left out because of missing samples.
    pub gaps: u64,
}

impl TriggerRate {
    /// Triggers per second (per sample where the rate is unknown); `None` below two triggers.
    pub fn rate_hz(&self) -> Option<f64> {
        self.intervals.mean().filter(|mean| *mean > 0.0).map(|mean| 1.0 / mean)
    }

    /// Triggers per minute; `None` above 10 Hz, where nobody counts so.
    pub fn per_minute(&self) -> Option<f64> {
        self.rate_hz().filter(|rate| *rate < SLOW_HZ).map(|rate| 60.0 * rate)
    }

    /// From triggers, oldest first, at `rate` samples per second.
    pub(super) fn of(found: impl Iterator<Item = Found>, rate: f64) -> TriggerRate {
        let mut counted = TriggerRate::default();
        let mut before: Option<f64> = None;
        for found in found {
            match before {
                Some(_) if found.is_behind_gap => counted.gaps += 1,
                Some(before) => counted.intervals.add((found.at - before) / rate),
                None => {}
            }
            before = Some(found.at);
        }
        counted
    }
}

/// A trigger, shown or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    /// Absolute sample index.
    pub(super) at: f64,
    /// Whether samples are missing between it and the one before.
    pub(super) is_behind_gap: bool,
}

const SLOW_HZ: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_across_gaps_are_left_out() {
        let found = [(0.0, true), (100.0, false), (210.0, false), (900.0, true), (1000.0, false)];
        let found = found.map(|(at, is_behind_gap)| Found { at, is_behind_gap });
        let rate = TriggerRate::of(found.into_iter(), 100.0);
        assert_eq!((rate.intervals.count(), rate.gaps), (3, 1));
        let mean = (1.0 + 1.1 + 1.0) / 3.0;
        assert!((rate.rate_hz().unwrap() - 1.0 / mean).abs() < 1e-9);
        assert!((rate.per_minute().unwrap() - 60.0 / mean).abs() < 1e-9);
        assert!(TriggerRate::of(found.into_iter(), 1e6).per_minute().is_none(), "10 kHz");
        assert!(TriggerRate::of(found.into_iter().take(1), 100.0).rate_hz().is_none());
    }
}
