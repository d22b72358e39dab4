//! Parsers of values on the command line, and formatting for people.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use grebe_flow::{Count, NoQuantity, RateHz, SizeBytes, Time};
use grebe_frame::SampleFormat;
use grebe_process::Format;
use grebe_recording::{RingLength, Rotate, WriteMethod};
use grebe_stages::{Error, Uri};
use grebe_zenoh::StreamName;

/// Parses the URI of a stream. The error has no name, because clap adds it.
pub(crate) fn uri(text: &str) -> Result<Uri, String> {
    text.parse().map_err(|error| match error {
        Error::Name { reason, .. } => reason,
        other => other.to_string(),
    })
}

/// Parses the name of a stream in the lab.
pub(crate) fn stream_name(text: &str) -> Result<StreamName, String> {
    text.parse().map_err(str::to_owned)
}

/// A rate in hertz, with decimal multiples: `360`, `48k`, `25M`, `1.5G`.
pub(crate) fn rate_hz(text: &str) -> Result<f64, NoQuantity> {
    RateHz::from_str(text).map(|rate| rate.0)
}

/// A rate in bits per second: `20M`, `1.5G`; `bit/s` may follow.
pub(crate) fn bits_per_s(text: &str) -> Result<f64, String> {
    let number = ["bit/s", "bit", "bps"].iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text);
    let has_unit = number.ends_with(|letter: char| letter.is_ascii_alphabetic() && !"kKMG".contains(letter));
    match rate_hz(number) {
        Ok(rate) if !has_unit => Ok(rate),
        _ => Err("give bits per second above 0, such as 20M (20 Mbit/s)".to_owned()),
    }
}

/// A number with a decimal prefix: `0.001`, `5u`, `-2.5m`, `1k`.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    let prefixes = [("n", 1e-9), ("u", 1e-6), ("µ", 1e-6), ("m", 1e-3), ("k", 1e3), ("M", 1e6), ("G", 1e9)];
    let (number, multiple) = prefixes
        .iter()
        .find_map(|&(prefix, multiple)| Some((text.strip_suffix(prefix)?, multiple)))
        .unwrap_or((text, 1.0));
    match number.trim().parse::<f64>().map(|number| number * multiple) {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err("give a number, for example 0.001, 5u or 1k".to_owned()),
    }
}

/// A count, with decimal multiples: `108_000`, `10k`, `1M`.
pub(crate) fn count(text: &str) -> Result<u64, NoQuantity> {
    Count::from_str(text).map(|count| count.0)
}

/// A size in bytes, with binary multiples: `1400`, `64K`, `4M`.
pub(crate) fn size_bytes(text: &str) -> Result<usize, NoQuantity> {
    SizeBytes::from_str(text).map(|size| size.0)
}

/// Address of a page of metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MetricsPlace {
    pub(crate) address: SocketAddr,
    /// The host name that was given.
    pub(crate) name: Option<String>,
}

/// Parses the address of a metrics page: `9464`, `:9464` and `127.0.0.1` for this machine only, `0.0.0.0:9464` for others, or a name,
/// `mast.example:9464`.
pub(crate) fn metrics_place(text: &str) -> Result<MetricsPlace, String> {
    if let Some(address) = metrics_address(text) {
        return Ok(MetricsPlace { address, name: None });
    }
    let wrong = || {
        format!(
            "invalid address {text:?}: give a port of this machine ({METRICS_PORT}) or ADDRESS:PORT (0.0.0.0:{METRICS_PORT})"
        )
    };
    let (name, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    if name.is_empty() || !name.chars().all(is_letter) {
        return Err(wrong());
    }
    let found =
        (name, port).to_socket_addrs().map_err(|error| format!("cannot resolve {name}: {error}"))?.next();
    Ok(MetricsPlace { address: found.ok_or_else(wrong)?, name: Some(name.to_owned()) })
}

fn metrics_address(text: &str) -> Option<SocketAddr> {
    let here = Ipv4Addr::LOCALHOST;
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse() {
        return Some((here, port).into());
    }
    let ip = text.strip_prefix("localhost").map_or_else(|| text.to_owned(), |rest| format!("{here}{rest}"));
    let bare = ip.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Some((ip, METRICS_PORT).into());
    }
    ip.parse().ok()
}

