//! A time in SigMF: RFC 3339 in UTC. Without a zone it counts as UTC too.

use std::time::SystemTime;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::Serializer;

pub(super) fn serialize<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    // Times after the year 9999 are omitted.
    match time.and_then(|time| Timestamp::try_from(time).ok()) {
        Some(time) => serializer.collect_str(&time),
        None => serializer.serialize_none(),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SystemTime>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    let time =
        |text: String| utc_time(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is not a time")));
    text.map(time).transpose()
}

/// Parses a UTC time: RFC 3339 as in SigMF, or common variants. These are: no zone, `UTC` or an offset after it,
/// blanks, more digits than nanoseconds, no seconds, or a leap second, which counts as the next minute's first.
///
/// ```
/// use grebe_frame::utc_time;
///
/// assert_eq!(utc_time("2026-09-24 12:00:00.5 UTC"), utc_time("2026-09-24T12:00:00.500000000000Z"));
/// assert_eq!(utc_time("2016-12-31T23:59:60Z"), utc_time("2017-01-01T00:00:00Z"));
/// assert_eq!(utc_time("yesterday"), None);
/// ```
pub fn utc_time(text: &str) -> Option<SystemTime> {
    let utc = || Some(text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp());
    let plain = || text.parse::<Timestamp>().ok().or_else(utc);
    otherwise(text).or_else(plain).map(SystemTime::from)
}

/// `DATE TIME ZONE`, separated by blanks, a `T` or nothing.
fn otherwise(text: &str) -> Option<Timestamp> {
    let upper = text.trim().to_ascii_uppercase();
    let (date, rest) = upper.split_once(['T', ' '])?;
    let (hour, rest) = rest.trim().split_once(':')?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, ':' | '.' | ','));
    let (minutes, zone) = rest.split_at(end.unwrap_or(rest.len()));
    let (minute, second) = minutes.split_once(':').unwrap_or((minutes, "0"));
    let (second, fraction) = second.split_once(['.', ',']).unwrap_or((second, "0"));
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let second: i8 = second.parse().ok()?;
    let time =
        Time::new(hour.parse().ok()?, minute.parse().ok()?, second.min(59), digits.parse().ok()?).ok()?;
    let date: Date = date.replace('/', "-").parse().ok()?;
    let local = date.to_datetime(time).to_zoned(TimeZone::UTC).ok()?.timestamp();
    let offset = SignedDuration::from_secs(offset_s(zone)?);
    let leap = SignedDuration::from_secs(i64::from(second == 60));
    (second <= 60).then(|| local.checked_sub(offset).ok()?.checked_add(leap).ok()).flatten()
}

/// Offset of a zone from UTC: of `Z`, `UTC`, `+02:00`, `+0200`, or the offset among several of these.
fn offset_s(zone: &str) -> Option<i64> {
    let zone = zone.replace("UTC", "").replace("GMT", "").replace(['Z', ' '], "");
    if zone.is_empty() {
        return Some(0);
    }
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits.replace(':', "")),
        ("-", digits) => (-1, digits.replace(':', "")),
        _ => return None,
    };
    let (hours, minutes) = digits.split_at_checked(2)?;
    let hours: i64 = hours.parse().ok().filter(|hours| (0..24).contains(hours))?;
    let minutes: i64 =
        if minutes.is_empty() { 0 } else { minutes.parse().ok().filter(|it| (0..60).contains(it))? };
    Some(sign * 60 * (60 * hours + minutes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_programs_write_them() {
        for (text, expected) in [
            ("2026-09-24T12:00:00", "2026-09-24T12:00:00Z"),
            ("2026-09-24T12:34:56.123456789012Z", "2026-09-24T12:34:56.123456789Z"),
            ("2026-09-24 12:00:00 UTC", "2026-09-24T12:00:00Z"),
            ("2026-09-24T12:00:00.25 Z", "2026-09-24T12:00:00.25Z"),
            (" 2026-09-24t12:00:00z\n", "2026-09-24T12:00:00Z"),
            ("2026-09-24T12:00:00+02:00", "2026-09-24T10:00:00Z"),
            ("2026-09-24T12:00:00-0530", "2026-09-24T17:30:00Z"),
            ("2026-09-24T12:00:00.5+00:00Z", "2026-09-24T12:00:00.5Z"),
            ("2026-09-24T12:00Z", "2026-09-24T12:00:00Z"),
            ("2026/09/24 12:00:00,75", "2026-09-24T12:00:00.75Z"),
            ("2016-12-31T23:59:60.5Z", "2017-01-01T00:00:00.5Z"),
        ] {
            let expected: Timestamp = expected.parse().unwrap();
            assert_eq!(utc_time(text), Some(expected.into()), "{text:?}");
        }
        for text in [
            "",
            "12:00:00",
            "2026-09-24T12:00:61Z",
            "2026-13-01T00:00:00Z",
            "2026-09-24T12:00:00 CET",
            "1758715200",
            "T:",
            "é T:+",
        ] {
            assert_eq!(utc_time(text), None, "{text:?}");
        }
    }
}
