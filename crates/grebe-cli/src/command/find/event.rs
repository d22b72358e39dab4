//! What was found, and how it is told.

use std::fmt::Write;

use grebe_recording::SampleFile;
use grebe_scope::Engineering;
use grebe_view::LaneId;
use serde_json::{Value, json};

use crate::cli::EventKind;
use crate::command::info::timestamp;
use crate::units::grouped;

/// An event, where it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Event {
    pub(super) kind: EventKind,
    /// None of a gap.
    pub(super) lane: Option<LaneId>,
    /// Its first sample, in the file; of a gap what follows it.
    pub(super) position: u64,
    /// How long it lasts; 0: a moment. Of a gap, what is missing.
    pub(super) length_samples: u64,
}

/// How events are told, one a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Csv,
    Json,
}

impl Form {
    /// What stands before the first.
    pub(super) fn head(self) -> &'static str {
        match self {
            Form::Csv => "event,channel,seconds,position,sample_index,samples,duration_s,time\n",
            Form::Text | Form::Json => "",
        }
    }

    /// Appends a line; `first_index` is that of the first sample of the recording.
    pub(super) fn write(self, event: &Event, file: &SampleFile, first_index: u64, lines: &mut String) {
        let told = Told::of(event, file, first_index);
        let written = match self {
            Form::Text => writeln!(lines, "{}", told.text(event)),
            Form::Csv => writeln!(lines, "{}", told.csv(event)),
            Form::Json => writeln!(lines, "{}", told.json(event)),
        };
        debug_assert!(written.is_ok(), "a string takes everything");
    }
}

/// What a line says of an event.
struct Told {
    lane: String,
    /// In the file, also of a stretch of it.
    position: u64,
    /// Of the stream.
    sample_index: u64,
    /// Of the signal, from the first sample of the recording on.
    seconds: Option<f64>,
    duration_s: Option<f64>,
    time: Option<String>,
}

impl Told {
    fn of(event: &Event, file: &SampleFile, first_index: u64) -> Self {
        let segment = file.segment_at(event.position);
        let sample_index = segment.first_sample_index + (event.position - segment.position);
        let rate_hz = file.sample_rate_hz();
        let seconds = |samples: u64| (rate_hz > 0.0).then(|| samples as f64 / rate_hz);
        Self {
            lane: event.lane.map(|lane| lane.to_string()).unwrap_or_default(),
            position: event.position + file.skipped_samples(),
            sample_index,
            // Where another stream follows with lower indexes, they say no time.
            seconds: sample_index.checked_sub(first_index).and_then(seconds),
            duration_s: seconds(event.length_samples).filter(|_| event.length_samples > 0),
            time: file.time_at(event.position).and_then(timestamp),
        }
    }

    fn text(&self, event: &Event) -> String {
        let at = self.seconds.map_or(String::new(), |seconds| format!("{seconds:>16.9} s  "));
        let lane = if self.lane.is_empty() { String::new() } else { format!("  channel {}", self.lane) };
        let length = match (event.length_samples, self.duration_s) {
            (0, _) => String::new(),
            (samples, None) => format!("  {} samples", grouped(samples)),
            (samples, Some(seconds)) => {
                format!("  {} samples ({})", grouped(samples), Engineering::new(seconds, "s"))
            }
        };
        let time = self.time.as_ref().map_or(String::new(), |time| format!("  {time}"));
        format!("{at}sample {:>12}{lane}  {}{length}{time}", self.sample_index, event.kind.name())
    }

    fn csv(&self, event: &Event) -> String {
        let number = |number: Option<f64>| number.map(|number| format!("{number}")).unwrap_or_default();
        format!(
            "{},{},{},{},{},{},{},{}",
            event.kind.name(),
            self.lane,
            number(self.seconds),
            self.position,
            self.sample_index,
            event.length_samples,
            number(self.duration_s),
            self.time.as_deref().unwrap_or_default()
        )
    }

    fn json(&self, event: &Event) -> Value {
        json!({
            "event": event.kind.name(),
            "channel": event.lane.map(|_| &self.lane),
            "seconds": self.seconds,
            "position": self.position,
            "sample_index": self.sample_index,
            "samples": event.length_samples,
            "duration_s": self.duration_s,
            "time": self.time,
        })
    }
}
