//! `grebe convert`: writes a recording, or a part of it, as another kind of file.

mod bands;
mod save;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use grebe_flow::{Count, Graph, Kind, QueueOptions, RateHz, Site, Stage};
use grebe_process::{DecimateFiltered, Demodulate, FrequencyHz, Modulation};
use grebe_recording::{CsvOptions, CutBox, SampleFile, import_csv, is_table, ring_parts};
use grebe_stages::{SinkOptions, SourceOptions, Uri, open_sink, open_source};

use self::save::{Origin, save, selected, with_progress};
use crate::cli::{Convert, Cutting, Metrics};
use crate::ending::{Ending, Usage};
use crate::graph::{Progress, drive, print_notice};
use crate::interrupt;
use crate::output::note;

/// Converts a recording. Ranges, channels and formats are views of it; tables, bands and other rates go through a
/// temporary recording.
pub(crate) fn run(options: &Convert) -> Result<Ending> {
    let is_text = is_table(&options.from);
    let part = options.range.times(|| opened(options))?;
    let work = Work::of(options, part)?;
    if !is_text && matches!(work, Work::Samples) {
        let file = SampleFile::open(&options.from)?;
        file.notes().iter().for_each(|line| note!("grebe: {line}"));
        let file = selected(file.stretch(part.0, part.1)?, options)?;
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
            let file = SampleFile::open(&from)?.stretch(part.0, part.1)?;
            return save(selected(file, options)?, options, &options.to, origin);
        }
        Work::Boxes(boxes) => return bands::cut(options, &from, boxes, apart.path()),
        Work::Stage { stage, words } => {
            origin.made_as = Some(words);
            stage
        }
    };
    let made = apart.path().join("x.sigmf-meta");
    match process(part, from, stage, &made)? {
        Ending::Good => save(selected(SampleFile::open(&made)?, options)?, options, &options.to, origin),
        ending => Ok(ending),
    }
}

/// Start and length.
type Part = (Duration, Option<Duration>);

/// The recording, or the oldest part of the ring, in which samples are counted.
fn opened(options: &Convert) -> Result<SampleFile> {
    if is_table(&options.from) {
        return Err(Usage("a table needs --start and --duration as times".to_owned()).into());
    }
    if options.from.is_dir()
        && let Some(first) = ring_parts(&options.from)?.into_iter().next()
    {
        return Ok(first);
    }
    Ok(SampleFile::open(&options.from)?)
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

/// The stage of `--demodulate` and its band.
pub(super) fn demodulate(
    mode: Modulation,
    center: Option<f64>,
    bandwidth: Option<f64>,
    rate: Option<f64>,
) -> Result<Demodulate> {
    let (center, bandwidth) = (center.map(FrequencyHz), bandwidth.map(RateHz));
    leveled(Demodulate { center, bandwidth, ..Demodulate::new(mode) }, rate)
}

/// The same of a kind with its band.
pub(super) fn leveled(kind: Demodulate, rate: Option<f64>) -> Result<Demodulate> {
    let kind = Demodulate { level: true, rate: rate.map_or(kind.rate, RateHz), ..kind };
    kind.check().map_err(|fault| Usage(format!("--demodulate: {fault}")))?;
    Ok(kind)
}

impl Work {
    fn of(options: &Convert, (start, duration): Part) -> Result<Self> {
        let Cutting { center, bandwidth, rate, boxes, demodulate } = &options.cutting;
        let built = |kind: Result<Box<dyn Stage>, _>| kind.map_err(|error| anyhow!("{error}"));
        if let Some(factor) = options.decimate {
            let kind = DecimateFiltered { factor: Count(factor) };
            kind.check().map_err(|fault| Usage(format!("--decimate: {fault}")))?;
            let stage = built(kind.build(&mut Site::new(STAGE)))?;
            return Ok(Self::Stage { stage, words: format!("decimated by {factor}") });
        }
        if let Some(mode) = demodulate {
            let kind = self::demodulate(*mode, *center, *bandwidth, *rate)?;
            let words = format!("{kind:?}");
            return Ok(Self::Stage { stage: built(kind.build(&mut Site::new(STAGE)))?, words });
        }
        if !boxes.is_empty() {
            return Ok(Self::Boxes(boxes.iter().map(|it| it.to_cut(*rate)).collect()));
        }
        match (*center, *bandwidth) {
            (Some(centre_hz), Some(bandwidth_hz)) => {
                let rate_hz = *rate;
                Ok(Self::Boxes(vec![CutBox { start, duration, centre_hz, bandwidth_hz, rate_hz }]))
            }
            (None, None) if rate.is_none() => Ok(Self::Samples),
            (None, None) => {
                Err(Usage("--rate belongs to a band: add --center and --bandwidth, or --box".to_owned())
                    .into())
            }
            (Some(_), None) => Err(Usage(
                "--center needs the width of the band: add --bandwidth, such as --bandwidth 200k".to_owned(),
            )
            .into()),
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
fn process((start, length): Part, from: PathBuf, stage: Box<dyn Stage>, to: &Path) -> Result<Ending> {
    let part = SourceOptions { start, length, ..SourceOptions::default() };
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

const STAGE: &str = "converter";
const QUEUE_BATCHES: usize = 64;
