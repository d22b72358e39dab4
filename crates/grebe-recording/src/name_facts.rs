//! Rate, frequency, time and format from file names that receiver programs choose.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use grebe_frame::{SampleFormat, utc_time};

use crate::encoding::Encoding;
use crate::path_query::split;
use crate::unpacked::plain_name;

/// Values from a name, or from a text file beside it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct NameFacts {
    pub(crate) rate_hz: Option<f64>,
    pub(crate) frequency_hz: Option<f64>,
    /// Taken as UTC.
    pub(crate) time: Option<SystemTime>,
    /// Format, if the extension does not state it.
    pub(crate) format: Option<Encoding>,
    /// Whether two channels are I and Q; `Some(false)`: they are sound.
    pub(crate) iq: Option<bool>,
    /// The other file that provides them, if any.
    beside: Option<PathBuf>,
}

impl NameFacts {
    pub(crate) fn of(path: &Path) -> Self {
        let plain = plain_name(path);
        let stem = plain.file_stem().unwrap_or_default().to_string_lossy();
        let words: Vec<&str> = stem.split(['_', ' ']).filter(|word| !word.is_empty()).collect();
        let mut facts = Self::of_words(&words);
        if plain.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("uff")) {
            facts.time = time(&words);
        }
        if let Some((beside, rate_hz, frequency_hz)) = porta_pack(path) {
            facts = Self { rate_hz, frequency_hz, beside: Some(beside), ..facts };
        }
        facts
    }

    fn of_words(words: &[&str]) -> Self {
        let mut facts = Self::default();
        let program = words.first().map_or(String::new(), |word| word.to_ascii_lowercase());
        let is_receivers = RECEIVERS.contains(&program.as_str());
        let has = |word: &str| words.iter().any(|other| other.eq_ignore_ascii_case(word));
        if is_receivers {
            let is_sound = has("AF") || program == "audio";
            facts.iq = (is_sound || program == "baseband" || has("IQ") || has("RF") || program == "sdruno")
                .then_some(!is_sound);
        }
        if program == "gqrx"
            && let [_, _, _, frequency, rate, "fc"] = words
        {
            facts.format = Some(Encoding::of(SampleFormat::Cf32));
            (facts.frequency_hz, facts.rate_hz) = (plain(frequency), plain(rate));
        }
        if program == "gqrx"
            && let [_, _, _, frequency] = words
        {
            facts.frequency_hz = plain(frequency);
        }
        facts.take_numbers(words);
        if is_receivers || facts.rate_hz.is_some() || facts.frequency_hz.is_some() {
            facts.time = time(words);
        }
        facts
    }

    /// Numbers with their units: `433.92M`, `2.4Msps`, `100MHz`.
    fn take_numbers(&mut self, words: &[&str]) {
        let with = |units: &[&str]| -> Vec<f64> {
            let number = |word: &&str| {
                let lower = word.to_ascii_lowercase();
                units.iter().find_map(|unit| scaled(lower.strip_suffix(unit)?))
            };
            words.iter().filter_map(number).collect()
        };
        let (rates, frequencies) = (with(&["sps"]), with(&["hz"]));
        // Numbers with a prefix and without a unit, as in rtl_433: the frequency, then the rate.
        let bare: Vec<f64> = words
            .iter()
            .filter(|word| word.ends_with(['k', 'M', 'G']))
            .filter_map(|word| scaled(&word.to_ascii_lowercase()))
            .collect();
        let parts = || words.iter().flat_map(|word| word.split('-'));
        let named =
            |name: char| parts().find_map(|part| plain(part.strip_prefix(name)?).filter(|hz| *hz >= 1e3));
        match (rates.as_slice(), frequencies.as_slice(), bare.as_slice()) {
            (&[rate_hz], &[frequency_hz], _)
            | (&[rate_hz], [], &[frequency_hz])
            | ([], [], &[frequency_hz, rate_hz]) => {
                self.rate_hz = self.rate_hz.or(Some(rate_hz));
                self.frequency_hz = self.frequency_hz.or(Some(frequency_hz));
            }
            (&[rate_hz], [], []) => self.rate_hz = self.rate_hz.or(Some(rate_hz)),
            ([], &[frequency_hz], _) => self.frequency_hz = self.frequency_hz.or(Some(frequency_hz)),
            // gr-iridium and osmocom: `x-f1.6265e9-s1e6-t20260924`.
            ([], [], []) => {
                if let (Some(frequency_hz), Some(rate_hz)) = (named('f'), named('s')) {
                    self.rate_hz = self.rate_hz.or(Some(rate_hz));
                    self.frequency_hz = self.frequency_hz.or(Some(frequency_hz));
                }
            }
            _ => {}
        }
    }

    /// The numbers that were taken from it, for people.
    pub(crate) fn words(
        &self,
        rate_hz: Option<f64>,
        frequency_hz: Option<f64>,
        time: Option<SystemTime>,
    ) -> Option<String> {
        let mut said = Vec::new();
        said.extend(rate_hz.map(|hz| format!("{hz} S/s")));
        said.extend(frequency_hz.map(|hz| format!("{hz} Hz")));
        let time = time.and_then(|time| jiff::Timestamp::try_from(time).ok());
        said.extend(time.map(|time| format!("{time} (taken as UTC)")));
        let by = match &self.beside {
            Some(beside) => beside.display().to_string(),
            None => "the name of the file".to_owned(),
        };
        (!said.is_empty()).then(|| format!("{by} says {}", said.join(", ")))
    }
}

