//! How many lines there are in a second.

use std::time::{Duration, Instant};

/// Where the rate comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rate {
    /// Nobody knows; a column of times says it all the same.
    Unknown,
    /// The name says it.
    Given(f64),
    /// From when the first lines arrive.
    Measured,
}

/// When the first lines arrived.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    first: Option<(Instant, usize)>,
    last: Option<(Instant, usize)>,
}

impl Arrivals {
    /// At that time so many lines had come.
    pub(super) fn note(&mut self, at: Instant, lines: usize) {
        if lines > self.last.map_or(0, |(_, before)| before) {
            self.last = Some((at, lines));
            // What came together with the first line may have waited for long.
            self.first.get_or_insert((at, lines));
        }
    }

    /// Since the first line came.
    pub(super) fn elapsed(&self) -> Duration {
        self.first.map_or(Duration::ZERO, |(at, _)| at.elapsed())
    }

    /// Lines per second, once that can be said; 0 where it cannot. `is_over`: nothing more will come.
    pub(super) fn rate_hz(&self, is_over: bool) -> Option<f64> {
        let (Some((began, before)), Some((ended, after))) = (self.first, self.last) else {
            return is_over.then_some(0.0);
        };
        let (lines, elapsed) = (after - before, self.elapsed());
        let is_enough = match lines {
            0 => elapsed >= WAIT_MAX,
            1..LINES => elapsed >= WAIT_FEW,
            _ => elapsed >= WAIT,
        };
        if !is_enough && !is_over {
            return None;
        }
        let span_s = (ended - began).as_secs_f64();
        if lines == 0 || (is_over && !is_enough && (lines < LINES || span_s < SPAN_MIN_S)) {
            return Some(0.0);
        }
        Some(rounded(lines as f64 / span_s, 2))
    }
}

/// Lines per second by the times of the first of them; 0 where they do not say it. Gaps between them do not matter.
pub(super) fn rate_of(times_s: &[f64]) -> f64 {
    let mut steps: Vec<f64> =
        times_s.windows(2).map(|pair| pair[1] - pair[0]).filter(|&step| step > 0.0).collect();
    steps.sort_by(f64::total_cmp);
    let Some(&median) = steps.get(steps.len() / 2) else { return 0.0 };
    // Times that were rounded, to milliseconds for example, are right in the mean.
    let alike: Vec<f64> = steps.into_iter().filter(|step| (step / median - 1.0).abs() <= 0.5).collect();
    let mean_s = alike.iter().sum::<f64>() / alike.len() as f64;
    let rate_hz = rounded(1.0 / mean_s, 6);
    if rate_hz.is_finite() { rate_hz } else { 0.0 }
}

/// How a line follows the one before it, by their times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Next,
    /// So many are missing between them.
    Gap(u64),
    /// It was made before it: the clock was set, or began again.
    Back,
}

impl Step {
    pub(super) fn between(before_s: f64, now_s: f64, rate_hz: f64) -> Self {
        let steps = ((now_s - before_s) * rate_hz).round();
        if now_s < before_s {
            Self::Back
        } else if steps < 2.0 {
            Self::Next
        } else if steps < STEPS_MAX {
            Self::Gap(steps as u64 - 1)
        } else {
            Self::Back
        }
    }
}

/// To so many digits behind the first.
fn rounded(number: f64, digits: usize) -> f64 {
    format!("{number:.digits$e}").parse().unwrap_or(number)
}

/// How many lines are looked at for their times, and how long they are waited for.
pub(super) const TIMES: usize = 32;
pub(super) const WAIT: Duration = Duration::from_secs(1);
/// Where there are fewer lines than these, and where there is one.
const LINES: usize = 8;
const WAIT_FEW: Duration = Duration::from_secs(5);
const WAIT_MAX: Duration = Duration::from_secs(20);
/// What is over sooner says nothing.
const SPAN_MIN_S: f64 = 0.1;
const STEPS_MAX: f64 = 1e15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_say_the_rate_although_they_are_rounded_and_have_gaps() {
        let of = |step_s: f64, round_s: f64| {
            let times = (0..TIMES).map(|at| ((at as f64 * step_s) / round_s).round() * round_s);
            rate_of(&times.collect::<Vec<_>>())
        };
        assert_eq!(of(0.01, 1e-3), 100.0);
        assert_eq!(of(0.004, 1e-6), 250.0);
        assert!((of(1.0 / 60.0, 1e-3) - 60.0).abs() < 0.1);
        assert_eq!(rate_of(&[0.0, 0.1, 0.2, 5.0, 5.1, 5.2]), 10.0);
        assert_eq!(rate_of(&[]), 0.0);
        assert_eq!(rate_of(&[1.0]), 0.0);
        assert_eq!(rate_of(&[2.0, 1.0, 1.0]), 0.0);
    }

    #[test]
    fn steps_are_counted_in_samples() {
        assert_eq!(Step::between(0.0, 0.01, 100.0), Step::Next);
        assert_eq!(Step::between(0.0, 0.014, 100.0), Step::Next);
        assert_eq!(Step::between(0.0, 0.0, 100.0), Step::Next);
        assert_eq!(Step::between(0.0, 0.05, 100.0), Step::Gap(4));
        assert_eq!(Step::between(1.0, 0.5, 100.0), Step::Back);
        assert_eq!(Step::between(0.0, 1e300, 100.0), Step::Back);
    }

    #[test]
    fn arrivals_say_it_once_a_second_has_gone_by() {
        let now = Instant::now();
        let at = |ms: u64| now - Duration::from_millis(2_000) + Duration::from_millis(ms);
        let mut arrivals = Arrivals::default();
        // Half a second was waiting.
        arrivals.note(at(0), 50);
        (1..=10).for_each(|turn| arrivals.note(at(turn * 100), 50 + turn as usize * 10));
        arrivals.note(at(1_500), 150);
        assert_eq!(arrivals.rate_hz(false), Some(100.0));
        assert_eq!(Arrivals::default().rate_hz(false), None);
        assert_eq!(Arrivals::default().rate_hz(true), Some(0.0));
        let mut one = Arrivals::default();
        one.note(at(1_900), 3);
        assert_eq!((one.rate_hz(false), one.rate_hz(true)), (None, Some(0.0)));
    }
}
