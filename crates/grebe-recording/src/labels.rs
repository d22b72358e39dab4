//! The annotations of a recording, in a stream's descriptions: a few at a time, the next ones and those that began last.

use std::ops::Range;

use grebe_frame::{AnnotationEdit, Description, StreamAnnotation};
use serde_json::Value;

use crate::annotation_fields::annotation_fields;
use crate::error::Error;
use crate::sample_file::{Annotation, SampleFile};

/// Annotations for the descriptions of a stream, by position.
///
/// Each annotation is sent before its first sample, usually in several descriptions, so that one loss does no
/// harm. Begun annotations stay in the descriptions while few others last as long. For a file with several
/// streams, only those of the current one are sent.
#[derive(Debug, Default)]
pub(super) struct Labels {
    /// By their start.
    all: Vec<Label>,
    /// For each segment of the file, the last one of its stream: where indexes step back, another begins.
    ends: Vec<usize>,
    /// First annotation that begins after the position.
    next: usize,
    /// Index after the last annotation sent.
    said: usize,
    /// Begun annotations that are still sent.
    kept: Vec<usize>,
    /// Position from which other annotations are due.
    due: Option<u64>,
}

#[derive(Debug)]
struct Label {
    /// In the file.
    samples: Range<u64>,
    /// In the stream, when the file is played for the first time.
    annotation: StreamAnnotation,
    /// The last segment of its stream.
    stream: usize,
}

impl Labels {
    /// Annotations of a file, and a notice about those that its stream will not carry.
    pub(super) fn of(file: &SampleFile) -> (Self, Option<String>) {
        let base_bytes =
            |number| file.description_of(number).map_or(0, |description| description.text_bytes());
        let longest = (0..file.description_count()).map(base_bytes).max().unwrap_or(0);
        let ends = stream_ends(file);
        let (mut all, mut together, mut position) = (Vec::new(), (0, 0), None);
        for annotation in file.annotations() {
            let label = Label::of(annotation, file, &ends);
            let bytes = label.annotation.text_bytes() + 1;
            if position.replace(annotation.position) != Some(annotation.position) {
                together = (0, 0);
            }
            let has_room = together.0 < TOGETHER_MAX && together.1 + bytes <= TOGETHER_BYTES_MAX;
            if longest <= BASE_BYTES_MAX && bytes <= LABEL_BYTES_MAX && has_room {
                together = (together.0 + 1, together.1 + bytes);
                all.push(label);
            }
        }
        let left_out = file.annotations().len() - all.len();
        let note = format!(
            "{left_out} annotations are too long or too many at one place to be sent with the stream"
        );
        (Self { all, ends, due: Some(0), ..Self::default() }, (left_out > 0).then_some(note))
    }

    /// All that can be sent.
    pub(super) fn all(self) -> Vec<StreamAnnotation> {
        self.all.into_iter().map(|label| label.annotation).collect()
    }

    /// Position in the file from which other annotations are due than the last ones.
    pub(super) fn due(&self) -> Option<u64> {
        self.due
    }

    /// The file is played from its beginning again.
    pub(super) fn rewind(&mut self) {
        (self.next, self.said, self.due) = (0, 0, Some(0));
        self.kept.clear();
    }

    /// Annotations to send at a position of the file, in one of its segments, where stream indices are
    /// `index_offset` above the original ones. Call it also when another stream begins.
    pub(super) fn around(
        &mut self,
        position: u64,
        segment: usize,
        index_offset: u64,
    ) -> Vec<StreamAnnotation> {
        let stream = self.ends[segment];
        let began = self.all[self.next..].partition_point(|label| label.samples.start <= position);
        self.kept.extend(self.next..self.next + began);
        self.next += began;
        self.kept.retain(|&number| self.all[number].stream == stream);
        // Annotations that begin here together, and were never sent, stay whatever their number.
        let said_max = KEPT + self.next.saturating_sub(self.said);
        while self.kept.len() > said_max {
            let ends_first = self.kept.iter().enumerate().filter(|&(_, &number)| number < self.said);
            let ends_first = ends_first.min_by_key(|&(_, &number)| self.all[number].samples.end);
            let Some((place, _)) = ends_first else { break };
            self.kept.remove(place);
        }
        let of_stream = self.all[self.next..].iter().take(UPCOMING + 1);
        let left = of_stream.take_while(|label| label.stream == stream).count();
        let upcoming = self.next..self.next + left.min(UPCOMING);
        self.said = self.said.max(upcoming.end);
        self.due = (left > UPCOMING).then(|| self.all[self.next + UPCOMING / 2].samples.start);
        let numbers = self.kept.iter().copied().chain(upcoming);
        let of = |number: usize| {
            let annotation = &self.all[number].annotation;
            let first_sample_index = annotation.first_sample_index.saturating_add(index_offset);
            StreamAnnotation { first_sample_index, ..annotation.clone() }
        };
        numbers.map(of).collect()
    }
}

