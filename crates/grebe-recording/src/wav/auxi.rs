//! The `auxi` chunk, in which receiver programs store start time and tuning: in SpectraVue's layout (SDRuno,
//! SDR#, HDSDR, SDRconnect), or as the XML of SDR Console.
//!
//! ```text
//!  0   16   32          36  40  44         48
//!  start stop frequency AD  IF  bandwidth ...    times as Windows' SYSTEMTIME: year, month, weekday, day, hour, minute, second, ms
//! ```

use std::time::{Duration, SystemTime};

use grebe_frame::utc_time;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::numbers::{u16_at, u32_at};
use crate::xml_attribute::attribute;

/// Its content; zeros mean unknown.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Auxi {
    /// In UTC.
    pub(super) start: Option<SystemTime>,
    pub(super) frequency_hz: Option<f64>,
}

impl Auxi {
    /// `None`: it is neither of the two.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        if let Some(text) = xml(bytes) {
            return Some(Self::of_xml(&text));
        }
        if bytes.len() < FREQUENCY_AT + 4 {
            return None;
        }
        let frequency_hz = Some(f64::from(u32_at(bytes, FREQUENCY_AT))).filter(|&hz| hz > 0.0);
        Some(Self { start: system_time(bytes), frequency_hz })
    }

    fn of_xml(text: &str) -> Self {
        let number = |name| attribute(text, name)?.parse::<f64>().ok().filter(|&number| number > 0.0);
        let since_1970 =
            |seconds: f64| SystemTime::UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(seconds).ok()?);
        let start = number("UTCSeconds").and_then(since_1970);
        let start = start.or_else(|| utc_time(attribute(text, "CurrentTimeUTC")?));
        Self { start, frequency_hz: number("RadioCenterFreq") }
    }

    /// SpectraVue's layout, for a recording of this length.
    pub(super) fn bytes(&self, length_s: f64) -> Vec<u8> {
        let mut bytes = vec![0; BYTES];
        let end = self.start.and_then(|start| start.checked_add(Duration::try_from_secs_f64(length_s).ok()?));
        for (at, time) in [(0, self.start), (16, end)] {
            let Some(time) = time.and_then(|time| Timestamp::try_from(time).ok()) else { continue };
            let time = time.to_zoned(TimeZone::UTC);
            let fields = [
                time.year() as u16,
                time.month() as u16,
                time.weekday().to_sunday_zero_offset() as u16,
                time.day() as u16,
                time.hour() as u16,
                time.minute() as u16,
                time.second() as u16,
                time.millisecond() as u16,
            ];
            bytes[at..at + 16].copy_from_slice(fields.map(u16::to_le_bytes).as_flattened());
        }
        let hz = self.frequency_hz.filter(|hz| (0.0..=f64::from(u32::MAX)).contains(hz)).unwrap_or(0.0);
        bytes[FREQUENCY_AT..FREQUENCY_AT + 4].copy_from_slice(&(hz.round() as u32).to_le_bytes());
        bytes
    }
}

fn system_time(bytes: &[u8]) -> Option<SystemTime> {
    let [year, month, _, day, hour, minute, second, ms] =
        [0, 1, 2, 3, 4, 5, 6, 7].map(|at| u16_at(bytes, 2 * at));
    let small = |number: u16| i8::try_from(number).ok();
    let time = DateTime::new(
        i16::try_from(year).ok().filter(|&year| year > 0)?,
        small(month)?,
        small(day)?,
        small(hour)?,
        small(minute)?,
        small(second)?,
        i32::from(ms).checked_mul(1_000_000)?,
    );
    Some(time.ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp().into())
}

/// The text, in UTF-16 or UTF-8, where it is XML.
fn xml(bytes: &[u8]) -> Option<String> {
    let words: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
    let wide = String::from_utf16_lossy(&words);
    let narrow = String::from_utf8_lossy(bytes);
    [wide.as_str(), &*narrow]
        .into_iter()
        .find(|text| text.trim_start_matches('\u{feff}').starts_with('<'))
        .map(str::to_owned)
}

const FREQUENCY_AT: usize = 32;
/// As HDSDR writes it.
const BYTES: usize = 164;
