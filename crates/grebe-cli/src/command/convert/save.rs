//! Writes what a conversion made, and prints a summary.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::Result;
use grebe_recording::{
    Annotation, AnnotationEdit, Error, GapPolicy, SampleFile, SaveOptions, is_csv, is_recording,
};

use crate::cli::Convert;
use crate::ending::Ending;
use crate::interrupt;
use crate::output::{self, note};
use crate::units::{counted, exact, grouped};

/// Origin of a result that passes through a temporary recording.
#[derive(Default)]
pub(super) struct Origin {
    pub(super) made_from: Option<PathBuf>,
    pub(super) made_as: Option<String>,
}

/// The channels of the options.
pub(super) fn selected(file: SampleFile, options: &Convert) -> Result<SampleFile> {
    let ranges = options.channels.iter().flat_map(|range| range.clone());
    let channels: Vec<usize> = ranges.map(|number| usize::from(number) - 1).collect();
    Ok(if channels.is_empty() { file } else { file.select(&channels)? })
}

/// Writes the channels in the format of the options, and prints a summary.
pub(super) fn save(mut file: SampleFile, options: &Convert, to: &Path, origin: Origin) -> Result<Ending> {
    if let Some(format) = options.format {
        file = file.convert_to(format.0, options.scale)?;
    }
    let save = SaveOptions {
        overwrite: options.overwrite,
        gaps: options.gaps,
        times: options.times,
        made_from: origin.made_from,
        made_as: origin.made_as,
        ..SaveOptions::default()
    };
    let samples = file.len_samples();
    let saved = with_progress(&save.done_samples, samples, || file.save_as(to, &save, &interrupt::cancel()));
    let files = saved.inspect_err(|error| report_resumable(error, to))?;
    // Annotations of a previous file with this name.
    SampleFile::forget_annotations(files.first().map_or(to, PathBuf::as_path));
    let (channels, format) = (counted(file.channels() as u64, "channel"), file.format());
    let first = files.first().map_or(to, PathBuf::as_path);
    let (labels, gaps) = (file.annotations().len(), file.gaps().count());
    let holds_labels = first.extension().is_some_and(|it| it == "sigmf-meta" || it == "sigmf-collection");
    if labels > 0 && !holds_labels {
        note!("grebe: {} cannot store annotations: {}", first.display(), beside(&file, options, first)?);
    }
    let is_wav = first.extension().is_some_and(|it| it.eq_ignore_ascii_case("wav"));
    if let Some(hertz) = file.description(0).and_then(|it| it.centre_frequency_hz)
        && is_wav
        && !(format.is_complex() && hertz <= f64::from(u32::MAX))
    {
        note!("grebe: {} cannot store the centre frequency: skipped {}", first.display(), exact(hertz, "Hz"));
    }
    if let Some(unit) = unit(&file).filter(|_| !holds_labels) {
        note!("grebe: {} cannot store units: its numbers are {unit}", first.display());
    }
    let says_gaps = holds_labels || options.times && is_csv(first);
    let mut zeros = 0;
    if gaps > 0 && !says_gaps {
        let missing: u64 = file.gaps().map(|gap| gap.length_samples).sum();
        let is_filled = options.gaps == GapPolicy::Zeros;
        zeros = if is_filled { missing } else { 0 };
        let (missing, gaps) = (counted(missing, "sample"), counted(gaps as u64, "gap"));
        let what = if is_filled { "zeros stand for" } else { "it lacks" };
        note!("grebe: {} cannot represent gaps: {what} {missing} in {gaps}", first.display());
    }
    if file.saturated_samples() > 0 {
        note!(
            "grebe: {} samples exceeded the range of {format} and were clipped",
            grouped(file.saturated_samples())
        );
    }
    let before = match save.resumed_samples.load(Ordering::Relaxed) {
        0 => String::new(),
        before => format!(", the first {} of them before", grouped(before)),
    };
    let samples = counted(samples + zeros, "sample");
    note!("wrote {samples} of {channels} ({format}) to {}{before}", first.display());
    Ok(Ending::Good)
}

/// The meaning of the numbers of a file that stores no units; `None` if they are plain numbers.
fn unit(file: &SampleFile) -> Option<String> {
    let described = file.description(0)?;
    let mut units = described.channels.iter().map(|it| (it.unit.as_str(), it.scale, it.offset));
    let first = units.next()?;
    match first {
        _ if units.any(|other| other != first) => {
            Some("counts; grebe info of the input lists the unit of each channel".to_owned())
        }
        ("", 1.0, 0.0) => None,
        (unit, 1.0, 0.0) => Some(format!("in {unit}")),
        (unit, scale, offset) => {
            let offset = if offset == 0.0 { String::new() } else { format!(" from {offset}") };
            Some(format!("counts of {scale} {}{offset}", if unit.is_empty() { "units" } else { unit }))
        }
    }
}

/// Writes the annotations beside a file that cannot store them; what became of them.
fn beside(file: &SampleFile, options: &Convert, to: &Path) -> Result<String> {
    let (zeros, labels) = (options.gaps == GapPolicy::Zeros, file.annotations().len());
    let base = file.segments()[0].first_sample_index;
    if !is_recording(to) || zeros && file.stream_count() > 1 {
        return Ok(format!("skipped {labels}"));
    }
    let placed = |it: &Annotation| {
        let place = |position: u64| {
            let segment = file.segment_at(position);
            if zeros { segment.first_sample_index - base + (position - segment.position) } else { position }
        };
        let last = it.length_samples.checked_sub(1).map(|last| place(it.position + last) + 1);
        let position = place(it.position);
        let length_samples = last.map_or(0, |end| end - position);
        AnnotationEdit::Add(Annotation { position, length_samples, fields: it.fields.clone() })
    };
    let edits: Vec<_> = file.annotations().iter().map(placed).collect();
    let done = SampleFile::edit_annotations(to, &edits)?;
    let place = done.places.first().map_or(to, PathBuf::as_path);
    Ok(format!("wrote {labels} to {}", place.display()))
}

/// Reports that the same command can resume.
fn report_resumable(error: &Error, to: &Path) {
    let part = format!("{}.part", to.display());
    // A SigMF conversion starts over, so nothing of it remains.
    if (matches!(error, Error::Cancelled) || error.is_full()) && Path::new(&part).is_dir() {
        note!("grebe: {part} has the part written so far; the same command resumes there");
    }
}

/// Calls `work`, with a line of progress after the first second.
pub(super) fn with_progress<T>(done: &AtomicU64, all: u64, work: impl FnOnce() -> T) -> T {
    let (over, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut wait = Duration::from_secs(1);
            let mut bar = None;
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(wait) {
                let bar = bar.get_or_insert_with(|| output::bar(Some(all)));
                bar.set_position(done.load(Ordering::Relaxed));
                wait = Duration::from_millis(200);
            }
            bar.inspect(|bar| bar.finish_and_clear());
        });
        let result = work();
        drop(over);
        result
    })
}
