//! `grebe info`: description of recordings, and comparison with their checksums.

use std::path::Path;
use std::time::SystemTime;

use anyhow::{Error, Result};
use grebe_connection::{printable, shown};
use grebe_flow::clock_id;
use grebe_frame::AxisTime;
use grebe_recording::{ClockGap, Error as RecordingError, Gap, SampleFile, Verified, verify};
use grebe_scope::Engineering;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cli::Info;
use crate::ending::{Ending, fail_each, one_line};
use crate::interrupt;
use crate::output;
use crate::units::{counted, exact, grouped, time_words};

/// Describes each recording, also after one that cannot be read.
pub(crate) fn run(options: &Info) -> Result<Ending> {
    let mut ending = Ending::Good;
    let mut failures: Vec<Error> = Vec::new();
    let checksums = options.verify.then(Checksums::new);
    for named in &options.files {
        let recordings = match SampleFile::recordings(named) {
            Ok(recordings) => recordings,
            Err(_) => vec![named.clone()], // Opening it gives the same error.
        };
        for path in recordings {
            let packed = SampleFile::packed_bytes(&path).filter(|&bytes| bytes > UNPACKED_BYTES_MAX);
            if let Some(bytes) = packed.filter(|_| checksums.is_none()) {
                report_packed(&path, bytes, options.json)?;
                continue;
            }
            let verified = checksums.as_ref().map(|checksums| checksums.verify(&path));
            if matches!(verified, Some(Err(RecordingError::Cancelled))) {
                return Err(RecordingError::Cancelled.into());
            }
            let mut report = match SampleFile::open(&path) {
                Ok(file) => {
                    let about = About::of(&path, &file);
                    if !file.is_whole() {
                        ending = Ending::Partial;
                    }
                    if options.json { about.json() } else { about.text().into() }
                }
                // A small recording that differs from its checksum does not open.
                Err(_) if matches!(&verified, Some(Ok(files)) if files.iter().any(is_changed)) => {
                    if options.json { json!({ "file": path, "whole": false }) } else { shown(&path).into() }
                }
                Err(error) => {
                    let error = Error::from(error);
                    let report = json!({ "file": path, "whole": false, "error": one_line(&error) });
                    failures.push(error);
                    if options.json { report } else { Value::Null }
                }
            };
            if let Some(Ok(files)) = &verified {
                if files.iter().any(is_changed) {
                    ending = Ending::Partial;
                }
                match &mut report {
                    Value::String(text) => {
                        files.iter().for_each(|file| *text += &format!("\n  {}", verified_text(file)))
                    }
                    Value::Null => {}
                    report => report["verified"] = files.iter().map(verified_json).collect(),
                }
            }
            if let Some(Err(error)) = verified
                && !matches!(report, Value::Null)
                && report.get("error").is_none()
            {
                failures.push(error.into());
            }
            match report {
                Value::Null => {}
                Value::String(text) => output::text(&(text + "\n"))?,
                report => output::json(&report)?,
            }
        }
    }
    fail_each(failures, options.json, |count| format!("{count} files cannot be read"))?;
    Ok(ending)
}

/// Facts of a large compressed file, without unpacking it.
fn report_packed(path: &Path, bytes: u64, json: bool) -> Result<()> {
    let kind = SampleFile::format_name(path);
    let note = format!(
        "compressed, and larger than {}, which is unpacked to look into it: grebe convert '{}' OUT.sigmf-meta",
        size(UNPACKED_BYTES_MAX),
        path.display()
    );
    if json {
        let whole = Value::Null;
        return output::json(
            &json!({ "file": path, "kind": kind, "data_bytes": bytes, "whole": whole, "notes": [note] }),
        );
    }
    let rows =
        [("format", kind.unwrap_or_default()), ("size", &format!("{} bytes", grouped(bytes))), ("", &note)];
    let rows = rows.map(|(name, text)| format!("\n  {name:<12} {}", printable(text.as_bytes())));
    output::text(&format!("{}{}\n", shown(path), rows.concat()))
}

/// Comparison with checksums, with a line of progress.
struct Checksums {
    cancel: grebe_connection::Cancel,
    bar: indicatif::ProgressBar,
}

impl Checksums {
    fn new() -> Self {
        Self { cancel: interrupt::cancel(), bar: output::bar(None) }
    }

    fn verify(&self, path: &Path) -> Result<Vec<Verified>, RecordingError> {
        let mut progress = |bytes: u64| self.bar.set_message(format!("{}  {}", shown(path), size(bytes)));
        let files = verify(path, &self.cancel, &mut progress);
        self.bar.finish_and_clear();
        if self.cancel.is_cancelled() { Err(RecordingError::Cancelled) } else { files }
    }
}

fn is_changed(file: &Verified) -> bool {
    !file.changed.is_empty()
}

fn verified_text(file: &Verified) -> String {
    let path = file.path.display();
    if let Some(first) = file.changed.first() {
        let more = match file.changed.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more ranges"),
        };
        return format!("{path}: changed between bytes {} and {}{more}", first.start, first.end);
    }
    match (file.checked_bytes, file.bytes) {
        (0, bytes) => format!("{path}: right length, {}; no checksum", size(bytes)),
        (checked, bytes) if checked < bytes => {
            format!("{path}: unchanged; {} of {} have a checksum", size(checked), size(bytes))
        }
        (_, bytes) => format!("{path}: unchanged, {}", size(bytes)),
    }
}

