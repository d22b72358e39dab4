//! `grebe info`: what there is in a recording.

use std::path::Path;
use std::time::SystemTime;

use anyhow::{Error, Result};
use grebe_connection::{printable, shown};
use grebe_flow::clock_id;
use grebe_frame::AxisTime;
use grebe_recording::{Gap, SampleFile};
use grebe_scope::Engineering;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cli::Info;
use crate::ending::{Ending, fail_each, one_line};
use crate::output;
use crate::units::{exact, grouped, time_words};

/// `grebe info`: says it of each file, also behind one that cannot be read.
pub(crate) fn run(options: &Info) -> Result<Ending> {
    let mut ending = Ending::Good;
    let mut failures: Vec<Error> = Vec::new();
    for named in &options.files {
        let recordings = match SampleFile::recordings(named) {
            Ok(recordings) => recordings,
            Err(_) => vec![named.clone()], // opening it says the same
        };
        for path in recordings {
            match SampleFile::open(&path) {
                Ok(file) => {
                    let about = About::of(&path, &file);
                    if options.json {
                        output::json(&about.json())?
                    } else {
                        output::text(&(about.text() + "\n"))?
                    }
                    if !file.is_whole() {
                        ending = Ending::Partial;
                    }
                }
                Err(error) => {
                    let error = Error::from(error);
                    if options.json {
                        let said = json!({ "file": path, "whole": false, "error": one_line(&error) });
                        output::json(&said)?;
                    }
                    failures.push(error);
                }
            }
        }
    }
    fail_each(failures, options.json, |count| format!("{count} files cannot be read"))?;
    Ok(ending)
}

/// What is said of a recording.
struct About<'a> {
    path: &'a Path,
    file: &'a SampleFile,
    gaps: Vec<Gap>,
}

impl<'a> About<'a> {
    fn of(path: &'a Path, file: &'a SampleFile) -> Self {
        Self { path, file, gaps: file.gaps().collect() }
    }

    fn largest_gap(&self) -> Option<&Gap> {
        // Of several of one size the first.
        self.gaps.iter().rev().max_by_key(|gap| gap.length_samples)
    }

    fn missing_samples(&self) -> u64 {
        self.gaps.iter().map(|gap| gap.length_samples).sum()
    }

    /// Seconds that so many samples take; `None` where the rate is unknown.
    fn seconds(&self, samples: u64) -> Option<f64> {
        let rate_hz = self.file.sample_rate_hz();
        (rate_hz > 0.0).then(|| samples as f64 / rate_hz)
    }

    fn recorded_at(&self) -> Option<String> {
        timestamp(self.file.time_at(0)?)
    }

    /// When its first sample was made by the clocks of hosts.
    fn axes(&self) -> Vec<AxisTime> {
        self.file.axis_clocks().into_iter().filter_map(|clock| self.file.axis_by(clock, 0)).collect()
    }

    /// The bytes of the files that the samples stand in; `None` where one cannot be looked at.
    fn data_bytes(&self) -> Option<u64> {
        let bytes = |path: &Path| Some(std::fs::metadata(path).ok()?.len());
        // The recordings of an archive share a file.
        let mut paths: Vec<&Path> = self.file.data_files().collect();
        paths.dedup();
        paths.into_iter().map(bytes).sum()
    }

    fn json(&self) -> Value {
        let file = self.file;
        let description = file.description(0).map(|it| &**it);
        let channels: Vec<Value> = (0..file.channels())
            .map(|number| {
                let said = description.and_then(|it| it.channels.get(number)).cloned().unwrap_or_default();
                json!({ "name": said.name, "unit": said.unit, "scale": said.scale, "offset": said.offset })
            })
            .collect();
        let gap = |gap: &Gap| {
            json!({
                "position": gap.position,
                "first_sample_index": gap.first_sample_index,
                "samples": gap.length_samples,
                "seconds": self.seconds(gap.length_samples),
            })
        };
        json!({
            "file": self.path,
            "kind": SampleFile::format_name(self.path),
            "format": file.format().name(),
            "channels": channels,
            "sample_rate_hz": file.rate_hz(),
            "samples": file.len_samples(),
            "duration_s": self.seconds(file.len_samples()),
            "first_sample_index": file.segments()[0].first_sample_index,
            "recorded_at": self.recorded_at(),
            "axes": self.axes(),
            "centre_frequency_hz": description.and_then(|it| it.centre_frequency_hz),
            "segments": file.segments().len(),
            "streams": file.stream_count(),
            "gaps": {
                "count": self.gaps.len(),
                "samples": self.missing_samples(),
                "largest": self.largest_gap().map(gap),
            },
            "annotations": file.annotations().len(),
            "data_bytes": self.data_bytes(),
            "whole": file.is_whole(),
            "being_recorded": file.is_being_recorded(),
            "notes": file.notes(),
        })
    }

