//! A generator, three transforms that read and write every sample, and a sink that hashes every byte: as stages on one thread,
//! as stages on a thread each, and as one plain loop. And one source with two consumers: a fast one under `block`, and one that
//! sleeps for each frame under `drop_oldest`; against the fast one alone.

use std::hint::black_box;
use std::time::{Duration, Instant};

use grebe_flow::{Graph, QueueOptions, Snapshot, telemetry};
use grebe_frame::{BatchPool, Header};
use grebe_process::synth::{ChannelSpec, Generator, Wave};

use super::beside::{Beside, Compared};
use super::stages::{CHANGES, CHUNK_BYTES, Hash, RATE_HZ, Sleeper, Transform, block_samples, synth, timed};
use crate::error::{Error, Result};
use crate::row::{Progress, Tell};
use crate::system;

pub(super) fn run(duration: Duration, repeats: usize, tell: Tell) -> Result<()> {
    let block = u64::from(block_samples(1));
    let samples = (duration.as_secs_f64() * EXPECTED_SPS) as u64 / block * block;
    for (case, is_fused) in [("one thread", true), ("one thread per stage", false)] {
        let (mut dropped, mut copied) = (0, 0);
        let (mut ours, mut theirs) = (0, 0);
        let of = Beside { bench: "chain", case, unit: "GSPS", baseline: "one loop", pairs: repeats };
        let staged = || {
            let (snapshot, gsps, hash) = staged(samples, is_fused)?;
            ours = hash;
            dropped += snapshot.dropped_frames();
            copied += snapshot.stages.iter().map(|stage| stage.copied_frames).sum::<u64>();
            Ok(gsps)
        };
        let looped = || {
            let (gsps, hash) = looped(samples)?;
            theirs = hash;
            Ok(gsps)
        };
        let compared = Compared::measure(of, staged, looped)?;
        if ours != theirs {
            return Err(Error::wrong(
                "chain",
                format!("the stages' hash is {ours:x}, the loop's {theirs:x}"),
            ));
        }
        let note = format!("{dropped} dropped, {copied} copied, hashes equal");
        // A loop on each core that there is a stage for.
        let cores = if is_fused { 1 } else { system::cores().len().clamp(1, STAGES) };
        let of_limit = compared.ratio / cores as f64;
        let (least, bound) = match is_fused {
            true => (0.75, ">= 75 % of the loop, 0 dropped"),
            false => (0.6, ">= 60 % of the loop, 0 dropped"),
        };
        let goal = ("rate", bound, compared.ratio >= least && dropped == 0);
        tell(Progress::Row(&compared.row(&note, Some(of_limit), goal)));
    }
    Ok(())
}

/// The graph's counts, billions of samples per second, and the hash.
fn staged(samples: u64, is_fused: bool) -> Result<(Snapshot, f64, u64)> {
    let (hash, result) = Hash::new();
    let mut graph = Graph::new();
    let mut last = graph.add("synth", synth(1, |_| Wave::Sine, samples)?);
    let mut connect = |graph: &mut Graph, to| {
        if is_fused {
            graph.fuse(last, to);
        } else {
            graph.connect(last, to, QueueOptions::block(QUEUE_BATCHES));
        }
        last = to;
    };
    for (name, change) in ["offset", "gain", "inversion"].into_iter().zip(CHANGES) {
        let stage = graph.add(name, Transform(change));
        connect(&mut graph, stage);
    }
    let sink = graph.add("hash", hash);
    connect(&mut graph, sink);
    let (took, snapshot) = timed(graph)?;
    let arrived = snapshot.stage("hash").map_or(0, |stage| stage.samples_in);
    if arrived != samples {
        return Err(Error::wrong("chain", format!("{arrived} of {samples} samples arrived")));
    }
    let (hash, _) = result.recv().map_err(|_| Error::wrong("chain", "nothing was hashed"))?;
    Ok((snapshot, samples as f64 / took.as_nanos() as f64, hash))
}

