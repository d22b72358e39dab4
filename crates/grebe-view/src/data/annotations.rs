//! The annotations of a stream: its own, with the changes that viewers made.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use grebe_frame::{AnnotationEdit, StreamAnnotation};
use serde::{Deserialize, Serialize};

/// Selects the annotations of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AnnotationQuery {
    /// Words that the label or comment must contain.
    pub(crate) words: String,
    /// If more match than fit into a list: those nearest to this sample.
    pub(crate) around: u64,
}

/// Annotations of the whole stream, ordered by start.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AnnotationList {
    /// At most [`AnnotationList::ROWS_MAX`].
    pub(crate) rows: Vec<StreamAnnotation>,
    /// Number of matching annotations before the first row.
    pub(crate) before: u64,
    /// Number of matching annotations.
    pub(crate) matching: u64,
    /// Number of all annotations.
    pub(crate) all: u64,
}

impl AnnotationList {
    /// Rows of one list.
    pub(crate) const ROWS_MAX: usize = 200;
}

/// All annotations of a stream.
#[derive(Debug, Default)]
pub(crate) struct Annotations {
    /// From the stream, the newest last.
    said: VecDeque<Arc<StreamAnnotation>>,
    /// Made by viewers here.
    own: Vec<Arc<StreamAnnotation>>,
    /// From the stream, and removed or replaced here. The stream may repeat them.
    removed: Vec<StreamAnnotation>,
    /// The last list.
    listed: Option<(AnnotationQuery, Arc<AnnotationList>)>,
}

impl Annotations {
    /// Takes all annotations of a recording, in place of those that it had before.
    pub(super) fn take_all(&mut self, said: &[StreamAnnotation]) {
        let kept = said.iter().take(SAID_MAX).filter(|annotation| !self.removed.contains(annotation));
        if self.said.iter().map(|known| &**known).eq(kept.clone()) {
            return;
        }
        self.said = kept.cloned().map(Arc::new).collect();
        // Those written into it meanwhile.
        self.own.retain(|own| !said.contains(own));
        self.listed = None;
    }

    /// Takes annotations of a description, which repeats those of the previous one.
    pub(super) fn learn(&mut self, said: &[StreamAnnotation]) {
        for annotation in said {
            let is_known = self.said.iter().rev().take(LOOK_BACK).any(|known| annotation.is_again(known));
            if is_known || self.removed.contains(annotation) {
                continue;
            }
            if self.said.len() == SAID_MAX {
                self.said.pop_front();
            }
            self.said.push_back(Arc::new(annotation.clone()));
            self.listed = None;
        }
    }

    /// Applies a change. A change to a missing annotation does nothing.
    pub(crate) fn edit(&mut self, edit: &AnnotationEdit) {
        self.listed = None;
        match edit {
            AnnotationEdit::Add(annotation) => self.add(annotation),
            AnnotationEdit::Remove(annotation) => drop(self.remove(annotation)),
            AnnotationEdit::Replace { before, after } => {
                if self.remove(before) {
                    self.add(after);
                }
            }
        }
    }

    fn add(&mut self, annotation: &StreamAnnotation) {
        self.removed.retain(|removed| removed != annotation);
        let is_there = self.all().any(|known| **known == *annotation);
        if !is_there && self.own.len() < OWN_MAX {
            self.own.push(Arc::new(annotation.clone()));
        }
    }

    fn remove(&mut self, annotation: &StreamAnnotation) -> bool {
        if let Some(place) = self.own.iter().position(|own| **own == *annotation) {
            self.own.remove(place);
            return true;
        }
        let Some(place) = self.said.iter().position(|said| **said == *annotation) else { return false };
        self.said.remove(place);
        if self.removed.len() == OWN_MAX {
            self.removed.remove(0);
        }
        self.removed.push(annotation.clone());
        true
    }

    fn all(&self) -> impl Iterator<Item = &Arc<StreamAnnotation>> {
        // The newest first, and own annotations before others.
        self.own.iter().rev().chain(self.said.iter().rev())
    }

    /// The annotations of a picture.
    pub(super) fn shown_in(&self, window: &Range<f64>) -> Vec<Arc<StreamAnnotation>> {
        let is_inside = |annotation: &&Arc<StreamAnnotation>| {
            annotation.first_sample_index as f64 <= window.end
                && annotation.end_index() as f64 >= window.start
        };
        self.all().filter(is_inside).take(SHOWN_MAX).cloned().collect()
    }

    /// The annotations that overlap these samples.
    pub(super) fn within(&self, range: &Range<u64>) -> Vec<StreamAnnotation> {
        let is_inside = |it: &&Arc<StreamAnnotation>| {
            it.first_sample_index < range.end && it.end_index() > range.start
                || range.contains(&it.first_sample_index)
        };
        let mut inside: Vec<StreamAnnotation> =
            self.all().filter(is_inside).map(|it| (**it).clone()).collect();
        inside.sort_by_key(|annotation| (annotation.first_sample_index, annotation.length_samples));
        inside
    }

