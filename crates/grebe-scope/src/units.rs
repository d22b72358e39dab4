//! Steps of 1-2-5, engineering numbers and axis ticks: the labels of all front ends.

use std::fmt;
use std::ops::RangeInclusive;

use crate::clock::{self, clock_text, is_long, step_time_up};
use crate::steps::{power_of_ten, round_to, step_125_up};

/// A number with its unit as engineers read it: `25 MS/s`, `1.2 ms`, `-340 mV`.
///
/// Three significant digits by default, without trailing zeros. From 1000 s on, the format is that of a clock. Levels
/// in dB, degrees and ratios take no prefix; numbers without a unit take none below 1.
///
/// ```
/// use grebe_scope::Engineering;
/// assert_eq!(Engineering::new(25e6, "S/s").to_string(), "25 MS/s");
/// assert_eq!(Engineering::new(0.00123456, "s").digits(4).to_string(), "1.235 ms");
/// assert_eq!(Engineering::new(999.96, "Hz").to_string(), "1 kHz");
/// assert_eq!(Engineering::new(12.5, "").to_string(), "12.5");
/// assert_eq!(Engineering::new(0.5, "dB").to_string(), "0.5 dB");
/// assert_eq!(Engineering::new(3725.25, "s").digits(9).to_string(), "1:02:05.25");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Engineering<'a> {
    value: f64,
    unit: &'a str,
    digits: u32,
}

impl<'a> Engineering<'a> {
    /// `value` of `unit`; `unit` is the bare name, as `"V"` or `"S/s"`.
    pub fn new(value: f64, unit: &'a str) -> Engineering<'a> {
        Engineering { value, unit, digits: 3 }
    }

    /// Sets the number of significant digits, 1 to 15.
    pub fn digits(self, digits: u32) -> Engineering<'a> {
        Engineering { digits: digits.clamp(1, 15), ..self }
    }
}

impl fmt::Display for Engineering<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.unit.is_empty() { "" } else { " " };
        if !self.value.is_finite() {
            return write!(f, "--{space}{}", self.unit);
        }
        let exponents = prefix_exponents(self.unit);
        if exponents.start() == &0 && self.value.abs() < SCIENTIFIC_BELOW && self.value != 0.0 {
            return write!(f, "{}{space}{}", scientific(self.value, self.digits), self.unit);
        }
        let mut exponent = prefix_exponent(self.value).clamp(*exponents.start(), *exponents.end());
        let mut decimals = decimals_for(self.value / power_of_ten(exponent), self.digits);
        if exponents.start() == &0 && self.value != 0.0 && self.value.abs() < 1.0 {
            // Zeros after the point are not significant.
            decimals = (self.digits as i32 - 1 - self.value.abs().log10().floor() as i32) as u32;
        }
        let rounded = round_to(self.value / power_of_ten(exponent), decimals);
        if rounded.abs() >= 1000.0 && exponent < *exponents.end() {
            exponent += 3;
            decimals = self.digits.saturating_sub(1);
        }
        if self.unit == "s" && (3..9).contains(&exponent) {
            let before = self.value.abs().log10() as u32 + 1;
            return clock_text(f, self.value, self.digits.saturating_sub(before), true);
        }
        let scaled = round_to(self.value / power_of_ten(exponent), decimals);
        while decimals > 0 && is_whole(scaled * power_of_ten(decimals as i32 - 1)) {
            decimals -= 1;
        }
        let scaled = if scaled == 0.0 { 0.0 } else { scaled };
        let prefix = prefix(exponent);
        let space = if prefix.is_empty() { space } else { " " };
        write!(f, "{scaled:.*}{space}{prefix}{}", decimals as usize, self.unit)
    }
}

/// Parses a typed quantity of `unit`: a number, optionally with an SI prefix and the unit; seconds also in the format
/// of a clock. `None` if it is invalid.
///
/// ```
/// use grebe_scope::parse_quantity;
/// for typed in ["0.00015", "150u", "150 µV", "1.5e-4V", ".15 mV"] {
///     assert!((parse_quantity(typed, "V").unwrap() - 150e-6).abs() < 1e-18);
/// }
/// assert_eq!(parse_quantity("5 m", "m"), Some(5.0)); // metres, not milli
/// assert_eq!(parse_quantity("1:02:05.5", "s"), Some(3725.5));
/// assert_eq!((parse_quantity("150 x", "V"), parse_quantity("inf", ""), parse_quantity("", "")), (None, None, None));
/// ```
pub fn parse_quantity(text: &str, unit: &str) -> Option<f64> {
    let text = text.trim();
    if unit == "s" && text.contains(':') {
        return clock::parse(text);
    }
    let ends = text.char_indices().map(|(at, typed)| at + typed.len_utf8()).rev();
    let mut numbers =
        ends.filter_map(|end| Some((text[..end].trim_end().parse::<f64>().ok()?, &text[end..])));
    let (number, rest) = numbers.next()?;
    let rest = rest.trim_start();
    let prefix = if rest == unit { "" } else { rest.strip_suffix(unit).unwrap_or(rest).trim_end() };
    let exponent = match prefix {
        "u" | "\u{3bc}" => Some(-6),
        "K" => Some(3),
        prefix => PREFIXES.iter().position(|it| *it == prefix).map(|place| place as i32 * 3 - 15),
    };
    Some(number * power_of_ten(exponent?)).filter(|value| value.is_finite())
}

