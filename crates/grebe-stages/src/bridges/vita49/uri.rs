//! Options of a VITA-49 stream's name.

use grebe_frame::SampleFormat;
use grebe_process::query::{Pairs, Query, Words};
use grebe_recording::Order;

use super::payload_format::Shape;
use crate::transport::HostPort;

/// A stream of VITA-49 packets over UDP, as [`Uri::Vita49`](crate::Uri::Vita49) names it: `vrt://HOST:PORT`.
///
/// | in the query | as a source | as a sink | default |
/// |---|---|---|---|
/// | `stream=` | the stream identifier to select (`7`, `0x1f`) | the identifier to send | the first received; 1 |
/// | `format=` | format of samples; overrides context packets | - | from context packets |
/// | `channels=` | number of interleaved channels, with `format` | - | 1 |
/// | `rate=` | samples per second and channel; overrides context packets | - | from context packets |
/// | `order=` | byte order: `be` or `le` | - | big-endian; floats by their magnitudes |
/// | `gaps=count` | finds gaps by packet counts alone, for devices whose times jump | - | counts and times |
/// | `profile=` | - | `vita49`, or `difi` | `vita49` |
/// | `time=` | - | `utc`, `gps`, `samples` (a count of samples) or `none` | `utc` |
#[derive(Debug, Clone, PartialEq)]
pub struct Vita49Stream {
    pub(crate) at: HostPort,
    pub(crate) stream_id: Option<u32>,
    /// Of the samples, to override context packets.
    pub(crate) format: Option<SampleFormat>,
    pub(crate) channels: usize,
    /// Samples per second and channel; 0: from context packets.
    pub(crate) rate_hz: f64,
    /// Of the bytes of a number.
    pub(crate) order: Option<Order>,
    pub(crate) ignores_time: bool,
    pub(crate) profile: Profile,
    pub(crate) time: Time,
}

/// The rules that a sink follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Profile {
    /// The standard's.
    #[default]
    Vita49,
    /// DIFI's: complex integers, a fixed context packet.
    Difi,
}

/// The time in a sink's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Time {
    #[default]
    Utc,
    Gps,
    Samples,
    None,
}

impl Vita49Stream {
    /// Parses the part after `vrt://`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (at, mut query) = Query::split(text)?;
        let mut at = HostPort::parse("vrt", at)?;
        let stream_id =
            query.value("stream", "the stream's identifier, as in 7 or 0x1f", |value| {
                match value.strip_prefix("0x") {
                    Some(digits) => u32::from_str_radix(digits, 16).ok(),
                    None => value.parse().ok(),
                }
            })?;
        let format = query.format("format")?;
        let channels = query.channels()?.unwrap_or(1);
        let rate_hz = query.rate_hz()?.unwrap_or(0.0);
        let order = query.choice("order", ORDERS)?;
        let ignores_time = query.choice("gaps", &[("count", ())])?.is_some();
        let profile = query.choice("profile", PROFILES)?.unwrap_or_default();
        let time = query.choice("time", TIMES)?.unwrap_or_default();
        at.take_multicast(&mut query)?;
        query.end()?;
        if channels > 1 && format.is_none() {
            return Err("has channels= without format=: give both, or neither".to_owned());
        }
        if profile == Profile::Difi && matches!(time, Time::Samples | Time::None) {
            return Err("has a time that DIFI does not: give time=utc or time=gps".to_owned());
        }
        Ok(Self { at, stream_id, format, channels, rate_hz, order, ignores_time, profile, time })
    }

    /// The pairs of the name.
    pub(super) fn pairs(&self) -> Pairs {
        let pairs = Pairs::default()
            .add("stream", self.stream_id.map(|id| format!("0x{id:x}")))
            .add("format", self.format)
            .add("channels", Some(self.channels).filter(|&channels| channels > 1))
            .add("rate", self.known_rate_hz())
            .add("order", self.order.map(|order| if order == Order::Big { "be" } else { "le" }))
            .add("gaps", self.ignores_time.then_some("count"))
            .choice("profile", PROFILES, self.profile, Some(Profile::Vita49))
            .choice("time", TIMES, self.time, Some(Time::Utc));
        self.at.write_multicast(pairs)
    }

    /// The rate, if the name states it.
    pub(super) fn known_rate_hz(&self) -> Option<f64> {
        Some(self.rate_hz).filter(|&rate_hz| rate_hz > 0.0)
    }

    /// The layout of samples, if the name states it.
    pub(crate) fn shape(&self) -> Option<Shape> {
        self.format.map(|format| Shape::new(format, self.channels))
    }
}

const ORDERS: &Words<Order> = &[("be", Order::Big), ("le", Order::Little)];
const PROFILES: &Words<Profile> = &[("vita49", Profile::Vita49), ("difi", Profile::Difi)];
const TIMES: &Words<Time> =
    &[("utc", Time::Utc), ("gps", Time::Gps), ("samples", Time::Samples), ("none", Time::None)];

#[cfg(test)]
mod tests {
    use crate::Uri;

    #[test]
    fn printed_names_are_parsed_again() {
        for text in [
            "vrt://:4991",
            "vrt://host:50000?stream=0x1f&format=ci16&channels=2&rate=2400000&order=le&gaps=count",
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
    fn invalid_options_are_refused() {
        for (text, reason) in [
            ("vrt://host", "no port"),
            ("vrt://:1?stream=x", "as in 7 or 0x1f"),
            ("vrt://:1?format=ci32", "has format=ci32: give one of i16"),
            ("vrt://:1?channels=2", "without format="),
            ("vrt://:1?format=i16&channels=0", "give 1 to 255"),
            ("vrt://:1?rate=fast", "as in 2.4M"),
            ("vrt://:1?gaps=time", "give count"),
            ("vrt://:1?order=middle", "give be or le"),
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