    /// Lists annotations.
    pub(crate) fn list(&mut self, query: &AnnotationQuery) -> Arc<AnnotationList> {
        if let Some((_, list)) = self.listed.as_ref().filter(|(of, _)| of == query) {
            return Arc::clone(list);
        }
        let words: Vec<String> = query.words.split_whitespace().map(str::to_lowercase).collect();
        let is_wanted = |annotation: &&Arc<StreamAnnotation>| {
            let texts =
                [&annotation.label, &annotation.comment].map(|text| text.as_deref().unwrap_or_default());
            let said = texts.join(" ").to_lowercase();
            words.iter().all(|word| said.contains(word))
        };
        let mut matching: Vec<&Arc<StreamAnnotation>> = self.all().filter(is_wanted).collect();
        matching.sort_by_key(|annotation| (annotation.first_sample_index, annotation.length_samples));
        let near = matching.partition_point(|annotation| annotation.first_sample_index < query.around);
        let first = near.saturating_sub(AnnotationList::ROWS_MAX / 2);
        let first = first.min(matching.len().saturating_sub(AnnotationList::ROWS_MAX));
        let rows = matching.iter().skip(first).take(AnnotationList::ROWS_MAX);
        let list = Arc::new(AnnotationList {
            rows: rows.map(|annotation| StreamAnnotation::clone(annotation)).collect(),
            before: first as u64,
            matching: matching.len() as u64,
            all: (self.own.len() + self.said.len()) as u64,
        });
        self.listed = Some((query.clone(), Arc::clone(&list)));
        list
    }
}

/// Older annotations are dropped.
const SAID_MAX: usize = 16_384;
const OWN_MAX: usize = 16_384;
/// Maximum per picture; also the number that a stream may repeat.
const SHOWN_MAX: usize = 256;
const LOOK_BACK: usize = 2 * grebe_frame::Description::ANNOTATIONS_MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn note(first_sample_index: u64, label: &str) -> StreamAnnotation {
        let label = Some(label.to_owned());
        StreamAnnotation { first_sample_index, length_samples: 5, label, ..StreamAnnotation::default() }
    }

    fn labels(annotations: &mut Annotations, words: &str, around: u64) -> String {
        let list = annotations.list(&AnnotationQuery { words: words.into(), around });
        let labels: Vec<_> = list.rows.iter().map(|it| it.label.clone().unwrap_or_default()).collect();
        labels.join(" ")
    }

    #[test]
    fn what_people_change_stays_changed_also_where_the_stream_says_it_again() {
        let mut all = Annotations::default();
        all.take_all(&[note(10, "a"), note(30, "b")]);
        all.edit(&AnnotationEdit::Add(note(20, "mine")));
        all.edit(&AnnotationEdit::Add(note(20, "mine")));
        let edit = AnnotationEdit::Replace { before: note(10, "a"), after: note(10, "renamed") };
        all.edit(&edit);
        all.edit(&AnnotationEdit::Remove(note(30, "b")));
        all.edit(&AnnotationEdit::Remove(note(31, "b")));
        all.learn(&[note(10, "a"), note(30, "b"), note(40, "c")]);
        assert_eq!(labels(&mut all, "", 0), "renamed mine c");
        assert_eq!(labels(&mut all, "NA re", 0), "renamed");
        // Of a recording that has some of it now, and a newer one.
        all.take_all(&[note(10, "renamed"), note(30, "b"), note(40, "c"), note(50, "d")]);
        assert_eq!((labels(&mut all, "", 0).as_str(), all.own.len()), ("renamed mine c d", 1));
        // An undo.
        all.edit(&edit.undone());
        all.edit(&AnnotationEdit::Add(note(30, "b")));
        assert_eq!(labels(&mut all, "", 0), "a mine b c d");
        let within: Vec<_> = all.within(&(12..31)).into_iter().map(|it| it.first_sample_index).collect();
        assert_eq!(within, [10, 20, 30]);
        assert_eq!(all.shown_in(&(16.0..29.0)).len(), 1);
    }

    #[test]
    fn a_list_has_those_around_a_place() {
        let many: Vec<StreamAnnotation> = (0..1_000).map(|index| note(index * 10, "x")).collect();
        let mut all = Annotations::default();
        all.take_all(&many);
        let list = all.list(&AnnotationQuery { words: String::new(), around: 5_000 });
        assert_eq!((list.rows.len(), list.before, list.matching, list.all), (200, 400, 1_000, 1_000));
        assert_eq!(list.rows[100].first_sample_index, 5_000);
        let list = all.list(&AnnotationQuery { words: "y".into(), around: 5_000 });
        assert_eq!((list.rows.len(), list.matching, list.all), (0, 0, 1_000));
        let end = all.list(&AnnotationQuery { words: String::new(), around: u64::MAX });
        assert_eq!((end.rows.len(), end.before), (200, 800));
    }
}