/// Parses an address to listen on: `0.0.0.0:4780`, `[::]:0`.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "give ADDRESS:PORT: 0.0.0.0:4780 for all IPv4 addresses, [::]:4780 for all addresses, 127.0.0.1:0 for any port of this machine only".to_owned())
}

/// Default port of OpenTelemetry exporters for Prometheus.
const METRICS_PORT: u16 = 9464;

/// Parses the length of a part: a time, `10m`, or a size, `4G`.
pub(crate) fn rotate(text: &str) -> Result<Rotate, String> {
    let wrong = || format!("{text:?} is neither a time (10m, 1h) nor a size (500M, 4G)");
    match duration(text) {
        Ok(time) => Ok(Rotate::After(time)),
        Err(_) => size_bytes(text).map(|bytes| Rotate::Bytes(bytes as u64)).map_err(|_| wrong()),
    }
}

/// Parses the length of a ring: a time, `30m`, or a size, `20G`.
pub(crate) fn ring(text: &str) -> Result<RingLength, String> {
    rotate(text).map(|length| match length {
        Rotate::After(time) => RingLength::Time(time),
        Rotate::Bytes(bytes) => RingLength::Bytes(bytes),
    })
}

/// Parses a method of writing to a disk.
pub(crate) fn write_method(text: &str) -> Result<WriteMethod, String> {
    match text {
        "io-uring" => Ok(WriteMethod::IoUring),
        "threads" => Ok(WriteMethod::Threads),
        "page-cache" => Ok(WriteMethod::PageCache),
        _ => Err(format!("unknown method {text:?}; supported: io-uring, threads, page-cache")),
    }
}

/// A time: `500us`, `20ms`, `2s`, `5m`, `1h`; without a unit, seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, NoQuantity> {
    Time::from_str(text).map(|time| time.0)
}

/// A time above 0.
pub(crate) fn length(text: &str) -> Result<Duration, NoQuantity> {
    duration(text).ok().filter(|time| !time.is_zero()).ok_or(NoQuantity::new(LENGTH))
}

const LENGTH: &str = "give a time above 0, for example 500us, 2s or 5m";

/// A range of frequencies: `-20k..20k`, `433.8M,434.1M`.
pub(crate) fn band_hz(text: &str) -> Result<(f64, f64), String> {
    let wrong =
        || format!("invalid band {text:?}: give FROM..TO in Hz, for example -20k..20k or 433.8M..434.1M");
    let (from, to) = text.split_once("..").or(text.split_once(',')).ok_or_else(wrong)?;
    let number = |text: &str| number(text.trim().trim_end_matches("Hz").trim_end()).map_err(|_| wrong());
    let (from, to) = (number(from)?, number(to)?);
    if from < to { Ok((from, to)) } else { Err(wrong()) }
}

/// A ratio above 0 dB: `12dB`, `12`.
pub(crate) fn above_db(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches("dB").trim_end().parse::<f64>();
    match number.ok().filter(|db| *db > 0.0 && *db <= 200.0) {
        Some(db) => Ok(db),
        None => Err(format!("invalid ratio {text:?}: give decibels above 0, for example 12dB")),
    }
}

/// A rate of false alarms per cell.
pub(crate) fn false_alarms(text: &str) -> Result<f64, String> {
    match text.parse::<f64>().ok().filter(|rate| (1e-15..=0.01).contains(rate)) {
        Some(rate) => Ok(rate),
        None => Err(format!("invalid rate {text:?}: give 1e-15 to 0.01 per cell, for example 1e-7")),
    }
}

