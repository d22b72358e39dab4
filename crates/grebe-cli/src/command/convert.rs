//! `grebe convert`: writes a recording, or a part of it, as another kind of file.

mod bands;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use grebe_flow::{Count, Graph, Kind, QueueOptions, RateHz, Site, Stage};
use grebe_process::{DecimateFiltered, Demodulate, FrequencyHz};
use grebe_recording::{CsvOptions, CutBox, Error, SampleFile, SaveOptions, import_csv, is_csv, is_table};
use grebe_stages::{SinkOptions, SourceOptions, Uri, open_sink, open_source};

use crate::cli::{Convert, Cutting, Metrics};
use crate::ending::{Ending, Usage};
use crate::graph::{Progress, drive, print_notice};
use crate::interrupt;
use crate::output::{self, note};
use crate::units::{exact, grouped};

/// Converts a recording. Ranges, channels and formats are views of it; tables, bands and other rates go through a
/// temporary recording.
pub(crate) fn run(options: &Convert) -> Result<Ending> {
    let is_text = is_table(&options.from);
    let work = Work::of(options)?;
    if !is_text && matches!(work, Work::Samples) {
        let file = SampleFile::open(&options.from)?;
        file.notes().iter().for_each(|line| note!("grebe: {line}"));
        let file = selected(file.stretch(options.start, options.duration)?, options)?;
        return save(file, options, &options.to, Origin::default());
    }
    // The temporary folder is on the disk of the result.
    let folder = options.to.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let apart = tempfile::Builder::new().prefix(".grebe-convert-").tempdir_in(folder);
    let apart = apart.with_context(|| format!("cannot create a folder in {}", folder.display()))?;
    let from = if is_text { read_text(options, &apart.path().join("text"))? } else { options.from.clone() };
    let mut origin = Origin { made_from: Some(options.from.clone()), made_as: None };
    let stage = match work {
        Work::Samples => {
            let file = SampleFile::open(&from)?.stretch(options.start, options.duration)?;
            return save(selected(file, options)?, options, &options.to, origin);
        }
        Work::Boxes(boxes) => return bands::cut(options, &from, boxes, apart.path()),
        Work::Stage { stage, words } => {
            origin.made_as = Some(words);
            stage
        }
    };
    let made = apart.path().join("x.sigmf-meta");
    match process(options, from, stage, &made)? {
        Ending::Good => save(selected(SampleFile::open(&made)?, options)?, options, &options.to, origin),
        ending => Ok(ending),
    }
}

/// How the samples of a conversion come about.
enum Work {
    /// As they are, or in another format.
    Samples,
    Boxes(Vec<CutBox>),
    Stage {
        stage: Box<dyn Stage>,
        words: String,
    },
}

/// Where a result comes from, if a temporary recording lies between.
#[derive(Default)]
struct Origin {
    made_from: Option<PathBuf>,
    made_as: Option<String>,
}

impl Work {
    fn of(options: &Convert) -> Result<Self> {
        let Cutting { center, bandwidth, rate, boxes, demodulate } = &options.cutting;
        let built = |kind: Result<Box<dyn Stage>, _>| kind.map_err(|error| anyhow!("{error}"));
        if let Some(factor) = options.decimate {
            let kind = DecimateFiltered { factor: Count(factor) };
            kind.check().map_err(|fault| Usage(format!("--decimate: {fault}")))?;
            let stage = built(kind.build(&mut Site::new(STAGE)))?;
            return Ok(Self::Stage { stage, words: format!("decimated by {factor}") });
        }
        if let Some(mode) = demodulate {
            let mut kind =
                Demodulate { center: center.map(FrequencyHz), level: true, ..Demodulate::new(*mode) };
            kind.bandwidth = bandwidth.map(RateHz);
            kind.rate = rate.map_or(kind.rate, RateHz);
            kind.check().map_err(|fault| Usage(format!("--demodulate: {fault}")))?;
            let words = format!("{kind:?}");
            return Ok(Self::Stage { stage: built(kind.build(&mut Site::new(STAGE)))?, words });
        }
        if !boxes.is_empty() {
            return Ok(Self::Boxes(boxes.iter().map(|it| it.to_cut(*rate)).collect()));
        }
        match (*center, *bandwidth) {
            (Some(centre_hz), Some(bandwidth_hz)) => {
                let (start, duration, rate_hz) = (options.start, options.duration, *rate);
                Ok(Self::Boxes(vec![CutBox { start, duration, centre_hz, bandwidth_hz, rate_hz }]))
            }
            (None, None) if rate.is_none() => Ok(Self::Samples),
            (None, None) => {
                Err(Usage("--rate belongs to a band: add --center and --bandwidth, or --box".to_owned())
                    .into())
            }
            (Some(_), None) => {
                Err(Usage("--center needs the width of the band: add --bandwidth".to_owned()).into())
            }
            (None, Some(_)) => {
                Err(Usage("--bandwidth needs the middle of the band: add --center".to_owned()).into())
            }
        }
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

/// Sends the recording through a stage.
fn process(options: &Convert, from: PathBuf, stage: Box<dyn Stage>, to: &Path) -> Result<Ending> {
    let part = SourceOptions { start: options.start, length: options.duration, ..SourceOptions::default() };
    let source = open_source(&Uri::File(from), part, &mut print_notice)?;
    let sink = open_sink(&Uri::File(to.into()), &SinkOptions::default(), &mut print_notice)?;
    let mut graph = Graph::new();
    let source = graph.add_boxed("player", source.stage);
    let stage = graph.add_boxed(STAGE, stage);
    let sink = graph.add_boxed("recorder", sink.stage);
    graph.connect(source, stage, QueueOptions::block(QUEUE_BATCHES));
    graph.connect(stage, sink, QueueOptions::block(QUEUE_BATCHES));
    let (_, ending) = drive("convert", graph, &Progress::of(STAGE), Metrics::default())?;
    ending
}

/// The channels of the options.
fn selected(file: SampleFile, options: &Convert) -> Result<SampleFile> {
    let ranges = options.channels.iter().flat_map(|range| range.clone());
    let channels: Vec<usize> = ranges.map(|number| usize::from(number) - 1).collect();
    Ok(if channels.is_empty() { file } else { file.select(&channels)? })
}

/// Writes the channels in the format of the options, and prints a summary.
fn save(mut file: SampleFile, options: &Convert, to: &Path, origin: Origin) -> Result<Ending> {
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
    let (channels, format) = (file.channels(), file.format());
    let plural = if channels == 1 { "" } else { "s" };
    let first = files.first().map_or(to, PathBuf::as_path);
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

const STAGE: &str = "converter";
const QUEUE_BATCHES: usize = 64;
