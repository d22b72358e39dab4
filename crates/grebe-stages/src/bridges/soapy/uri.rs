//! `soapy:ARGUMENTS?...`

use grebe_frame::{MAX_CHANNELS, SampleFormat};

use grebe_process::query::{Pairs, Query, finite, wrong};
use grebe_recording::Encoding;

/// A SoapySDR radio, as [`Uri::Soapy`](crate::Uri::Soapy) names it. SoapySDR's own arguments for finding it stand
/// before the `?`.
///
/// | in the query | means | default |
/// |---|---|---|
/// | `rate=` | samples per second: `2.4M` | unchanged; a sink: the stream's |
/// | `frequency=` | centre frequency in hertz | unchanged; a tunable sink requires it |
/// | `bandwidth=` | of its filter, in hertz | the driver's choice |
/// | `gain=` | dB over all its amplifiers, or `auto` | unchanged |
/// | `gain.NAME=` | dB of one amplifier: `gain.LNA=24` | |
/// | `antenna=` | name of the antenna connector | unchanged |
/// | `channels=` | its channels, from 0: `0,1` | `0`; a sink: one per channel of the stream |
/// | `format=` | `ci16`, `cf32`, `ci8`, `cu8`, or without I and Q `i16`, `f32`, ... | the device's own |
/// | `ppm=` | error of the oscillator, in parts per million | not corrected |
/// | `clock=`, `time=` | sources of clock and time: `external`, `gpsdo` | unchanged |
/// | `setting.NAME=` | a setting of this driver: `setting.biastee=true` | |
/// | `stream.NAME=` | an argument of the driver's stream: `stream.buffers=32` | |
/// | `reconnect` | waits for a lost device, and continues | ends with it |
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Soapy {
    /// SoapySDR's arguments for finding the device.
    pub(crate) args: String,
    pub(crate) rate_hz: Option<f64>,
    pub(crate) frequency_hz: Option<f64>,
    pub(crate) bandwidth_hz: Option<f64>,
    pub(crate) gain: Option<Gain>,
    /// Of single amplifiers, in dB.
    pub(crate) gains: Vec<(String, f64)>,
    pub(crate) antenna: Option<String>,
    /// Empty: unspecified.
    pub(crate) channels: Vec<usize>,
    pub(crate) format: Option<SampleFormat>,
    pub(crate) correction_ppm: Option<f64>,
    pub(crate) clock: Option<String>,
    pub(crate) time: Option<String>,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) stream_args: Vec<(String, String)>,
    pub(crate) reconnects: bool,
}

/// The gain over all amplifiers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Gain {
    Auto,
    Db(f64),
}

impl Soapy {
    /// Parses the part after `soapy:`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (args, mut query) = Query::split(text)?;
        // Accepts `soapy://` too.
        let args = args.trim_start_matches(|c: char| c == '/' || c.is_whitespace()).trim_end();
        if text.contains('\0') {
            return Err("has a zero in it".to_owned());
        }
        let owned = |pairs: Vec<(&str, &str)>| -> Vec<(String, String)> {
            pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        let db = |(name, value): (&str, &str)| match finite(value) {
            Some(db) => Ok((name.to_owned(), db)),
            None => Err(wrong(&format!("gain.{name}"), value, "dB, as in gain.LNA=24")),
        };
        let soapy = Self {
            args: args.to_owned(),
            rate_hz: query.rate_hz()?,
            frequency_hz: query.hertz("frequency")?,
            bandwidth_hz: query.hertz("bandwidth")?,
            gain: query.value("gain", "dB, as in 20.7, or auto", |value| match value {
                "auto" => Some(Gain::Auto),
                _ => finite(value).map(Gain::Db),
            })?,
            gains: query.named("gain.NAME", "gain").into_iter().map(db).collect::<Result<_, _>>()?,
            antenna: query.text("antenna", "the name of a socket")?,
            channels: query
                .value("channels", "numbers from 0 on, each once, as in 0,1", channels)?
                .unwrap_or_default(),
            format: query.value("format", "ci16, cf32, ci8 or cu8", |value| {
                Encoding::named(value)
                    .filter(|encoding| encoding.is_as_streamed())
                    .map(|encoding| encoding.format)
            })?,
            correction_ppm: query.value("ppm", "a number", finite)?,
            clock: query.text("clock", "the name of a clock")?,
            time: query.text("time", "the name of a source of time")?,
            settings: owned(query.named("setting.NAME", "setting")),
            stream_args: owned(query.named("stream.NAME", "stream")),
            reconnects: query.flag("reconnect")?,
        };
        query.end()?;
        match soapy.stream_args.iter().find(|(_, value)| value.contains(',')) {
            Some((name, value)) => Err(format!("has stream.{name}={value}: SoapySDR allows no comma there")),
            None => Ok(soapy),
        }
    }

