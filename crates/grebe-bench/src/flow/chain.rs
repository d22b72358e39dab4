//! A generator, three transforms that read and write every sample, and a sink that hashes every byte: as stages on one thread,
//! as stages on a thread each, and as one plain loop.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use grebe_flow::{Graph, QueueOptions};
use grebe_frame::{BatchPool, Header};
use grebe_stages::synth::{ChannelSpec, Generator, Wave};

use super::pairs::{Beside, compare};
use super::stages::{CHANGES, CHUNK_BYTES, Hash, RATE_HZ, Transform, block_samples, synth, timed};
use crate::error::{Error, Result};
use crate::row::{Progress, Tell};

pub(super) fn run(duration: Duration, repeats: usize, tell: Tell) -> Result<()> {
    let block = u64::from(block_samples(1));
    let samples = (duration.as_secs_f64() * EXPECTED_SPS) as u64 / block * block;
    for (case, is_fused) in [("one thread", true), ("one thread per stage", false)] {
        let (mut hashes, mut dropped, mut copied) = ((0, 0), 0, 0);
        let of = Beside { bench: "chain", case, unit: "GSPS", baseline: "one loop", pairs: repeats };
        let compared = compare(
            of,
            || {
                let run = staged(samples, is_fused)?;
                (hashes.0, dropped, copied) = (run.hash, dropped + run.dropped, copied + run.copied);
                Ok(run.gsps)
            },
            || {
                let (gsps, hash) = looped(samples)?;
                hashes.1 = hash;
                Ok(gsps)
            },
        )?;
        if hashes.0 != hashes.1 {
            let what = format!("the stages' hash is {:x}, the loop's {:x}", hashes.0, hashes.1);
            return Err(Error::Wrong { bench: "chain", what });
        }
        let note = format!("{dropped} dropped, {copied} copied, hashes equal");
        let is_met = compared.ours.median >= 2.0 && dropped == 0;
        let row = compared.row(&note, ("rate", ">= 2 GSPS, 0 dropped".to_owned(), is_met));
        tell(Progress::Row(&row));
    }
    Ok(())
}

struct Staged {
    gsps: f64,
    hash: u64,
    dropped: u64,
    copied: u64,
}

fn staged(samples: u64, is_fused: bool) -> Result<Staged> {
    let result = Arc::new(AtomicU64::new(0));
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
    let sink = graph.add("hash", Hash::to(result.clone()));
    connect(&mut graph, sink);
    let (took, snapshot) = timed(graph)?;
    let arrived = snapshot.stage("hash").map_or(0, |stage| stage.samples_in);
    if arrived != samples {
        return Err(Error::Wrong { bench: "chain", what: format!("{arrived} of {samples} samples arrived") });
    }
    Ok(Staged {
        gsps: samples as f64 / took.as_nanos() as f64,
        hash: result.load(Ordering::Relaxed),
        dropped: snapshot.dropped_frames(),
        copied: snapshot.stages.iter().map(|stage| stage.copied_frames).sum(),
    })
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
        let filled = batch.push(&header, |_, out| {
            generator.fill(first_sample_index, out);
            CHANGES.iter().for_each(|change| black_box(change)(out));
        });
        filled.map_err(|_| Error::Wrong { bench: "chain", what: "a frame does not fit".to_owned() })?;
        hash = batch.frames().fold(hash, |hash, frame| Hash::add(hash, frame.payload()));
        first_sample_index += u64::from(block_samples(1));
    }
    Ok((samples as f64 / began.elapsed().as_nanos() as f64, hash))
}

const EXPECTED_SPS: f64 = 3e9;
/// Small: what is in flight stays in the caches.
const QUEUE_BATCHES: usize = 4;
