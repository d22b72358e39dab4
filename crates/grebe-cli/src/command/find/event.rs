//! Events and their output.

use std::fmt::Write;

use grebe_recording::SampleFile;
use grebe_scope::Engineering;
use grebe_view::LaneId;
use serde_json::{Value, json};

use crate::cli::EventKind;
use crate::command::info::{clock_gap_words, timestamp};
use crate::search::BurstBand;
use crate::units::counted;

/// Event, by its position in the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Event {
    pub(super) kind: EventKind,
    /// `None` for a gap.
    pub(super) lane: Option<LaneId>,
    /// First sample in the file; of a gap the next sample.
    pub(super) position: u64,
    /// Duration in samples, 0 for an instant; of a gap the number of missing samples.
    pub(super) length_samples: u64,
    /// Of a gap where the sender began again, by the clock; then no samples can be counted.
    pub(super) clock_s: Option<f64>,
    pub(super) burst: Option<BurstBand>,
}

/// Form of the output, one line per event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Csv,
    Json,
}

impl Form {
    /// The line before the first event.
    pub(super) fn head(self, kind: EventKind) -> String {
        let of_burst = ",centre_frequency_hz,bandwidth_hz,power_dbfs,snr_db,is_cut";
        let more = if kind == EventKind::Burst { of_burst } else { "" };
        match self {
            Form::Csv => {
                format!("event,channel,seconds,position,sample_index,samples,duration_s,time{more}\n")
            }
            Form::Text | Form::Json => String::new(),
        }
    }

    /// Appends a line; `first_index` is the index of the recording's first sample.
    pub(super) fn write(self, event: &Event, file: &SampleFile, first_index: u64, lines: &mut String) {
        let told = Line::of(event, file, first_index);
        let written = match self {
            Form::Text => writeln!(lines, "{}", told.text(event)),
            Form::Csv => writeln!(lines, "{}", told.csv(event)),
            Form::Json => writeln!(lines, "{}", told.json(event)),
        };
        debug_assert!(written.is_ok(), "a string takes everything");
    }
}

/// Fields of a line.
struct Line {
    lane: String,
    /// Position in the whole file.
    position: u64,
    /// Index in the stream.
    sample_index: u64,
    /// Signal time from the first sample of the recording.
    seconds: Option<f64>,
    duration_s: Option<f64>,
    time: Option<String>,
}

impl Line {
    fn of(event: &Event, file: &SampleFile, first_index: u64) -> Self {
        let segment = file.segment_at(event.position);
        let sample_index = segment.first_sample_index + (event.position - segment.position);
        let seconds = |samples: u64| file.rate_hz().map(|rate_hz| samples as f64 / rate_hz);
        Self {
            lane: event.lane.map(|lane| lane.to_string()).unwrap_or_default(),
            position: event.position + file.skipped_samples(),
            sample_index,
            // Another stream with lower indices has no time.
            seconds: sample_index.checked_sub(first_index).and_then(seconds),
            duration_s: event.clock_s.or(seconds(event.length_samples).filter(|_| event.length_samples > 0)),
            time: file.time_at(event.position).and_then(timestamp),
        }
    }

    fn text(&self, event: &Event) -> String {
        let at = self.seconds.map_or(String::new(), |seconds| format!("{seconds:>16.9} s  "));
        let lane = if self.lane.is_empty() { String::new() } else { format!("  channel {}", self.lane) };
        let length = match (event.length_samples, self.duration_s) {
            (0, Some(seconds)) => format!("  {}", clock_gap_words(seconds)),
            (0, _) => String::new(),
            (samples, None) => format!("  {}", counted(samples, "sample")),
            (samples, Some(seconds)) => {
                format!("  {} ({})", counted(samples, "sample"), Engineering::new(seconds, "s"))
            }
        };
        let time = self.time.as_ref().map_or(String::new(), |time| format!("  {time}"));
        let burst = event.burst.map_or(String::new(), |burst| format!("  {}", burst.words()));
        format!("{at}sample {:>12}{lane}  {}{length}{burst}{time}", self.sample_index, event.kind.name())
    }

    fn csv(&self, event: &Event) -> String {
        let number = |number: Option<f64>| number.map(|number| format!("{number}")).unwrap_or_default();
        let burst = event.burst.map_or(String::new(), |burst| {
            let BurstBand { centre_hz, bandwidth_hz, power_dbfs, snr_db, is_cut } = burst;
            format!(",{centre_hz},{bandwidth_hz},{power_dbfs:.2},{snr_db:.2},{is_cut}")
        });
        format!(
            "{},{},{},{},{},{},{},{}{burst}",
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
        let mut fields = json!({
            "event": event.kind.name(),
            "channel": event.lane.map(|_| &self.lane),
            "seconds": self.seconds,
            "position": self.position,
            "sample_index": self.sample_index,
            "samples": event.length_samples,
            "duration_s": self.duration_s,
            "by_clock": event.clock_s.is_some(),
            "time": self.time,
        });
        if let Some(burst) = event.burst {
            fields["centre_frequency_hz"] = burst.centre_hz.into();
            fields["bandwidth_hz"] = burst.bandwidth_hz.into();
            fields["power_dbfs"] = burst.power_dbfs.into();
            fields["snr_db"] = burst.snr_db.into();
            fields["is_cut"] = burst.is_cut.into();
        }
        fields
    }
}
