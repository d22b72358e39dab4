//! `soapy:ARGUMENTS?...`

use std::fmt;

use grebe_flow::RateHz;
use grebe_frame::{MAX_CHANNELS, SampleFormat};

use crate::file::format_named;

/// A radio behind SoapySDR, as [`Uri::Soapy`](crate::Uri::Soapy) names it: before the `?` the arguments by which SoapySDR finds it,
/// as every program with SoapySDR takes them.
///
/// | in the query | means | without it |
/// |---|---|---|
/// | `rate=` | samples per second: `2.4M` | as it is set; a sink: the stream's |
/// | `frequency=` | what it is tuned to, in hertz | as it is set; a sink that can be tuned needs it |
/// | `bandwidth=` | of its filter, in hertz | as the driver chooses |
/// | `gain=` | dB over all its amplifiers, or `auto` | as it is set |
/// | `gain.NAME=` | dB of one amplifier: `gain.LNA=24` | |
/// | `antenna=` | which socket | as it is set |
/// | `channels=` | which of its channels, from 0: `0,1` | `0`; a sink: as many as the stream has |
/// | `format=` | `ci16`, `cf32`, `ci8`, `cu8`, or without I and Q `i16`, `f32`, ... | the device's own |
/// | `ppm=` | how far its oscillator is off, in parts per million | not corrected |
/// | `clock=`, `time=` | where clock and time come from: `external`, `gpsdo` | as they are set |
/// | `setting.NAME=` | a setting that only this driver has: `setting.biastee=true` | |
/// | `stream.NAME=` | an argument of the driver's stream: `stream.buffers=32` | |
/// | `reconnect` | waits for a device that has gone, and goes on | ends with it |
#[derive(Debug, Clone, PartialEq)]
pub struct Soapy {
    /// By which SoapySDR finds the device.
    pub(crate) args: String,
    pub(crate) rate_hz: Option<f64>,
    pub(crate) frequency_hz: Option<f64>,
    pub(crate) bandwidth_hz: Option<f64>,
    pub(crate) gain: Option<Gain>,
    /// Of single amplifiers, in dB.
    pub(crate) gains: Vec<(String, f64)>,
    pub(crate) antenna: Option<String>,
    /// Empty: not said.
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
    /// Reads what stands behind `soapy:`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (args, query) = text.split_once('?').unwrap_or((text, ""));
        // Of `soapy://`, which is as good.
        let args = args.trim_start_matches(|c: char| c == '/' || c.is_whitespace()).trim_end();
        if args.contains('\0') || query.contains('\0') {
            return Err("has a zero in it".to_owned());
        }
        let mut soapy = Self { args: args.to_owned(), ..Self::default() };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            soapy.take(key, value)?;
        }
        Ok(soapy)
    }

    fn take(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "rate" => {
                let rate_hz = hertz(value).filter(|&hz| hz > 0.0);
                let wrong = || format!("has rate={value}: give samples per second, as in 2.4M");
                self.rate_hz = Some(rate_hz.ok_or_else(wrong)?);
            }
            "frequency" => {
                let wrong = || format!("has frequency={value}: give hertz, as in 433.92M");
                self.frequency_hz = Some(hertz(value).ok_or_else(wrong)?);
            }
            "bandwidth" => {
                let wrong = || format!("has bandwidth={value}: give hertz, as in 1.5M");
                self.bandwidth_hz = Some(hertz(value).ok_or_else(wrong)?);
            }
            "gain" if value == "auto" => self.gain = Some(Gain::Auto),
            "gain" => {
                let wrong = || format!("has gain={value}: give dB, as in 20.7, or auto");
                self.gain = Some(Gain::Db(number(value).ok_or_else(wrong)?));
            }
            "ppm" => {
                let wrong = || format!("has ppm={value}: give a number");
                self.correction_ppm = Some(number(value).ok_or_else(wrong)?);
            }
            "channels" => self.channels = channels(value)?,
            "format" => {
                let wrong = || format!("has format={value}: give ci16, cf32, ci8 or cu8");
                self.format = Some(format_named(&value.to_ascii_lowercase()).ok_or_else(wrong)?);
            }
            "antenna" | "clock" | "time" if value.is_empty() => {
                return Err(format!("has {key}= without a name"));
            }
            "antenna" => self.antenna = Some(value.to_owned()),
            "clock" => self.clock = Some(value.to_owned()),
            "time" => self.time = Some(value.to_owned()),
            "reconnect" if value.is_empty() => self.reconnects = true,
            _ => return self.take_named(key, value),
        }
        Ok(())
    }

    /// `gain.NAME`, `setting.NAME`, `stream.NAME`.
    fn take_named(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key.split_once('.').filter(|(_, name)| !name.is_empty()) {
            Some(("gain", name)) => {
                let wrong = || format!("has {key}={value}: give dB, as in gain.LNA=24");
                self.gains.push((name.to_owned(), number(value).ok_or_else(wrong)?));
            }
            Some(("setting", name)) => self.settings.push((name.to_owned(), value.to_owned())),
            Some(("stream", _)) if value.contains(',') => {
                return Err(format!("has {key}={value}: SoapySDR takes no comma there"));
            }
            Some(("stream", name)) => self.stream_args.push((name.to_owned(), value.to_owned())),
            _ => {
                return Err(format!(
                    "has an unknown '{key}': known are rate, frequency, bandwidth, gain, gain.NAME, antenna, channels, format, ppm, clock, time, setting.NAME, stream.NAME and reconnect"
                ));
            }
        }
        Ok(())
    }

    /// How it is called in messages: without what it is set to.
    pub(crate) fn short(&self) -> String {
        format!("soapy:{}", self.args)
    }
}

