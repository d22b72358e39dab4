//! `grebe verify`: whether recordings are still what was recorded.

use anyhow::Result;
use grebe_connection::shown;
use grebe_recording::{Error, Verified, verify};
use grebe_scope::Engineering;
use serde_json::{Value, json};

use crate::cli::Verify;
use crate::ending::{Ending, one_line};
use crate::interrupt;
use crate::output::{self, out};

pub(crate) fn run(options: &Verify) -> Result<Ending> {
    let cancel = interrupt::cancel();
    let bar = output::bar(None);
    let (mut told, mut is_good) = (Vec::new(), true);
    for path in &options.files {
        let mut progress =
            |bytes: u64| bar.set_message(format!("{}  {}", shown(path), Engineering::new(bytes as f64, "B")));
        let found = verify(path, &cancel, &mut progress);
        if cancel.is_cancelled() {
            bar.finish_and_clear();
            return Err(Error::Cancelled.into());
        }
        match found {
            Ok(files) => {
                for file in &files {
                    is_good &= file.changed.is_empty();
                    told.push(if options.json { json(file) } else { Value::from(text(file)) });
                }
            }
            Err(error) => {
                is_good = false;
                let error = one_line(&error.into());
                let as_json = json!({ "path": path.display().to_string(), "error": error });
                told.push(if options.json { as_json } else { Value::from(error) });
            }
        }
    }
    bar.finish_and_clear();
    if options.json {
        output::json(&Value::from(told))?;
    } else {
        told.iter().filter_map(Value::as_str).try_for_each(|line| out!("{line}"))?;
    }
    // What is wrong has been said.
    Ok(if is_good { Ending::Good } else { Ending::Partial })
}

fn text(file: &Verified) -> String {
    let path = file.path.display();
    let size = |bytes: u64| Engineering::new(bytes as f64, "B").to_string();
    if let Some(first) = file.changed.first() {
        let more = match file.changed.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more such stretches"),
        };
        return format!(
            "{path}: changed since it was recorded, between byte {} and {}{more}",
            first.start, first.end
        );
    }
    match (file.checked_bytes, file.bytes) {
        (0, bytes) => format!("{path}: {} of the right length; it has no checksum", size(bytes)),
        (checked, bytes) if checked < bytes => {
            format!("{path}: good, as far as {} of {} have a checksum", size(checked), size(bytes))
        }
        (_, bytes) => format!("{path}: good, {}", size(bytes)),
    }
}

fn json(file: &Verified) -> Value {
    let changed: Vec<[u64; 2]> = file.changed.iter().map(|range| [range.start, range.end]).collect();
    json!({
        "path": file.path.display().to_string(),
        "bytes": file.bytes,
        "checked_bytes": file.checked_bytes,
        "changed": changed,
    })
}
