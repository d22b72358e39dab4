//! The annotations of a recording in progress, by position in the file, which has no gaps and is shorter than
//! the stream.

use std::collections::BTreeSet;

use super::layout::Annotation;

/// The annotations so far.
#[derive(Debug, Default)]
pub(super) struct Annotations {
    /// In order.
    closed: Vec<Entry>,
    /// Annotations that may extend into later segments, each with the index after its last sample.
    open: Vec<(Entry, u64)>,
    /// How many came.
    count: u64,
    /// Extensions that their fields use.
    extensions: BTreeSet<String>,
}

#[derive(Debug)]
struct Entry {
    annotation: Annotation,
    /// How many came before.
    number: u64,
}

impl Annotations {
    /// Enters an annotation that ends at this index of the stream, in its newest segment.
    pub(super) fn open(&mut self, annotation: Annotation, end_index: u64) {
        let entry = self.entry(annotation);
        self.open.push((entry, end_index));
    }

    /// Enters an annotation at its final position.
    pub(super) fn place(&mut self, annotation: Annotation) {
        let entry = self.entry(annotation);
        self.close(entry);
    }

    /// Notes that a segment begins at this sample of the file, and at this index if the stream continues.
    /// Annotations that extend into it become longer; the others end with the previous segment.
    pub(super) fn interrupt(&mut self, position: u64, first_sample_index: Option<u64>) {
        for (mut entry, end_index) in std::mem::take(&mut self.open) {
            let annotation = &mut entry.annotation;
            let within = position.saturating_sub(annotation.sample_start);
            let behind = first_sample_index.and_then(|index| end_index.checked_sub(index)).unwrap_or(0);
            if behind > 0 {
                annotation.sample_count = Some(within.saturating_add(behind));
                self.open.push((entry, end_index));
            } else {
                annotation.sample_count = annotation.sample_count.map(|count| count.min(within));
                self.close(entry);
            }
        }
    }

    /// Fixes the length of the file: no more samples come.
    pub(super) fn cut(&mut self, len_samples: u64) {
        self.interrupt(len_samples, None);
        self.closed.retain(|entry| entry.annotation.sample_start < len_samples);
        for Entry { annotation, .. } in &mut self.closed {
            let left = len_samples - annotation.sample_start;
            annotation.sample_count = annotation.sample_count.map(|count| count.min(left));
        }
    }

    /// All annotations in the order of SigMF: by start; equal starts in order of arrival.
    pub(super) fn in_order(&self) -> Vec<&Annotation> {
        let mut all: Vec<&Entry> =
            self.closed.iter().chain(self.open.iter().map(|(entry, _)| entry)).collect();
        all.sort_by_key(|entry| entry.place());
        all.into_iter().map(|entry| &entry.annotation).collect()
    }

    /// The names of the extensions whose words they use.
    pub(super) fn extensions(&self) -> impl Iterator<Item = &str> {
        self.extensions.iter().map(String::as_str)
    }

    fn close(&mut self, entry: Entry) {
        let place = self.closed.partition_point(|other| other.place() < entry.place());
        self.closed.insert(place, entry);
    }

    fn entry(&mut self, annotation: Annotation) -> Entry {
        for (extension, _) in annotation.rest.keys().filter_map(|key| key.split_once(':')) {
            if extension != "core" && !self.extensions.contains(extension) {
                self.extensions.insert(extension.to_owned());
            }
        }
        self.count += 1;
        Entry { annotation, number: self.count }
    }
}

impl Entry {
    fn place(&self) -> (u64, u64) {
        (self.annotation.sample_start, self.number)
    }
}
