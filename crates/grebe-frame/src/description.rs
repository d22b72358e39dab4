//! Description of a stream, and its transport between hosts: frames of kind 1, whose payload is JSON with SigMF's keys.
//!
//! The frame of a description has the header of a frame of samples, with these fields read otherwise:
//!
//! | offset | field | type |
//! |---|---|---|
//! | 8 | sequence of the next frame of samples: a description has none of its own | u64 |
//! | 26 | kind = 1 | u8 |
//! | 28 | part, from 0 | u16 |
//! | 30 | parts, 1..=64 | u16 |
//! | 32 | payload_bytes: of this part | u32 |
//! | 48 | text_bytes: of all parts, at most 65,536 | u32 |
//! | 52 | text_crc32c: of all parts | u32 |
//! | 56 | first_sample_index: from where on it holds | u64 |
//!
//! All parts but the last have one size. A repeated description differs only in its sequence and time. A reader
//! recognises it by text_bytes, text_crc32c and first_sample_index, without parsing it.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use annotation::{AnnotationEdit, StreamAnnotation};
pub use axis::{AxisTime, MeasuredClock};
pub use datetime::utc_time;

use crate::format::{Component, SampleFormat};
use crate::header::{CRC, HEADER_BYTES, Header, KIND_DESCRIPTION, MAGIC, Refusal};
use crate::header::{check_crc, u32_at, u64_at};

/// Metadata of a stream, with SigMF's keys: names, units, scale, frequency, clock.
///
/// All fields are optional. As JSON it has the keys of a recording's metadata.
///
/// ```
/// use grebe_frame::{ChannelDescription, Description, DescriptionReader, Header};
///
/// let lead = ChannelDescription { name: "MLII".into(), unit: "mV".into(), scale: 0.005, ..Default::default() };
/// let sent = Description { channels: vec![lead], hardware: Some("AHA recorder".into()), ..Default::default() };
/// let next = Header { channel_count: 1, sample_rate_hz: 360.0, ..Header::default() };
///
/// let mut reader = DescriptionReader::default();
/// let frames = sent.frames(&next, 1400)?;
/// assert_eq!(reader.take(&frames[0])?, Some(sent));
/// assert_eq!(reader.take(&frames[0])?, None, "it is known");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Description {
    /// First sample index for which it holds, per channel from the start of the stream. Not part of the text.
    #[serde(skip)]
    pub first_sample_index: u64,
    /// Name of the stream.
    #[serde(rename = "grebe:name", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Description per channel, possibly of fewer channels than there are.
    #[serde(rename = "grebe:channels", skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<ChannelDescription>,
    /// The frequency that 0 Hz of a complex stream stands for, or from which a real one was mixed down.
    #[serde(rename = "core:frequency", skip_serializing_if = "Option::is_none")]
    pub centre_frequency_hz: Option<f64>,
    /// Bandwidth of the hardware.
    #[serde(rename = "capture_details:acquisition_bandwidth", skip_serializing_if = "Option::is_none")]
    pub bandwidth_hz: Option<f64>,
    /// Gain of the hardware.
    #[serde(rename = "capture_details:gain", skip_serializing_if = "Option::is_none")]
    pub gain_db: Option<f64>,
    /// Hardware that made the samples.
    #[serde(rename = "core:hw", skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    /// Author of the samples.
    #[serde(rename = "core:author", skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Comment of the author.
    #[serde(rename = "core:description", skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Relation of the producer's clock to UTC, for a live stream.
    #[serde(rename = "grebe:clock", skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockReading>,
    /// UDP port at which the sender's host answers clock queries of other hosts. The clock is that of
    /// [`measured`](Self::measured) if present, otherwise that of [`clock`](Self::clock).
    #[serde(rename = "grebe:clock_port", skip_serializing_if = "Option::is_none")]
    pub clock_port: Option<u16>,
    /// Relation of the producer's clock to that of a receiving host, measured by that host.
    #[serde(rename = "grebe:measured_clock", skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredClock>,
    /// Time of the sample at [`first_sample_index`](Self::first_sample_index), for a played recording, whose stamps are
    /// the times of sending.
    #[serde(rename = "core:datetime", with = "datetime", skip_serializing_if = "Option::is_none")]
    pub recorded_at: Option<SystemTime>,
    /// Uncertainty of that time; `None` if unknown.
    #[serde(rename = "grebe:datetime_error_ns", skip_serializing_if = "Option::is_none")]
    pub recorded_error_ns: Option<u64>,
    /// The same time by the monotonic clock of a host, comparable with streams of other hosts.
    #[serde(rename = "grebe:axis", skip_serializing_if = "Option::is_none")]
    pub recorded_axis: Option<AxisTime>,
    /// Whether the time of the samples is unknown, because they come from a recording without it. Their stamps are then
    /// not real times.
    #[serde(rename = "grebe:undated", skip_serializing_if = "std::ops::Not::not")]
    pub is_undated: bool,
    /// Annotations near the samples sent now, in order, at most [`ANNOTATIONS_MAX`](Self::ANNOTATIONS_MAX). One may be
    /// repeated in several descriptions; its start, length and label identify it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<StreamAnnotation>,
    /// Other keys of the producer, passed on unchanged.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Description of one channel. A sample stands for `sample * scale + offset`, in `unit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChannelDescription {
    /// Name of the channel, possibly empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Unit of measurement; empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Units per count.
    pub scale: f64,
    /// Units at a sample of zero.
    pub offset: f64,
}

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// The producer's monotonic clock, which stamps its frames.
    pub producer_ts_ns: u64,
    /// Nanoseconds since 1970 in UTC, by the producer's host.
    pub unix_time_ns: i64,
    /// Uncertainty by the kernel's estimate; `None` if the clock is not disciplined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_ns: Option<u64>,
    /// Identifies the monotonic clock among all hosts and boots; `None` for stamps of a device.
    #[serde(with = "axis::optional_clock_id", default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<u64>,
}

