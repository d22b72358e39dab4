//! A stage that decimates to minima and maxima, free running, against its loop alone on memory that the other core has
//! just written. The C++ original reached 17 % of that.

use std::hint::black_box;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use grebe_flow::{Context, Graph, Inputs, Outcome, Outputs, QueueOptions, Stage, StageResult};
use grebe_frame::{BatchPool, Header};
use grebe_process::synth::{ChannelSpec, Generator, Wave};

use super::beside::{Beside, Compared};
use super::stages::{CHUNK_BYTES, RATE_HZ, Sink, block_samples, synth, timed};
use crate::error::{Error, Result};
use crate::row::Tell;
use crate::runs::Spread;
use crate::system;

pub(super) fn run(duration: Duration, repeats: usize, tell: Tell) -> Result<()> {
    for (channels, case) in [(1, "1 channel of noise"), (4, "4 channels of noise")] {
        let block = u64::from(block_samples(channels));
        let samples = (duration.as_secs_f64() * EXPECTED_SPS) as u64 / channels as u64 / block * block;
        let mut ends = Vec::new();
        let baseline = "the loop on memory last written by the other core";
        let of = Beside { bench: "decimate", case, unit: "GSPS busy", baseline, pairs: repeats };
        let staged = || {
            let (busy_gsps, end_gsps) = staged(channels, samples)?;
            ends.push(end_gsps);
            Ok(busy_gsps)
        };
        let compared = Compared::measure(of, staged, || looped(channels, samples))?;
        let end_gsps = Spread::of(&ends).median;
        let note = format!(
            "end to end {end_gsps:.2} GSPS, {:.0} % of the loop: the generator of noise is the rest",
            end_gsps / compared.baseline.median.max(f64::MIN_POSITIVE) * 100.0
        );
        compared.tell(&mut *tell, &note, ("rate", ">= 70 % of the loop", compared.ratio >= 0.7));
    }
    Ok(())
}

/// Billions of samples per second of busy time, and of the whole run, over all channels.
fn staged(channels: usize, samples: u64) -> Result<(f64, f64)> {
    let cpus = system::two_cores();
    let mut graph = Graph::new();
    let source =
        graph.add("synth", synth(channels, |channel| Wave::Noise { seed: channel as u64 + 1 }, samples)?);
    let decimate = graph.add("decimate", Decimate::default());
    let sink = graph.add("sink", Sink);
    graph.connect(source, decimate, QueueOptions::block(IN_FLIGHT));
    graph.fuse(decimate, sink);
    if let Some((first, second)) = cpus {
        graph.pin(source, first);
        graph.pin(decimate, second);
    }
    let (took, snapshot) = timed(graph)?;
    let stage = snapshot.stage("decimate").filter(|stage| stage.samples_in == samples);
    let stage = stage.ok_or_else(|| wrong("samples are missing"))?;
    let all = samples as f64 * channels as f64;
    Ok((all / stage.busy_ns as f64, all / took.as_nanos() as f64))
}

/// Writes the extremes of each [`BIN`] samples of each channel as a frame of two samples a bin.
#[derive(Default)]
struct Decimate {
    pool: Option<BatchPool>,
    sequence: u64,
}

impl Stage for Decimate {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        let pool = self.pool.get_or_insert_with(|| BatchPool::new(8, CHUNK_BYTES));
        let mut made = ctx.acquire(pool).ok_or("no chunk for the result")?;
        for frame in batch.frames() {
            let header = frame.header();
            let bins = header.block_length_samples.div_ceil(BIN as u32);
            let smaller = Header { sequence: self.sequence, block_length_samples: bins * 2, ..header };
            made.push::<i16>(&smaller, |channel, out| {
                extremes(&frame.channel(channel).unwrap_or_default(), out);
            })?;
            self.sequence += 1;
        }
        output.send(made.freeze(), ctx);
        Ok(Outcome::Produced)
    }
}

#[inline]
fn extremes(samples: &[i16], out: &mut [i16]) {
    for (bin, pair) in samples.chunks(BIN).zip(out.chunks_exact_mut(2)) {
        (pair[0], pair[1]) = grebe_scope::min_max(bin);
    }
}

/// The loop on blocks that another thread, on the other core, wrote and handed over: as many as the queue holds at a time.
fn looped(channels: usize, samples: u64) -> Result<f64> {
    let cpus = system::two_cores();
    let block = block_samples(channels) as usize;
    let all = samples * channels as u64;
    let blocks = all / (block * channels) as u64;
    let (full, filled) = sync_channel::<Vec<i16>>(IN_FLIGHT);
    let (empty, emptied) = sync_channel::<Vec<i16>>(IN_FLIGHT);
    for _ in 0..IN_FLIGHT {
        empty.send(vec![0; block * channels]).map_err(|_| wrong("no room for the blocks"))?;
    }
    let spec = |seed| ChannelSpec { wave: Wave::Noise { seed }, ..ChannelSpec::default() };
    let generators: Vec<Generator> =
        (1..=channels as u64).map(|seed| Generator::new(&spec(seed), RATE_HZ)).collect::<Result<_, _>>()?;
    let mut spent = Duration::ZERO;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            system::stay_on(cpus.map(|(first, _)| first));
            for index in 0..blocks {
                let Ok(mut samples) = emptied.recv() else { return };
                for (generator, out) in generators.iter().zip(samples.chunks_exact_mut(block)) {
                    generator.fill(index * block as u64, out);
                }
                if full.send(samples).is_err() {
                    return;
                }
            }
        });
        let before = system::stay_on(cpus.map(|(_, second)| second));
        let mut out = vec![0; block.div_ceil(BIN) * 2];
        for samples in filled {
            let began = Instant::now();
            for channel in samples.chunks_exact(block) {
                extremes(black_box(channel), &mut out);
                black_box(&mut out);
            }
            spent += began.elapsed();
            // The writer may be done already.
            let _ = empty.send(samples);
        }
        system::go_back(before);
    });
    Ok((blocks * (block * channels) as u64) as f64 / spent.as_nanos() as f64)
}

fn wrong(what: &str) -> Error {
    Error::wrong("decimate", what)
}

const BIN: usize = 256;
const IN_FLIGHT: usize = 8;
const EXPECTED_SPS: f64 = 2e9;