/// Places and labels of an axis' lines, in steps of 1-2-5.
///
/// ```
/// use grebe_scope::Ticks;
/// let ticks = Ticks::new(-0.3, 1.1, 8);
/// assert_eq!(ticks.step(), 0.2);
/// assert_eq!(ticks.values().count(), 7);
/// let labels: Vec<String> = ticks.values().map(|v| ticks.label(v, "V")).collect();
/// assert_eq!(labels, ["-200 mV", "0 mV", "200 mV", "400 mV", "600 mV", "800 mV", "1000 mV"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ticks {
    low: f64,
    high: f64,
    step: f64,
}

impl Ticks {
    /// At most `count_max` (2 or more) ticks from `low` to `high`. An empty or endless range has none.
    pub fn new(low: f64, high: f64, count_max: u32) -> Ticks {
        let step = step_125_up((high - low) / f64::from(count_max.max(2)));
        Ticks { low, high, step }
    }

    /// The same on an axis of this unit: for long times in seconds, steps of a clock.
    pub fn of_unit(low: f64, high: f64, count_max: u32, unit: &str) -> Ticks {
        let least = (high - low) / f64::from(count_max.max(2));
        match unit == "s" && is_long(low.abs().max(high.abs())) {
            true => Ticks { low, high, step: step_time_up(least) },
            false => Ticks::new(low, high, count_max),
        }
    }

    /// Ticks every `step`.
    pub fn with_step(low: f64, high: f64, step: f64) -> Ticks {
        Ticks { low, high, step: if step > 0.0 { step } else { 1.0 } }
    }

    /// Distance between ticks.
    pub fn step(&self) -> f64 {
        self.step
    }

    /// Multiples of the step from low to high, at most 1000.
    pub fn values(&self) -> impl Iterator<Item = f64> + use<> {
        let Ticks { low, high, step } = *self;
        let first = (low / step - 1e-9).ceil();
        let count = ((high / step + 1e-9).floor() - first + 1.0).clamp(0.0, 1000.0);
        let count = if count.is_nan() { 0 } else { count as u64 };
        (0..count).map(move |n| (first + n as f64) * step)
    }

    /// The label of a tick: one prefix for the whole axis, or the format of a clock, with the decimals that the step needs.
    pub fn label(&self, value: f64, unit: &str) -> String {
        let largest = self.low.abs().max(self.high.abs());
        // A span from the network, or of whole samples, is slightly off: a step of 0.9999999 s means 1 s.
        let step = self.step * (1.0 + WHOLE_WITHIN);
        let step_exponent = step.log10().floor() as i32;
        let is_one_digit = is_whole(self.step / power_of_ten(step_exponent));
        let decimals = |exponent: i32| (exponent - step_exponent + i32::from(!is_one_digit)).clamp(0, 12);
        if unit == "s" && is_long(largest) {
            let mut label = String::new();
            // Writing to a String cannot fail.
            let _ = clock_text(&mut label, value, decimals(0) as u32, false);
            return label;
        }
        // The prefix of the step if that gives at most four digits before the point, else that of the largest value.
        let has_four_digits = |exponent: i32| largest / power_of_ten(exponent) < 1e4;
        let fitting = [step, largest].map(prefix_exponent);
        let fitting = fitting.into_iter().find(|&exponent| has_four_digits(exponent));
        let exponents = prefix_exponents(unit);
        let exponent = fitting.unwrap_or(EXPONENT_MAX).clamp(*exponents.start(), *exponents.end());
        let scaled = value / power_of_ten(exponent);
        let places = decimals(exponent) as usize;
        let scaled = if scaled.abs() * power_of_ten(places as i32) < 0.5 { 0.0 } else { scaled };
        let prefix = prefix(exponent);
        let space = if unit.is_empty() && prefix.is_empty() { "" } else { " " };
        if exponents.start() == &0 && largest < SCIENTIFIC_BELOW && largest > 0.0 {
            let digits = prefix_exponent(largest) + 3 - step_exponent;
            let is_zero = value.abs() < self.step * 0.5;
            let text = if is_zero { "0".into() } else { scientific(value, digits.clamp(1, 15) as u32) };
            return format!("{text}{space}{unit}");
        }
        let decimals = places;
        format!("{scaled:.decimals$}{space}{prefix}{unit}")
    }
}

