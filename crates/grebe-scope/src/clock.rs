//! Times in the format of a clock, `1:02:05`, and steps that suit them.

use std::fmt;

use crate::steps::{power_of_ten, round_to, step_125_down, step_125_up};

/// The smallest clock step of at least `seconds`: 1-2-5 up to 10 s, then 20 and 30 s, 1, 2, 5, 10, 20 and 30 minutes,
/// 1, 2, 3, 6 and 12 hours, and days.
///
/// ```
/// assert_eq!(grebe_scope::step_time_up(400.0), 600.0);
/// assert_eq!(grebe_scope::step_time_up(0.3), 0.5);
/// ```
pub fn step_time_up(seconds: f64) -> f64 {
    if !(seconds > 10.0 && seconds.is_finite()) {
        return step_125_up(seconds);
    }
    // A millionth below counts as equal, as in steps of 1-2-5.
    let step = STEPS_S.into_iter().find(|step| *step >= seconds * (1.0 - 1e-6));
    step.unwrap_or_else(|| DAY_S * step_125_up(seconds / DAY_S))
}

/// The largest clock step of at most `seconds`.
///
/// ```
/// assert_eq!(grebe_scope::step_time_down(599.0), 300.0);
/// assert_eq!(grebe_scope::step_time_down(0.3), 0.2);
/// ```
pub fn step_time_down(seconds: f64) -> f64 {
    if seconds > DAY_S * 1.5 && seconds.is_finite() {
        return DAY_S * step_125_down(seconds / DAY_S);
    }
    let step = STEPS_S.into_iter().rfind(|step| *step <= seconds * (1.0 + 1e-6));
    step.unwrap_or_else(|| step_125_down(seconds))
}

/// Whether a time has the format of a clock: from 1000 s on.
pub(crate) fn is_long(seconds: f64) -> bool {
    (1e3..1e9).contains(&seconds)
}

/// Hours, minutes and seconds with `decimals` decimals; `is_short` drops trailing zeros.
pub(crate) fn clock_text(
    out: &mut impl fmt::Write,
    seconds: f64,
    decimals: u32,
    is_short: bool,
) -> fmt::Result {
    let mut decimals = decimals.min(9);
    while is_short && decimals > 0 && round_to(seconds, decimals) == round_to(seconds, decimals - 1) {
        decimals -= 1;
    }
    let parts_of_second = power_of_ten(decimals as i32) as u64;
    // Rounds to whole parts, so that 59.9 s become a minute and not 60 s.
    let parts = (seconds.abs() * parts_of_second as f64).round() as u64;
    let (whole, part) = (parts / parts_of_second, parts % parts_of_second);
    let sign = if seconds < 0.0 && parts > 0 { "-" } else { "" };
    write!(out, "{sign}{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)?;
    match decimals {
        0 => Ok(()),
        decimals => write!(out, ".{part:0width$}", width = decimals as usize),
    }
}

/// Parses `1:02:05.5` or `2:05`, also with more than 59 minutes.
pub(crate) fn parse(text: &str) -> Option<f64> {
    let text = text.strip_suffix('s').map_or(text, str::trim_end);
    let (sign, text) = text.strip_prefix('-').map_or((1.0, text), |text| (-1.0, text));
    let mut parts = text.split(':').rev();
    let seconds: f64 =
        parts.next().filter(|it| it.starts_with(|it: char| it.is_ascii_digit()))?.parse().ok()?;
    let minutes: u32 = parts.next()?.parse().ok()?;
    let hours: u32 = parts.next().map_or(Ok(0), str::parse).ok()?;
    let is_clock = seconds < 60.0 && parts.next().is_none() && (hours == 0 || minutes < 60);
    is_clock.then(|| sign * (f64::from(hours) * 3600.0 + f64::from(minutes) * 60.0 + seconds))
}

const DAY_S: f64 = 86_400.0;
const STEPS_S: [f64; 15] = [
    10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0, 3_600.0, 7_200.0, 10_800.0, 21_600.0,
    43_200.0, DAY_S,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engineering, parse_quantity};

    #[test]
    fn steps_go_round_in_both_directions() {
        let mut step = 1e-3;
        while step < 1e9 {
            let next = step_time_up(step * 1.1);
            assert!(next > step && step_time_up(next) == next, "{step} {next}");
            assert_eq!(step_time_down(next * 0.95), step);
            step = next;
        }
        assert_eq!((step_time_up(f64::NAN), step_time_down(-3.0)), (1.0, 1.0));
    }

    #[test]
    fn clock_times_round_trip() {
        for (seconds, shown) in [
            (1_000.0, "0:16:40"),
            (3_599.999_9, "0:59:59.9999"),
            (-3_600.25, "-1:00:00.25"),
            (359_999.0, "99:59:59"),
            (86_400.0 * 365.0, "8760:00:00"),
        ] {
            let text = Engineering::new(seconds, "s").digits(9).to_string();
            assert_eq!(text, shown);
            assert!((parse_quantity(&text, "s").unwrap() - seconds).abs() < 1e-6, "{text}");
        }
        assert_eq!(Engineering::new(3_599.999_9, "s").to_string(), "1:00:00");
        assert_eq!(parse_quantity("90:00 s", "s"), Some(5_400.0));
        for typed in ["1:60", ":10", "1:", "1:2:3:4", "1:70:00", "a:10", "1:-5", "1:nan", "1:inf"] {
            assert_eq!(parse_quantity(typed, "s"), None, "{typed}");
        }
        assert_eq!(parse_quantity("1:00", "V"), None);
    }
}
