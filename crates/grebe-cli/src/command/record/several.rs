//! Records several streams: a recording each, and a collection that relates their times.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};
use grebe_flow::{Graph, QueueOptions};
use grebe_frame::AxisTime;
use grebe_recording::{BegunSet, RecordOptions, RecordingSet, SampleFile};
use grebe_stages::{SinkOptions, Uri, open_sink};
use serde_json::json;

use super::source::{QUEUE_BATCHES, open, waits_for};
use crate::cli::Record;
use crate::command::info::axis_words;
use crate::ending::{Ending, Usage};
use crate::graph::report::print_graph;
use crate::graph::{Progress, drive, print_notice};
use crate::output::note;

pub(super) fn run(options: &Record, uris: &[Uri], file: &Path) -> Result<Ending> {
    refuse(options, uris)?;
    let set = RecordingSet::create(file, options.overwrite)?;
    let count = uris.len();
    let recording = RecordOptions {
        duration: options.duration,
        overwrite: options.overwrite,
        buffer_bytes: Some(options.buffer / count),
        write_method: options.write_by.unwrap_or_default(),
        bytes_max: options.max_size.map(|bytes| (bytes / count) as u64),
        ..RecordOptions::default()
    };
    let to = SinkOptions { recording, ..SinkOptions::default() };
    let paths: Vec<PathBuf> = (1..=count).map(|number| set.recording(number)).collect();
    // Unwritable files are reported before a source is opened, because senders may be waiting for it.
    let sinks = paths.iter().map(|path| open_sink(&Uri::File(path.clone()), &to, &mut print_notice));
    let sinks = sinks.collect::<Result<Vec<_>, _>>()?;
    let mut graph = Graph::new();
    let mut recorders = Vec::new();
    for (number, (uri, sink)) in (1..).zip(uris.iter().zip(sinks)) {
        let recorder = format!("recorder {number}");
        let source = graph.add_boxed(format!("source {number}"), open(uri, options)?.stage);
        let sink = graph.add_boxed(recorder.clone(), sink.stage);
        graph.connect(source, sink, QueueOptions::block(QUEUE_BATCHES));
        recorders.push(recorder);
    }
    let mut begun = set.begin(&paths)?;
    let tied = &mut begun;
    let driven = thread::scope(|scope| {
        let (over, is_over) = channel();
        scope.spawn(move || tie_as_they_begin(tied, &is_over));
        let sources = uris.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
        let progress = Progress::of(recorders[0].clone()).waiting_for(waits_for(sources, options));
        let driven = drive("record", graph, &progress, options.metrics.clone());
        drop(over);
        driven
    });
    let (snapshot, ending) = match driven {
        Ok(driven) => driven,
        Err(error) => {
            begun.put_back()?;
            return Err(error);
        }
    };
    let samples = |name: &String| snapshot.stage(name).map_or(0, |stage| stage.samples_in);
    let (made, unwritten): (Vec<_>, Vec<_>) =
        paths.into_iter().zip(&recorders).partition(|(_, recorder)| samples(recorder) > 0);
    let made: Vec<PathBuf> = made.into_iter().map(|(path, _)| path).collect();
    if made.is_empty() {
        begun.put_back()?;
    }
    let (collection, untied) = match (!made.is_empty()).then(|| set.tie(&made)).transpose() {
        Ok(collection) => (collection, None),
        Err(error) => (None, Some(error)),
    };
    let ending = match (ending, untied) {
        (Ok(_), Some(error)) => Err(error.into()),
        (Ok(Ending::Good), None) if !unwritten.is_empty() => {
            let names: Vec<String> = unwritten.iter().map(|(path, _)| path.display().to_string()).collect();
            Err(anyhow!("no sample was recorded: {} was not written", names.join(", ")))
        }
        (ending, _) => ending,
    };
    let stated: Vec<(PathBuf, Vec<AxisTime>)> = made.into_iter().map(axes).collect();
    let recorders = recorders.iter().map(String::as_str);
    let ending = print_graph(recorders, &snapshot, ending, options.json, |report| {
        let recordings = stated.iter().map(|(path, axes)| json!({ "file": path, "axes": axes }));
        report["collection"] = json!(collection);
        report["recordings"] = recordings.collect();
    });
    if options.json {
        return ending;
    }
    for (path, axes) in &stated {
        let words: Vec<String> = axes.iter().map(axis_words).collect();
        let words = if words.is_empty() { "not known".to_owned() } else { words.join("; ") };
        note!("{}: time axis {words}", path.display());
    }
    if let Some(collection) = collection {
        note!("{} opens them side by side", collection.display());
    }
    ending
}

/// Writes the collection once the first samples are on disk, so that a killed recorder leaves one.
fn tie_as_they_begin(begun: &mut BegunSet<'_>, is_over: &Receiver<()>) {
    while is_over.recv_timeout(TIED_EVERY) == Err(RecvTimeoutError::Timeout) {
        // The end of the recording reports errors.
        if begun.tie().unwrap_or(true) {
            return;
        }
    }
}

/// Times of the first sample by the clocks of hosts, if known.
fn axes(path: PathBuf) -> (PathBuf, Vec<AxisTime>) {
    let file = SampleFile::open(&path);
    let axes =
        file.map(|file| file.axis_clocks().into_iter().filter_map(|clock| file.axis_by(clock, 0)).collect());
    (path, axes.unwrap_or_default())
}

/// Refuses options that need a single stream.
fn refuse(options: &Record, uris: &[Uri]) -> Result<()> {
    let of_one = [
        (options.ring.is_some(), "--ring"),
        (options.rotate.is_some(), "--rotate"),
        (options.name.is_some(), "--name"),
        (options.trigger.on_trigger.is_some(), "--on-trigger"),
    ];
    if let Some((_, name)) = of_one.into_iter().find(|(is_set, _)| *is_set) {
        return Err(Usage(format!("{name} needs a single stream: record each with its own command")).into());
    }
    if uris.len() > STREAMS_MAX {
        let what = format!("{} streams: give at most {STREAMS_MAX}", uris.len());
        return Err(Usage(what).into());
    }
    match uris.iter().filter(|uri| uri.traits().is_pipe).count() {
        0 | 1 => Ok(()),
        _ => Err(Usage("pipe: is given twice, but there is one standard input".to_owned()).into()),
    }
}

pub(super) const ONE_PLACE: &str = "--to needs a single stream: give NAME.sigmf-meta after several streams";
const TIED_EVERY: Duration = Duration::from_millis(100);
/// Each stream has a thread and memory.
const STREAMS_MAX: usize = 64;