/// Samples of a transform.
pub(crate) fn transform_samples(text: &str) -> Result<usize, String> {
    match text.parse::<usize>().ok().filter(|size| size.is_power_of_two() && (64..=16_384).contains(size)) {
        Some(size) => Ok(size),
        None => Err("give a power of two from 64 to 16384".to_owned()),
    }
}

/// Levels in decibels, at least 1 dB apart: `-120..-20`.
pub(crate) fn levels_db(text: &str) -> Result<(f64, f64), String> {
    let wrong = || format!("invalid levels {text:?}: give FROM..TO in dB, for example -120..-20");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let level =
        |text: &str| text.trim().parse::<f64>().ok().filter(|db| db.abs() <= 1000.0).ok_or_else(wrong);
    let (from, to) = (level(from)?, level(to)?);
    if from + 1.0 <= to { Ok((from, to)) } else { Err(wrong()) }
}

/// Two frequencies: `1k,2.5k`.
pub(crate) fn two_hz(text: &str) -> Result<(f64, f64), String> {
    let wrong = || format!("invalid frequencies {text:?}: give HZ,HZ, for example 1k,2.5k");
    let (a, b) = text.split_once(',').ok_or_else(wrong)?;
    let number = |text: &str| number(text.trim().trim_end_matches("Hz")).map_err(|_| wrong());
    Ok((number(a)?, number(b)?))
}

/// A channel or a range of channels, from 1: `3`, `5-8`.
pub(crate) fn channels(text: &str) -> Result<RangeInclusive<u8>, String> {
    let wrong = || format!("invalid channel {text:?}: give 3 or 5-8");
    let number = |text: &str| text.parse::<u8>().ok().filter(|&number| number > 0).ok_or_else(wrong);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = number(first)?..=number(last)?;
    if range.is_empty() { Err(wrong()) } else { Ok(range) }
}

/// A picture's size in pixels: `1280x720`.
pub(crate) fn pixels(text: &str) -> Result<(u32, u32), String> {
    let parsed =
        text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    match parsed {
        Some((width @ 160..=16_384, height @ 120..=16_384)) => Ok((width, height)),
        _ => Err("give WIDTHxHEIGHT between 160x120 and 16384x16384, for example 1280x720".to_owned()),
    }
}

/// Parser of a choice by name. All choices have a line of help, or none has.
pub(crate) fn choice<T: Copy + Send + Sync>(
    choices: &'static [(&'static str, &'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let names = choices.iter().map(|(name, help, _)| match *help {
        "" => PossibleValue::new(*name),
        help => PossibleValue::new(*name).help(help),
    });
    PossibleValuesParser::new(names).try_map(|name| {
        choices.iter().find(|choice| choice.0 == name).map(|choice| choice.2).ok_or("unknown choice")
    })
}

/// Parser of a sample format. Its names are known to help and completions.
pub(crate) fn format() -> impl TypedValueParser<Value = Format> {
    let names = SampleFormat::ALL.into_iter().map(|format| PossibleValue::new(format.name()));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Format>())
}

/// Path of a PNG file, or `-`.
pub(crate) fn picture(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some(extension) if !extension.eq_ignore_ascii_case("png") => {
            Err(format!("unsupported picture format .{extension}: pictures are PNG, name it NAME.png"))
        }
        _ => Ok(path),
    }
}

/// A time as text: `45 s`, `1 h 30 min`.
pub(crate) fn time_words(time: Duration) -> String {
    let seconds = time.as_secs();
    let parts = [(seconds / 3_600, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
    let words: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count} {unit}")).collect();
    if words.is_empty() { "less than 1 s".to_owned() } else { words.join(" ") }
}

/// A factor above zero, such as `--speed 100`.
pub(crate) fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(factor),
        _ => Err("give a factor above 0, for example 0.5 or 100".to_owned()),
    }
}

/// A number as text: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of things: `1 sample`, `1,234 samples`.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(number))
}

