//! `grebe sg`, `grebe play`, `grebe record`: a source and a sink; `grebe convert`: a file and another.

use anyhow::Result;
use grebe_flow::{Count, RateHz, Time};
use grebe_shm::Policy;
use grebe_stages::{
    Error, FrequencyHz, Notice, SampleFile, SinkOptions, SourceOptions, Synth, Uri, WaveName, open_sink,
    open_source,
};

use crate::cli::{Convert, Play, Record, Sg};
use crate::ending::{Ending, Usage};
use crate::generator;
use crate::graph::{Pair, SEND_QUEUE_BATCHES, end_with_stdin, tell};
use crate::interrupt;
use crate::output::note;

/// `grebe sg`: generate signals and send them.
pub(crate) fn sg(options: &Sg) -> Result<Ending> {
    if let Some(options) = options.as_play() {
        return play(&options);
    }
    if options.tethered && !options.remote {
        end_with_stdin();
    }
    let mut transport = options.transport.options();
    let to = SinkOptions {
        transport: transport.clone(),
        lends_pool: true,
        cancel: interrupt::cancel(),
        ..SinkOptions::default()
    };
    let bytes_per_s = options.rate * f64::from(options.channels) * options.format.0.bytes() as f64;
    let mut tell_what_matters = |notice| match notice {
        // A buffer that lasts for so long is as good as a larger one.
        Notice::SmallBuffer(granted) if granted.granted_bytes as f64 > bytes_per_s * BUFFER_S => {}
        notice => tell(notice),
    };
    let sink = open_sink(&options.to, &to, &mut tell_what_matters)?;
    transport.datagram_bytes = Some(sink.datagram_bytes);
    let from = SourceOptions { transport, pool: sink.pool, ..SourceOptions::default() };
    let source = open_source(&Uri::Synth(Box::new(synth(options)?)), from, &mut tell)?;
    if let Some(remote) = source.remote.filter(|_| options.remote) {
        generator::obey_stdin(remote);
    }
    let pair = Pair {
        source: ("generator", source.stage),
        sink: ("sender", sink.stage),
        queue_batches: SEND_QUEUE_BATCHES,
    };
    pair.run("sg", "sent", options.json)
}

/// The generator that the options describe.
fn synth(options: &Sg) -> Result<Synth> {
    let waves = options.wave.iter().map(|name| wave(name)).collect::<Result<Vec<_>>>()?;
    let given = |values: &[FrequencyHz]| (!values.is_empty()).then(|| values.to_vec().into());
    let or = |values: &[f64], default: f64| {
        if values.is_empty() { vec![default].into() } else { values.to_vec().into() }
    };
    Ok(Synth {
        channels: u32::from(options.channels),
        rate: RateHz(options.rate),
        wave: waves.into(),
        format: options.format,
        frequency: given(&options.frequency),
        second: given(&options.second),
        symbol_rate: options.symbol_rate.map(RateHz),
        roll_off: options.roll_off,
        snr: options.snr,
        seed: options.seed,
        phase: or(&options.phase, 0.0),
        amplitude: or(&options.amplitude, 0.8),
        offset: or(&options.offset, 0.0),
        samples: options.samples.map(Count),
        duration: options.duration.map(Time),
        free_run: options.free_run,
        ..Synth::default()
    })
}

fn wave(name: &str) -> Result<WaveName> {
    name.parse().map_err(|error: Error| Usage(format!("{error}, or the path of a recording")).into())
}

/// `grebe play`: send a recording.
pub(crate) fn play(options: &Play) -> Result<Ending> {
    if options.tethered {
        end_with_stdin();
    }
    let mut transport = options.transport.options();
    transport.datagram_bytes = Some(transport.datagram_bytes_to(&options.to)?);
    // The file first: without it there is nothing to open a socket for.
    let from = SourceOptions {
        transport: transport.clone(),
        speed: (!options.free_run).then_some(options.speed),
        repeat: options.repeat,
        samples: options.samples,
        ..SourceOptions::default()
    };
    let source = open_source(&Uri::File(options.file.clone()), from, &mut tell)?;
    let to = SinkOptions { transport, cancel: interrupt::cancel(), ..SinkOptions::default() };
    let sink = open_sink(&options.to, &to, &mut tell)?;
    let pair = Pair {
        source: ("player", source.stage),
        sink: ("sender", sink.stage),
        queue_batches: SEND_QUEUE_BATCHES,
    };
    pair.run("play", "sent", options.json)
}

/// `grebe record`: write a stream to a SigMF recording.
pub(crate) fn record(options: &Record) -> Result<Ending> {
    // Where it cannot be written is said before anything is opened that others could be sending to.
    let to =
        SinkOptions { duration: options.duration, overwrite: options.overwrite, ..SinkOptions::default() };
    let sink = open_sink(&Uri::File(options.file.clone()), &to, &mut tell)?;
    let from = SourceOptions {
        transport: options.transport.options(),
        reader: "record".to_owned(),
        policy: Policy::Block,
        waits: true,
        idle_timeout: options.idle_timeout,
        samples: options.samples,
        cancel: interrupt::cancel(),
        ..SourceOptions::default()
    };
    let source = open_source(&options.uri, from, &mut tell)?;
    if let Some(address) = source.address {
        note!("listening on {address}");
    }
    let pair = Pair {
        source: ("source", source.stage),
        sink: ("recorder", sink.stage),
        queue_batches: QUEUE_BATCHES,
    };
    pair.run("record", "recorded", options.json)
}

/// Longer than a system that is busy leaves a sender waiting.
const BUFFER_S: f64 = 0.1;
/// `grebe convert`: write a recording as another kind of file.
pub(crate) fn convert(options: &Convert) -> Result<Ending> {
    let mut from = SampleFile::open(&options.from)?;
    from.notes().iter().for_each(|line| note!("grebe: {line}"));
    let files = from.save_as(&options.to, options.overwrite, &interrupt::cancel())?;
    let (channels, format, samples) = (from.channels(), from.format(), from.len_samples());
    let plural = if channels == 1 { "" } else { "s" };
    let first = files.first().unwrap_or(&options.to);
    note!("wrote {samples} samples of {channels} channel{plural} ({format}) to {}", first.display());
    Ok(Ending::Good)
}

/// 16 MiB: a disk may stall for as long as that lasts.
const QUEUE_BATCHES: usize = 256;
