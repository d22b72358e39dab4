//! Estimates offset and drift of another clock from exchanges, with an interval that contains both.
//!
//! With `o(t) = theirs(t) - t`, an exchange proves `o(sent) <= there - sent` and `o(back) >= answered - back`. Clocks
//! do not run backwards, and messages do not arrive before they were sent. A clock with a constant drift `b` is a
//! line. The lines between all bounds of the last exchanges form a polygon in (offset, drift). Its extent is the
//! interval, and its middle is the estimate. Only the convex hulls of the bounds can touch such a line: the lower
//! hull of the upper bounds and the upper hull of the lower ones. The bounds of old exchanges are widened by the
//! possible change of the drift.

use std::collections::VecDeque;

/// One exchange: our clock at question and answer, and their clock at arrival and reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// Question sent, by our clock.
    pub sent_ns: u64,
    /// Question received, by their clock.
    pub received_ns: u64,
    /// Answer sent, by their clock.
    pub replied_ns: u64,
    /// Answer received, by our clock.
    pub returned_ns: u64,
}

/// Relation of another clock to ours, from some moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relation {
    /// That moment, by our clock.
    pub at_ns: u64,
    /// Their clock minus ours at that moment.
    pub offset_ns: i64,
    /// Uncertainty of the offset, to either side.
    pub error_ns: u64,
    /// Rate of their clock over ours, in parts per 10^9.
    pub drift_ppb: i64,
    /// Uncertainty of the drift, to either side.
    pub drift_error_ppb: u64,
}

/// Combines the last exchanges, in bounded memory.
#[derive(Debug, Clone, Default)]
pub struct Estimator {
    echoes: VecDeque<Echo>,
}

impl Echo {
    /// Round trip without the other host's processing time.
    pub fn round_trip_ns(&self) -> u64 {
        let held = self.replied_ns.saturating_sub(self.received_ns);
        self.returned_ns.saturating_sub(self.sent_ns).saturating_sub(held)
    }

    /// Whether two clocks that run forward can have produced this.
    fn is_possible(&self) -> bool {
        let (Some(took), Some(held)) =
            (self.returned_ns.checked_sub(self.sent_ns), self.replied_ns.checked_sub(self.received_ns))
        else {
            return false;
        };
        // Their clock may be faster.
        took <= EXCHANGE_NS_MAX && held as f64 <= took as f64 * (1.0 + DRIFT_MAX)
    }
}

impl Relation {
    /// Their clock minus ours when ours shows `ours_ns`, with its uncertainty, in nanoseconds.
    pub fn offset_at(&self, ours_ns: u64) -> (i64, u64) {
        let since = ours_ns as f64 - self.at_ns as f64;
        let offset = self.offset_ns.saturating_add((since * self.drift_ppb as f64 * 1e-9).round() as i64);
        let grown = (since.abs() * self.drift_error_ppb as f64 * 1e-9).ceil() as u64;
        (offset, self.error_ns.saturating_add(grown))
    }

    /// Whether `newer` differs significantly at its own moment.
    pub fn is_outdated_by(&self, newer: &Relation) -> bool {
        let (offset_ns, error_ns) = self.offset_at(newer.at_ns);
        let apart = offset_ns.abs_diff(newer.offset_ns);
        apart > newer.error_ns / 2 + CHANGE_NS || error_ns / 3 > newer.error_ns / 2 + CHANGE_NS
    }
}

impl Estimator {
    /// Adds an exchange. Ignores one that is impossible for two clocks.
    pub fn add(&mut self, echo: Echo) {
        if !echo.is_possible() {
            return;
        }
        if self.echoes.len() == ECHOES_MAX {
            // Short round trips are the most precise. Removes an exchange of the older half that a neighbour
            // makes redundant.
            let slowest = (0..ECHOES_MAX / 2).max_by_key(|&at| self.echoes[at].round_trip_ns()).unwrap_or(0);
            let oldest_is_stale = echo.returned_ns.saturating_sub(self.echoes[0].returned_ns) > WINDOW_NS;
            self.echoes.remove(if oldest_is_stale { 0 } else { slowest });
        }
        self.echoes.push_back(echo);
        // A clock was set, or its rate was changed, so earlier exchanges are obsolete.
        while self.echoes.len() > 1 && Bounds::of(&self.echoes, echo.returned_ns).drift().is_none() {
            self.echoes.pop_front();
        }
    }

    /// Number of exchanges in the estimate.
    pub fn len(&self) -> usize {
        self.echoes.len()
    }

    /// Whether it lacks exchanges.
    pub fn is_empty(&self) -> bool {
        self.echoes.is_empty()
    }

    /// Forgets everything, because the other clock is a new one.
    pub fn clear(&mut self) {
        self.echoes.clear();
    }