/// The description does not fit into frames of this size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the description has {text_bytes} bytes, but only {bytes_max} fit")]
pub struct TooLong {
    /// Bytes of its text.
    pub text_bytes: usize,
    /// Bytes of text that fit.
    pub bytes_max: usize,
}

/// Assembles descriptions from their frames. Its memory is at most the longest text, 64 KiB.
#[derive(Debug, Default)]
pub struct DescriptionReader {
    /// Of the description in progress, or the last one.
    id: Option<Id>,
    text: Vec<u8>,
    /// A bit per missing part.
    missing: u64,
}

/// Identifies a repeated description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Id {
    text_bytes: u32,
    text_crc: u32,
    first_sample_index: u64,
    parts: u16,
}

impl Description {
    /// Key for samples that need fewer bits than their format has.
    pub const BITS: &str = "grebe:bits";

    /// Maximum annotations of a description.
    pub const ANNOTATIONS_MAX: usize = 256;

    /// The frames to send, in order, of at most `frame_bytes_max` each. `next` is the header of the next frame of
    /// samples.
    ///
    /// # Errors
    /// The text exceeds 64 KiB, or 64 frames: [`frames_that_fit`](Self::frames_that_fit) shortens it.
    pub fn frames(&self, next: &Header, frame_bytes_max: usize) -> Result<Vec<Vec<u8>>, TooLong> {
        let text = self.text();
        let part_bytes = frame_bytes_max.saturating_sub(HEADER_BYTES);
        let bytes_max = TEXT_BYTES_MAX.min(part_bytes * PARTS_MAX);
        if text.len() > bytes_max {
            return Err(TooLong { text_bytes: text.len(), bytes_max });
        }
        let crc = crc32c::crc32c(&text);
        let parts = text.chunks(part_bytes);
        let count = parts.len();
        let frame = |(number, part): (usize, &[u8])| {
            let mut bytes = vec![0; HEADER_BYTES + part.len()];
            if let Some((head, payload)) = bytes.split_first_chunk_mut::<HEADER_BYTES>() {
                payload.copy_from_slice(part);
                next.write_unchecked(head);
                head[26] = KIND_DESCRIPTION;
                head[28..30].copy_from_slice(&(number as u16).to_le_bytes());
                head[30..32].copy_from_slice(&(count as u16).to_le_bytes());
                head[32..36].copy_from_slice(&(part.len() as u32).to_le_bytes());
                head[48..52].copy_from_slice(&(text.len() as u32).to_le_bytes());
                head[52..56].copy_from_slice(&crc.to_le_bytes());
                head[56..64].copy_from_slice(&self.first_sample_index.to_le_bytes());
                let head_crc = crc32c::crc32c(head);
                head[CRC].copy_from_slice(&head_crc.to_le_bytes());
            }
            bytes
        };
        Ok(parts.enumerate().map(frame).collect())
    }

