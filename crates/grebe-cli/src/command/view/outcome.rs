//! Results of drawn pictures.

use anyhow::Result;
use grebe_view::Drawn;
use serde_json::Value;

use super::measured::measurements;
use crate::cli::View;
use crate::ending::Ending;
use crate::output::{self, note};

/// Reports estimated pictures, and prints the measurements if requested: a list for several streams.
pub(super) fn print(options: &View, (ending, drawn): (Ending, Vec<Drawn>)) -> Result<Ending> {
    if drawn.iter().any(|it| it.picture.is_ended && it.picture.is_estimated) {
        note!(
            "grebe: the picture is an estimate, because its samples had not arrived; --after sets the timeout"
        );
    }
    if options.json {
        let mut measured: Vec<Value> = drawn.iter().map(measurements).collect();
        let measured = match measured.len() {
            0 => return Ok(ending),
            1 => measured.swap_remove(0),
            _ => Value::Array(measured),
        };
        output::json(&serde_json::to_string_pretty(&measured)?)?;
    }
    Ok(ending)
}