    /// Relation of the clocks when ours shows `now_ns`, not before the last exchange; `None` without
    /// exchanges.
    pub fn at(&self, now_ns: u64) -> Option<Relation> {
        let bounds = Bounds::of(&self.echoes, now_ns);
        let (slowest, fastest) = bounds.drift()?;
        let low = -largest(slowest, fastest, |drift| -bounds.low(drift));
        let high = largest(slowest, fastest, |drift| bounds.high(drift));
        let drift = (slowest + fastest) / 2.0;
        let drift_error = (fastest - slowest) / 2.0 + WANDER;
        let base = bounds.base_ns;
        Some(Relation {
            at_ns: now_ns,
            offset_ns: base.saturating_add(((low + high) / 2.0).round() as i64),
            error_ns: (((high - low).max(0.0) / 2.0).ceil() as u64).saturating_add(CLOCK_READ_NS),
            drift_ppb: (drift * 1e9).round() as i64,
            drift_error_ppb: (drift_error * 1e9).ceil() as u64,
        })
    }
}

/// Bounds by age (now minus their time) and offset. Offsets are relative to one of them, to keep them small.
struct Bounds {
    base_ns: i64,
    upper: Vec<(f64, f64)>,
    lower: Vec<(f64, f64)>,
}

impl Bounds {
    fn of(echoes: &VecDeque<Echo>, now_ns: u64) -> Self {
        let difference = |theirs: u64, ours: u64| (i128::from(theirs) - i128::from(ours)) as i64;
        let base_ns = echoes.back().map_or(0, |last| difference(last.received_ns, last.sent_ns));
        let age = |ours: u64| (i128::from(now_ns) - i128::from(ours)) as f64;
        let bound = |theirs: u64, ours: u64| {
            let offset = i128::from(difference(theirs, ours)) - i128::from(base_ns);
            (age(ours), offset as f64)
        };
        let widened = |(age, offset): (f64, f64), sign: f64| (age, offset + sign * age.abs() * WANDER);
        let upper = echoes.iter().map(|it| widened(bound(it.received_ns, it.sent_ns), 1.0)).collect();
        let lower = echoes.iter().map(|it| widened(bound(it.replied_ns, it.returned_ns), -1.0)).collect();
        Self { base_ns, upper: hull(upper, 1.0), lower: hull(lower, -1.0) }
    }

    /// Slowest and fastest drift of a line between all bounds.
    fn drift(&self) -> Option<(f64, f64)> {
        let (mut slowest, mut fastest) = (-DRIFT_MAX, DRIFT_MAX);
        for &(upper_age, upper) in &self.upper {
            for &(lower_age, lower) in &self.lower {
                // A line is at or above `lower` at that age, and at or below `upper` at this age.
                let (between, rise) = (lower_age - upper_age, upper - lower);
                if between > 0.0 {
                    fastest = f64::min(fastest, rise / between);
                } else if between < 0.0 {
                    slowest = f64::max(slowest, rise / between);
                } else if rise < 0.0 {
                    return None;
                }
            }
        }
        (!self.upper.is_empty() && slowest <= fastest).then_some((slowest, fastest))
    }

