//! Reports of other hosts, which are less trusted than the user's own processes.

use serde::{Deserialize, Serialize};

use super::report::Report;

/// Report with the host of its process and its streams, exchanged between processes of a lab. In JSON, the
/// fields of the report are inlined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostReport {
    /// Host name.
    pub host: String,
    /// Names of the streams that the process sends or reads by name.
    #[serde(default)]
    pub streams: Vec<String>,
    /// Report of the process.
    #[serde(flatten)]
    pub report: Report,
}

impl HostReport {
    /// Encodes it as a line of JSON.
    pub fn to_json(&self) -> String {
        // Fails only for maps with keys that are not strings.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Decodes a report of another host. Escapes control characters and limits its size to that of a table.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let mut this: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let report = &mut this.report;
        this.streams.truncate(ROWS_MAX);
        report.stages.truncate(ROWS_MAX);
        report.queues.truncate(ROWS_MAX);
        let texts = [&mut this.host, &mut report.name].into_iter().chain(&mut this.streams);
        texts.chain(report.slowest.as_mut().map(|slowest| &mut slowest.stage)).for_each(tame);
        report.queues.iter_mut().flat_map(|it| [&mut it.queue.from, &mut it.queue.to]).for_each(tame);
        for stage in &mut report.stages {
            tame(&mut stage.name);
            let own = std::mem::take(&mut stage.own).into_iter().take(ROWS_MAX);
            stage.own = own
                .map(|(mut name, count)| {
                    tame(&mut name);
                    (name, count)
                })
                .collect();
        }
        Ok(this)
    }
}

/// Limits a text to a short line without control characters.
fn tame(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX || text.contains(char::is_control) {
        *text = text.chars().filter(|c| !c.is_control()).take(TEXT_BYTES_MAX / 4).collect();
    }
}

const ROWS_MAX: usize = 1_024;
const TEXT_BYTES_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(name: &str) -> String {
        let report = serde_json::json!({
            "host": name, "streams": [name], "pid": 7, "name": name, "uptime_s": 1.0, "interval_s": 1.0,
            "slowest": { "stage": name, "busy_share": 0.5, "input_fill": 0.1 },
            "stages": [{ "name": name, "frames_per_s": 1.0, "samples_per_s": 2.0, "busy_share": 0.5, "waiting_share": 0.0,
                         "frames": 5, "samples": 10, "borrowed_frames": 5, "copied_frames": 0, "latency": null, "own": { name: 3 } }],
            "queues": [{ "from": name, "to": name, "policy": "block", "capacity_batches": 4, "queued_batches": 1,
                         "capacity_bytes": null, "queued_bytes": 9, "frames": 5, "dropped_frames": 0, "dropped_samples": 0,
                         "fill": 0.25, "frames_per_s": 1.0, "dropped_frames_per_s": 0.0 }],
        });
        report.to_string()
    }

    #[test]
    fn host_reports_round_trip() {
        let read = HostReport::parse(json("adc").as_bytes()).unwrap();
        assert_eq!((read.host.as_str(), read.report.stages[0].own["adc"]), ("adc", 3));
        assert_eq!(HostReport::parse(read.to_json().as_bytes()), Ok(read));
    }

    #[test]
    fn host_reports_of_strangers_are_bounded_and_printable() {
        let read = HostReport::parse(json("a\u{1b}[2Jb\n").as_bytes()).unwrap();
        let said = format!("{read:?}");
        assert!(!said.contains("\\u{1b}") && !said.contains("\\n") && said.contains("a[2Jb"), "{said}");
        let long = HostReport::parse(json(&"x".repeat(5_000)).as_bytes()).unwrap();
        assert_eq!(long.report.stages[0].name.len(), 128);
        for bad in ["", "{}", "[]", "{\"host\":5}"] {
            assert!(HostReport::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = HostReport::parse(&bytes);
        }
    }
}
