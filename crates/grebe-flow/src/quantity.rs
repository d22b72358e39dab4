//! Numbers with units, as in `25M`, `64K`, `500us`, `2s`, on command lines and in graph files.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// Samples or periods per second, above 0: `360`, `48k`, `25M`, `1.5G`; the unit may follow (`1 MS/s`, `440 Hz`).
///
/// ```
/// use grebe_flow::RateHz;
///
/// assert_eq!("1.5G".parse(), Ok(RateHz(1.5e9)));
/// assert_eq!("360".parse(), Ok(RateHz(360.0)));
/// assert_eq!("2.4 MS/s".parse(), Ok(RateHz(2.4e6)));
/// assert_eq!(RateHz(48_000.0).to_string(), "48k");
/// assert!("fast".parse::<RateHz>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct RateHz(pub f64);

/// Number of items: `108_000`, `10k`, `1M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

/// Bytes, with binary multiples: `1400`, `64K`, `4M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SizeBytes(pub usize);

/// Duration: `500us`, `20ms`, `2s`, `5m`, `1h`; seconds without a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

/// Invalid quantity, with the expected syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoQuantity(&'static str);

impl NoQuantity {
    /// Error for a custom quantity, with its syntax.
    pub const fn new(must: &'static str) -> Self {
        Self(must)
    }
}

impl FromStr for RateHz {
    type Err = NoQuantity;

