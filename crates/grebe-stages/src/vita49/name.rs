//! What the name of a VITA-49 stream says.

use std::fmt;

use grebe_flow::RateHz;
use grebe_frame::{MAX_CHANNELS, SampleFormat};

use super::payload_format::Shape;
use crate::uri::HostPort;

/// A stream of VITA-49 packets over UDP, as [`Uri::Vita49`](crate::Uri::Vita49) names it: `vrt://HOST:PORT`.
///
/// | in the query | as a source | as a sink | without it |
/// |---|---|---|---|
/// | `stream=` | takes the stream with this identifier (`7`, `0x1f`) | gives it this one | the first that is heard; 1 |
/// | `format=` | what the samples are, whatever context packets say | - | as context packets say |
/// | `channels=` | how many stand side by side, with `format` | - | 1 |
/// | `rate=` | samples per second and channel, whatever context packets say | - | as context packets say |
/// | `gaps=count` | only packet counts tell of gaps: for devices whose times jump | - | counts and times do |
/// | `profile=` | - | `vita49`, or `difi` | `vita49` |
/// | `time=` | - | `utc`, `gps`, `samples` (a count of samples) or `none` | `utc` |
#[derive(Debug, Clone, PartialEq)]
pub struct Vita49Stream {
    pub(crate) at: HostPort,
    pub(crate) stream_id: Option<u32>,
    /// Of the samples, where context packets are not to say it.
    pub(crate) format: Option<SampleFormat>,
    pub(crate) channels: usize,
    /// Samples per second and channel; 0: as context packets say.
    pub(crate) rate_hz: f64,
    pub(crate) ignores_time: bool,
    pub(crate) profile: Profile,
    pub(crate) time: Time,
}

/// Whose rules a sink keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Profile {
    /// The standard's.
    #[default]
    Vita49,
    /// DIFI's: complex integers, a fixed context packet.
    Difi,
}

/// What a sink's packets say of their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Time {
    #[default]
    Utc,
    Gps,
    Samples,
    None,
}

impl Vita49Stream {
    /// Reads the query of a name.
    pub(crate) fn parse(at: HostPort, query: &str) -> Result<Self, String> {
        let mut stream = Self {
            at,
            stream_id: None,
            format: None,
            channels: 1,
            rate_hz: 0.0,
            ignores_time: false,
            profile: Profile::default(),
            time: Time::default(),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match (key, value) {
                ("stream", _) => {
                    let number = match value.strip_prefix("0x") {
                        Some(digits) => u32::from_str_radix(digits, 16),
                        None => value.parse(),
                    };
                    let wrong =
                        |_| format!("has stream={value}: give the stream's identifier, as in 7 or 0x1f");
                    stream.stream_id = Some(number.map_err(wrong)?);
                }
                ("format", _) => {
                    let format = value.parse().map_err(|error| format!("has a wrong format: {error}"))?;
                    stream.format = Some(format);
                }
                ("channels", _) => {
                    let channels =
                        value.parse().ok().filter(|channels| (1..=MAX_CHANNELS as usize).contains(channels));
                    let wrong = || format!("has channels={value}: give 1 to {MAX_CHANNELS}");
                    stream.channels = channels.ok_or_else(wrong)?;
                }
                ("rate", _) => match value.parse::<RateHz>() {
                    Ok(RateHz(rate_hz)) if rate_hz > 0.0 && rate_hz.is_finite() => stream.rate_hz = rate_hz,
                    _ => return Err(format!("has rate={value}: give samples per second, as in 2.4M")),
                },
                ("gaps", "count") => stream.ignores_time = true,
                ("gaps", _) => return Err(format!("has gaps={value}: give count, or leave it out")),
                ("profile", "vita49") => stream.profile = Profile::Vita49,
                ("profile", "difi") => stream.profile = Profile::Difi,
                ("profile", _) => return Err(format!("has profile={value}: give vita49 or difi")),
                ("time", "utc") => stream.time = Time::Utc,
                ("time", "gps") => stream.time = Time::Gps,
                ("time", "samples") => stream.time = Time::Samples,
                ("time", "none") => stream.time = Time::None,
                ("time", _) => return Err(format!("has time={value}: give utc, gps, samples or none")),
                _ => {
                    return Err(format!(
                        "has an unknown '{key}': known are stream, format, channels, rate, gaps, profile and time"
                    ));
                }
            }
        }
        if stream.channels > 1 && stream.format.is_none() {
            return Err("has channels= without format=: give both, or neither".to_owned());
        }
        if stream.profile == Profile::Difi && matches!(stream.time, Time::Samples | Time::None) {
            return Err("has a time that DIFI does not: give time=utc or time=gps".to_owned());
        }
        Ok(stream)
    }

    /// What the samples are, where the name says it.
    pub(crate) fn shape(&self) -> Option<Shape> {
        self.format.map(|format| Shape::new(format, self.channels))
    }
}

impl fmt::Display for Vita49Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vrt://{}", self.at)?;
        let pairs = [
            self.stream_id.map(|id| format!("stream=0x{id:x}")),
            self.format.map(|format| format!("format={format}")),
            (self.channels > 1).then(|| format!("channels={}", self.channels)),
            (self.rate_hz > 0.0).then(|| format!("rate={}", self.rate_hz)),
            self.ignores_time.then(|| "gaps=count".to_owned()),
            (self.profile == Profile::Difi).then(|| "profile=difi".to_owned()),
            match self.time {
                Time::Utc => None,
                Time::Gps => Some("time=gps".to_owned()),
                Time::Samples => Some("time=samples".to_owned()),
                Time::None => Some("time=none".to_owned()),
            },
        ];
        let pairs: Vec<String> = pairs.into_iter().flatten().collect();
        if pairs.is_empty() { Ok(()) } else { write!(f, "?{}", pairs.join("&")) }
    }
}

#[cfg(test)]
mod tests {
    use crate::Uri;

    #[test]
    fn what_is_written_is_understood_again() {
        for text in [
            "vrt://:4991",
            "vrt://host:50000?stream=0x1f&format=ci16&channels=2&rate=2400000&gaps=count",
            "vrt://[::1]:4991?profile=difi&time=gps",
            "vrt://host:1?time=samples",
            "vrt://host:1?time=none",
        ] {
            let uri: Uri = text.parse().unwrap();
            assert!(matches!(uri, Uri::Vita49(_)), "{text}");
            assert_eq!(uri.to_string(), text);
        }
        assert_eq!("vrt://:1?stream=31".parse::<Uri>().unwrap().to_string(), "vrt://:1?stream=0x1f");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, reason) in [
            ("vrt://host", "no port"),
            ("vrt://:1?stream=x", "as in 7 or 0x1f"),
            ("vrt://:1?format=ci32", "is no sample format"),
            ("vrt://:1?channels=2", "without format="),
            ("vrt://:1?format=i16&channels=0", "give 1 to 255"),
            ("vrt://:1?rate=fast", "as in 2.4M"),
            ("vrt://:1?gaps=time", "give count"),
            ("vrt://:1?profile=flex", "give vita49 or difi"),
            ("vrt://:1?time=tai", "utc, gps, samples or none"),
            ("vrt://:1?profile=difi&time=samples", "DIFI does not"),
            ("vrt://:1?colour=red", "unknown 'colour'"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
