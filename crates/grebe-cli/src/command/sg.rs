//! `grebe sg`: generate signals and send them.

use std::path::PathBuf;

use anyhow::Result;
use grebe_flow::{Count, Graph, QueueOptions, RateHz, SizeBytes, Time};
use grebe_stages::{Synth, SynthRemote, SynthSource, Uri, WaveName};

use super::{Ending, Usage, drive};
use crate::cli::{Play, Sg, Transport};
use crate::progress::Progress;
use crate::{command, generator, report, stream};

pub fn run(options: &Sg) -> Result<Ending> {
    if let Some(file) = recording(options) {
        let play = Play {
            file,
            to: options.to.clone(),
            speed: 1.0,
            repeat: true,
            tethered: options.tethered || options.remote,
            transport: options.transport.clone(),
            json: options.json,
        };
        return command::play::run(&play);
    }
    if options.tethered && !options.remote {
        command::tether();
    }
    let (sink, pool) = stream::sink_with_pool(&options.to, &options.transport)?;
    let (mut source, remote) = SynthRemote::new(synth(options, sink.datagram_bytes)?)?;
    if options.remote {
        generator::obey_stdin(remote);
    }
    if let Some(pool) = pool {
        source = source.pool(pool);
    }
    let mut graph = Graph::new();
    let source = graph.add("generator", source);
    let sink = graph.add_boxed("sender", sink.stage);
    graph.connect(source, sink, QueueOptions::block(QUEUE_BATCHES));
    let (snapshot, ending) = drive("sg", graph, &Progress::of("generator"))?;
    report::print("sent", "sender", &snapshot, options.json);
    Ok(ending)
}

/// The generator that the options describe, for datagrams of this size.
fn synth(options: &Sg, datagram_bytes: usize) -> Result<Synth> {
    let waves = options.wave.iter().map(|name| parse_wave(name)).collect::<Result<Vec<_>>>()?;
    let frequencies: Vec<RateHz> = options.frequency.iter().copied().map(RateHz).collect();
    let or = |values: &[f64], default: f64| {
        if values.is_empty() { vec![default].into() } else { values.to_vec().into() }
    };
    Ok(Synth {
        channels: u32::from(options.channels),
        rate: RateHz(options.rate),
        wave: waves.into(),
        frequency: (!frequencies.is_empty()).then(|| frequencies.into()),
        phase: or(&options.phase, 0.0),
        amplitude: or(&options.amplitude, 0.8),
        samples: options.samples.map(Count),
        duration: options.duration.map(Time),
        free_run: options.free_run,
        datagram_size: SizeBytes(datagram_bytes),
        latency: Time(options.transport.latency),
        ..Synth::default()
    })
}

/// The generator of `synth:`, as `sg` makes it by default.
pub fn default_source(transport: &Transport, datagram_bytes: usize) -> Result<(SynthSource, SynthRemote)> {
    Ok(SynthRemote::new(Synth {
        channels: 4,
        datagram_size: SizeBytes(datagram_bytes),
        latency: Time(transport.latency),
        ..Synth::default()
    })?)
}

/// The waveform of this name.
pub fn parse_wave(name: &str) -> Result<WaveName> {
    Ok(match name {
        "sine" => WaveName::Sine,
        "square" => WaveName::Square,
        "triangle" => WaveName::Triangle,
        "saw" | "sawtooth" => WaveName::Saw,
        "chirp" => WaveName::Chirp,
        "noise" => WaveName::Noise,
        _ => {
            let known = "sine, square, triangle, saw, chirp, noise, or the path of a recording";
            return Err(Usage(format!("'{name}' is no waveform: use {known}")).into());
        }
    })
}

/// The recording that `--wave` names.
pub fn recording(options: &Sg) -> Option<PathBuf> {
    match options.wave.as_slice() {
        [only] => match only.parse::<Uri>() {
            Ok(Uri::File(path)) => Some(path),
            _ => None,
        },
        _ => None,
    }
}

/// About 100 ms at 25 MS/s: the sender's system calls may stall for that long before the generator does.
pub const QUEUE_BATCHES: usize = 64;