fn verified_json(file: &Verified) -> Value {
    let changed: Vec<[u64; 2]> = file.changed.iter().map(|range| [range.start, range.end]).collect();
    json!({
        "path": file.path.display().to_string(),
        "bytes": file.bytes,
        "checked_bytes": file.checked_bytes,
        "changed": changed,
    })
}

fn size(bytes: u64) -> String {
    Engineering::new(bytes as f64, "B").to_string()
}

/// Description of a recording.
struct About<'a> {
    path: &'a Path,
    file: &'a SampleFile,
    gaps: Vec<Gap>,
    clock_gaps: Vec<ClockGap>,
}

impl<'a> About<'a> {
    fn of(path: &'a Path, file: &'a SampleFile) -> Self {
        Self { path, file, gaps: file.gaps().collect(), clock_gaps: file.clock_gaps().collect() }
    }

    fn largest_gap(&self) -> Option<&Gap> {
        // The first of several equal ones.
        self.gaps.iter().rev().max_by_key(|gap| gap.length_samples)
    }

    fn missing_samples(&self) -> u64 {
        self.gaps.iter().map(|gap| gap.length_samples).sum()
    }

    /// Duration of N samples in seconds; `None` if the rate is unknown.
    fn seconds(&self, samples: u64) -> Option<f64> {
        self.file.rate_hz().map(|rate_hz| samples as f64 / rate_hz)
    }

    fn recorded_at(&self) -> Option<String> {
        timestamp(self.file.time_at(0)?)
    }

    /// Time of the first sample by the clocks of hosts.
    fn axes(&self) -> Vec<AxisTime> {
        self.file.axis_clocks().into_iter().filter_map(|clock| self.file.axis_by(clock, 0)).collect()
    }

    /// Bytes of the data files; `None` if one cannot be read.
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
                "by_clock": self.clock_gaps.iter().map(|gap| json!({ "position": gap.position, "seconds": gap.seconds })).collect::<Value>(),
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
        let kind = SampleFile::format_name(self.path).unwrap_or_default();
        row("format", format!("{kind}, {} in {}", file.format(), counted(file.channels() as u64, "channel")));
        let rate = file.rate_hz().map_or("an unknown rate".to_owned(), |rate_hz| exact(rate_hz, "S/s"));
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
        self.gaps_in_words().into_iter().for_each(|words| row("gaps", words));
        if file.stream_count() > 1 {
            row("streams", format!("{}, one after the other: the index steps back", file.stream_count()));
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

    fn gaps_in_words(&self) -> Vec<String> {
        let sampled = self.largest_gap().map(|largest| self.sampled_gaps(largest));
        let shown = self.clock_gaps.iter().take(CLOCK_GAPS_SHOWN);
        let by_clock = shown
            .map(|gap| format!("{}, before sample {}", clock_gap_words(gap.seconds), grouped(gap.position)));
        let more = self.clock_gaps.len().saturating_sub(CLOCK_GAPS_SHOWN);
        let more = (more > 0)
            .then(|| format!("{more} more where a sender began again; grebe find --trigger gap has them"));
        let lines: Vec<String> = sampled.into_iter().chain(by_clock).chain(more).collect();
        if lines.is_empty() { vec!["none".to_owned()] } else { lines }
    }

    fn sampled_gaps(&self, largest: &Gap) -> String {
        let samples = |count| format!("{} samples{}", grouped(count), self.words(count));
        format!(
            "{}: {} are missing; the largest is {}, before sample {}",
            grouped(self.gaps.len() as u64),
            samples(self.missing_samples()),
            samples(largest.length_samples),
            grouped(largest.position)
        )
    }

    /// Descriptions of channels that have one, numbered from 1.
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

    /// ` (300 s)`, or nothing if the rate is unknown.
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

/// Uncertainty of times by the clock of a host: `to 41 us by clock fedcba9876543210, 20.1 ppm fast`.
pub(super) fn axis_words(axis: &AxisTime) -> String {
    let clock = if axis.clock == clock_id() { " (this host's)" } else { "" };
    let sure = match axis.error_ns {
        0 => "stamped by".to_owned(),
        error_ns => format!("to {} by", Engineering::new(error_ns as f64 * 1e-9, "s").digits(3)),
    };
    let drift = match axis.drift_ppb {
        // A drift below its uncertainty has no meaning.
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

/// A gap where a sender began again.
pub(crate) fn clock_gap_words(seconds: f64) -> String {
    let missing = Engineering::new(seconds, "s").digits(3).to_string();
    format!("about {missing} missing, by the clock: the sender began again")
}

/// JSON has all gaps.
const CLOCK_GAPS_SHOWN: usize = 4;
/// JSON has all channels.
const CHANNELS_SHOWN: usize = 16;
/// Larger compressed files are not unpacked to describe them.
const UNPACKED_BYTES_MAX: u64 = 64 << 20;
