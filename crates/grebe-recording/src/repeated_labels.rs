//! The annotations that a stream says, for its recording: each once, when its first sample has been written.

use std::collections::VecDeque;

use grebe_frame::{Description, StreamAnnotation};

use crate::annotation_fields::annotation_fields;
use crate::record::Stripes;

/// Repeated annotations of a stream, until they are written.
#[derive(Debug, Default)]
pub(super) struct RepeatedLabels {
    /// Latest annotations, written or not.
    known: VecDeque<StreamAnnotation>,
    /// Known annotations that begin after the written samples, by start.
    waiting: VecDeque<StreamAnnotation>,
    /// The first sample that was written of this stream.
    begin_index: Option<u64>,
    pub(super) entered: u64,
    /// Annotations for which the recording had no room.
    pub(super) left_out: u64,
}

impl RepeatedLabels {
    /// Takes the annotations of a description.
    pub(super) fn hear(&mut self, description: Option<&Description>) {
        for annotation in description.into_iter().flat_map(|description| &description.annotations) {
            if self.known.iter().any(|known| annotation.is_again(known)) {
                continue;
            }
            if self.known.len() == KNOWN_MAX {
                self.known.pop_front();
            }
            self.known.push_back(annotation.clone());
            self.waiting.push_back(annotation.clone());
        }
        self.waiting.make_contiguous().sort_by_key(|annotation| annotation.first_sample_index);
        // Drops the annotations that begin last.
        self.left_out += self.waiting.len().saturating_sub(KNOWN_MAX) as u64;
        self.waiting.truncate(KNOWN_MAX);
    }

    /// Begins another stream with this description.
    pub(super) fn begin(&mut self, description: Option<&Description>) {
        self.known.clear();
        self.waiting.clear();
        self.begin_index = None;
        self.hear(description);
    }

    /// Writes those that begin before the end of these samples, which were written.
    #[inline]
    pub(super) fn enter(&mut self, first_sample_index: u64, samples: u64, writer: &mut Stripes) {
        if samples == 0 {
            return;
        }
        let begin_index = *self.begin_index.get_or_insert(first_sample_index);
        let end_index = first_sample_index.saturating_add(samples);
        while let Some(annotation) =
            self.waiting.pop_front_if(|annotation| annotation.first_sample_index < end_index)
        {
            self.write(annotation, begin_index, writer);
        }
    }

    #[cold]
    fn write(&mut self, annotation: StreamAnnotation, begin_index: u64, writer: &mut Stripes) {
        let (begin, end) = (annotation.first_sample_index.max(begin_index), annotation.end_index());
        // Annotations that ended before the recording are not in it.
        let is_before = annotation.first_sample_index < begin_index && end <= begin_index;
        if is_before {
            return;
        }
        match writer.annotate_with(begin, end.saturating_sub(begin), annotation_fields(&annotation)) {
            Ok(()) => self.entered += 1,
            Err(_) => self.left_out += 1,
        }
    }
}

/// More than one description and the next have.
const KNOWN_MAX: usize = 4 * Description::ANNOTATIONS_MAX;
