//! Captures and annotations: their positions in the file, whatever their origin.

use std::path::Path;

use grebe_frame::utc_time;
use jiff::Timestamp;

use super::layout::{Capture, Meta};
use super::stripe_set::StripeSet;
use crate::error::Error;
use crate::sample_file::{Annotation, Segment};

/// Brings captures into the order of the file, counted as SigMF has it: from `core:offset` on.
pub(super) fn settle(meta: &mut Meta, notes: &mut Vec<String>) {
    let offset = meta.global.offset.unwrap_or(0);
    if let Some(number) = meta.captures.iter().position(|capture| capture.sample_start < offset) {
        notes.push(format!(
            "captures[{number}].core:sample_start is {}, below core:offset, {offset}: captures and annotations are counted from the first sample of the file",
            meta.captures[number].sample_start
        ));
        for capture in &mut meta.captures {
            capture.sample_start = capture.sample_start.saturating_add(offset);
        }
        for annotation in &mut meta.annotations {
            annotation.sample_start = annotation.sample_start.saturating_add(offset);
        }
    }
    if !meta.captures.is_sorted_by_key(|capture| capture.sample_start) {
        notes.push(
            "captures are not in the order of the file: they are sorted by core:sample_start".to_owned(),
        );
        meta.captures.sort_by_key(|capture| capture.sample_start);
    }
}

/// Segments of the file from its captures, one segment if there are none; and the number of captures after
/// its end.
pub(super) fn segments(path: &Path, meta: &Meta, len_samples: u64) -> Result<(Vec<Segment>, usize), Error> {
    let offset = meta.global.offset.unwrap_or(0);
    let mut segments: Vec<Segment> = Vec::with_capacity(meta.captures.len().max(1));
    let mut behind = 0;
    for (number, capture) in meta.captures.iter().enumerate() {
        let position = capture.sample_start.saturating_sub(offset);
        behind += usize::from(position > len_samples);
        let first_sample_index = capture.global_index.unwrap_or(capture.sample_start);
        if first_sample_index > INDEX_MAX {
            let name = format!("captures[{number}].core:global_index");
            return Err(Error::field(path, &name, first_sample_index, "it must be below 2^63"));
        }
        if number == 0 && position > 0 {
            let first_sample_index = first_sample_index.saturating_sub(position);
            segments.push(segment(0, first_sample_index, &Capture::default()));
        }
        segments.push(segment(position, first_sample_index, capture));
    }
    if segments.is_empty() {
        segments.push(segment(0, offset, &Capture::default()));
    }
    let ends: Vec<u64> = segments.iter().skip(1).map(|segment| segment.position).collect();
    for (segment, end) in segments.iter_mut().zip(ends.into_iter().chain([len_samples])) {
        segment.length_samples = end.min(len_samples).saturating_sub(segment.position);
    }
    // The last of several captures at one position wins; one at the very end covers nothing.
    segments.retain(|segment| segment.length_samples > 0);
    Ok((segments, behind))
}

fn segment(position: u64, first_sample_index: u64, capture: &Capture) -> Segment {
    let recorded_at = capture.datetime.as_deref().and_then(utc_time);
    let recorded_error_ns = recorded_at.and(capture.datetime_error_ns);
    let recorded_axis = recorded_at.and(capture.axis);
    Segment { position, length_samples: 0, first_sample_index, recorded_at, recorded_error_ns, recorded_axis }
}

/// Notice about the times of captures.
pub(super) fn times_note(meta: &Meta) -> Option<String> {
    let times = || meta.captures.iter().filter_map(|capture| capture.datetime.as_deref());
    if let Some(other) = times().find(|text| utc_time(text).is_none()) {
        return Some(format!("core:datetime of a capture is not a time, and is ignored: {other:?}"));
    }
    // As SigMF has it, to the nanosecond; a second 60 is one that only UTC has.
    let is_plain = |text: &&str| {
        let has_seconds = text.matches(':').count() == 2 && !text.contains(":60");
        has_seconds && text.ends_with('Z') && text.parse::<Timestamp>().is_ok()
    };
    let other = times().find(|text| !is_plain(text))?;
    let taken: Timestamp = utc_time(other)?.try_into().ok()?;
    Some(format!("core:datetime of a capture is not as SigMF has it, and is read as {taken}: {other:?}"))
}

/// The set of alternating recordings, and the positions of its captures in the whole.
pub(super) fn stripes_of(meta: &Meta) -> Option<(StripeSet, Vec<(u64, u64)>)> {
    let set = meta.global.stripes.as_ref().filter(|set| set.is_valid())?;
    let offset = meta.global.offset.unwrap_or(0);
    let begin = |capture: &Capture| Some((capture.sample_start.checked_sub(offset)?, capture.stripe_start?));
    let begins: Vec<(u64, u64)> = meta.captures.iter().filter_map(begin).collect();
    (!begins.is_empty()).then(|| (set.clone(), begins))
}

/// Annotations in the file, in order, cut to its range.
pub(super) fn annotations(
    meta: Meta,
    len_samples: u64,
    is_closed: bool,
    notes: &mut Vec<String>,
) -> Vec<Annotation> {
    let offset = meta.global.offset.unwrap_or(0);
    let (mut cut, mut outside) = (0u64, 0u64);
    let mut taken: Vec<Annotation> = Vec::with_capacity(meta.annotations.len());
    for annotation in meta.annotations {
        let (start, count) = (annotation.sample_start, annotation.sample_count);
        let end = count.map(|count| start.saturating_add(count).saturating_sub(offset));
        let position = start.saturating_sub(offset);
        let reaches_in = start >= offset || end.is_none_or(|end| end > 0);
        if position >= len_samples || !reaches_in {
            outside += 1;
            continue;
        }
        cut += u64::from(start < offset || end.is_some_and(|end| end > len_samples));
        let length_samples = end.unwrap_or(len_samples).min(len_samples) - position;
        taken.push(Annotation { position, length_samples, fields: annotation.rest });
    }
    if is_closed && cut > 0 {
        notes.push(format!("annotations that extend beyond the data are cut to the data: {cut}"));
    }
    if is_closed && outside > 0 {
        notes.push(format!("annotations outside of the data are ignored: {outside}"));
    }
    taken.sort_by_key(|annotation| annotation.position);
    taken
}

/// SigMF's limit.
const INDEX_MAX: u64 = i64::MAX as u64;
