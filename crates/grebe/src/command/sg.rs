//! `grebe sg`: generate signals and send them.

use std::path::PathBuf;

use anyhow::Result;
use grebe_flow::{Graph, QueueOptions};
use grebe_stages::synth::{ChannelSpec, Wave};
use grebe_stages::{SynthOptions, SynthSource, Uri, block_length};

use super::{Ending, Usage, drive};
use crate::cli::{Play, Sg, Transport};
use crate::progress::Progress;
use crate::{command, report, stream};

pub fn run(options: &Sg) -> Result<Ending> {
    if let Some(file) = recording(options) {
        let play = Play {
            file,
            to: options.to.clone(),
            speed: 1.0,
            repeat: true,
            tethered: options.tethered,
            transport: options.transport.clone(),
            json: options.json,
        };
        return command::play::run(&play);
    }
    if options.tethered {
        command::tether();
    }
    let (sink, pool) = stream::sink_with_pool(&options.to, &options.transport)?;
    let mut source = source(options, sink.datagram_bytes)?;
    if let Some(pool) = pool {
        source = source.pool(pool);
    }
    let mut graph = Graph::new();
    let source = graph.add("generator", source);
    let sink = graph.add_boxed("sender", sink.stage);
    graph.connect(source, sink, QueueOptions::block(QUEUE_BATCHES));
    let (snapshot, ending) = drive(graph, &Progress::of("generator"))?;
    report::print("sent", "sender", &snapshot, options.json);
    Ok(ending)
}

/// The generator that the options describe, for datagrams of this size.
pub fn source(options: &Sg, datagram_bytes: usize) -> Result<SynthSource> {
    let channels = usize::from(options.channels);
    let samples = match (options.samples, options.duration) {
        (Some(samples), _) => Some(samples),
        (None, Some(duration)) => Some((duration.as_secs_f64() * options.rate).round() as u64),
        (None, None) => None,
    };
    Ok(SynthSource::new(SynthOptions {
        channels: (0..channels).map(|channel| spec(options, channel)).collect::<Result<_>>()?,
        rate_hz: options.rate,
        paced: !options.free_run,
        block_samples: block_length(datagram_bytes, channels, options.rate),
        samples,
        flush_every: options.transport.latency / 4,
    })?)
}

/// The generator of `synth:`, as `sg` makes it by default.
pub fn default_source(transport: &Transport, datagram_bytes: usize) -> Result<SynthSource> {
    let options = Sg {
        to: Uri::Synth,
        channels: 4,
        rate: 1e6,
        wave: vec!["sine".to_owned()],
        frequency: Vec::new(),
        phase: Vec::new(),
        amplitude: Vec::new(),
        samples: None,
        duration: None,
        free_run: false,
        tethered: false,
        transport: transport.clone(),
        json: false,
    };
    source(&options, datagram_bytes)
}

fn spec(options: &Sg, channel: usize) -> Result<ChannelSpec> {
    let doubled = f64::from(1u32 << channel);
    // Slightly off the grid of the time axis, so that a free-running picture moves.
    let default_hz = options.rate / 2500.0 * doubled;
    let frequency_hz = of_channel(&options.frequency, channel).unwrap_or(default_hz);
    let wave = options.wave.get(channel % options.wave.len().max(1)).map_or("sine", String::as_str);
    Ok(ChannelSpec {
        wave: parse_wave(wave, channel, options.rate)?,
        frequency_hz,
        phase_turns: of_channel(&options.phase, channel).unwrap_or(0.0) / 360.0,
        amplitude: of_channel(&options.amplitude, channel).unwrap_or(0.8),
        offset: 0.0,
    })
}

/// The value for this channel: its own, or the only one there is.
fn of_channel(values: &[f64], channel: usize) -> Option<f64> {
    match values {
        [only] => Some(*only),
        _ => values.get(channel).copied(),
    }
}

fn parse_wave(name: &str, channel: usize, rate_hz: f64) -> Result<Wave> {
    Ok(match name {
        "sine" => Wave::Sine,
        "square" => Wave::Square,
        "triangle" => Wave::Triangle,
        "saw" | "sawtooth" => Wave::Saw,
        "chirp" => Wave::Chirp { end_hz: rate_hz / 20.0, sweep_s: 20_000.0 / rate_hz },
        "noise" => Wave::Noise { seed: channel as u64 + 1 },
        _ => {
            let known = "sine, square, triangle, saw, chirp, noise, or the path of a recording";
            return Err(Usage(format!("'{name}' is no waveform: use {known}")).into());
        }
    })
}

/// The recording that `--wave` names.
fn recording(options: &Sg) -> Option<PathBuf> {
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