/// A frequency or a rate with all of its digits: `433.92 MHz`, `2.048 MS/s`.
pub(crate) fn exact(hertz: f64, unit: &str) -> String {
    let prefix =
        [(9, "G"), (6, "M"), (3, "k")].into_iter().find(|&(power, _)| hertz.abs() >= 10f64.powi(power));
    let Some((power, prefix)) = prefix else { return format!("{hertz} {unit}") };
    // The point moves in the text, because a division would round.
    let text = hertz.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let (before, after) = whole.split_at(whole.len() - power as usize);
    let after = format!("{after}{fraction}");
    match after.trim_end_matches('0') {
        "" => format!("{before} {prefix}{unit}"),
        after => format!("{before}.{after} {prefix}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_pictures_have_a_size() {
        assert_eq!(pixels("1280x720"), Ok((1280, 720)));
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(12), "12");
        assert_eq!([counted(1, "sample"), counted(1_000, "sample")], ["1 sample", "1,000 samples"]);
    }

    #[test]
    fn a_limit_is_in_bits_per_second() {
        assert_eq!(
            (bits_per_s("20M"), bits_per_s("20Mbit/s"), bits_per_s("1.5Gbit")),
            (Ok(20e6), Ok(20e6), Ok(1.5e9))
        );
        for wrong in ["20MB", "20 MHz", "0", "fast"] {
            assert!(bits_per_s(wrong).unwrap_err().contains("bits per second"), "{wrong}");
        }
    }

    #[test]
    fn rates_and_frequencies_keep_all_digits() {
        for (hertz, words) in [
            (433.92e6, "433.92 MHz"),
            (2.048e6, "2.048 MHz"),
            (1_626_270_833.0, "1.626270833 GHz"),
            (360.0, "360 Hz"),
            (0.1, "0.1 Hz"),
            (48_000.5, "48.0005 kHz"),
            (1e9, "1 GHz"),
            (-1_500.0, "-1.5 kHz"),
        ] {
            assert_eq!(exact(hertz, "Hz"), words);
        }
    }

    #[test]
    fn numbers_have_prefixes() {
        let near = |text: &str, value: f64| (number(text).unwrap() - value).abs() <= value.abs() * 1e-12;
        assert!(near("5u", 5e-6) && near("-2.5m", -2.5e-3) && near("1k", 1000.0) && near("0.001", 0.001));
        assert!(["", "k", "five", "1e999"].iter().all(|text| number(text).is_err()));
    }

    #[test]
    fn metrics_are_served_on_this_machine_by_default() {
        let parsed = |text: &str| metrics_place(text).unwrap().address.to_string();
        for text in ["9464", ":9464", "127.0.0.1", "localhost", "localhost:9464", "127.0.0.1:9464"] {
            assert_eq!(parsed(text), "127.0.0.1:9464", "{text}");
        }
        assert_eq!(
            [parsed("0.0.0.0:80"), parsed("[::]:80"), parsed("::1")],
            ["0.0.0.0:80", "[::]:80", "[::1]:9464"]
        );
        assert!(
            ["", "99999", "udp://:5000", "host:port", ":"].iter().all(|text| metrics_place(text).is_err())
        );
    }

    #[test]
    fn times_have_hours_minutes_and_seconds() {
        let words = |seconds| time_words(Duration::from_secs(seconds));
        assert_eq!([words(3_600), words(5_405), words(45)], ["1 h", "1 h 30 min 5 s", "45 s"]);
        assert_eq!(time_words(Duration::from_millis(3)), "less than 1 s");
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(["", "12", "1x1", "99999x720", "x"].iter().all(|text| pixels(text).is_err()));
        assert!(["0", "-1", "inf", ""].iter().all(|text| factor(text).is_err()));
        assert!(["0", "0s", "-1", ""].iter().all(|text| length(text).is_err()) && length("1ns").is_ok());
    }
}