    fn text(&self) -> String {
        let file = self.file;
        let mut lines = vec![shown(self.path)];
        let mut row =
            |name: &str, text: String| lines.push(format!("  {name:<12} {}", printable(text.as_bytes())));
        let plural = if file.channels() == 1 { "" } else { "s" };
        let kind = SampleFile::format_name(self.path).unwrap_or_default();
        row("format", format!("{kind}, {} in {} channel{plural}", file.format(), file.channels()));
        let rate = match file.sample_rate_hz() {
            rate_hz if rate_hz > 0.0 => exact(rate_hz, "S/s"),
            _ => "an unknown rate".to_owned(),
        };
        let duration = self.words(file.len_samples());
        row("samples", format!("{}{duration} at {rate}", grouped(file.len_samples())));
        for (number, channel) in self.described().into_iter().take(CHANNELS_SHOWN) {
            row(&format!("channel {number}"), channel);
        }
        if let Some(time) = self.recorded_at() {
            row("recorded", time);
        }
        for axis in self.axes() {
            row("time axis", axis_words(&axis));
        }
        let description = file.description(0);
        if let Some(frequency_hz) = description.and_then(|it| it.centre_frequency_hz) {
            row("frequency", exact(frequency_hz, "Hz"));
        }
        for (name, text) in [
            ("name", description.and_then(|it| it.name.as_deref())),
            ("hardware", description.and_then(|it| it.hardware.as_deref())),
            ("author", description.and_then(|it| it.author.as_deref())),
            ("notes", description.and_then(|it| it.notes.as_deref())),
        ] {
            if let Some(text) = text {
                row(name, text.to_owned());
            }
        }
        row("gaps", self.gaps_in_words());
        if file.stream_count() > 1 {
            row("streams", format!("{}, one behind the other: the index steps back", file.stream_count()));
        }
        if !file.annotations().is_empty() {
            row("annotations", grouped(file.annotations().len() as u64));
        }
        if let Some(bytes) = self.data_bytes() {
            row("size", format!("{} bytes", grouped(bytes)));
        }
        let state = match (file.is_whole(), file.is_being_recorded()) {
            (true, _) => "whole",
            (false, true) => "being recorded",
            (false, false) => "NOT WHOLE",
        };
        row("state", state.to_owned());
        file.notes().iter().for_each(|note| row("", note.clone()));
        lines.join("\n")
    }

    fn gaps_in_words(&self) -> String {
        let Some(largest) = self.largest_gap() else { return "none".to_owned() };
        let samples = |count| format!("{} samples{}", grouped(count), self.words(count));
        format!(
            "{}: {} are missing; the largest is {}, before sample {}",
            grouped(self.gaps.len() as u64),
            samples(self.missing_samples()),
            samples(largest.length_samples),
            grouped(largest.position)
        )
    }

    /// What is known of each channel that something is known of, numbered from 1.
    fn described(&self) -> Vec<(usize, String)> {
        let channels = self.file.description(0).map_or(&[][..], |it| &it.channels);
        let numbered = channels.iter().enumerate();
        let said = numbered.map(|(number, channel)| {
            let name = channel.name.clone();
            let unit = if channel.unit.is_empty() { "units".to_owned() } else { channel.unit.clone() };
            let is_plain = channel.unit.is_empty() && channel.scale == 1.0 && channel.offset == 0.0;
            let offset = if channel.offset == 0.0 { String::new() } else { format!(" + {}", channel.offset) };
            let scale =
                if is_plain { String::new() } else { format!("sample x {}{offset} {unit}", channel.scale) };
            let parts = [name, scale].into_iter().filter(|part| !part.is_empty());
            (number + 1, parts.collect::<Vec<_>>().join(", "))
        });
        said.filter(|(_, text)| !text.is_empty()).collect()
    }

    /// ` (300 s)`, or nothing where the rate is unknown.
    fn words(&self, samples: u64) -> String {
        match self.seconds(samples) {
            None => String::new(),
            Some(seconds) if seconds < 60.0 => format!(" ({})", Engineering::new(seconds, "s")),
            Some(seconds) => match std::time::Duration::try_from_secs_f64(seconds) {
                Ok(duration) => format!(" ({})", time_words(duration)),
                Err(_) => String::new(),
            },
        }
    }
}

/// How sure times by the clock of a host are: `to 41 us by clock fedcba9876543210, 20.1 ppm fast`.
pub(super) fn axis_words(axis: &AxisTime) -> String {
    let clock = if axis.clock == clock_id() { " (this host's)" } else { "" };
    let sure = match axis.error_ns {
        0 => "stamped by".to_owned(),
        error_ns => format!("to {} by", Engineering::new(error_ns as f64 * 1e-9, "s").digits(3)),
    };
    let drift = match axis.drift_ppb {
        // Less than what it may be off by says nothing.
        ppb if ppb.unsigned_abs() <= axis.drift_error_ppb => String::new(),
        ppb => format!(
            ", its samples are {:.2} ppm {}",
            ppb.unsigned_abs() as f64 / 1e3,
            if ppb > 0 { "fast" } else { "slow" }
        ),
    };
    format!("{sure} clock {:016x}{clock}{drift}", axis.clock)
}

/// RFC 3339 in UTC.
pub(crate) fn timestamp(time: SystemTime) -> Option<String> {
    Timestamp::try_from(time).ok().map(|time| time.to_string())
}

/// The rest is in the JSON.
const CHANNELS_SHOWN: usize = 16;
