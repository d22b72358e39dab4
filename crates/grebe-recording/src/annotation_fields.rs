//! An annotation of a stream as a recording has it.

use grebe_frame::StreamAnnotation;
use serde_json::{Map, Value};

/// The fields of an annotation besides its position.
pub(super) fn annotation_fields(annotation: &StreamAnnotation) -> Map<String, Value> {
    // Numbers and strings with names: none of it can fail.
    let Ok(Value::Object(mut fields)) = serde_json::to_value(annotation) else { return Map::new() };
    fields.retain(|name, _| name != "core:sample_start" && name != "core:sample_count");
    fields
}
