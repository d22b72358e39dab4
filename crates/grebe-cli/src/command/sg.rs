//! `grebe sg`: generate signals and send them.

use anyhow::Result;
use grebe_flow::{Count, RateHz, Time};
use grebe_stages::{Error, SinkOptions, SourceOptions, Synth, Uri, WaveName, open_sink, open_source};

use crate::cli::Sg;
use crate::ending::{Ending, Usage};
use crate::generator;
use crate::graph::{Pair, SEND_QUEUE_BATCHES, end_with_stdin, tell};
use crate::interrupt;

pub(crate) fn run(options: &Sg) -> Result<Ending> {
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
    let sink = open_sink(&options.to, &to, &mut tell)?;
    transport.datagram_bytes = Some(sink.datagram_bytes);
    let from =
        SourceOptions { transport, synth: synth(options)?, pool: sink.pool, ..SourceOptions::default() };
    let source = open_source(&Uri::Synth, from, &mut tell)?;
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
        ..Synth::default()
    })
}

fn wave(name: &str) -> Result<WaveName> {
    name.parse().map_err(|error: Error| Usage(format!("{error}, or the path of a recording")).into())
}
