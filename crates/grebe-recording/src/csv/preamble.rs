//! Lines above a table, as programs of oscilloscopes and loggers write them: rate, begin and trigger time.

use std::time::{Duration, SystemTime};

use super::layout::{split, unit_named};
use crate::table::{Clock, number, reciprocal};

/// Values found above a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Preamble {
    pub(super) rate_hz: Option<f64>,
    /// Time of the first sample, by the clock whose zero is the trigger.
    pub(super) start_s: Option<f64>,
    /// When that was.
    pub(super) triggered: Option<SystemTime>,
    /// Names of the channels, where no line above the columns has them.
    pub(super) channels: Vec<String>,
    /// The unit of the only channel.
    pub(super) unit: Option<String>,
}

/// Meaning of a key.
#[derive(Clone, Copy)]
enum Key {
    Rate,
    Interval,
    Start,
    Triggered,
    Date,
    Time,
    Channels,
    Sources,
    Unit,
}

impl Preamble {
    /// Reads the lines above the names. Reads the names and units too if they are keys, not columns
    /// (`Start,Increment`).
    pub(super) fn of(lines: &[String], names: &[String], units: &[String], columns: usize) -> Self {
        let mut found = Self::default();
        let (mut date, mut time) = (String::new(), String::new());
        let mut take = |key: &str, value: &str| -> bool {
            let Some(key) = key_named(key) else { return false };
            // Siglent prefixes the value with the kind of its channels.
            let value = value.trim().trim_start_matches("Analog:");
            match key {
                Key::Rate => found.rate_hz = quantity(value).filter(|&hz| hz > 0.0).or(found.rate_hz),
                Key::Interval => {
                    let rate_hz = quantity(value).filter(|&s| s > 0.0).map(reciprocal);
                    found.rate_hz = rate_hz.or(found.rate_hz);
                }
                Key::Start => found.start_s = quantity(value).or(found.start_s),
                Key::Triggered => found.triggered = moment("", value).or(found.triggered),
                Key::Date => date = value.to_owned(),
                Key::Time => time = value.to_owned(),
                Key::Channels | Key::Sources => {
                    let name = |name: &str| name.split(':').next().unwrap_or_default().trim().to_owned();
                    found.channels =
                        split(value, b',').iter().map(|it| name(it)).filter(|it| !it.is_empty()).collect();
                }
                Key::Unit => {
                    let unit = value.trim_matches([',', ' ', ';']);
                    let unit = unit_named(unit).unwrap_or(unit);
                    found.unit = Some(unit.to_owned()).filter(|unit| !unit.is_empty());
                }
            }
            true
        };
        for (at, line) in lines.iter().enumerate() {
            let text = line.trim().trim_start_matches(['#', ';', '"', '%']).trim();
            if text.is_empty() {
                continue;
            }
            let is_mark = |c: char| matches!(c, ',' | '\t' | ';' | '=' | ':');
            let pair = text.split_once(is_mark).map(|(key, value)| {
                let is_around = |c: char| c == '"' || c == ' ' || is_mark(c);
                (key.trim_matches(['"', ' ']), value.trim_matches(is_around))
            });
            if let Some((key, value)) = pair {
                take(key, value);
            }
            // Segment,TrigTime: the value is on the next line.
            let below = lines.get(at + 1).map(|below| split(below, b',')).unwrap_or_default();
            for (cell, value) in split(text, b',').iter().zip(&below) {
                if cell.trim().eq_ignore_ascii_case("trigtime") {
                    take("trigtime", value);
                }
            }
        }
        for (at, name) in names.iter().enumerate().skip(columns) {
            match name.split_once('=') {
                // t0 = -1e-3
                Some((key, value)) => take(key, value),
                None => take(name, units.get(at).map_or("", String::as_str)),
            };
        }
        found.triggered = found.triggered.or_else(|| moment(&date, &time));
        found
    }
}

fn key_named(text: &str) -> Option<Key> {
    let text = text.split(['(', '[']).next().unwrap_or_default();
    let key: String = text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    KEYS.iter().find_map(|(name, meaning)| (*name == key).then_some(*meaning))
}

/// A number with a prefix: `100 MHz`, `1e+06`, `2.5us`, `1MSa/s`.
fn quantity(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches([',', ';', ' ']);
    if let Some(number) = number(text.as_bytes(), b'.') {
        return Some(number).filter(|it| it.is_finite());
    }
    let text = text.split([',', ';']).next()?.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || ".+-eE".contains(c))).unwrap_or(text.len());
    let value = number(text[..end].trim().as_bytes(), b'.').filter(|it| it.is_finite())?;
    let unit = text[end..].trim();
    let (prefix, rest) = unit.split_at(unit.chars().next().map_or(0, char::len_utf8));
    let factor = match prefix {
        "G" => 1e9,
        "M" => 1e6,
        "k" | "K" => 1e3,
        "m" if rest != "in" => 1e-3,
        "u" | "\u{b5}" | "\u{3bc}" => 1e-6,
        "n" => 1e-9,
        "p" => 1e-12,
        _ => 1.0,
    };
    let is_prefix =
        rest.is_empty() || ["Hz", "hz", "s", "Sa/s", "S/s", "SPS", "sps", "Samples/s", "V"].contains(&rest);
    let is_plain =
        ["", "Hz", "hz", "s", "S", "Sa/s", "S/s", "SPS", "sps", "samples/s", "Second"].contains(&unit);
    match (is_plain, is_prefix) {
        (true, _) => Some(value),
        (false, true) => Some(value * factor),
        _ => None,
    }
}

fn moment(date: &str, time: &str) -> Option<SystemTime> {
    let mut clock = Clock::new(None, b'.');
    clock.seconds_of(date.as_bytes(), time.as_bytes())?;
    clock.began()
}

/// The time `seconds` after (or before), if it exists.
pub(super) fn after(time: SystemTime, seconds: f64) -> Option<SystemTime> {
    let length = Duration::try_from_secs_f64(seconds.abs()).ok()?;
    if seconds < 0.0 { time.checked_sub(length) } else { time.checked_add(length) }
}

/// In lower case, without anything else than letters and digits.
const KEYS: [(&str, Key); 36] = [
    ("samplerate", Key::Rate),
    ("metasamplerate", Key::Rate),
    ("samplingrate", Key::Rate),
    ("samplefrequency", Key::Rate),
    ("samplingfrequency", Key::Rate),
    ("samplespersecond", Key::Rate),
    ("fs", Key::Rate),
    ("sampleinterval", Key::Interval),
    ("samplinginterval", Key::Interval),
    ("sampleperiod", Key::Interval),
    ("samplingperiod", Key::Interval),
    ("timeinterval", Key::Interval),
    ("timeincrement", Key::Interval),
    ("increment", Key::Interval),
    ("xincrement", Key::Interval),
    ("xinc", Key::Interval),
    ("tinc", Key::Interval),
    ("dt", Key::Interval),
    ("start", Key::Start),
    ("xorigin", Key::Start),
    ("xorg", Key::Start),
    ("t0", Key::Start),
    ("trigtime", Key::Triggered),
    ("triggertime", Key::Triggered),
    ("datetime", Key::Triggered),
    ("starttime", Key::Triggered),
    ("recordingtime", Key::Triggered),
    ("date", Key::Date),
    ("time", Key::Time),
    ("channels", Key::Channels),
    ("xaxis", Key::Sources),
    ("verticalscale", Key::Sources),
    ("source", Key::Sources),
    ("sources", Key::Sources),
    ("verticalunits", Key::Unit),
    ("yunits", Key::Unit),
];