/// The prefixes of a unit, as powers of ten: levels and ratios, degrees and dimensionless units take none, and a
/// number without a unit takes none that could be read as one (`500 m`).
fn prefix_exponents(unit: &str) -> RangeInclusive<i32> {
    let is_level = unit.starts_with("dB");
    let is_angle_or_temperature = unit.starts_with('\u{b0}') || unit.starts_with("deg");
    let is_ratio = matches!(unit, "%" | "\u{2030}" | "ppm" | "ppb" | "1") || unit.starts_with('/');
    match unit {
        "" => 0..=EXPONENT_MAX,
        _ if is_level || is_angle_or_temperature || is_ratio => 0..=0,
        _ => -15..=EXPONENT_MAX,
    }
}

/// `-1.25e-6`: a small number without a prefix or trailing zeros.
fn scientific(value: f64, digits: u32) -> String {
    let text = format!("{value:.*e}", digits.saturating_sub(1) as usize);
    let (number, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number}e{exponent}")
}

const EXPONENT_MAX: i32 = 12;
/// Smaller numbers have too many zeros to count.
const SCIENTIFIC_BELOW: f64 = 1e-4;
const WHOLE_WITHIN: f64 = 1e-6;
const PREFIXES: [&str; 10] = ["f", "p", "n", "µ", "m", "", "k", "M", "G", "T"];

fn prefix(exponent: i32) -> &'static str {
    usize::try_from((exponent + 15) / 3).ok().and_then(|i| PREFIXES.get(i)).copied().unwrap_or("")
}

/// The power of a thousand that leaves 1 to 999 before the point, limited to the existing prefixes.
fn prefix_exponent(value: f64) -> i32 {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let exponent = (value.abs().log10() + 1e-12).floor() as i32;
    (exponent.div_euclid(3) * 3).clamp(-15, EXPONENT_MAX)
}

fn decimals_for(scaled: f64, digits: u32) -> u32 {
    let before = match scaled.abs() {
        scaled if scaled < 10.0 => 1,
        scaled if scaled < 100.0 => 2,
        scaled if scaled < 1000.0 => 3,
        // Without a prefix that would be larger.
        _ => digits,
    };
    digits.saturating_sub(before)
}