/// A typed name, and the query to add to it.
#[derive(Debug)]
pub(crate) struct Hint<'a> {
    written: &'a Path,
}

impl<'a> Hint<'a> {
    pub(crate) fn new(written: &'a Path) -> Self {
        Self { written }
    }

    /// `'x.cf32?channels=2&rate=2.4M'`: the pairs replace those of their keys.
    pub(crate) fn with(&self, pairs: &str) -> String {
        let (path, query) = split(self.written);
        let typed = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        // A key typed twice is refused.
        let others = typed.filter(|other| pairs.split('&').all(|pair| key(pair) != key(other)));
        let all: Vec<&str> = others.chain([pairs].into_iter().filter(|pairs| !pairs.is_empty())).collect();
        format!("'{}?{}'", path.display(), all.join("&"))
    }

    /// The same, with the pairs whose keys were not typed.
    pub(crate) fn adding(&self, pairs: &str) -> String {
        let (_, query) = split(self.written);
        let typed = query.unwrap_or_default();
        let is_new = |pair: &&str| typed.split('&').all(|other| key(pair) != key(other));
        let new: Vec<&str> = pairs.split('&').filter(is_new).collect();
        self.with(&new.join("&"))
    }

    pub(crate) fn no_rate(&self, example: &str) -> String {
        format!("the sample rate is unknown: name it, as in {}", self.with(&format!("rate={example}")))
    }
}

fn key(pair: &str) -> &str {
    pair.split('=').next().unwrap_or(pair)
}

/// Reads the file that HackRF's PortaPack writes beside `BBD_0001.C16`: `BBD_0001.TXT`.
fn porta_pack(path: &Path) -> Option<(PathBuf, Option<f64>, Option<f64>)> {
    let extension = path.extension()?;
    if !["c16", "c8"].iter().any(|known| extension.eq_ignore_ascii_case(known)) {
        return None;
    }
    let beside = ["TXT", "txt"].map(|extension| path.with_extension(extension));
    let (beside, text) = beside.into_iter().find_map(|path| {
        let is_small = std::fs::metadata(&path).is_ok_and(|it| it.is_file() && it.len() <= TEXT_BYTES_MAX);
        let text = is_small.then(|| std::fs::read_to_string(&path).ok()).flatten()?;
        Some((path, text))
    })?;
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        lines.find(|(key, _)| key.trim() == name).and_then(|(_, value)| plain(value.trim()))
    };
    let (rate_hz, frequency_hz) = (value("sample_rate"), value("center_frequency"));
    (rate_hz.is_some() || frequency_hz.is_some()).then_some((beside, rate_hz, frequency_hz))
}

/// A number of hertz above 0.
fn plain(text: &str) -> Option<f64> {
    let is_number = text.starts_with(|first: char| first.is_ascii_digit());
    text.parse().ok().filter(|&hz: &f64| is_number && hz.is_finite() && hz > 0.0)
}

/// `433.92m`, `250k`, `2.4`: in lower case, with exact decimals.
fn scaled(text: &str) -> Option<f64> {
    let (number, power) = match text.strip_suffix(['k', 'm', 'g']) {
        Some(number) if text.ends_with('k') => (number, 3),
        Some(number) if text.ends_with('m') => (number, 6),
        Some(number) => (number, 9),
        None => (text, 0),
    };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_number.then(|| plain(&format!("{number}e{power}"))).flatten()
}

/// A day and a time of it, next to each other or in one: `20240101_120000Z`, `2023-09-10_075649`, `12-00-00_01-01-2020`.
fn time(words: &[&str]) -> Option<SystemTime> {
    let joined = || words.iter().flat_map(|word| word.split('-')).find_map(date_and_time);
    let apart = words.windows(2).find_map(|pair| {
        let (date, time) = match (date(pair[0]), date(pair[1])) {
            (Some(date), _) => (date, time_of_day(pair[1])?),
            (None, Some(date)) => (date, time_of_day(pair[0])?),
            (None, None) => return None,
        };
        utc_time(&format!("{date}T{time}Z"))
    });
    apart.or_else(joined)
}

