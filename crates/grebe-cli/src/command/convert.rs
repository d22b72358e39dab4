//! `grebe convert`: writes a recording, or a part of it, as another kind of file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use grebe_flow::{Count, Graph, Kind, QueueOptions, Site};
use grebe_process::DecimateFiltered;
use grebe_recording::{CsvOptions, Error, SampleFile, SaveOptions, import_csv, is_csv, is_table};
use grebe_stages::{SinkOptions, SourceOptions, Uri, open_sink, open_source};

use crate::cli::{Convert, Metrics};
use crate::ending::{Ending, Usage};
use crate::graph::{Progress, drive, print_notice};
use crate::interrupt;
use crate::output::{self, note};
use crate::units::{exact, grouped};

/// Converts a recording. Ranges, channels and formats are views of it; tables and other rates go through a temporary
/// recording.
pub(crate) fn run(options: &Convert) -> Result<Ending> {
    let is_text = is_table(&options.from);
    if !is_text && options.decimate.is_none() {
        let file = SampleFile::open(&options.from)?;
        file.notes().iter().for_each(|line| note!("grebe: {line}"));
        return save(file.stretch(options.start, options.duration)?, options, None);
    }
    // The temporary folder is on the disk of the result.
    let folder = options.to.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let apart = tempfile::Builder::new().prefix(".grebe-convert-").tempdir_in(folder);
    let apart = apart.with_context(|| format!("cannot create a folder in {}", folder.display()))?;
    let from = if is_text { read_text(options, &apart.path().join("text"))? } else { options.from.clone() };
    let made_from = Some(options.from.as_path());
    let Some(factor) = options.decimate else {
        return save(SampleFile::open(&from)?.stretch(options.start, options.duration)?, options, made_from);
    };
    let slower = apart.path().join("x.sigmf-meta");
    match decimate(options, from, factor, &slower)? {
        Ending::Good => save(SampleFile::open(&slower)?, options, made_from),
        ending => Ok(ending),
    }
}

/// Converts a table to a recording, and returns the file to open.
fn read_text(options: &Convert, to: &Path) -> Result<PathBuf> {
    let csv = CsvOptions::default();
    // The name without its query.
    let name = options.from.to_string_lossy();
    let plain = name.rsplit_once('?').map_or(&*name, |(plain, _)| plain);
    let bytes =
        std::fs::metadata(&options.from).or_else(|_| std::fs::metadata(plain)).map_or(0, |it| it.len());
    let read = || import_csv(&options.from, to, &csv, &interrupt::cancel());
    let imported = with_progress(&csv.done_bytes, bytes, read)?;
    imported.notes.iter().for_each(|line| note!("grebe: {line}"));
    Ok(imported.path)
}

/// Converts to a lower rate.
fn decimate(options: &Convert, from: PathBuf, factor: u64, to: &Path) -> Result<Ending> {
    let kind = DecimateFiltered { factor: Count(factor) };
    kind.check().map_err(|fault| Usage(format!("--decimate: {fault}")))?;
    let part = SourceOptions { start: options.start, length: options.duration, ..SourceOptions::default() };
    let source = open_source(&Uri::File(from), part, &mut print_notice)?;
    let stage = kind.build(&mut Site::new(DECIMATOR)).map_err(|error| anyhow!("{error}"))?;
    let sink = open_sink(&Uri::File(to.into()), &SinkOptions::default(), &mut print_notice)?;
    let mut graph = Graph::new();
    let source = graph.add_boxed("player", source.stage);
    let stage = graph.add_boxed(DECIMATOR, stage);
    let sink = graph.add_boxed("recorder", sink.stage);
    graph.connect(source, stage, QueueOptions::block(QUEUE_BATCHES));
    graph.connect(stage, sink, QueueOptions::block(QUEUE_BATCHES));
    let (_, ending) = drive("convert", graph, &Progress::of(DECIMATOR), Metrics::default())?;
    ending
}

/// Writes the channels in the format of the options, and prints a summary.
fn save(file: SampleFile, options: &Convert, made_from: Option<&Path>) -> Result<Ending> {
    let mut file = if options.channels.is_empty() { file } else { file.select(&selected(options))? };
    if let Some(format) = options.format {
        file = file.convert_to(format.0, options.scale)?;
    }
    let save = SaveOptions {
        overwrite: options.overwrite,
        gaps: options.gaps,
        times: options.times,
        made_from: made_from.map(Path::to_owned),
        ..SaveOptions::default()
    };
    let samples = file.len_samples();
    let saved =
        with_progress(&save.done_samples, samples, || file.save_as(&options.to, &save, &interrupt::cancel()));
    let files = saved.inspect_err(|error| report_resumable(error, &options.to))?;
    let (channels, format) = (file.channels(), file.format());
    let plural = if channels == 1 { "" } else { "s" };
    let first = files.first().unwrap_or(&options.to);
    let (labels, gaps) = (file.annotations().len(), file.gaps().count());
    let holds_labels = first.extension().is_some_and(|it| it == "sigmf-meta" || it == "sigmf-collection");
    if labels > 0 && !holds_labels {
        note!("grebe: {} cannot store annotations: skipped {labels}", first.display());
    }
    let is_wav = first.extension().is_some_and(|it| it.eq_ignore_ascii_case("wav"));
    if let Some(hertz) = file.description(0).and_then(|it| it.centre_frequency_hz)
        && is_wav
        && !(format.is_complex() && hertz <= f64::from(u32::MAX))
    {
        note!("grebe: {} cannot store the centre frequency: skipped {}", first.display(), exact(hertz, "Hz"));
    }
    let says_gaps = holds_labels || options.times && is_csv(first);
    if gaps > 0 && !says_gaps {
        let missing: u64 = file.gaps().map(|gap| gap.length_samples).sum();
        let missing = grouped(missing);
        note!(
            "grebe: {} cannot represent gaps: {missing} samples in {gaps} gaps are missing",
            first.display()
        );
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
    note!("wrote {samples} samples of {channels} channel{plural} ({format}) to {}{before}", first.display());
    Ok(Ending::Good)
}

/// Reports that the same command can resume.
fn report_resumable(error: &Error, to: &Path) {
    let part = format!("{}.part", to.display());
    // A SigMF conversion starts over, so nothing of it remains.
    if (matches!(error, Error::Cancelled) || error.is_full()) && Path::new(&part).is_dir() {
        note!("grebe: {part} has the part written so far; the same command resumes there");
    }
}

/// Channels from 0, in the order of the options.
fn selected(options: &Convert) -> Vec<usize> {
    options.channels.iter().flat_map(|range| range.clone().map(|number| usize::from(number) - 1)).collect()
}

/// Calls `work`, with a line of progress after the first second.
fn with_progress<T>(done: &AtomicU64, all: u64, work: impl FnOnce() -> T) -> T {
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

const DECIMATOR: &str = "decimator";
const QUEUE_BATCHES: usize = 64;
