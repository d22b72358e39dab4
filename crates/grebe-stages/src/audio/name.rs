//! `audio:DEVICE?...`

use std::fmt;

use grebe_flow::RateHz;
use grebe_frame::MAX_CHANNELS;

use crate::file::Encoding;
use crate::raw::encoding;

/// A sound device, as [`Uri::Audio`](crate::Uri::Audio) names it: `audio:` is the one that the system has chosen, `audio:hw:1,0` the first
/// of the second card.
///
/// | in the query | means | without it |
/// |---|---|---|
/// | `rate=` | samples per second: `48k`, `192k` | listening 48 kS/s; playing that of the stream |
/// | `channels=` | 1 to 255 | listening 2, or 1 where the device has no more; playing those of the stream |
/// | `format=` | `i8 u8 i16 i24 i32 f32 f64`; `ci16` and the like: left is I, right is Q | listening `i16`; playing that of the stream |
/// | `reconnect` | where the device is unplugged, it is waited for | the stream ends with an error |
#[derive(Debug, Clone, PartialEq)]
pub struct AudioStream {
    /// As ALSA calls it.
    pub(crate) device: String,
    pub(crate) rate_hz: Option<u32>,
    pub(crate) channels: Option<usize>,
    pub(crate) encoding: Option<Encoding>,
    pub(crate) reconnects: bool,
}

impl AudioStream {
    /// Reads a name behind its `audio:`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (device, query) = text.split_once('?').unwrap_or((text, ""));
        let device = device.strip_prefix("//").unwrap_or(device);
        if device.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return Err("has a device whose name has blanks in it".to_owned());
        }
        let device = if device.is_empty() { DEFAULT } else { device }.to_owned();
        let mut audio = Self { device, rate_hz: None, channels: None, encoding: None, reconnects: false };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "rate" => {
                    let wrong = || format!("has rate={value}: give samples per second, 1 to 4M, as in 48k");
                    let rate = value.parse().ok().and_then(|RateHz(hz)| whole_rate(hz));
                    audio.rate_hz = Some(rate.ok_or_else(wrong)?);
                }
                "channels" => match value.parse() {
                    Ok(channels) if (1..=MAX_CHANNELS as usize).contains(&channels) => {
                        audio.channels = Some(channels);
                    }
                    _ => return Err(format!("has channels={value}: give 1 to {MAX_CHANNELS}")),
                },
                "format" => match encoding(value)? {
                    encoding if encoding.is_as_streamed() || encoding == Encoding::I24 => {
                        audio.encoding = Some(encoding);
                    }
                    _ => return Err(format!("has format={value}: sound devices take little-endian samples")),
                },
                "reconnect" if value.is_empty() => audio.reconnects = true,
                _ => {
                    return Err(format!(
                        "has an unknown '{key}': known are rate, channels, format and reconnect"
                    ));
                }
            }
        }
        Ok(audio)
    }
}

/// A rate that a sound device could have.
pub(super) fn whole_rate(rate_hz: f64) -> Option<u32> {
    let is_one = rate_hz.round() == rate_hz && (1.0..=RATE_MAX_HZ).contains(&rate_hz);
    is_one.then_some(rate_hz as u32)
}

impl fmt::Display for AudioStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = if self.device == DEFAULT { "" } else { &self.device };
        let rate = self.rate_hz.map(|rate_hz| format!("rate={rate_hz}"));
        let channels = self.channels.map(|channels| format!("channels={channels}"));
        let format = self.encoding.map(|encoding| format!("format={encoding}"));
        let reconnect = self.reconnects.then(|| "reconnect".to_owned());
        let query: Vec<String> = [rate, channels, format, reconnect].into_iter().flatten().collect();
        write!(f, "audio:{device}{}{}", if query.is_empty() { "" } else { "?" }, query.join("&"))
    }
}

/// What ALSA calls the device that the system has chosen.
const DEFAULT: &str = "default";
const RATE_MAX_HZ: f64 = 4e6;

#[cfg(test)]
mod tests {
    use crate::Uri;

    #[test]
    fn what_is_written_is_understood_again() {
        for text in [
            "audio:",
            "audio:hw:1,0",
            "audio:plughw:CARD=PCH,DEV=0?rate=96000&channels=1&format=i24&reconnect",
            "audio:?format=ci16",
        ] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), text);
        }
        assert_eq!("audio:default?rate=48k".parse::<Uri>().unwrap().to_string(), "audio:?rate=48000");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, reason) in [
            ("audio:?rate=0", "1 to 4M"),
            ("audio:?rate=44.1", "1 to 4M"),
            ("audio:?channels=0", "1 to 255"),
            ("audio:?format=i16be", "little-endian"),
            ("audio:?format=mp3", "format=mp3"),
            ("audio:?volume=11", "unknown 'volume'"),
            ("audio:my card", "blanks"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
