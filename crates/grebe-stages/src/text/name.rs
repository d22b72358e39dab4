//! What the name of a stream of lines says.

use std::fmt;

use grebe_flow::RateHz;
use grebe_frame::{MAX_CHANNELS, SampleFormat};

use crate::raw::Carrier;
use crate::text::columns::{Fixed, TimeColumn, TimeUnit};
use crate::text::pace::Rate;

/// A stream of lines of numbers, as [`Uri::Text`](crate::Uri::Text) names it: `pipe:?format=text`, `serial:///dev/ttyACM0`. A line
/// is a sample of each channel: `1,2,3`, or `a:1,b:2`.
///
/// | in the query | means | without it |
/// |---|---|---|
/// | `format=text` | lines of numbers | needed, but for a serial port |
/// | `rate=` | lines per second: `100`; `measure`: by when they arrive in the first second | measured, but for a pipe, where it is not known |
/// | `channels=` | so many columns, or the names of those to take: `3`, `a,b`; others are left out | what there is |
/// | `time=` | the column of the time, by name or number, and its unit: `t`, `1:ms` | a column named `time`, `time_s`, `time_ms` or `time_us` |
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
    /// Reads the query of a name.
    pub(crate) fn parse(carrier: Carrier, query: &str) -> Result<Self, String> {
        let rate = if carrier == Carrier::Pipe { Rate::Unknown } else { Rate::Measured };
        let mut text =
            Self { carrier, format: SampleFormat::F64, rate, fixed: None, time: None, writes_time: false };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "format" if value == "text" => {}
                "format" => {
                    return Err(format!(
                        "has format={value} beside format=text: as={value} is what samples become"
                    ));
                }
                "as" => match value.parse::<SampleFormat>() {
                    Ok(format) if !format.is_complex() => text.format = format,
                    _ => return Err(format!("has as={value}: give i8, u8, i16, i32, f32 or f64")),
                },
                "rate" if value == "measure" => text.rate = Rate::Measured,
                "rate" => match value.parse::<RateHz>() {
                    Ok(RateHz(rate_hz)) if rate_hz > 0.0 && rate_hz.is_finite() => {
                        text.rate = Rate::Given(rate_hz);
                    }
                    _ => {
                        return Err(format!(
                            "has rate={value}: give lines per second, as in 100, or measure"
                        ));
                    }
                },
                "channels" => text.fixed = Some(fixed(value)?),
                "time" if value.is_empty() => text.writes_time = true,
                "time" => text.time = Some(time(value)?),
                _ if text.carrier.take(key, value)? => {}
                _ => {
                    return Err(format!(
                        "has an unknown '{key}': known for lines of numbers are format, rate, channels, time, as, {}",
                        text.carrier.keys()
                    ));
                }
            }
        }
        Ok(text)
    }

    /// Lines per second, where the name says it.
    pub(crate) fn rate_hz(&self) -> Option<f64> {
        match self.rate {
            Rate::Given(rate_hz) => Some(rate_hz),
            Rate::Unknown | Rate::Measured => None,
        }
    }

    /// Whether it is a pipe or a TCP connection, whose writer waits for its reader; datagrams and devices wait for nobody.
    pub fn is_byte_stream(&self) -> bool {
        self.carrier.waits()
    }
}

/// `3`, `a,b`.
fn fixed(value: &str) -> Result<Fixed, String> {
    let wrong = || format!("has channels={value}: give 1 to {MAX_CHANNELS}, or names, as in a,b");
    if let Ok(count) = value.parse::<usize>() {
        let fits = (1..=MAX_CHANNELS as usize).contains(&count);
        return if fits { Ok(Fixed::Count(count)) } else { Err(wrong()) };
    }
    let names: Vec<String> = value.split(',').map(|name| name.trim().to_owned()).collect();
    let is_twice = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    if names.len() > MAX_CHANNELS as usize || names.iter().any(|name| name.is_empty() || is_twice(name)) {
        return Err(wrong());
    }
    Ok(Fixed::Names(names))
}

/// `t`, `1:ms`.
fn time(value: &str) -> Result<TimeColumn, String> {
    let wrong = || format!("has time={value}: give a column and its unit, as in t, 1:ms or micros:us");
    let (column, unit) = value.split_once(':').unwrap_or((value, "s"));
    let unit = TimeUnit::named(unit).ok_or_else(wrong)?;
    match column.parse::<usize>() {
        Ok(0) => Err(wrong()),
        Ok(number) if number <= MAX_CHANNELS as usize => Ok(TimeColumn::Number(number - 1, unit)),
        Err(_) if !column.is_empty() => Ok(TimeColumn::Name(column.to_owned(), unit)),
        _ => Err(wrong()),
    }
}

impl fmt::Display for TextStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}?format=text", self.carrier)?;
        match self.rate {
            Rate::Given(rate_hz) => write!(f, "&rate={rate_hz}")?,
            Rate::Measured if self.carrier == Carrier::Pipe => f.write_str("&rate=measure")?,
            Rate::Measured | Rate::Unknown => {}
        }
        match &self.fixed {
            Some(Fixed::Count(count)) => write!(f, "&channels={count}")?,
            Some(Fixed::Names(names)) => write!(f, "&channels={}", names.join(","))?,
            None => {}
        }
        match &self.time {
            Some(TimeColumn::Name(name, unit)) => write!(f, "&time={name}:{unit}")?,
            Some(TimeColumn::Number(at, unit)) => write!(f, "&time={}:{unit}", at + 1)?,
            None => {}
        }
        f.write_str(if self.writes_time { "&time" } else { "" })?;
        if self.format != SampleFormat::F64 {
            write!(f, "&as={}", self.format)?;
        }
        f.write_str(&self.carrier.options())
    }
}

#[cfg(test)]
mod tests {
    use crate::Uri;

    #[test]
    fn what_is_written_is_understood_again() {
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
    fn what_makes_no_sense_is_refused() {
        for (text, reason) in [
            ("pipe:?format=text&as=cf32", "give i8, u8, i16"),
            ("pipe:?format=text&rate=0", "or measure"),
            ("pipe:?format=text&rate=often", "or measure"),
            ("pipe:?format=text&channels=0", "or names"),
            ("pipe:?format=text&channels=a,a", "or names"),
            ("pipe:?format=text&channels=a,,b", "or names"),
            ("pipe:?format=text&time=0", "as in t, 1:ms"),
            ("pipe:?format=text&time=t:weeks", "as in t, 1:ms"),
            ("pipe:?format=text&format=i16", "as=i16"),
            ("pipe:?format=text&skip=3", "unknown 'skip'"),
            ("udp://:1?format=text&listen", "listen, which is for tcp://"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
