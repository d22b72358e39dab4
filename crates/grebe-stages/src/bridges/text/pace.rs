//! How many lines there are in a second.

use std::time::{Duration, Instant};

use grebe_recording::table::Spacing;

/// Origin of the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rate {
    /// Unknown; a time column may still give it.
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
    /// Notes the number of lines that had arrived at this time.
    pub(super) fn note(&mut self, at: Instant, lines: usize) {
        if lines > self.last.map_or(0, |(_, before)| before) {
            self.last = Some((at, lines));
            // Lines that arrive together with the first may have waited long.
            self.first.get_or_insert((at, lines));
        }
    }

    /// Since the first line came.
    fn elapsed(&self) -> Duration {
        self.first.map_or(Duration::ZERO, |(at, _)| at.elapsed())
    }

    /// Whether this number of lines is enough to determine the rate.
    pub(super) fn are_enough(&self, lines: usize) -> bool {
        let elapsed = self.elapsed();
        match lines {
            0 => elapsed >= WAIT_MAX,
            1..LINES => elapsed >= WAIT_FEW,
            _ => elapsed >= WAIT,
        }
    }

    /// Lines per second once known; 0 if that is impossible. `is_over`: no more lines will come.
    pub(super) fn rate_hz(&self, is_over: bool) -> Option<f64> {
        let (Some((began, before)), Some((ended, after))) = (self.first, self.last) else {
            return is_over.then_some(0.0);
        };
        let lines = after - before;
        let is_enough = self.are_enough(lines);
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

/// Whether numbers look like times: each is larger than the one before, by even steps.
pub(super) fn grows_evenly(mut numbers: impl Iterator<Item = f64>) -> bool {
    let Some(first) = numbers.next() else { return false };
    let since: Vec<f64> = std::iter::once(0.0).chain(numbers.map(|number| number - first)).collect();
    since.len() >= LINES
        && since.windows(2).all(|pair| pair[1] > pair[0])
        && Spacing::of(&since, 0.0).is_ok_and(|spacing| spacing.jitter_s < 0.05 * spacing.period_s)
}

/// Rounds to this number of digits after the first.
fn rounded(number: f64, digits: usize) -> f64 {
    format!("{number:.digits$e}").parse().unwrap_or(number)
}

const WAIT: Duration = Duration::from_secs(1);
/// With fewer lines than these the measurement takes longer, and longest with one line.
const LINES: usize = 8;
const WAIT_FEW: Duration = Duration::from_secs(5);
const WAIT_MAX: Duration = Duration::from_secs(20);
/// A shorter span does not determine the rate.
const SPAN_MIN_S: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

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
