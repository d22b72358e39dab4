//! What is said of pictures once they are drawn.

use anyhow::Result;
use grebe_view::{Drawn, Part, StreamInfo};
use serde_json::Value;

use super::measured::measurements;
use crate::cli::View;
use crate::ending::{Ending, Usage};
use crate::output::{self, note};

/// Says whether a picture is not what it will be, and prints what was measured of it, if that was asked for: of several
/// streams a list.
pub(super) fn print(options: &View, (ending, drawn): (Ending, Vec<Drawn>)) -> Result<Ending> {
    if drawn.iter().any(|(picture, _)| picture.is_ended && picture.is_estimated) {
        note!(
            "grebe: the picture is not exact: what it shows had not come; --after says how long to wait for it"
        );
    }
    let absent = absent(options, drawn.iter().filter_map(|(picture, _)| picture.stream));
    if options.json {
        let mut measured: Vec<Value> =
            drawn.iter().map(|(picture, setups)| measurements(picture, setups)).collect();
        let measured = match measured.len() {
            0 => return Ok(ending),
            1 => measured.swap_remove(0),
            _ => Value::Array(measured),
        };
        output::json(&serde_json::to_string_pretty(&measured)?)?;
    }
    match absent.join("; ") {
        words if words.is_empty() => Ok(ending),
        // A script is to notice; whoever watched has seen what there is.
        words if options.png.is_some() => Err(Usage(words).into()),
        words => {
            note!("grebe: {words}");
            Ok(ending)
        }
    }
}

/// What was asked for of channels that no stream has.
fn absent(options: &View, streams: impl Iterator<Item = StreamInfo>) -> Vec<String> {
    let Some(most) = streams.map(|stream| stream.channels).max() else { return Vec::new() };
    let has = match most {
        1 => "there is 1 channel".to_owned(),
        most => format!("there are {most} channels"),
    };
    let shown = &options.channels.shown;
    let last = shown.iter().map(|range| usize::from(*range.end())).max().filter(|&last| last > most);
    let shown = last.map(|last| format!("--show {last}: {has}"));
    let lane = options.trigger.lane.filter(|lane| lane.part != Part::Math && lane.channel >= most);
    let trigger = lane.map(|lane| format!("--trigger-channel {lane}: {has}, and the last of them triggers"));
    shown.into_iter().chain(trigger).collect()
}
