//! Numbers that may be infinite or none: JSON has words for them, not numbers.

use serde::{Deserialize, Deserializer, Serializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrWord {
    Number(f64),
    Word(String),
}

pub(crate) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() { to.serialize_f64(*value) } else { to.collect_str(value) }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    match NumberOrWord::deserialize(from)? {
        NumberOrWord::Number(value) => Ok(value),
        NumberOrWord::Word(word) => word.parse().map_err(serde::de::Error::custom),
    }
}
