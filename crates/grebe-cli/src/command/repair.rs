//! `grebe repair`: closes recordings of killed recorders in place.

use anyhow::{Error, Result};
use grebe_recording::{Repaired, repair};
use grebe_scope::Engineering;
use serde_json::{Value, json};

use crate::cli::Repair;
use crate::ending::{Ending, fail_each, one_line};
use crate::output::{self, out};
use crate::units::grouped;

/// Repairs each file, also after one that fails.
pub(crate) fn run(options: &Repair) -> Result<Ending> {
    let (mut told, mut failures) = (Vec::new(), Vec::new());
    for path in &options.files {
        match repair(path) {
            Ok(repaired) if options.json => told.extend(repaired.iter().map(json)),
            Ok(repaired) => repaired.iter().try_for_each(|it| out!("{}", text(it)))?,
            Err(error) => {
                let error = Error::from(error);
                told.push(json!({ "path": path.display().to_string(), "error": one_line(&error) }));
                failures.push(error);
            }
        }
    }
    if options.json {
        output::json(&Value::from(told))?;
    }
    fail_each(failures, options.json, |count| format!("{count} recordings cannot be repaired"))?;
    Ok(Ending::Good)
}

fn text(repaired: &Repaired) -> String {
    let path = repaired.path.display();
    let samples = format!("{} samples per channel", grouped(repaired.len_samples));
    match (repaired.is_changed, repaired.cut_bytes) {
        (false, _) => format!("{path}: whole, {samples}; unchanged"),
        (true, 0) => format!("{path}: closed, {samples}"),
        (true, bytes) => {
            let cut = Engineering::new(bytes as f64, "B");
            format!(
                "{path}: closed, {samples}; cut off {cut} after them: preallocated space, and samples without known gaps"
            )
        }
    }
}

fn json(repaired: &Repaired) -> Value {
    json!({
        "path": repaired.path.display().to_string(),
        "samples": repaired.len_samples,
        "changed": repaired.is_changed,
        "cut_bytes": repaired.cut_bytes,
    })
}
