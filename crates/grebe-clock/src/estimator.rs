//! What exchanges say of another clock: offset and drift, with the interval that has both in it.
//!
//! With `o(t) = theirs(t) - t`, an exchange says `o(sent) <= there - sent` and `o(back) >= answered - back`: a clock does not run
//! backwards, and a message does not arrive before it was sent. A clock with a constant drift `b` is a line, and the lines that pass
//! between all bounds of the last exchanges are a polygon in (offset, drift). Its extent is the interval; its middle is the estimate.
//! Only the convex hulls of the bounds, the lower one of the upper and the upper one of the lower, can touch such a line. The bounds of
//! old exchanges are widened by how much a drift changes meanwhile.

use std::collections::VecDeque;

/// One exchange: when the question was sent and the answer came by our clock, and when it came and was answered by theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// By our clock.
    pub sent_ns: u64,
    /// By their clock.
    pub there_ns: u64,
    /// By their clock.
    pub answered_ns: u64,
    /// By our clock.
    pub back_ns: u64,
}

/// How another clock relates to ours, from some moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relation {
    /// The moment, by our clock.
    pub at_ns: u64,
    /// Their clock less ours then.
    pub offset_ns: i64,
    /// How far that may be off, to either side.
    pub error_ns: u64,
    /// By how many parts in 10^9 theirs is faster than ours.
    pub drift_ppb: i64,
    /// How far that may be off, to either side.
    pub drift_error_ppb: u64,
}

/// What the last exchanges say together. Its memory is bounded.
#[derive(Debug, Clone, Default)]
pub struct Estimator {
    echoes: VecDeque<Echo>,
}

impl Echo {
    /// The round trip without the time that the other host took.
    pub fn round_trip_ns(&self) -> u64 {
        let held = self.answered_ns.saturating_sub(self.there_ns);
        self.back_ns.saturating_sub(self.sent_ns).saturating_sub(held)
    }

    /// Whether two clocks that run forward can have shown this.
    fn is_possible(&self) -> bool {
        let (Some(took), Some(held)) =
            (self.back_ns.checked_sub(self.sent_ns), self.answered_ns.checked_sub(self.there_ns))
        else {
            return false;
        };
        // Theirs may be the faster one.
        took <= EXCHANGE_NS_MAX && held as f64 <= took as f64 * (1.0 + DRIFT_MAX)
    }
}

impl Relation {
    /// By how much their clock is ahead of ours when ours shows `ours_ns`, and how far that may be off, in nanoseconds.
    pub fn offset_at(&self, ours_ns: u64) -> (i64, u64) {
        let since = ours_ns as f64 - self.at_ns as f64;
        let offset = self.offset_ns.saturating_add((since * self.drift_ppb as f64 * 1e-9).round() as i64);
        let grown = (since.abs() * self.drift_error_ppb as f64 * 1e-9).ceil() as u64;
        (offset, self.error_ns.saturating_add(grown))
    }

    /// Whether `newer` says something else, or much more, at the moment that it is of.
    pub fn is_outdated_by(&self, newer: &Relation) -> bool {
        let (offset_ns, error_ns) = self.offset_at(newer.at_ns);
        let apart = offset_ns.abs_diff(newer.offset_ns);
        apart > newer.error_ns / 2 + CHANGE_NS || error_ns / 3 > newer.error_ns / 2 + CHANGE_NS
    }
}

impl Estimator {
    /// Takes in an exchange; one that no two clocks can have shown is left out.
    pub fn add(&mut self, echo: Echo) {
        if !echo.is_possible() {
            return;
        }
        if self.echoes.len() == ECHOES_MAX {
            // The quickest say the most. Of the older half one goes that a neighbour makes superfluous.
            let slowest = (0..ECHOES_MAX / 2).max_by_key(|&at| self.echoes[at].round_trip_ns()).unwrap_or(0);
            let oldest_is_stale = echo.back_ns.saturating_sub(self.echoes[0].back_ns) > WINDOW_NS;
            self.echoes.remove(if oldest_is_stale { 0 } else { slowest });
        }
        self.echoes.push_back(echo);
        // A clock that was set, or whose rate somebody changed: what was before says nothing any more.
        while self.echoes.len() > 1 && Bounds::of(&self.echoes, echo.back_ns).drift().is_none() {
            self.echoes.pop_front();
        }
    }

    /// How many exchanges the estimate is made of.
    pub fn len(&self) -> usize {
        self.echoes.len()
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.echoes.is_empty()
    }

    /// Forgets all: the other clock is another one.
    pub fn clear(&mut self) {
        self.echoes.clear();
    }