fn is_whole(value: f64) -> bool {
    (value - value.round()).abs() < WHOLE_WITHIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_two_digits_has_both_in_its_labels() {
        let labels = |step: f64| {
            let ticks = Ticks::with_step(0.0, step * 3.0, step);
            ticks.values().map(|value| ticks.label(value, "s")).collect::<Vec<_>>()
        };
        assert_eq!(labels(2.4e-3), ["0.0 ms", "2.4 ms", "4.8 ms", "7.2 ms"]);
        assert_eq!(labels(25.0), ["0 s", "25 s", "50 s", "75 s"]);
        assert_eq!(labels(0.1), ["0 ms", "100 ms", "200 ms", "300 ms"]);
        assert_eq!(labels(1.0 - 5e-8), ["0 s", "1 s", "2 s", "3 s"]);
        assert_eq!(labels(0.1 + 5e-9), ["0 ms", "100 ms", "200 ms", "300 ms"]);
    }

    #[test]
    fn a_long_axis_is_labelled_as_a_clock_is_read() {
        let labels = |low: f64, high: f64, count: u32| {
            let ticks = Ticks::of_unit(low, high, count, "s");
            ticks.values().map(|value| ticks.label(value, "s")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(labels(0.0, 600.0, 6), "0 s 100 s 200 s 300 s 400 s 500 s 600 s");
        assert_eq!(labels(0.0, 3_725.0, 5), "0:00:00 0:20:00 0:40:00 1:00:00");
        assert_eq!(labels(-1_200.0, 0.0, 4), "-0:20:00 -0:15:00 -0:10:00 -0:05:00 0:00:00");
        assert_eq!(labels(7_199.5, 7_200.1, 3), "1:59:59.6 1:59:59.8 2:00:00.0");
        assert_eq!(labels(0.0, 2e5, 5), "0:00:00 12:00:00 24:00:00 36:00:00 48:00:00");
        // The unit is samples.
        assert_eq!(Ticks::of_unit(0.0, 4e3, 2, "S").label(2e3, "S"), "2 kS");
    }

    #[test]
    fn engineering_numbers_read_well() {
        let show = |v, u| Engineering::new(v, u).to_string();
        for (value, unit, expected) in [
            (0.0, "V", "0 V"),
            (-0.0, "V", "0 V"),
            (1e9, "S/s", "1 GS/s"),
            (48_000.0, "Hz", "48 kHz"),
            (-0.34, "V", "-340 mV"),
            (1.25e-6, "s", "1.25 µs"),
            (123_456.0, "", "123 k"),
            (9.999e-4, "s", "1 ms"),
            (1e-18, "s", "0 fs"),
            (5e15, "S", "5000 TS"),
            (f64::NAN, "V", "-- V"),
            (100.0, "V", "100 V"),
            (999.0, "s", "999 s"),
            (999.96, "s", "0:16:40"),
            (-3_599.6, "s", "-1:00:00"),
            (86_400.0, "s", "24:00:00"),
            (1e9, "s", "1 Gs"),
            (3_600.0, "S", "3.6 kS"),
        ] {
            assert_eq!(show(value, unit), expected, "{value}");
        }
    }

    #[test]
    fn levels_degrees_and_ratios_take_no_prefix() {
        let show = |v, u| Engineering::new(v, u).digits(4).to_string();
        for (value, unit, expected) in [
            (0.5, "dB", "0.5 dB"),
            (-1.9382, "dBFS", "-1.938 dBFS"),
            (-89.999, "degC", "-90 degC"),
            (0.0125, "\u{b0}", "0.0125 \u{b0}"),
            (2_612.0, "%", "2612 %"),
            (123_456.7, "%", "123457 %"),
            (0.5, "", "0.5"),
            (2.5e-7, "", "2.5e-7"),
            (-3e-5, "dB", "-3e-5 dB"),
            (20_000.0, "", "20 k"),
            (1e-3, "/S", "0.001 /S"),
            (1e-3, "rad", "1 mrad"),
        ] {
            assert_eq!(show(value, unit), expected, "{value}");
        }
        let labels = |low: f64, high: f64, count: u32, unit: &str| {
            let ticks = Ticks::new(low, high, count);
            ticks.values().map(|value| ticks.label(value, unit)).collect::<Vec<_>>()
        };
        assert_eq!(labels(-1.9386, -1.9382, 2, "dBFS"), ["-1.9386 dBFS", "-1.9384 dBFS", "-1.9382 dBFS"]);
        assert_eq!(labels(-90.0, -89.998, 2, "degC"), ["-90.000 degC", "-89.999 degC", "-89.998 degC"]);
        assert_eq!(labels(0.0, 1.0, 2, ""), ["0.0", "0.5", "1.0"]);
        assert_eq!(labels(-4e-6, 4e-6, 4, ""), ["-4e-6", "-2e-6", "0", "2e-6", "4e-6"]);
        assert_eq!(labels(0.0, 4_000.0, 2, "%"), ["0 %", "2000 %", "4000 %"]);
    }

    #[test]
    fn an_axis_has_the_prefix_of_its_largest_value_where_its_steps_are_small() {
        let label = |low: f64, high: f64, step: f64, value: f64, unit: &str| {
            Ticks::with_step(low, high, step).label(value, unit)
        };
        assert_eq!(label(99.9e6, 100.4e6, 1e5, 100e6, "Hz"), "100.0 MHz");
        assert_eq!(label(-10.0, 0.0, 0.5, -10.0, "s"), "-10.0 s");
        assert_eq!(label(0.0, 1.0, 0.2, 1.0, "V"), "1000 mV");
        assert_eq!(label(433.9e6, 434.1e6, 20e3, 433.92e6, "Hz"), "433.92 MHz");
    }

    #[test]
    fn ticks_cover_odd_ranges() {
        assert_eq!(Ticks::new(5.0, 5.0, 10).values().count(), 1);
        assert_eq!(Ticks::new(f64::NAN, 1.0, 10).values().count(), 0);
        assert!(Ticks::new(-1e300, 1e300, 10).values().count() <= 1000);
        let ticks = Ticks::new(12.3450, 12.3451, 10);
        assert_eq!(ticks.label(12.34501, "s"), "12.34501 s");
        assert!(Ticks::of_unit(-1e300, 1e300, 10, "s").values().count() <= 1000);
        assert_eq!(Ticks::of_unit(f64::NAN, 1.0, 10, "s").values().count(), 0);
    }
}
