//! A time as SigMF writes it: RFC 3339 in UTC.

use std::time::SystemTime;

use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::Serializer;

pub(super) fn serialize<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    // One that is beyond the year 9999 is none.
    match time.and_then(|time| Timestamp::try_from(time).ok()) {
        Some(time) => serializer.collect_str(&time),
        None => serializer.serialize_none(),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SystemTime>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    let time = text.map(|text| text.parse::<Timestamp>().map(SystemTime::from).map_err(D::Error::custom));
    time.transpose()
}
