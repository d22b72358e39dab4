//! `grebe sg`: generates signals and sends them.

use anyhow::Result;
use grebe_flow::{Count, RateHz, Time};
use grebe_process::FrequencyHz;
use grebe_process::synth::{Synth, WaveName};
use grebe_stages::{Notice, SinkOptions, SourceOptions, Uri, open_source};

use crate::cli::Sg;
use crate::ending::{Ending, Usage};
use crate::generator;
use crate::graph::{
    About, Destination, Pair, SEND_QUEUE_BATCHES, check_standard_output, end_with_stdin, print_notice,
};
use crate::interrupt;

/// Generates signals and sends them.
pub(crate) fn sg(options: &Sg) -> Result<Ending> {
    if let Some(options) = options.as_play() {
        return super::play::run(&options);
    }
    if options.tethered && !options.remote {
        end_with_stdin();
    }
    options.lab.configure();
    check_standard_output(&options.to, options.json)?;
    let mut transport = options.transport.options();
    let destination = Destination::of(options.to.as_ref(), options.name.as_ref());
    let to = SinkOptions {
        transport: transport.clone(),
        lends_pool: true,
        stream: Some((options.format.0, u32::from(options.channels))),
        producer: "sg".to_owned(),
        cancel: interrupt::cancel(),
        ..SinkOptions::default()
    };
    let bytes_per_s = options.rate * f64::from(options.channels) * options.format.0.bytes() as f64;
    let mut tell_what_matters = |notice| match notice {
        // A buffer of this length suffices.
        Notice::SmallBuffer(granted) if granted.granted_bytes as f64 > bytes_per_s * BUFFER_S => {}
        notice => print_notice(notice),
    };
    let (sink, announcer) = destination.open(&to, &mut tell_what_matters)?;
    transport.datagram_bytes = Some(sink.datagram_bytes);
    let from = SourceOptions { transport, pool: sink.pool, ..SourceOptions::default() };
    let source = open_source(&Uri::Synth(Box::new(synth(options)?)), from, &mut print_notice)?;
    if let Some(remote) = source.remote.filter(|_| options.remote) {
        generator::obey_stdin(remote);
    }
    let pair = Pair {
        source: ("generator", source.stage),
        sink: ("sender", sink.stage),
        between: None,
        queue_batches: SEND_QUEUE_BATCHES,
        trigger: None,
        waits_for: None,
        announcer,
        metrics: options.metrics.clone(),
        about: About::new(),
    };
    pair.run("sg", &destination.to, options.json)
}

/// The generator of the options.
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
        center: options.center,
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
    name.parse()
        .map_err(|error: grebe_process::Error| Usage(format!("{error}, or the path of a recording")).into())
}

/// Longer than a busy system delays a sender.
const BUFFER_S: f64 = 0.1;
