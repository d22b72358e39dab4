//! Sample format and frequency as parameters.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use grebe_flow::{NoQuantity, RateHz};
use grebe_frame::{SampleFormat, UnknownFormat};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::{Serialize, Serializer};

/// Sample format by name: i8, u8, i16, i32, f32, f64, ci8, cu8, ci16 or cf32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Format(pub SampleFormat);

/// Frequency in hertz, possibly negative; in a graph file a number, or text such as `"-100k"`.
///
/// ```
/// use grebe_process::FrequencyHz;
///
/// assert_eq!("-1.5M".parse(), Ok(FrequencyHz(-1.5e6)));
/// assert_eq!("0".parse(), Ok(FrequencyHz(0.0)));
/// assert!("low".parse::<FrequencyHz>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct FrequencyHz(pub f64);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        name.parse().map(Self)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Format {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Format".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": SampleFormat::ALL.map(SampleFormat::name) })
    }
}

impl FromStr for FrequencyHz {
    type Err = NoQuantity;

    fn from_str(text: &str) -> Result<Self, NoQuantity> {
        if text.trim().parse() == Ok(0.0) {
            return Ok(Self(0.0));
        }
        let (size, sign) = text.strip_prefix('-').map_or((text, 1.0), |size| (size, -1.0));
        let written = size.parse().map(|RateHz(hz)| Self(sign * hz));
        written.map_err(|_| NoQuantity::new("give a frequency in hertz, for example 440, 10k or 1.5M"))
    }
}

impl fmt::Display for FrequencyHz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0.0 { "-" } else { "" };
        write!(f, "{sign}{}", RateHz(self.0.abs()))
    }
}

impl From<RateHz> for FrequencyHz {
    fn from(rate: RateHz) -> Self {
        Self(rate.0)
    }
}

impl Serialize for FrequencyHz {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FrequencyHz {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrText)
    }
}

struct NumberOrText;

impl Visitor<'_> for NumberOrText {
    type Value = FrequencyHz;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a frequency in hertz, as -100000 or \"-100k\"")
    }

    fn visit_i64<E: serde::de::Error>(self, hz: i64) -> Result<FrequencyHz, E> {
        Ok(FrequencyHz(hz as f64))
    }

    fn visit_u64<E: serde::de::Error>(self, hz: u64) -> Result<FrequencyHz, E> {
        Ok(FrequencyHz(hz as f64))
    }

    fn visit_f64<E: serde::de::Error>(self, hz: f64) -> Result<FrequencyHz, E> {
        if hz.is_finite() { Ok(FrequencyHz(hz)) } else { Err(E::custom("give a finite number of hertz")) }
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<FrequencyHz, E> {
        text.parse().map_err(|why| E::custom(format_args!("'{text}': {why}")))
    }
}

impl JsonSchema for FrequencyHz {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "FrequencyHz".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string"] })
    }
}
