//! Fields of annotations that label files have.

use serde_json::Value;

/// A number that was written in decimals, as JSON has it; a whole one stays whole.
pub(super) fn number(text: &str) -> Option<Value> {
    let text = text.trim();
    let finite = |number: &f64| number.is_finite();
    let exact = serde_json::from_str::<Value>(text).ok().filter(Value::is_number);
    exact.or_else(|| text.parse::<f64>().ok().filter(finite).map(Value::from))
}

pub(super) const LABEL: &str = "core:label";
pub(super) const LOW: &str = "core:freq_lower_edge";
pub(super) const HIGH: &str = "core:freq_upper_edge";
