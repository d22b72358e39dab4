//! Words of a stream and its times.

use std::sync::Arc;

use grebe_frame::Description;
use grebe_scope::Engineering;
use jiff::{SignedDuration, Timestamp};

use crate::data::picture::Picture;

/// The name of the stream before that of its source.
pub(crate) fn source_name(description: Option<&Arc<Description>>, source: &str) -> String {
    match description.and_then(|description| description.name.as_deref()).filter(|name| !name.is_empty()) {
        Some(name) if source.is_empty() || name == source => name.to_owned(),
        Some(name) => format!("{name} \u{b7} {source}"),
        None => source.to_owned(),
    }
}

/// The centre frequency, if the stream states one.
pub(crate) fn centre_words(description: Option<&Arc<Description>>) -> Option<String> {
    let hz = description?.centre_frequency_hz.filter(|hz| hz.is_finite())?;
    Some(format!("centre {}", Engineering::new(hz, "Hz").digits(9)))
}

/// The UTC time of a sample, if the stream relates its clock to UTC.
pub(crate) fn utc_at(picture: &Picture, index: f64) -> Option<String> {
    let (time, is_precise) = utc_of(picture, index)?;
    let format = if is_precise { "%Y-%m-%d %H:%M:%S%.6f UTC" } else { "%Y-%m-%d %H:%M:%S%.3f UTC" };
    Some(time.strftime(format).to_string())
}

/// The same to a second, as a part of a file's name.
pub(crate) fn utc_name(picture: &Picture, index: f64) -> Option<String> {
    Some(utc_of(picture, index)?.0.strftime("%Y%m%dT%H%M%SZ").to_string())
}

/// The uncertainty of the stream's times on this host's clock, which aligns the streams of several hosts; `None` if
/// the clock of the stream's host was not measured.
pub(crate) fn axis_words(picture: &Picture) -> Option<String> {
    Some(format!("\u{b1}{}", Engineering::new(axis_error_s(picture)?, "s").digits(3)))
}

/// By the clock of the host that received it, which is surest; times by the clock that stamped it are not off.
pub(crate) fn axis_error_s(picture: &Picture) -> Option<f64> {
    let times = picture.axis_times(picture.right_index());
    let error_ns = times.iter().map(|time| time.error_ns).filter(|error_ns| *error_ns > 0).min()?;
    Some(error_ns as f64 * 1e-9)
}

/// The time of a sample, and whether it is more exact than milliseconds.
pub(crate) fn utc_of(picture: &Picture, index: f64) -> Option<(Timestamp, bool)> {
    let description = picture.description.as_ref()?;
    let rate_hz = picture.stream.map(|stream| stream.rate_hz).filter(|rate_hz| *rate_hz > 0.0)?;
    let newest = picture.newest_header();
    // Places before the stream and between samples have a time too.
    let whole = index.max(0.0).floor();
    let time = Timestamp::try_from(description.time_of(&newest, whole as u64)?).ok()?;
    let rest = SignedDuration::try_from_secs_f64((index - whole) / rate_hz).ok()?;
    let is_precise = description.time_error_ns().is_some_and(|error_ns| error_ns < 1_000_000);
    Some((time.checked_add(rest).ok()?, is_precise))
}
