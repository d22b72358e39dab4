//! `grebe play`: sends recordings, as one stream or as a stream each.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Result, anyhow};
use grebe_flow::{Graph, Kind, QueueOptions, Site, Stage};
use grebe_process::Demodulate;
use grebe_recording::SampleFile;
use grebe_stages::{OpenSource, SinkOptions, SourceOptions, Uri, open_file, open_in_step, open_sink};

use super::convert;
use crate::cli::{Play, SPEAKER, Sound, TimeFrequencyBox};
use crate::ending::{Ending, Usage};
use crate::graph::report::print_graph;
use crate::graph::{
    About, Destination, Pair, Progress, SEND_QUEUE_BATCHES, check_standard_output, drive, end_with_stdin,
    print_notice,
};
use crate::interrupt;

/// Plays to the end, or until it is interrupted.
pub(crate) fn run(options: &Play) -> Result<Ending> {
    if options.tethered {
        end_with_stdin();
    }
    options.lab.configure();
    check_standard_output(&options.to, options.json)?;
    match &options.to[..] {
        [] | [_] => to_one(options),
        _ if options.name.is_some() => {
            let what = "--name needs a single stream: give one --to, or none";
            Err(Usage(what.to_owned()).into())
        }
        each => to_each(options, each),
    }
}

/// Sends the recordings as channels of one stream.
fn to_one(options: &Play) -> Result<Ending> {
    let speaker = Uri::from_str(SPEAKER)?;
    let is_heard = options.sound.demodulate.is_some() && options.to.is_empty() && options.name.is_none();
    let to = options.to.first().or(is_heard.then_some(&speaker));
    let destination = Destination::of(to, options.name.as_ref());
    let mut from = source_options(options, std::slice::from_ref(&destination.to))?;
    if is_heard && options.speed == 1.0 {
        // The device sets the pace.
        from.speed = None;
    }
    // Opens the files before a socket.
    let mut files = opened(options)?;
    let file = match files.len() {
        1 => files.remove(0),
        _ => SampleFile::side_by_side(files, options.align)?,
    };
    let to_options = sink_options(&from, Some(&file).filter(|_| options.sound.demodulate.is_none()));
    let source = open_file(file, &from, &mut print_notice)?;
    let sound = demodulator(&options.sound)?;
    let (sink, announcer) = destination.open(&to_options, &mut print_notice)?;
    let pair = Pair {
        source: ("player", source.stage),
        sink: ("sender", sink.stage),
        queue_batches: SEND_QUEUE_BATCHES,
        between: sound.map(|stage| (DEMODULATOR, stage)),
        trigger: None,
        waits_for: None,
        announcer,
        metrics: options.metrics.clone(),
        about: About::new(),
    };
    pair.run("play", &destination.to, options.json)
}

/// The stage that makes sound, if asked for.
fn demodulator(sound: &Sound) -> Result<Option<Box<dyn Stage>>> {
    let Some(mode) = sound.demodulate else { return Ok(None) };
    let kind = match sound.time_frequency_box {
        Some(TimeFrequencyBox { low_hz, high_hz, .. }) => {
            convert::leveled(Demodulate::of_band(mode, low_hz, high_hz), sound.rate)?
        }
        None => convert::demodulate(mode, sound.center, sound.bandwidth, sound.rate)?,
    };
    kind.build(&mut Site::new(DEMODULATOR)).map(Some).map_err(|error| anyhow!("{error}"))
}

/// Sends each recording to its own destination, in step.
fn to_each(options: &Play, to: &[Uri]) -> Result<Ending> {
    if options.sound.demodulate.is_some() {
        return Err(Usage("--demodulate needs a single stream: give one --to, or none".to_owned()).into());
    }
    let (files, ways) = (options.files.len(), to.len());
    if files != ways {
        let what = format!(
            "{files} recordings and {ways} destinations: give one --to for all, or one for each, in their order"
        );
        return Err(Usage(what).into());
    }
    let name = |uri: &Uri| if uri.traits().is_pipe { "pipe:".to_owned() } else { uri.to_string() };
    if let Some(number) =
        (1..ways).find(|&number| to[..number].iter().any(|it| name(it) == name(&to[number])))
    {
        let what = format!("duplicate --to {}: each recording needs its own destination", to[number]);
        return Err(Usage(what).into());
    }
    if options.free_run {
        let what =
            "--free-run cannot keep recordings in step: omit it, or send all recordings to one destination";
        return Err(Usage(what.to_owned()).into());
    }
    let from = source_options(options, to)?;
    let files = opened(options)?;
    let to_options: Vec<_> = files.iter().map(|file| sink_options(&from, Some(file))).collect();
    let sources = open_in_step(files, options.align, &from, &mut print_notice)?;
    let mut graph = Graph::new();
    let mut senders = Vec::new();
    for (number, ((OpenSource { stage, .. }, to), options)) in
        (1..).zip(sources.into_iter().zip(to).zip(&to_options))
    {
        let sink = open_sink(to, options, &mut print_notice)?;
        let sender = format!("sender {number}");
        let player = graph.add_boxed(format!("player {number}"), stage);
        let sink = graph.add_boxed(sender.clone(), sink.stage);
        graph.connect(player, sink, QueueOptions::block(SEND_QUEUE_BATCHES));
        senders.push(sender);
    }
    let (snapshot, ending) =
        drive("play", graph, &Progress::of(senders[0].clone()), options.metrics.clone())?;
    print_graph(senders.iter().map(String::as_str), &snapshot, ending, options.json, |_| ())
}

fn opened(options: &Play) -> Result<Vec<SampleFile>> {
    let _insisting = interrupt::insist();
    let open = |file: &PathBuf| SampleFile::open(file);
    Ok(options.files.iter().map(open).collect::<Result<_, _>>()?)
}

fn source_options(options: &Play, to: &[Uri]) -> Result<SourceOptions> {
    let mut transport = options.transport.options();
    // A size that all destinations can carry.
    let sizes = to.iter().map(|to| transport.datagram_bytes_to(to)).collect::<Result<Vec<_>, _>>()?;
    transport.datagram_bytes = sizes.into_iter().min();
    let boxed = options.sound.time_frequency_box;
    let (start, length) = options.range.times(|| match &options.files[..] {
        [file] => Ok(SampleFile::open(file)?),
        _ => Err(Usage("several recordings need --start and --duration as times".to_owned()).into()),
    })?;
    Ok(SourceOptions {
        transport,
        speed: (!options.free_run).then_some(options.speed),
        repeat: options.repeat,
        start: boxed.map_or(start, |it| it.start),
        length: boxed.map_or(length, |it| Some(it.end - it.start)),
        samples: options.samples,
        ..SourceOptions::default()
    })
}

/// Options of the sink; it gets the samples of `file` unchanged, if there is one.
fn sink_options(from: &SourceOptions, file: Option<&SampleFile>) -> SinkOptions {
    SinkOptions {
        transport: from.transport.clone(),
        stream: file.map(|file| (file.format(), file.channels() as u32)),
        producer: "play".to_owned(),
        cancel: interrupt::cancel(),
        ..SinkOptions::default()
    }
}

const DEMODULATOR: &str = "demodulator";