    fn from_str(text: &str) -> Result<Self, NoQuantity> {
        let text = text.replace('_', "");
        let text = RATE_UNITS.iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(&text);
        let (number, multiple) = split(text.trim(), &[("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9)]);
        let hz = number.trim().parse::<f64>().map_err(|_| NoQuantity(RATE))? * multiple;
        Self::try_from(hz)
    }
}

impl FromStr for Count {
    type Err = NoQuantity;

    fn from_str(text: &str) -> Result<Self, NoQuantity> {
        let text = text.replace('_', "");
        let (number, multiple) = split(&text, &[("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9)]);
        // Whole numbers stay integers: an f64 would lose digits beyond 2^53.
        match number.parse::<u64>() {
            Ok(number) => return number.checked_mul(multiple as u64).map(Self).ok_or(NoQuantity(COUNT)),
            Err(_) if multiple == 1.0 => return Err(NoQuantity(COUNT)),
            Err(_) => {}
        }
        Self::try_from((number.parse::<f64>().map_err(|_| NoQuantity(COUNT))? * multiple).round())
    }
}

impl FromStr for SizeBytes {
    type Err = NoQuantity;

    fn from_str(text: &str) -> Result<Self, NoQuantity> {
        let text = text.replace('_', "");
        let units = [("K", KIB), ("k", KIB), ("M", KIB * KIB), ("G", KIB * KIB * KIB)];
        let (number, multiple) = split(&text, &units);
        let number = number.parse::<usize>().map_err(|_| NoQuantity(SIZE))?;
        number.checked_mul(multiple as usize).map(Self).ok_or(NoQuantity(SIZE))
    }
}

impl FromStr for Time {
    type Err = NoQuantity;

    fn from_str(text: &str) -> Result<Self, NoQuantity> {
        let (number, seconds) = split(text, &TIME_UNITS);
        let number = number.trim().parse::<f64>().map_err(|_| NoQuantity(TIME))?;
        Self::try_from(number * seconds)
    }
}

// Bare number in a file.

impl TryFrom<f64> for RateHz {
    type Error = NoQuantity;

    fn try_from(hz: f64) -> Result<Self, NoQuantity> {
        if hz.is_finite() && hz > 0.0 { Ok(Self(hz)) } else { Err(NoQuantity(RATE)) }
    }
}

impl TryFrom<f64> for Count {
    type Error = NoQuantity;

    fn try_from(count: f64) -> Result<Self, NoQuantity> {
        let is_whole = count >= 0.0 && count < u64::MAX as f64 && count.fract() == 0.0;
        if is_whole { Ok(Self(count as u64)) } else { Err(NoQuantity(COUNT)) }
    }
}

impl TryFrom<f64> for SizeBytes {
    type Error = NoQuantity;

    fn try_from(bytes: f64) -> Result<Self, NoQuantity> {
        let is_whole = bytes >= 0.0 && bytes < usize::MAX as f64 && bytes.fract() == 0.0;
        if is_whole { Ok(Self(bytes as usize)) } else { Err(NoQuantity(SIZE)) }
    }
}

impl TryFrom<f64> for Time {
    type Error = NoQuantity;

    fn try_from(seconds: f64) -> Result<Self, NoQuantity> {
        Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| NoQuantity(TIME))
    }
}

impl fmt::Display for RateHz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_unit(f, self.0, &[("G", 1e9), ("M", 1e6), ("k", 1e3)])
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let multiples = [("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)];
        whole_with_unit(f, self.0, &multiples)
    }
}

impl fmt::Display for SizeBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        whole_with_unit(f, self.0 as u64, &[("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)])
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
        let unit = units.into_iter().find(|(_, unit)| nanos.is_multiple_of(*unit)).unwrap_or(("ns", 1));
        write!(f, "{}{}", nanos / unit.1, unit.0)
    }
}

/// Serde implementation of these types: a number or text, with the same checks.
macro_rules! in_files {
    ($quantity:ident, $must:ident, $examples:tt) => {
        impl<'de> Deserialize<'de> for $quantity {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Written;
                impl Visitor<'_> for Written {
                    type Value = $quantity;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($must.trim_start_matches("give "))
                    }

                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$quantity, E> {
                        // As text, so that large numbers keep all digits.
                        self.visit_str(&number.to_string())
                    }

                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$quantity, E> {
                        self.visit_str(&number.to_string())
                    }

                    fn visit_f64<E: de::Error>(self, number: f64) -> Result<$quantity, E> {
                        $quantity::try_from(number).map_err(|must| E::custom(format!("{number}: {must}")))
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$quantity, E> {
                        text.parse().map_err(|must| E::custom(format!("'{text}': {must}")))
                    }
                }
                deserializer.deserialize_any(Written)
            }
        }

        impl Serialize for $quantity {
            /// As readable text.
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $quantity {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($quantity).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": ["number", "string"], "examples": $examples })
            }
        }
    };
}

in_files!(RateHz, RATE, ["48k", "25M", 360]);
in_files!(Count, COUNT, ["10M", 108000]);
in_files!(SizeBytes, SIZE, ["64K", 1400]);
in_files!(Time, TIME, ["500us", "2s", 1.5]);

fn split<'a>(text: &'a str, units: &[(&str, f64)]) -> (&'a str, f64) {
    let unit = units.iter().find(|(unit, _)| {
        text.strip_suffix(unit).is_some_and(|rest| {
            rest.ends_with(|last: char| last.is_ascii_digit() || last == '.' || last == ' ')
        })
    });
    unit.map_or((text, 1.0), |(unit, multiple)| (&text[..text.len() - unit.len()], *multiple))
}

/// Uses the largest multiple that gives a short number without losing digits.
fn with_unit(f: &mut fmt::Formatter<'_>, value: f64, multiples: &[(&str, f64)]) -> fmt::Result {
    for (unit, multiple) in multiples {
        let short = value / multiple;
        if short >= 1.0 && short * multiple == value && (short * 1e3).fract() == 0.0 {
            return write!(f, "{short}{unit}");
        }
    }
    write!(f, "{value}")
}

fn whole_with_unit(f: &mut fmt::Formatter<'_>, value: u64, multiples: &[(&str, u64)]) -> fmt::Result {
    match multiples.iter().find(|(_, multiple)| value > 0 && value.is_multiple_of(*multiple)) {
        Some((unit, multiple)) => write!(f, "{}{unit}", value / multiple),
        None => write!(f, "{value}"),
    }
}

const RATE: &str = "give a rate above 0, for example 360, 48k, 25M or 1G";
const COUNT: &str = "give a number, for example 1000, 10k or 1M";
const SIZE: &str = "give bytes, for example 1400, 64K or 4M";
const TIME: &str = "give a time, for example 500us, 2s or 5m";
const KIB: f64 = 1024.0;
const RATE_UNITS: [&str; 6] = ["Hz", "S/s", "Sa/s", "Sps", "SPS", "sps"];
const TIME_UNITS: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("min", 60.0),
    ("m", 60.0),
    ("h", 3600.0),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all<T: FromStr<Err = NoQuantity>, const N: usize>(texts: [&str; N]) -> [T; N] {
        texts.map(|text| text.parse().unwrap())
    }

    #[test]
    fn units_are_understood() {
        let rates = all::<RateHz, 5>(["360", "48k", "25M", "1.5G", "25_000_000"]).map(|rate| rate.0);
        assert_eq!(rates, [360.0, 48e3, 25e6, 1.5e9, 25e6]);
        let with_units = all::<RateHz, 6>(["1kHz", "1 kHz", "1k Hz", "1 kS/s", "1ksps", "1000 Hz"]);
        assert_eq!(with_units, [RateHz(1e3); 6]);
        assert_eq!(all::<Count, 3>(["108_000", "10k", "0"]), [108_000, 10_000, 0].map(Count));
        assert_eq!(all::<SizeBytes, 3>(["1400", "64K", "4M"]), [1400, 65_536, 4 << 20].map(SizeBytes));
        let times = all::<Time, 7>(["500us", "20ms", "2s", "1.5", "5m", "1h", "3min"]);
        let micros = [500, 20_000, 2_000_000, 1_500_000, 300_000_000, 3_600_000_000, 180_000_000];
        assert_eq!(times.map(|time| time.0.as_micros()), micros);
    }

    #[test]
    fn nonsense_is_refused() {
        let rates = ["", "-1", "0", "x", "1X", "inf", "NaN", "M", "Hz", "1 mHz", "kHz", "1 s"];
        assert!(rates.iter().all(|text| text.parse::<RateHz>().is_err()));
        assert!(["", "-1", "1.5", "k", "99999999999G"].iter().all(|text| text.parse::<Count>().is_err()));
        assert!(["", "-2s", "1e400", "s"].iter().all(|text| text.parse::<Time>().is_err()));
        assert!(["", "-1", "1.5K", "K"].iter().all(|text| text.parse::<SizeBytes>().is_err()));
    }

    #[test]
    fn quantities_are_written_short() {
        let rates = [48e3, 1.5e9, 360.0, 44_100.0, 0.1].map(|hz| RateHz(hz).to_string());
        assert_eq!(rates, ["48k", "1.5G", "360", "44.1k", "0.1"]);
        assert_eq!([0, 999, 10_000, 2_500_000].map(|n| Count(n).to_string()), ["0", "999", "10k", "2500k"]);
        assert_eq!([1400, 65_536, 3 << 20].map(|n| SizeBytes(n).to_string()), ["1400", "64K", "3M"]);
        let times = [1_500_000, 2_000_000_000, 7, 0].map(|ns| Time(Duration::from_nanos(ns)).to_string());
        assert_eq!(times, ["1500us", "2s", "7ns", "0s"]);
    }

    proptest! {
        #[test]
        fn quantities_round_trip(count: u64, size: usize, nanos in 0..1u64 << 50, hz in 1e-3..1e12f64) {
            prop_assert_eq!(Count(count).to_string().parse(), Ok(Count(count)));
            let size = SizeBytes(size);
            prop_assert_eq!(size.to_string().parse(), Ok(size));
            let rate = RateHz(hz);
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
            let time = Time(Duration::from_nanos(nanos)).to_string().parse::<Time>().unwrap();
            // Compared as f64 seconds.
            prop_assert!((time.0.as_secs_f64() - nanos as f64 * 1e-9).abs() < 1e-9 * (1.0 + nanos as f64 * 1e-9));
        }
    }
}