impl Label {
    fn of(annotation: &Annotation, file: &SampleFile, ends: &[usize]) -> Self {
        let Annotation { position, length_samples, fields } = annotation;
        let samples = *position..position + length_samples;
        let segments = file.segments();
        let holding = |position| segments.partition_point(|segment| segment.position <= position).max(1) - 1;
        let begin = holding(samples.start);
        // One that reaches into another stream ends with its own.
        let end = holding(samples.end.saturating_sub(1).max(samples.start)).min(ends[begin]);
        let segment_end = segments[end].position + segments[end].length_samples;
        let index = |segment: usize, position: u64| {
            segments[segment].first_sample_index + position.saturating_sub(segments[segment].position)
        };
        let first_sample_index = index(begin, samples.start);
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = |name: &str| fields.get(name).and_then(Value::as_f64);
        let annotation = StreamAnnotation {
            first_sample_index,
            length_samples: index(end, samples.end.min(segment_end)).saturating_sub(first_sample_index),
            lower_edge_hz: number("core:freq_lower_edge"),
            upper_edge_hz: number("core:freq_upper_edge"),
            label: text("core:label"),
            comment: text("core:comment"),
            generator: text("core:generator"),
            uuid: text("core:uuid"),
            color: text(StreamAnnotation::COLOR),
        };
        Self { samples, annotation, stream: ends[begin] }
    }
}

impl SampleFile {
    /// A change to the annotations of its stream, as one to those of the file.
    ///
    /// # Errors
    /// An annotation to be changed is not in the file.
    pub fn edit_of_stream(&self, edit: &AnnotationEdit) -> Result<AnnotationEdit<Annotation>, Error> {
        let ends = stream_ends(self);
        let known = |said: &StreamAnnotation| {
            let is_it = |it: &&Annotation| Label::of(it, self, &ends).annotation == *said;
            let what = "the annotation to be changed is not in the file".to_owned();
            let gone = || Error::Field { path: self.name().into(), what };
            self.annotations().iter().find(is_it).cloned().ok_or_else(gone)
        };
        Ok(match edit {
            AnnotationEdit::Add(said) => AnnotationEdit::Add(self.placed(said)),
            AnnotationEdit::Remove(said) => AnnotationEdit::Remove(known(said)?),
            AnnotationEdit::Replace { before: was, after: said } => {
                let before = known(was)?;
                let place = |it: &StreamAnnotation| (it.first_sample_index, it.length_samples);
                let is_moved = place(was) != place(said);
                let Annotation { position, length_samples, .. } =
                    if is_moved { self.placed(said) } else { before.clone() };
                let after = Annotation { position, length_samples, ..before.with_fields_of(said) };
                AnnotationEdit::Replace { before, after }
            }
        })
    }

    /// An annotation of its stream, in the file.
    fn placed(&self, said: &StreamAnnotation) -> Annotation {
        let place = |index: u64| {
            let segment = self.segments().iter().rev().find(|segment| segment.first_sample_index <= index);
            segment.map_or(0, |segment| {
                segment.position + (index - segment.first_sample_index).min(segment.length_samples)
            })
        };
        let position = place(said.first_sample_index);
        let length_samples = place(said.end_index()).saturating_sub(position);
        Annotation { position, length_samples, fields: annotation_fields(said) }
    }
}

/// For each segment, the last one of its stream: where indexes step back, another begins.
fn stream_ends(file: &SampleFile) -> Vec<usize> {
    let segments = file.segments();
    let mut ends = vec![segments.len().saturating_sub(1); segments.len()];
    for number in (0..segments.len().saturating_sub(1)).rev() {
        let end_index = segments[number].first_sample_index.saturating_add(segments[number].length_samples);
        let goes_on = segments[number + 1].first_sample_index >= end_index;
        ends[number] = if goes_on { ends[number + 1] } else { number };
    }
    ends
}

/// Number of annotations sent in advance. They are sent again, with others, when half of them have begun.
const UPCOMING: usize = 24;
/// Number of begun annotations that are still sent: those that last longest.
const KEPT: usize = 16;
/// Maximum text of one annotation: with the limits below and the other fields, it bounds the longest
/// description.
const LABEL_BYTES_MAX: usize = 1 << 10;
const TOGETHER_BYTES_MAX: usize = 8 << 10;
const TOGETHER_MAX: usize = 128;
const BASE_BYTES_MAX: usize = 15 << 10;
const _: () = assert!(
    (UPCOMING + KEPT) * LABEL_BYTES_MAX + TOGETHER_BYTES_MAX + BASE_BYTES_MAX < 65_536
        && UPCOMING + KEPT + TOGETHER_MAX <= Description::ANNOTATIONS_MAX
);

#[cfg(test)]
mod tests;