    /// Time of a sample in UTC, as far as the stream states it. `header` is that of the sample's frame or of one near
    /// it, because the stamps of a live stream are more reliable than its rate.
    pub fn time_of(&self, header: &Header, sample_index: u64) -> Option<SystemTime> {
        let rate_hz = header.sample_rate_hz;
        let behind_ns = |from: u64| match i128::from(sample_index) - i128::from(from) {
            0 => Some(0),
            samples if rate_hz > 0.0 => Some((samples as f64 / rate_hz * 1e9).round() as i128),
            _ => None,
        };
        if let Some(recorded_at) = self.recorded_at {
            return later(recorded_at, behind_ns(self.first_sample_index)?);
        }
        let stamp_ns = Some(header.producer_ts_ns).filter(|stamp_ns| *stamp_ns > 0)?;
        let measured_ns = self.measured.and_then(|measured| measured.unix_at(stamp_ns)).map(i128::from);
        let said_ns = |clock: ClockReading| {
            i128::from(clock.unix_time_ns) + i128::from(stamp_ns) - i128::from(clock.producer_ts_ns)
        };
        // Without a rate, only the frame's time is known.
        let in_frame_ns = behind_ns(header.first_sample_index).unwrap_or(0);
        let frame_ns = measured_ns.or_else(|| self.clock.map(said_ns))?;
        later(SystemTime::UNIX_EPOCH, frame_ns.saturating_add(in_frame_ns))
    }

    /// Uncertainty of [`time_of`](Self::time_of), if known.
    pub fn time_error_ns(&self) -> Option<u64> {
        match self.recorded_at {
            Some(_) => self.recorded_error_ns,
            None => match self.measured.filter(|measured| measured.unix_time_ns.is_some()) {
                Some(measured) => measured.unix_error_ns,
                None => self.clock.and_then(|clock| clock.error_ns),
            },
        }
    }

    /// Time of a sample of the stream by the monotonic clock of a host. That is a receiver's clock, if it has measured
    /// the offset of the producer's clock, otherwise the producer's own. Times of one clock are comparable whatever UTC
    /// is.
    pub fn axis_time_of(&self, header: &Header, sample_index: u64) -> Option<AxisTime> {
        let behind_ns = |from: u64| match i128::from(sample_index) - i128::from(from) {
            0 => Some(0),
            samples if header.sample_rate_hz > 0.0 => {
                Some((samples as f64 / header.sample_rate_hz * 1e9).round() as i64)
            }
            _ => None,
        };
        if let Some(axis) = self.recorded_axis {
            return Some(axis.after(behind_ns(self.first_sample_index)?));
        }
        if self.recorded_at.is_some() || header.producer_ts_ns == 0 {
            return None;
        }
        let stamped = match self.measured {
            Some(measured) => measured.axis_time(header.producer_ts_ns),
            None => AxisTime {
                clock: self.clock?.clock?,
                ns: i64::try_from(header.producer_ts_ns).ok()?,
                error_ns: 0,
                drift_ppb: 0,
                drift_error_ppb: 0,
            },
        };
        // Without a rate, only the frame's time is known.
        Some(stamped.after(behind_ns(header.first_sample_index).unwrap_or(0)))
    }

    /// The host clock of [`axis_time_of`](Self::axis_time_of), for a live stream.
    pub fn axis_clock(&self) -> Option<u64> {
        self.measured.map(|measured| measured.axis.clock).or_else(|| self.clock?.clock)
    }