impl Default for Soapy {
    /// The first device there is, as it is set.
    fn default() -> Self {
        Self {
            args: String::new(),
            rate_hz: None,
            frequency_hz: None,
            bandwidth_hz: None,
            gain: None,
            gains: Vec::new(),
            antenna: None,
            channels: Vec::new(),
            format: None,
            correction_ppm: None,
            clock: None,
            time: None,
            settings: Vec::new(),
            stream_args: Vec::new(),
            reconnects: false,
        }
    }
}

impl fmt::Display for Soapy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pairs = Vec::new();
        let mut add =
            |key: &str, value: Option<String>| pairs.extend(value.map(|value| format!("{key}={value}")));
        add("rate", self.rate_hz.map(|hz| hz.to_string()));
        add("frequency", self.frequency_hz.map(|hz| hz.to_string()));
        add("bandwidth", self.bandwidth_hz.map(|hz| hz.to_string()));
        add(
            "gain",
            self.gain.map(|gain| match gain {
                Gain::Auto => "auto".to_owned(),
                Gain::Db(db) => db.to_string(),
            }),
        );
        self.gains.iter().for_each(|(name, db)| add(&format!("gain.{name}"), Some(db.to_string())));
        add("antenna", self.antenna.clone());
        let channels: Vec<String> = self.channels.iter().map(usize::to_string).collect();
        add("channels", Some(channels.join(",")).filter(|it| !it.is_empty()));
        add("format", self.format.map(|format| format.to_string()));
        add("ppm", self.correction_ppm.map(|ppm| ppm.to_string()));
        add("clock", self.clock.clone());
        add("time", self.time.clone());
        self.settings.iter().for_each(|(name, value)| add(&format!("setting.{name}"), Some(value.clone())));
        self.stream_args.iter().for_each(|(name, value)| add(&format!("stream.{name}"), Some(value.clone())));
        pairs.extend(self.reconnects.then(|| "reconnect".to_owned()));
        write!(f, "soapy:{}", self.args)?;
        if pairs.is_empty() { Ok(()) } else { write!(f, "?{}", pairs.join("&")) }
    }
}

/// Hertz from 0 on.
fn hertz(text: &str) -> Option<f64> {
    match text.parse() {
        Ok(RateHz(hz)) => Some(hz),
        Err(_) => number(text).filter(|&hz| hz == 0.0).map(|_| 0.0),
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// `0,1`: each once.
fn channels(text: &str) -> Result<Vec<usize>, String> {
    let wrong = || format!("has channels={text}: give numbers from 0 on, each once, as in 0,1");
    let mut channels = Vec::new();
    for number in text.split(',') {
        let channel = number.trim().parse::<u8>().map(usize::from).map_err(|_| wrong())?;
        if channels.contains(&channel) || channels.len() == MAX_CHANNELS as usize {
            return Err(wrong());
        }
        channels.push(channel);
    }
    Ok(channels)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Uri;

    /// What stands in names, right or wrong.
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
        fn what_is_read_says_the_same_when_it_is_written_again(
            args in "\\PC{0,30}",
            pairs in prop::collection::vec(pair(), 0..5),
        ) {
            let text = format!("{args}?{}", pairs.join("&"));
            if let Ok(soapy) = Soapy::parse(&text) {
                prop_assert_eq!(Soapy::parse(soapy.to_string().strip_prefix("soapy:").unwrap()), Ok(soapy));
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
    fn what_soapysdr_itself_takes_stands_before_the_query() {
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
        assert_eq!(soapy(&radio.to_string()), radio);
        assert_eq!(soapy("soapy:").to_string(), "soapy:");
        assert_eq!(soapy("soapy:?format=CS16").format, Some(SampleFormat::Ci16), "as SoapySDR calls it");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
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
            ("soapy:?antenna=", "without a name"),
            ("soapy:?stream.x=a,b", "no comma"),
            ("soapy:?reconnect=yes", "unknown 'reconnect'"),
            ("soapy:?colour=red", "unknown 'colour'"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
