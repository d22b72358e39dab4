//! Results of drawn pictures.

use anyhow::Result;
use grebe_view::{Drawn, Part, StreamInfo};
use serde_json::Value;

use super::measured::measurements;
use crate::cli::View;
use crate::ending::{Ending, Usage};
use crate::output::{self, note};

/// Reports estimated pictures, and prints the measurements if requested: a list for several streams.
pub(super) fn print(options: &View, (ending, drawn): (Ending, Vec<Drawn>)) -> Result<Ending> {
    if drawn.iter().any(|it| it.picture.is_ended && it.picture.is_estimated) {
        note!(
            "grebe: the picture is an estimate, because its samples had not arrived; --after sets the timeout"
        );
    }
    let absent = absent(options, drawn.iter().filter_map(|it| it.picture.stream));
    if options.json {
        let mut measured: Vec<Value> = drawn.iter().map(measurements).collect();
        let measured = match measured.len() {
            0 => return Ok(ending),
            1 => measured.swap_remove(0),
            _ => Value::Array(measured),
        };
        output::json(&serde_json::to_string_pretty(&measured)?)?;
    }
    match absent.join("; ") {
        words if words.is_empty() => Ok(ending),
        // A script must notice; interactive users have seen it.
        words if options.png.is_some() => Err(Usage(words).into()),
        words => {
            note!("grebe: {words}");
            Ok(ending)
        }
    }
}

/// Options for channels that no stream has.
fn absent(options: &View, streams: impl Iterator<Item = StreamInfo>) -> Vec<String> {
    let Some(most) = streams.map(|stream| stream.channels).max() else { return Vec::new() };
    let has = match most {
        1 => "there is 1 channel".to_owned(),
        most => format!("there are {most} channels"),
    };
    let shown = &options.channels.channels;
    let last = shown.iter().map(|range| usize::from(*range.end())).max().filter(|&last| last > most);
    let shown = last.map(|last| format!("--channels {last}: {has}"));
    let lane = options.trigger.lane.filter(|lane| lane.part != Part::Math && lane.channel >= most);
    let trigger = lane.map(|lane| format!("--trigger-channel {lane}: {has}, and the last of them triggers"));
    shown.into_iter().chain(trigger).collect()
}