    /// Minimum offset now at this drift.
    fn low(&self, drift: f64) -> f64 {
        self.lower.iter().map(|&(age, offset)| offset + drift * age).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Maximum offset now at this drift.
    fn high(&self, drift: f64) -> f64 {
        self.upper.iter().map(|&(age, offset)| offset + drift * age).fold(f64::INFINITY, f64::min)
    }
}

/// Points that a line touches first from below (`sign` 1.0) or above (-1.0).
fn hull(mut points: Vec<(f64, f64)>, sign: f64) -> Vec<(f64, f64)> {
    points.sort_by(|one, other| one.0.total_cmp(&other.0).then((sign * one.1).total_cmp(&(sign * other.1))));
    let mut hull: Vec<(f64, f64)> = Vec::with_capacity(points.len());
    for point in points {
        while let [.., before, last] = hull[..]
            && sign
                * ((last.1 - before.1) * (point.0 - before.0) - (point.1 - before.1) * (last.0 - before.0))
                >= 0.0
        {
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// Maximum of a concave function.
fn largest(mut from: f64, mut to: f64, value: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..SEARCH_STEPS {
        let third = (to - from) / 3.0;
        let (left, right) = (from + third, to - third);
        if value(left) < value(right) { from = left } else { to = right }
    }
    value((from + to) / 2.0).max(value(from)).max(value(to))
}

/// Maximum number of exchanges.
const ECHOES_MAX: usize = 64;
/// Older exchanges say little about the present drift.
const WINDOW_NS: u64 = 60_000_000_000;
/// Maximum discipline of a clock: 500 parts per million, at both ends.
const DRIFT_MAX: f64 = 1e-3;
/// Possible change of the drift since an exchange, by temperature and NTP. On simulated links with steps of
/// up to 2 parts per million, a third of this held in 99.9 % of all cases but only 60 % on the worst link;
/// this holds in 98 % on the worst.
const WANDER: f64 = 1e-6;
/// Longer exchanges are useless.
const EXCHANGE_NS_MAX: u64 = 10_000_000_000;
/// Error of reading a clock.
const CLOCK_READ_NS: u64 = 50;
/// Change that need not be reported.
const CHANGE_NS: u64 = 2_000;
/// 10^-3 times (2/3)^60 is far below 10^-12.
const SEARCH_STEPS: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    /// An exchange at `at_ns` over a path with these delays, with a clock ahead by `ahead_ns`.
    fn echo(at_ns: u64, there: u64, back: u64, ahead_ns: u64) -> Echo {
        let received_ns = at_ns + there + ahead_ns;
        Echo {
            sent_ns: at_ns,
            received_ns,
            replied_ns: received_ns + 1_000,
            returned_ns: at_ns + there + 1_000 + back,
        }
    }

    #[test]
    fn the_quickest_round_trip_bounds_the_offset_and_a_queue_only_widens() {
        let mut estimator = Estimator::default();
        estimator.add(echo(1_000_000, 900_000, 30_000, 37_000_000));
        let wide = estimator.at(2_000_000).unwrap();
        assert!(wide.offset_ns.abs_diff(37_000_000) <= wide.error_ns);
        assert!((464_000..500_000).contains(&wide.error_ns), "{wide:?}");
        estimator.add(echo(3_000_000, 30_000, 30_000, 37_000_000));
        let narrow = estimator.at(3_100_000).unwrap();
        assert!(
            narrow.offset_ns.abs_diff(37_000_000) <= narrow.error_ns && narrow.error_ns < 32_000,
            "{narrow:?}"
        );
    }

    #[test]
    fn a_minute_of_exchanges_knows_the_drift() {
        let mut estimator = Estimator::default();
        for second in 1..=60_u64 {
            // 20 parts per million: 20 us per second.
            estimator.add(echo(second * 1_000_000_000, 40_000, 40_000, 37_000_000 + second * 20_000));
        }
        let now = estimator.at(60_100_000_000).unwrap();
        assert!(
            now.drift_ppb.abs_diff(20_000) <= now.drift_error_ppb && now.drift_error_ppb < 5_000,
            "{now:?}"
        );
        assert!(now.offset_ns.abs_diff(38_202_000) <= now.error_ns && now.error_ns < 42_000, "{now:?}");
        let (ahead_ns, error_ns) = now.offset_at(70_100_000_000);
        assert!(ahead_ns.abs_diff(38_402_000) <= error_ns, "ten seconds later: {ahead_ns} +- {error_ns}");
    }

    #[test]
    fn a_clock_that_was_set_is_followed_at_once() {
        let mut estimator = Estimator::default();
        for second in 1..=20_u64 {
            estimator.add(echo(second * 1_000_000_000, 40_000, 40_000, 1_000_000));
        }
        let before = estimator.at(20_100_000_000).unwrap();
        estimator.add(echo(21_000_000_000, 40_000, 40_000, 5_000_000));
        let now = estimator.at(21_100_000_000).unwrap();
        assert!(now.offset_ns.abs_diff(5_000_000) <= now.error_ns && estimator.len() < 3, "{now:?}");
        assert!(before.is_outdated_by(&now) && !now.is_outdated_by(&now));
    }

    #[test]
    fn the_hull_keeps_the_points_that_a_line_touches() {
        let points = vec![(0.0, 1.0), (1.0, 5.0), (2.0, 0.5), (3.0, 0.7), (4.0, 3.0), (3.0, 9.0)];
        assert_eq!(hull(points.clone(), 1.0), [(0.0, 1.0), (2.0, 0.5), (3.0, 0.7), (4.0, 3.0)]);
        assert_eq!(hull(points, -1.0), [(0.0, 1.0), (1.0, 5.0), (3.0, 9.0), (4.0, 3.0)]);
    }

    #[test]
    fn impossible_measurements_are_ignored() {
        let mut estimator = Estimator::default();
        estimator.add(Echo { sent_ns: 10, received_ns: 5, replied_ns: 4, returned_ns: 20 });
        estimator.add(Echo { sent_ns: 10, received_ns: 5, replied_ns: 5, returned_ns: 9 });
        estimator.add(Echo { sent_ns: 10, received_ns: 5, replied_ns: 5_000, returned_ns: 20 });
        estimator.add(Echo { sent_ns: 0, received_ns: 5, replied_ns: 5, returned_ns: u64::MAX });
        assert!(estimator.is_empty() && estimator.at(100).is_none());
    }
}
