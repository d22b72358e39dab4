//! `audio:DEVICE?...`

use grebe_flow::RateHz;
use grebe_process::query::{Pairs, Query};
use grebe_recording::Encoding;

/// A sound device, as [`Uri::Audio`](crate::Uri::Audio) names it: `audio:` is the system's default, `audio:hw:1,0` the
/// first device of the second card.
///
/// | in the query | means | default |
/// |---|---|---|
/// | `rate=` | samples per second: `48k`, `192k` | capture: 48 kS/s, or the device's own; playback: that of the stream |
/// | `channels=` | 1 to 255 | capture: 2, or 1 if the device has one; playback: those of the stream |
/// | `format=` | `i8 u8 i16 i24 i32 f32 f64`; `ci16` and the like: left is I, right is Q | capture: `i16`; playback: that of the stream |
/// | `reconnect` | waits for an unplugged device | the stream ends with an error |
#[derive(Debug, Clone, PartialEq)]
pub struct AudioStream {
    /// ALSA's name of it; on Windows and macOS, a part of its name in `grebe devices`.
    pub(crate) device: String,
    pub(crate) rate_hz: Option<u32>,
    pub(crate) channels: Option<usize>,
    pub(crate) encoding: Option<Encoding>,
    pub(crate) reconnects: bool,
}

impl AudioStream {
    /// Parses a name after its `audio:`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (device, mut query) = Query::split(text)?;
        let device = device.strip_prefix("//").unwrap_or(device);
        if device.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return Err("has a device name with blanks".to_owned());
        }
        if device.starts_with('/') {
            return Err(format!("has a path as its device: give a name, as in {EXAMPLE}"));
        }
        let audio = Self {
            device: if device.is_empty() { DEFAULT } else { device }.to_owned(),
            rate_hz: query.value("rate", "samples per second, 1 to 4M, as in 48k", |value| {
                value.parse().ok().and_then(|RateHz(hz)| whole_rate(hz))
            })?,
            channels: query.channels()?,
            encoding: query.value("format", Encoding::names(), Encoding::named)?,
            reconnects: query.flag("reconnect")?,
        };
        query.end()?;
        match audio.encoding {
            Some(encoding) if !encoding.is_as_streamed() && encoding != Encoding::I24 => {
                Err(format!("has format={encoding}: sound devices take little-endian samples"))
            }
            _ => Ok(audio),
        }
    }

    /// The part between `audio:` and the query.
    pub(super) fn device(&self) -> &str {
        if self.device == DEFAULT { "" } else { &self.device }
    }

    /// The pairs of the name.
    pub(super) fn pairs(&self) -> Pairs {
        Pairs::default()
            .add("rate", self.rate_hz)
            .add("channels", self.channels)
            .add("format", self.encoding)
            .flag("reconnect", self.reconnects)
    }
}

/// A rate that a sound device can have.
pub(super) fn whole_rate(rate_hz: f64) -> Option<u32> {
    let is_one = rate_hz.round() == rate_hz && (1.0..=RATE_MAX_HZ).contains(&rate_hz);
    is_one.then_some(rate_hz as u32)
}

const EXAMPLE: &str = if cfg!(target_os = "linux") { "audio:hw:1,0" } else { "audio:microphone" };
/// ALSA's name for the system's default device.
pub(super) const DEFAULT: &str = "default";
const RATE_MAX_HZ: f64 = 4e6;

#[cfg(test)]
mod tests {
    use crate::Uri;

    #[test]
    fn printed_names_are_parsed_again() {
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
    fn invalid_options_are_refused() {
        for (text, reason) in [
            ("audio:?rate=0", "1 to 4M"),
            ("audio:?rate=44.1", "1 to 4M"),
            ("audio:?channels=0", "1 to 255"),
            ("audio:?format=i16be", "little-endian"),
            ("audio:?format=mp3", "format=mp3"),
            ("audio:?volume=11", "unknown 'volume'"),
            ("audio:my card", "blanks"),
            ("audio:////", "give a name"),
            ("audio:/dev/dsp", "give a name"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
