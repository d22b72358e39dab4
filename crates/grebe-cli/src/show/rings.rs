//! Finds the ring that records a stream on this machine. Recorders publish it for `grebe top`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use grebe_flow::telemetry::{Watch, Watched};
use grebe_stages::Uri;

use crate::graph::About;

/// Information that the recorder of a ring publishes.
pub(crate) fn about(stream: &Uri, folder: &Path) -> About {
    [(STREAM, stream.to_string()), (RING, folder.display().to_string())]
        .map(|(key, it)| (key.to_owned(), it))
        .into()
}

/// The folder of the ring that a recorder of this user keeps of a stream, else the reason in one line. Waits at most
/// 1.5 s for first reports of processes. `here` names this machine for the reader of that line.
pub(super) fn of_stream(stream: &str, here: &str) -> Result<PathBuf, String> {
    let advice = |what: String| format!("not saved: {what}, or use --ring DIR");
    let mut watch = Watch::new().map_err(|error| advice(error.to_string()))?;
    let begun = Instant::now();
    loop {
        let running = watch.look();
        let mut folders = folders_of(stream, &running);
        let is_silent = |process: &Watched| process.report.is_none();
        let may_come = running.iter().any(is_silent) && begun.elapsed() < FIRST_REPORT_WAIT;
        match folders.len() {
            0 if may_come => std::thread::sleep(LOOK_EVERY),
            0 => {
                let none = format!(
                    "no process {here} records a ring of {stream}: use grebe record {stream} DIR --ring 30m"
                );
                return Err(advice(none));
            }
            1 => return Ok(folders.remove(0)),
            _ => {
                let list: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
                return Err(format!(
                    "not saved: several rings record {stream}; use --ring {}",
                    list.join(" or --ring ")
                ));
            }
        }
    }
}

fn folders_of(stream: &str, running: &[Watched]) -> Vec<PathBuf> {
    let about = running.iter().filter_map(|process| Some(&process.report.as_ref()?.about));
    let rings = about.filter(|about| about.get(STREAM).is_some_and(|it| it == stream));
    rings.filter_map(|about| about.get(RING).map(PathBuf::from)).collect()
}

const STREAM: &str = "stream";
const RING: &str = "ring";
/// A new process reports after a second.
const FIRST_REPORT_WAIT: Duration = Duration::from_millis(1_500);
const LOOK_EVERY: Duration = Duration::from_millis(20);