    /// The pairs of the name.
    pub(super) fn pairs(&self) -> Pairs {
        let gain = self.gain.map(|gain| match gain {
            Gain::Auto => "auto".to_owned(),
            Gain::Db(db) => db.to_string(),
        });
        let channels: Vec<String> = self.channels.iter().map(usize::to_string).collect();
        let pairs = Pairs::default()
            .add("rate", self.rate_hz)
            .add("frequency", self.frequency_hz)
            .add("bandwidth", self.bandwidth_hz)
            .add("gain", gain)
            .named("gain", &self.gains)
            .add("antenna", self.antenna.as_ref())
            .add("channels", Some(channels.join(",")).filter(|it| !it.is_empty()))
            .add("format", self.format)
            .add("ppm", self.correction_ppm)
            .add("clock", self.clock.as_ref())
            .add("time", self.time.as_ref());
        pairs
            .named("setting", &self.settings)
            .named("stream", &self.stream_args)
            .flag("reconnect", self.reconnects)
    }

    /// Its name in messages, without settings.
    pub(crate) fn short(&self) -> String {
        format!("soapy:{}", self.args)
    }
}

/// `0,1`, without repeats.
fn channels(text: &str) -> Option<Vec<usize>> {
    let mut channels = Vec::new();
    for number in text.split(',') {
        let channel = number.trim().parse::<u8>().map(usize::from).ok()?;
        if channels.contains(&channel) || channels.len() == MAX_CHANNELS as usize {
            return None;
        }
        channels.push(channel);
    }
    Some(channels)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Uri;
    use crate::scheme::Scheme as _;

    /// Options of names, valid and invalid.
    fn pair() -> impl Strategy<Value = String> {
        let keys = "rate|frequency|bandwidth|gain|gain\\.LNA|antenna|channels|format|ppm|clock|setting\\.[a-z]{1,3}|stream\\.[a-z:]{1,4}|reconnect";
        let values = prop_oneof![
            "[0-9]{1,4}(\\.[0-9]{1,3})?[kMG]?",
            "-?[0-9]{1,3}",
            "auto|cf32|CS16|true",
            "\\PC{0,6}"
        ];
        (keys, values).prop_map(|(key, value)| if value.is_empty() { key } else { format!("{key}={value}") })
    }

    proptest! {
        #[test]
        fn soapy_uris_round_trip(
            args in "\\PC{0,30}",
            pairs in prop::collection::vec(pair(), 0..5),
        ) {
            let text = format!("{args}?{}", pairs.join("&"));
            if let Ok(soapy) = Soapy::parse(&text) {
                prop_assert_eq!(Soapy::parse(soapy.uri().strip_prefix("soapy:").unwrap()), Ok(soapy));
            }
        }
    }

    fn soapy(text: &str) -> Soapy {
        match text.parse() {
            Ok(Uri::Soapy(soapy)) => *soapy,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn device_arguments_of_soapysdr_stand_before_the_query() {
        for args in [
            "driver=rtlsdr",
            "driver=rtlsdr, serial=00000001",
            "driver=remote,remote=tcp://[::1]:55132,remote:driver=lime",
            "",
        ] {
            assert_eq!(soapy(&format!("soapy:{args}")), Soapy { args: args.to_owned(), ..Soapy::default() });
            assert_eq!(soapy(&format!("soapy://{args}?reconnect")).args, args);
        }
    }

    #[test]
    fn a_name_says_what_the_radio_is_set_to() {
        let radio = soapy(
            "soapy:driver=lime?rate=2.4M&frequency=433.92M&bandwidth=0&gain=auto&gain.LNA=24&gain.TIA=-3.5&antenna=LNAL\
             &channels=1,0&format=cf32&ppm=-1.5&clock=external&time=gpsdo&setting.biastee=true&stream.buffers=32&reconnect",
        );
        assert_eq!(
            (radio.rate_hz, radio.frequency_hz, radio.bandwidth_hz),
            (Some(2.4e6), Some(433.92e6), Some(0.0))
        );
        assert_eq!((radio.gain, radio.correction_ppm), (Some(Gain::Auto), Some(-1.5)));
        assert_eq!(radio.gains, [("LNA".to_owned(), 24.0), ("TIA".to_owned(), -3.5)]);
        assert_eq!((radio.antenna.as_deref(), &radio.channels[..]), (Some("LNAL"), &[1, 0][..]));
        assert_eq!(radio.settings, [("biastee".to_owned(), "true".to_owned())]);
        assert_eq!(soapy(&radio.uri()), radio);
        assert_eq!(soapy("soapy:").uri(), "soapy:");
        assert_eq!(soapy("soapy:?format=CS16").format, Some(SampleFormat::Ci16), "as SoapySDR calls it");
    }

    #[test]
    fn invalid_options_are_refused() {
        for (text, reason) in [
            ("soapy:?rate=0", "give samples per second"),
            ("soapy:?rate=fast", "give samples per second"),
            ("soapy:?frequency=-1M", "give hertz"),
            ("soapy:?gain=inf", "give dB, as in 20.7, or auto"),
            ("soapy:?gain.LNA=much", "as in gain.LNA=24"),
            ("soapy:?gain.=3", "unknown 'gain.'"),
            ("soapy:?channels=0,0", "each once"),
            ("soapy:?channels=", "each once"),
            ("soapy:?format=ci17", "give ci16"),
            ("soapy:?antenna=", "the name of a socket"),
            ("soapy:?stream.x=a,b", "no comma"),
            ("soapy:?reconnect=yes", "reconnect takes no value"),
            ("soapy:?colour=red", "unknown 'colour'"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
