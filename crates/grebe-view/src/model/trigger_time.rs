//! The times of a trigger, as typed and as shown: pulse widths and dropouts.

use grebe_scope::{Engineering, parse_quantity};

use crate::data::trigger::{TriggerKind, TriggerSettings};
use crate::data::viewport::DIVISIONS;

/// Minimum and maximum pulse width.
type Pulse = (Option<f64>, Option<f64>);

/// Parses `20u` (shorter), `1m..` (longer), `20u..1m` (between), and an empty text: the default.
///
/// # Errors
/// One line for a person.
pub(super) fn parse_pulse(text: &str, unit: &str) -> Result<Pulse, String> {
    let time = |text: &str| {
        let time = parse_quantity(text, unit).filter(|time| *time > 0.0);
        time.ok_or_else(|| format!("invalid time {}: use a value such as 20u or 1.5 ms", text.trim()))
    };
    let given = |text: &str| if text.trim().is_empty() { Ok(None) } else { time(text).map(Some) };
    let (min, max) = text.split_once("..").unwrap_or(("", text));
    match (given(min)?, given(max)?) {
        (Some(min), Some(max)) if min > max => {
            Err(format!("no pulse is longer than {text}: turn them round"))
        }
        pulse => Ok(pulse),
    }
}

/// Formats it as typed.
pub(super) fn pulse_text(min: Option<f64>, max: Option<f64>, unit: &str) -> String {
    let text = |time: Option<f64>| time.map_or(String::new(), |time| exact(time, unit));
    match (min, max) {
        (None, max) => text(max),
        (min, max) => format!("{}..{}", text(min), text(max)),
    }
}

/// The time of a trigger, in words; empty if it has none. `span` is that of the screen.
pub(super) fn time_words(settings: &TriggerSettings, span: f64, unit: &str) -> String {
    let show = |time: f64| Engineering::new(time, unit).digits(4).to_string();
    let division = span / DIVISIONS;
    match (settings.kind, settings.pulse_min_s, settings.pulse_max_s) {
        (TriggerKind::Pulse, None, max) => format!("< {}", show(max.unwrap_or(division))),
        (TriggerKind::Pulse, Some(min), None) => format!("> {}", show(min)),
        (TriggerKind::Pulse, Some(min), Some(max)) => format!("{} \u{2026} {}", show(min), show(max)),
        (TriggerKind::Dropout, ..) => show(settings.dropout_s.unwrap_or(division)),
        _ => String::new(),
    }
}

fn exact(time: f64, unit: &str) -> String {
    Engineering::new(time, unit).digits(9).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_read_as_they_are_shown() {
        let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < b * 1e-12,
            (a, b) => a == b,
        };
        for (typed, min, max) in [
            ("", None, None),
            ("20u", None, Some(20e-6)),
            ("..20 us", None, Some(20e-6)),
            ("1.5 ms..", Some(1.5e-3), None),
            ("20u..1m", Some(20e-6), Some(1e-3)),
            (" 2 .. 3 s ", Some(2.0), Some(3.0)),
        ] {
            let read = parse_pulse(typed, "s").unwrap();
            assert!(close(read.0, min) && close(read.1, max), "{typed}: {read:?}");
            let again = parse_pulse(&pulse_text(min, max, "s"), "s").unwrap();
            assert!(close(again.0, min) && close(again.1, max), "{typed}: {again:?}");
        }
        for typed in ["x", "0", "-1m", "3m..1m", "1..x", "inf"] {
            assert!(parse_pulse(typed, "s").is_err(), "{typed}");
        }
    }
}
