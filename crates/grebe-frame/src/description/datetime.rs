//! A time as SigMF writes it: RFC 3339 in UTC. Without a zone it is read as UTC, too: SigMF has no other times.

use std::time::SystemTime;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
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
    let time = |text: String| utc_time(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no time")));
    text.map(time).transpose()
}

/// The time that a text of SigMF's states, where it is one: RFC 3339, or without a zone, which is read as UTC.
pub fn utc_time(text: &str) -> Option<SystemTime> {
    let utc = || Some(text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp());
    text.parse::<Timestamp>().ok().or_else(utc).map(SystemTime::from)
}
