//! URI of a stream of lines.

use grebe_frame::{MAX_CHANNELS, SampleFormat};
use grebe_process::query::{Pairs, Query, positive};

use grebe_recording::table::TimeUnit;

use super::columns::{Fixed, TimeColumn};
use super::pace::Rate;
use crate::transport::Carrier;

/// A stream of lines of numbers, as [`Uri::Text`](crate::Uri::Text) names it: `pipe:?format=text`, `serial:///dev/ttyACM0`. A line
/// is a sample of each channel: `1,2,3`, or `a:1,b:2`.
///
/// | in the query | means | without it |
/// |---|---|---|
/// | `format=text` | lines of numbers | needed, but for a serial port |
/// | `rate=` | lines per second: `100`; `measure`: by when they arrive in the first second | measured, but for a pipe, where it is not known |
/// | `channels=` | number of columns, or names of the columns to take: `3`, `a,b`; skips all others | what there is |
/// | `time=` | the column of the time, by name or number, and its unit: `t`, `1:ms`; `none` | a column named `time`, `t`, `timestamp`, `Time (ms)`, ... |
/// | `as=` | samples of `i8 u8 i16 i32 f32 f64` | `f64` |
/// | `listen`, `reconnect`, `baud=`, ... | as of a [`RawStream`](crate::RawStream) | |
#[derive(Debug, Clone, PartialEq)]
pub struct TextStream {
    pub(crate) carrier: Carrier,
    /// A real one.
    pub(crate) format: SampleFormat,
    pub(crate) rate: Rate,
    pub(crate) fixed: Option<Fixed>,
    pub(crate) time: Option<TimeColumn>,
    /// A sink begins each line with its time.
    pub(crate) writes_time: bool,
}

impl TextStream {
    /// Takes the pairs of a name; those of the carrier, and others that the scheme has, are taken already.
    ///
    /// # Errors
    /// A pair is malformed or unknown.
    pub(crate) fn of_query(carrier: Carrier, mut query: Query<'_>) -> Result<Self, String> {
        let must = "text: as= says what samples become";
        query.value("format", must, |value| (value == "text").then_some(()))?;
        let unknown = if carrier == Carrier::Pipe { Rate::Unknown } else { Rate::Measured };
        let rate = query.value("rate", "lines per second, as in 100, or measure", |value| match value {
            "measure" => Some(Rate::Measured),
            _ => positive(value).map(Rate::Given),
        })?;
        let must = format!("1 to {MAX_CHANNELS}, or names, as in a,b");
        let fixed = query.value("channels", must, fixed)?;
        let time =
            query.value("time", "a column and its unit, as in t, 1:ms or micros:us, or none", |value| {
                if value.is_empty() { Some(None) } else { time(value).map(Some) }
            })?;
        let format = query.value("as", "i8, u8, i16, i32, f32 or f64", |value| {
            value.parse().ok().filter(|format: &SampleFormat| !format.is_complex())
        })?;
        query.end()?;
        let writes_time = time == Some(None);
        let format = format.unwrap_or(SampleFormat::F64);
        Ok(Self { carrier, format, rate: rate.unwrap_or(unknown), fixed, time: time.flatten(), writes_time })
    }

    /// The pairs of a name, without those of the carrier.
    pub(crate) fn pairs(&self) -> Pairs {
        let rate = match self.rate {
            Rate::Given(rate_hz) => Some(rate_hz.to_string()),
            Rate::Measured if self.carrier == Carrier::Pipe => Some("measure".to_owned()),
            Rate::Measured | Rate::Unknown => None,
        };
        let channels = self.fixed.as_ref().map(|fixed| match fixed {
            Fixed::Count(count) => count.to_string(),
            Fixed::Names(names) => names.join(","),
        });
        let time = self.time.as_ref().map(|time| {
            let (column, unit) = match time {
                TimeColumn::Name(name, unit) => (name.clone(), unit),
                TimeColumn::Number(at, unit) => ((at + 1).to_string(), unit),
                TimeColumn::None => return "none".to_owned(),
            };
            unit.map_or(column.clone(), |unit| format!("{column}:{unit}"))
        });
        Pairs::default()
            .add("format", Some("text"))
            .add("rate", rate)
            .add("channels", channels)
            .add("time", time)
            .flag("time", self.writes_time)
            .add("as", Some(self.format).filter(|&format| format != SampleFormat::F64))
    }

    /// Lines per second, where the name says it.
    pub(crate) fn rate_hz(&self) -> Option<f64> {
        match self.rate {
            Rate::Given(rate_hz) => Some(rate_hz),
            Rate::Unknown | Rate::Measured => None,
        }
    }
}

/// `3`, `a,b`.
fn fixed(value: &str) -> Option<Fixed> {
    if let Ok(count) = value.parse::<usize>() {
        return (1..=MAX_CHANNELS as usize).contains(&count).then_some(Fixed::Count(count));
    }
    let names: Vec<String> = value.split(',').map(|name| name.trim().to_owned()).collect();
    let is_twice = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    let is_wrong =
        names.len() > MAX_CHANNELS as usize || names.iter().any(|name| name.is_empty() || is_twice(name));
    (!is_wrong).then_some(Fixed::Names(names))
}

/// `t`, `1:ms`, `none`.
fn time(value: &str) -> Option<TimeColumn> {
    if value == "none" {
        return Some(TimeColumn::None);
    }
    let (column, unit) = match value.split_once(':') {
        Some((column, unit)) => (column, Some(TimeUnit::named(unit)?)),
        None => (value, None),
    };
    match column.parse::<usize>() {
        Ok(number @ 1..=CHANNELS_MAX) => Some(TimeColumn::Number(number - 1, unit)),
        Err(_) if !column.is_empty() => Some(TimeColumn::Name(column.to_owned(), unit)),
        _ => None,
    }
}

const CHANNELS_MAX: usize = MAX_CHANNELS as usize;

#[cfg(test)]
mod tests {
    use crate::Uri;

    #[test]
    fn printed_names_are_parsed_again() {
        for text in [
            "pipe:?format=text",
            "pipe:?format=text&rate=measure&time",
            "pipe:?format=text&rate=100&channels=3&time=1:ms&as=i16",
            "tcp://host:1?format=text&channels=a,b c&time=t:us&listen&reconnect",
            "udp://:5000?format=text&as=f32",
        ] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_options_are_refused() {
        for (text, reason) in [
            ("pipe:?format=text&as=cf32", "give i8, u8, i16"),
            ("pipe:?format=text&rate=0", "or measure"),
            ("pipe:?format=text&rate=often", "or measure"),
            ("pipe:?format=text&channels=0", "or names"),
            ("pipe:?format=text&channels=a,a", "or names"),
            ("pipe:?format=text&channels=a,,b", "or names"),
            ("pipe:?format=text&time=0", "as in t, 1:ms"),
            ("pipe:?format=text&time=t:weeks", "as in t, 1:ms"),
            ("pipe:?format=text&format=i16", "has 'format' twice"),
            ("pipe:?format=text&skip=3", "unknown 'skip'"),
            ("udp://:1?format=text&listen", "listen, which is for tcp://"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
