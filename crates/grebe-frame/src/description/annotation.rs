//! Annotations of a stream, with SigMF's keys.

use serde::{Deserialize, Serialize};

/// An annotation of SigMF: a label on a range of the stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StreamAnnotation {
    /// Start, in samples per channel since the start of the stream.
    #[serde(rename = "core:sample_start")]
    pub first_sample_index: u64,
    /// Length in samples per channel; 0: a point.
    #[serde(rename = "core:sample_count", default)]
    pub length_samples: u64,
    /// Lower edge of the frequency range.
    #[serde(rename = "core:freq_lower_edge", default, skip_serializing_if = "Option::is_none")]
    pub lower_edge_hz: Option<f64>,
    /// Upper edge of the frequency range.
    #[serde(rename = "core:freq_upper_edge", default, skip_serializing_if = "Option::is_none")]
    pub upper_edge_hz: Option<f64>,
    /// Short label for a picture.
    #[serde(rename = "core:label", default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Comment.
    #[serde(rename = "core:comment", default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Author or program of the annotation.
    #[serde(rename = "core:generator", default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<String>,
    /// Unique identifier (RFC 4122).
    #[serde(rename = "core:uuid", default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Colour, as `#rrggbb`.
    #[serde(rename = "presentation:color", default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
}

/// A change to the annotations of a stream, or of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnnotationEdit<A = StreamAnnotation> {
    /// Adds one, unless an equal one exists.
    Add(A),
    /// Replaces one by another.
    Replace {
        /// With all its fields.
        before: A,
        /// With all its fields.
        after: A,
    },
    /// Removes one.
    Remove(A),
}

impl<A> AnnotationEdit<A> {
    /// The same with each of its annotations changed.
    pub fn each<B>(&self, change: impl Fn(&A) -> B) -> AnnotationEdit<B> {
        match self {
            Self::Add(it) => AnnotationEdit::Add(change(it)),
            Self::Replace { before, after } => {
                AnnotationEdit::Replace { before: change(before), after: change(after) }
            }
            Self::Remove(it) => AnnotationEdit::Remove(change(it)),
        }
    }
}

impl<A: Clone> AnnotationEdit<A> {
    /// The change that takes this one back.
    pub fn undone(&self) -> Self {
        match self.clone() {
            Self::Add(it) => Self::Remove(it),
            Self::Replace { before, after } => Self::Replace { before: after, after: before },
            Self::Remove(it) => Self::Add(it),
        }
    }
}

impl StreamAnnotation {
    /// The name of [`color`](Self::color) in SigMF, of its extension `presentation`.
    pub const COLOR: &str = "presentation:color";

    /// Index after its last sample.
    pub fn end_index(&self) -> u64 {
        self.first_sample_index.saturating_add(self.length_samples)
    }

    /// Whether this repeats `before`, by start, length and label.
    pub fn is_again(&self, before: &Self) -> bool {
        let key = |it: &Self| (it.first_sample_index, it.length_samples);
        key(self) == key(before) && self.label == before.label
    }

    /// Bytes of its text in a description.
    pub fn text_bytes(&self) -> usize {
        // Cannot fail: the keys are strings.
        serde_json::to_vec(self).map_or(0, |text| text.len())
    }
}