    /// The description of a decimated stream, which turns each `factor` samples, starting at a multiple of it, into
    /// `kept`. `sample_rate_hz` is this stream's. Annotations keep their extent.
    pub fn decimated(&self, factor: u64, kept: u64, sample_rate_hz: f64) -> Self {
        let first_group = self.first_sample_index.div_ceil(factor);
        let later_samples = first_group.saturating_mul(factor).saturating_sub(self.first_sample_index);
        let recorded_at = match (self.recorded_at, later_samples) {
            (Some(recorded_at), 1..) if sample_rate_hz > 0.0 => {
                later(recorded_at, (later_samples as f64 / sample_rate_hz * 1e9).round() as i128)
            }
            (recorded_at, 0) => recorded_at,
            _ => None,
        };
        let annotation = |annotation: &StreamAnnotation| {
            let first_group = annotation.first_sample_index / factor;
            let groups = annotation.end_index().div_ceil(factor) - first_group;
            StreamAnnotation {
                first_sample_index: first_group.saturating_mul(kept),
                length_samples: if annotation.length_samples > 0 { groups.saturating_mul(kept) } else { 0 },
                ..annotation.clone()
            }
        };
        let recorded_axis = self.recorded_axis.and_then(|axis| match later_samples {
            0 => Some(axis),
            _ if sample_rate_hz > 0.0 => {
                Some(axis.after((later_samples as f64 / sample_rate_hz * 1e9).round() as i64))
            }
            _ => None,
        });
        Self {
            first_sample_index: first_group.saturating_mul(kept),
            recorded_at,
            recorded_axis,
            annotations: self.annotations.iter().map(annotation).collect(),
            ..self.clone()
        }
    }

    /// Removes the last annotations if a description has no room for them. Returns their number.
    pub fn bound_annotations(&mut self) -> usize {
        let before = self.annotations.len();
        let annotations = std::mem::take(&mut self.annotations);
        // The key and its brackets; a comma each.
        let mut bytes = self.text_bytes() + br#","annotations":[]"#.len();
        let fits = |annotation: &StreamAnnotation| {
            bytes += annotation.text_bytes() + 1;
            bytes <= TEXT_BYTES_MAX
        };
        self.annotations = annotations.into_iter().take(Self::ANNOTATIONS_MAX).take_while(fits).collect();
        before - self.annotations.len()
    }

    /// Amplitude of a full-scale tone, if the samples have fewer bits than `format` (`grebe:bits`), or the integers
    /// from which floats were made. For numbers around 0.
    pub fn full_scale(&self, format: SampleFormat) -> Option<f64> {
        let bits = i32::try_from(self.rest.get(Self::BITS)?.as_u64()?).ok()?;
        let component = format.component();
        let is_fewer = component != Component::U8 && (1..8 * component.bytes() as i32).contains(&bits);
        // Floats made from integers may state more bits, too.
        let is_said = is_fewer || component.is_float() && (1..=64).contains(&bits);
        is_said.then(|| 2f64.powi(bits - 1))
    }

    /// Bytes of its text.
    pub fn text_bytes(&self) -> usize {
        self.text().len()
    }

    /// As JSON.
    fn text(&self) -> Vec<u8> {
        // Cannot fail: the keys are strings.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl Default for ChannelDescription {
    fn default() -> Self {
        Self { name: String::new(), unit: String::new(), scale: 1.0, offset: 0.0 }
    }
}

impl DescriptionReader {
    /// Bytes of the description's frame that begins with this header, for readers of a pipe.
    ///
    /// # Errors
    /// The first reason why it is not such a frame.
    pub fn frame_bytes(head: &[u8]) -> Result<usize, Refusal> {
        let Some(head) = head.first_chunk::<HEADER_BYTES>() else { return Err(Refusal::Short) };
        if u32_at(head, 0) != MAGIC {
            return Err(Refusal::Magic);
        }
        if u32_at(head, 4) as usize != HEADER_BYTES {
            return Err(Refusal::HeaderBytes);
        }
        if head[26] != KIND_DESCRIPTION || head[27] != 0 {
            return Err(Refusal::Kind);
        }
        check_crc(head)?;
        let payload_bytes = u32_at(head, 32) as usize;
        if payload_bytes > TEXT_BYTES_MAX {
            return Err(Refusal::Description);
        }
        Ok(HEADER_BYTES + payload_bytes)
    }