/// `20240101T120000Z`, and `t20240101120000` of osmocom.
fn date_and_time(word: &str) -> Option<SystemTime> {
    let digits = word.strip_prefix('t').unwrap_or(word);
    let (day, time) = digits.split_at_checked(8)?;
    let time = time.strip_prefix('T').unwrap_or(time);
    utc_time(&format!("{}T{}Z", date(day)?, time_of_day(time)?))
}

fn date(word: &str) -> Option<String> {
    let parts: Vec<&str> = word.split('-').collect();
    let (year, month, day) = match parts.as_slice() {
        [all] if all.len() == 8 && all.bytes().all(|it| it.is_ascii_digit()) => {
            (&all[..4], &all[4..6], &all[6..])
        }
        [year, month, day] if year.len() == 4 => (*year, *month, *day),
        // As SDR++ has it.
        [day, month, year] if year.len() == 4 => (*year, *month, *day),
        _ => return None,
    };
    let date = format!("{year}-{month}-{day}");
    date.parse::<jiff::civil::Date>().is_ok().then_some(date)
}

fn time_of_day(word: &str) -> Option<String> {
    let word = word.strip_suffix('Z').unwrap_or(word);
    let digits: String = word.split('-').collect();
    let is_time = digits.len() == 6 && digits.bytes().all(|it| it.is_ascii_digit());
    is_time.then(|| format!("{}:{}:{}", &digits[..2], &digits[2..4], &digits[4..]))
}

/// Programs whose files begin with their name, in lower case.
const RECEIVERS: [&str; 7] = ["baseband", "audio", "gqrx", "hdsdr", "sdruno", "sdrsharp", "sdrconnect"];
const TEXT_BYTES_MAX: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(name: &str) -> NameFacts {
        NameFacts::of(name.as_ref())
    }

    #[test]
    fn names_of_receivers_say_rate_frequency_and_time() {
        for (name, rate_hz, frequency_hz, time) in [
            (
                "gqrx_20240101_120000_100000000_2400000_fc.raw",
                Some(2.4e6),
                Some(1e8),
                Some("2024-01-01T12:00:00Z"),
            ),
            ("baseband_433000000Hz_12-00-00_01-02-2020.wav", None, Some(433e6), Some("2020-02-01T12:00:00Z")),
            ("HDSDR_20130519_193305Z_14018kHz_RF.wav", None, Some(14.018e6), Some("2013-05-19T19:33:05Z")),
            ("SDRuno_20200907_171439Z_1000kHz.wav", None, Some(1e6), Some("2020-09-07T17:14:39Z")),
            ("SDRSharp_20150804_204753Z_97300000Hz_IQ.wav", None, Some(97.3e6), Some("2015-08-04T20:47:53Z")),
            ("g001_433.92M_250k.cu8", Some(250e3), Some(433.92e6), None),
            ("2023-09-10_075649_10C.uff", None, None, Some("2023-09-10T07:56:49Z")),
            ("FM_100.1M_2.4Msps.cu8", Some(2.4e6), Some(100.1e6), None),
            ("osmo-f1.6265e9-s1e6-t20260924.cfile", Some(1e6), Some(1.6265e9), None),
            ("x-f1e9-s1e6-t20260924123456.cfile", Some(1e6), Some(1e9), Some("2026-09-24T12:34:56Z")),
            ("HackRF_20240101T120000Z_1MHz_8Msps.cs8", Some(8e6), Some(1e6), Some("2024-01-01T12:00:00Z")),
            ("gqrx_20240101_120000_433920000.wav", None, Some(433.92e6), Some("2024-01-01T12:00:00Z")),
            (
                "pass_2023-09-10_075649_145.8MHz_48ksps.cf32",
                Some(48e3),
                Some(145.8e6),
                Some("2023-09-10T07:56:49Z"),
            ),
        ] {
            let found = facts(name);
            let time = time.map(|time| utc_time(time).unwrap());
            assert_eq!(
                (found.rate_hz, found.frequency_hz, found.time),
                (rate_hz, frequency_hz, time),
                "{name}"
            );
        }
        assert_eq!(facts("gqrx_20240101_120000_1_2_fc.raw").format, Some(Encoding::of(SampleFormat::Cf32)));
        let pairs =
            ["baseband_1Hz.wav", "HDSDR_x_AF.wav", "audio_1Hz.wav", "x.wav"].map(|name| facts(name).iq);
        assert_eq!(pairs, [Some(true), Some(false), Some(false), None]);
    }

    #[test]
    fn a_name_states_only_what_it_contains() {
        for name in [
            "take_2M.cf32",
            "run_20240101_120000.cu8",
            "f32_s16.cf32",
            "x-f1-s2.cu8",
            "1e300k_2k.cu8",
            "_.cu8",
            "x_99999999_250000.cf32",
            "run-20240101T120000.cf32",
        ] {
            assert_eq!(facts(name), NameFacts::default(), "{name}");
        }
    }
}
