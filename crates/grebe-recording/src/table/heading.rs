//! Names of columns: the time and its unit, and the units of the others.

use std::fmt;

/// Parsed column name: `Time [ms]`, `CH1 (V)`, `in s`, `time_us`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heading {
    /// Without the unit.
    pub name: String,
    /// Empty if there is none.
    pub unit: String,
}

/// Unit of a time column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

impl Heading {
    /// Parses the text above a column.
    ///
    /// ```
    /// use grebe_recording::table::{Heading, TimeUnit};
    ///
    /// let heading = Heading::of("Channel 1 (mV)");
    /// assert_eq!((heading.name.as_str(), heading.unit.as_str(), heading.time()), ("Channel 1", "mV", None));
    /// assert_eq!(Heading::of("#time [ms]").time(), Some(Some(TimeUnit::Ms)));
    /// assert_eq!(Heading::of("timestamp").time(), Some(None));
    /// ```
    pub fn of(text: &str) -> Self {
        let text = text.trim_start_matches(['#', ';']).trim().trim_matches('"').trim();
        let (name, unit) = parts(text).unwrap_or((text, ""));
        Self { name: name.to_owned(), unit: unit.to_owned() }
    }

    /// Whether it is the time, and its unit if stated.
    pub fn time(&self) -> Option<Option<TimeUnit>> {
        let name = self.name.to_lowercase().replace(['_', '-'], " ");
        let unit = TimeUnit::named(&self.unit.to_lowercase());
        if let Some(unit) = TIMES_OF_A_UNIT.iter().find_map(|(known, unit)| (*known == name).then_some(*unit))
        {
            return Some(Some(unit));
        }
        if name.is_empty() {
            return unit.map(Some);
        }
        if TIMES.contains(&name.as_str()) {
            // A unit of something else is none of a time.
            return (self.unit.is_empty() || unit.is_some() || is_date(&self.unit)).then_some(unit);
        }
        // time_ms
        let (before, last) = name.rsplit_once(' ')?;
        let unit = TimeUnit::named(last).filter(|_| self.unit.is_empty() && TIMES.contains(&before))?;
        Some(Some(unit))
    }

    /// Whether it is the date of a time in another column.
    pub fn is_date(&self) -> bool {
        is_date(&self.name)
    }

    /// Whether it may number the lines.
    pub fn is_count(&self) -> bool {
        COUNTS.contains(&self.name.to_lowercase().as_str()) && self.unit.is_empty()
    }
}

impl TimeUnit {
    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "s" | "sec" | "secs" | "second" | "seconds" => Some(Self::S),
            "ms" | "msec" | "millisecond" | "milliseconds" => Some(Self::Ms),
            "us" | "\u{b5}s" | "\u{3bc}s" | "usec" | "microsecond" | "microseconds" => Some(Self::Us),
            "ns" | "nsec" | "nanosecond" | "nanoseconds" => Some(Self::Ns),
            _ => None,
        }
    }

    /// As a power of ten of a second.
    pub(super) fn exponent(self) -> i32 {
        match self {
            Self::S => 0,
            Self::Ms => -3,
            Self::Us => -6,
            Self::Ns => -9,
        }
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::S => "s",
            Self::Ms => "ms",
            Self::Us => "us",
            Self::Ns => "ns",
        })
    }
}

/// The name and the unit: `a (V)`, `a [V]`, `a in V`, `in V`.
fn parts(text: &str) -> Option<(&str, &str)> {
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some((name, unit)) = text.strip_suffix(close).and_then(|text| text.rsplit_once(open)) {
            return is_unit(unit).then(|| (name.trim_end(), unit.trim()));
        }
    }
    if let Some(unit) = text.strip_prefix("in ") {
        return is_unit(unit).then_some(("", unit));
    }
    let (name, unit) = text.rsplit_once(" in ")?;
    (is_unit(unit) && !unit.contains(' ')).then_some((name, unit))
}

fn is_unit(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.len() <= 24 && !text.starts_with(|c: char| c.is_ascii_digit())
}

fn is_date(name: &str) -> bool {
    matches!(name.to_lowercase().as_str(), "date" | "day" | "utc" | "datum")
}

/// In lower case, with blanks for underscores.
const TIMES: [&str; 20] = [
    "time",
    "t",
    "timestamp",
    "times",
    "time stamp",
    "timestamps",
    "datetime",
    "date time",
    "date/time",
    "local time",
    "utc",
    "unix time",
    "unixtime",
    "epoch",
    "elapsed",
    "elapsed time",
    "time elapsed",
    "relative time",
    "uptime",
    "zeit",
];
const TIMES_OF_A_UNIT: [(&str, TimeUnit); 9] = [
    ("second", TimeUnit::S),
    ("seconds", TimeUnit::S),
    ("sec", TimeUnit::S),
    ("millis", TimeUnit::Ms),
    ("milliseconds", TimeUnit::Ms),
    ("micros", TimeUnit::Us),
    ("microseconds", TimeUnit::Us),
    ("nanoseconds", TimeUnit::Ns),
    ("x axis", TimeUnit::S),
];
const COUNTS: [&str; 9] =
    ["sample", "samples", "sequence", "index", "point", "points", "sample number", "no.", "nr"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_time_is_known_with_its_unit() {
        let cases = [
            ("time", None),
            ("Time", None),
            ("t", None),
            ("timestamp", None),
            ("Timestamp(ms)", Some(TimeUnit::Ms)),
            ("time_ms", Some(TimeUnit::Ms)),
            ("time_s", Some(TimeUnit::S)),
            ("t_us", Some(TimeUnit::Us)),
            ("Time (s)", Some(TimeUnit::S)),
            ("Time [s]", Some(TimeUnit::S)),
            ("Time [\u{b5}s]", Some(TimeUnit::Us)),
            ("#time (s)", Some(TimeUnit::S)),
            ("Time(S)", Some(TimeUnit::S)),
            ("in s", Some(TimeUnit::S)),
            ("Second", Some(TimeUnit::S)),
            ("nanoseconds", Some(TimeUnit::Ns)),
            ("millis", Some(TimeUnit::Ms)),
            ("Time in ms", Some(TimeUnit::Ms)),
        ];
        for (text, unit) in cases {
            assert_eq!(Heading::of(text).time(), Some(unit), "{text}");
        }
        for text in ["timer", "a", "temperature", "CH1 in V", "T (K)", "t (C)", "last_ms", "s", ""] {
            assert_eq!(Heading::of(text).time(), None, "{text}");
        }
    }

    #[test]
    fn units_follow_names() {
        for (text, name, unit) in [
            ("CH1 in V", "CH1", "V"),
            ("W.AvgPow(W)", "W.AvgPow", "W"),
            ("Linear Acceleration x (m/s^2)", "Linear Acceleration x", "m/s^2"),
            ("Channel 0", "Channel 0", ""),
            ("f(1)", "f(1)", ""),
            ("time in the morning", "time in the morning", ""),
        ] {
            assert_eq!(Heading::of(text), Heading { name: name.into(), unit: unit.into() }, "{text}");
        }
    }
}
