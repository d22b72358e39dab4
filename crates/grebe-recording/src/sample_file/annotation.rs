//! The annotations of a recording, and changes to them.

use std::path::PathBuf;

use grebe_frame::StreamAnnotation;
use serde_json::{Map, Value};

use crate::annotation_fields::annotation_fields;

/// A label of a stretch of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// Its begin in the file, in samples per channel.
    pub position: u64,
    /// How long it is; 0: a point.
    pub length_samples: u64,
    /// SigMF fields in the file: `core:label`, `core:comment`, `core:freq_lower_edge` and others.
    pub fields: Map<String, Value>,
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnnotationsEdited {
    /// Number of added annotations, without existing ones.
    pub added: usize,
    /// Annotations changed.
    pub changed: usize,
    /// Annotations removed.
    pub removed: usize,
    /// Files that were written: metadata, or the file beside a recording that cannot hold them.
    pub places: Vec<PathBuf>,
}

impl Annotation {
    /// The same place with the fields that `said` has. Fields that a stream does not have stay.
    pub fn with_fields_of(&self, said: &StreamAnnotation) -> Self {
        let mut fields = self.fields.clone();
        fields.retain(|name, _| !STREAM_FIELDS.contains(&name.as_str()));
        fields.extend(annotation_fields(said));
        Self { fields, ..self.clone() }
    }

    /// The text of a field; empty if there is none.
    pub fn text(&self, field: &str) -> &str {
        self.fields.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// The number of a field.
    pub fn number(&self, field: &str) -> Option<f64> {
        self.fields.get(field).and_then(Value::as_f64)
    }
}

/// The fields of [`StreamAnnotation`] beside its place.
const STREAM_FIELDS: [&str; 7] = [
    "core:freq_lower_edge",
    "core:freq_upper_edge",
    "core:label",
    "core:comment",
    "core:generator",
    "core:uuid",
    StreamAnnotation::COLOR,
];