    /// How the clocks relate when ours shows `now_ns`, which is not before the last exchange; `None` where there was none.
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

/// What lines may not cross: by age (now less when it held), offset. Offsets are relative to one of them, so that they are small.
struct Bounds {
    base_ns: i64,
    upper: Vec<(f64, f64)>,
    lower: Vec<(f64, f64)>,
}

impl Bounds {
    fn of(echoes: &VecDeque<Echo>, now_ns: u64) -> Self {
        let difference = |theirs: u64, ours: u64| (i128::from(theirs) - i128::from(ours)) as i64;
        let base_ns = echoes.back().map_or(0, |last| difference(last.there_ns, last.sent_ns));
        let age = |ours: u64| (i128::from(now_ns) - i128::from(ours)) as f64;
        let bound = |theirs: u64, ours: u64| {
            let offset = i128::from(difference(theirs, ours)) - i128::from(base_ns);
            (age(ours), offset as f64)
        };
        let widened = |(age, offset): (f64, f64), sign: f64| (age, offset + sign * age.abs() * WANDER);
        let upper = echoes.iter().map(|it| widened(bound(it.there_ns, it.sent_ns), 1.0)).collect();
        let lower = echoes.iter().map(|it| widened(bound(it.answered_ns, it.back_ns), -1.0)).collect();
        Self { base_ns, upper: hull(upper, 1.0), lower: hull(lower, -1.0) }
    }

    /// The slowest and the fastest drift with which a line passes between all of them.
    fn drift(&self) -> Option<(f64, f64)> {
        let (mut slowest, mut fastest) = (-DRIFT_MAX, DRIFT_MAX);
        for &(upper_age, upper) in &self.upper {
            for &(lower_age, lower) in &self.lower {
                // A line is at `lower` or above when it is that old, and at `upper` or below when it is this old.
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

    /// The least offset now with this drift.
    fn low(&self, drift: f64) -> f64 {
        self.lower.iter().map(|&(age, offset)| offset + drift * age).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The greatest.
    fn high(&self, drift: f64) -> f64 {
        self.upper.iter().map(|&(age, offset)| offset + drift * age).fold(f64::INFINITY, f64::min)
    }
}

/// The points that a line touches first which comes from below (`sign` 1.0) or from above (-1.0).
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

/// The largest value of a concave function.
fn largest(mut from: f64, mut to: f64, value: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..SEARCH_STEPS {
        let third = (to - from) / 3.0;
        let (left, right) = (from + third, to - third);
        if value(left) < value(right) { from = left } else { to = right }
    }
    value((from + to) / 2.0).max(value(from)).max(value(to))
}

/// Exchanges that are kept.
const ECHOES_MAX: usize = 64;
/// What is older says little of the drift now.
const WINDOW_NS: u64 = 60_000_000_000;
/// Nobody disciplines a clock by more: 500 parts in a million, at each of both.
const DRIFT_MAX: f64 = 1e-3;
/// By how much a drift may have changed since an exchange: temperature, and what NTP steers by. In simulated links with steps of up to
/// 2 parts in a million, three times less held in 99.9 % of all and in 60 % for the worst link; this holds in 98 % for the worst.
const WANDER: f64 = 1e-6;
/// Longer exchanges say nothing.
const EXCHANGE_NS_MAX: u64 = 10_000_000_000;
/// What reading a clock may be off by.
const CLOCK_READ_NS: u64 = 50;
/// Differences that need not be told.
const CHANGE_NS: u64 = 2_000;
/// 10^-3 by (2/3)^60 is far below 10^-12.
const SEARCH_STEPS: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    /// An exchange at `at_ns` over a path that takes so long each way, with a clock that is ahead by so much.
    fn echo(at_ns: u64, there: u64, back: u64, ahead_ns: u64) -> Echo {
        let there_ns = at_ns + there + ahead_ns;
        Echo {
            sent_ns: at_ns,
            there_ns,
            answered_ns: there_ns + 1_000,
            back_ns: at_ns + there + 1_000 + back,
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
            // 20 parts in a million: 20 us a second.
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
    fn what_a_line_touches_first_is_kept() {
        let points = vec![(0.0, 1.0), (1.0, 5.0), (2.0, 0.5), (3.0, 0.7), (4.0, 3.0), (3.0, 9.0)];
        assert_eq!(hull(points.clone(), 1.0), [(0.0, 1.0), (2.0, 0.5), (3.0, 0.7), (4.0, 3.0)]);
        assert_eq!(hull(points, -1.0), [(0.0, 1.0), (1.0, 5.0), (3.0, 9.0), (4.0, 3.0)]);
    }

    #[test]
    fn what_cannot_be_is_left_out() {
        let mut estimator = Estimator::default();
        estimator.add(Echo { sent_ns: 10, there_ns: 5, answered_ns: 4, back_ns: 20 });
        estimator.add(Echo { sent_ns: 10, there_ns: 5, answered_ns: 5, back_ns: 9 });
        estimator.add(Echo { sent_ns: 10, there_ns: 5, answered_ns: 5_000, back_ns: 20 });
        estimator.add(Echo { sent_ns: 0, there_ns: 5, answered_ns: 5, back_ns: u64::MAX });
        assert!(estimator.is_empty() && estimator.at(100).is_none());
    }
}