    /// Position of the description in its stream: the sequence of the next frame of samples, and the producer's time.
    ///
    /// # Errors
    /// The first reason for which it is not a frame of a description.
    pub fn stamp(frame: &[u8]) -> Result<Header, Refusal> {
        Self::frame_bytes(frame)?;
        let Some(head) = frame.first_chunk::<HEADER_BYTES>() else { return Err(Refusal::Short) };
        Ok(Header { sequence: u64_at(head, 8), producer_ts_ns: u64_at(head, 16), ..Header::default() })
    }

    /// Handles the next frame. Returns a description after its last part, unless it repeats the previous one.
    ///
    /// # Errors
    /// The reason why it is not a frame of a description. A wrong text discards the parts so far.
    pub fn take(&mut self, frame: &[u8]) -> Result<Option<Description>, Refusal> {
        let frame_bytes = Self::frame_bytes(frame)?;
        match frame.len().cmp(&frame_bytes) {
            std::cmp::Ordering::Less => return Err(Refusal::Truncated),
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => return Err(Refusal::Trailing),
        }
        let Some((head, payload)) = frame.split_first_chunk::<HEADER_BYTES>() else {
            return Err(Refusal::Short);
        };
        let (part, parts) = (u32_at(head, 28) as u16, (u32_at(head, 28) >> 16) as u16);
        let id = Id {
            text_bytes: u32_at(head, 48),
            text_crc: u32_at(head, 52),
            first_sample_index: u64_at(head, 56),
            parts,
        };
        let total = id.text_bytes as usize;
        if part >= parts || usize::from(parts) > PARTS_MAX || total > TEXT_BYTES_MAX {
            return Err(Refusal::Description);
        }
        let at = if part + 1 < parts {
            payload.len() * usize::from(part)
        } else {
            total.wrapping_sub(payload.len())
        };
        let place = at..at.wrapping_add(payload.len());
        if place.start > place.end || place.end > total {
            return Err(Refusal::Description);
        }
        if self.id != Some(id) {
            self.id = Some(id);
            self.text.clear();
            self.text.resize(total, 0);
            self.missing = u64::MAX >> (64 - u32::from(parts));
        }
        if self.missing & 1 << part == 0 {
            return Ok(None);
        }
        self.text[place].copy_from_slice(payload);
        self.missing &= !(1 << part);
        if self.missing > 0 {
            return Ok(None);
        }
        let found = self.read(u32::from(head[24]));
        if found.is_none() {
            self.forget();
        }
        found
            .map(|text| Some(Description { first_sample_index: id.first_sample_index, ..text }))
            .ok_or(Refusal::Description)
    }

    /// Forgets the last description, so that a repeated one is returned again. For another stream.
    pub fn forget(&mut self) {
        self.id = None;
    }

    fn read(&self, channels: u32) -> Option<Description> {
        self.id.filter(|id| id.text_crc == crc32c::crc32c(&self.text))?;
        let text: Description = serde_json::from_slice(&self.text).ok()?;
        let fits = text.channels.len() <= channels as usize
            && text.annotations.len() <= Description::ANNOTATIONS_MAX;
        fits.then_some(text)
    }
}

/// The time plus `by_ns`; `None` if the system cannot represent it.
fn later(time: SystemTime, by_ns: i128) -> Option<SystemTime> {
    let by = Duration::from_nanos(u64::try_from(by_ns.unsigned_abs()).ok()?);
    if by_ns < 0 { time.checked_sub(by) } else { time.checked_add(by) }
}

/// Maximum length of a description's text.
const TEXT_BYTES_MAX: usize = 65_536;
/// Maximum frames of a description.
const PARTS_MAX: usize = 64;

mod annotation;
mod axis;
mod datetime;
mod shorten;

#[cfg(test)]
mod tests;