/// The same work on the same frames without stages: no queue, no counters, no lease handed on.
fn looped(samples: u64) -> Result<(f64, u64)> {
    let spec = ChannelSpec { wave: Wave::Sine, frequency_hz: 1e6, ..ChannelSpec::default() };
    let generator = Generator::new(&spec, RATE_HZ)?;
    let mut pool = BatchPool::new(1, CHUNK_BYTES);
    let (mut hash, mut first_sample_index) = (0, 0);
    let began = Instant::now();
    while first_sample_index < samples {
        let Some(mut batch) = pool.acquire() else { break };
        let header = Header {
            sequence: first_sample_index,
            channel_count: 1,
            block_length_samples: block_samples(1),
            first_sample_index,
            ..Header::default()
        };
        let filled = batch.push::<i16>(&header, |_, out| {
            generator.fill(first_sample_index, out);
            CHANGES.iter().for_each(|change| black_box(change)(out));
        });
        filled.map_err(|_| Error::wrong("chain", "a frame does not fit"))?;
        hash = batch.frames().fold(hash, |hash, frame| Hash::add(hash, frame.payload()));
        first_sample_index += u64::from(block_samples(1));
    }
    Ok((samples as f64 / began.elapsed().as_nanos() as f64, hash))
}

pub(super) fn fan_out(duration: Duration, repeats: usize, tell: Tell) -> Result<()> {
    let block = u64::from(block_samples(1));
    let samples = (duration.as_secs_f64() * EXPECTED_SPS) as u64 / block * block;
    let (mut dropped, mut slept) = (0, 0);
    let of = Beside {
        bench: "fan_out",
        case: "beside one that sleeps 100 ms per frame",
        unit: "GSPS",
        baseline: "alone",
        pairs: repeats.max(24),
    };
    let beside = || {
        let run = consume(samples, true)?;
        (dropped, slept) = (dropped + run.dropped, slept + run.slept);
        Ok(run.gsps)
    };
    let compared = Compared::measure(of, beside, || Ok(consume(samples, false)?.gsps))?;
    let note = format!("the sleeping one took {slept} frames, {dropped} were dropped for it (drop_oldest)");
    let is_met = compared.interval.is_some_and(|(_, high)| high >= 1.0);
    compared.tell(tell, &note, ("rate", "no slower than alone", is_met));
    Ok(())
}

struct Consumed {
    gsps: f64,
    /// Frames that the slow one's queue dropped, and those it took.
    dropped: u64,
    slept: u64,
}

fn consume(samples: u64, has_sleeper: bool) -> Result<Consumed> {
    let (hash, done) = Hash::new();
    let mut graph = Graph::new();
    let source = graph.add("synth", synth(1, |_| Wave::Sine, samples)?);
    let fast = graph.add("fast", hash);
    graph.connect(source, fast, QueueOptions::block(8));
    if has_sleeper {
        let slow = graph.add("slow", Sleeper(Duration::from_millis(100)));
        graph.connect(source, slow, QueueOptions::drop_oldest(4));
    }
    let began = Instant::now();
    let running = graph.start()?;
    let published = telemetry::publish(&running, "bench").ok();
    let (_, at) = done.recv().map_err(|_| Error::wrong("fan_out", "the fast consumer did not end"))?;
    let snapshot = running.stop()?;
    drop(published);
    let taken = |name: &str| snapshot.stage(name).map_or(0, |stage| stage.samples_in);
    if taken("fast") != samples {
        let what = format!("{} of {samples} samples reached the fast consumer", taken("fast"));
        return Err(Error::wrong("fan_out", what));
    }
    let slow = snapshot.queues.iter().find(|queue| queue.to == "slow");
    Ok(Consumed {
        gsps: samples as f64 / at.duration_since(began).as_nanos() as f64,
        dropped: slow.map_or(0, |queue| queue.dropped_frames),
        slept: snapshot.stage("slow").map_or(0, |stage| stage.frames_in),
    })
}

const EXPECTED_SPS: f64 = 3e9;
/// Small: what is in flight stays in the caches.
const QUEUE_BATCHES: usize = 4;
/// Stages of the chain.
const STAGES: usize = 5;
