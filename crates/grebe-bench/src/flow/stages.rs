//! The stages that the benches are built of.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use grebe_flow::{
    Context, Graph, Inputs, Outcome, Outputs, Snapshot, Stage, StageError, StageResult, telemetry,
};
use grebe_frame::{Batch, BatchPool, Header, SampleFormat};
use grebe_process::synth::{ChannelSpec, Wave};
use grebe_process::synth::{SynthOptions, SynthSource};
use twox_hash::XxHash3_64;

use crate::error::{Error, Result};

/// Frames as large as a chunk of 64 KiB holds, as fast as they are taken.
pub(super) fn synth(channels: usize, wave: impl Fn(usize) -> Wave, samples: u64) -> Result<SynthSource> {
    let channels: Vec<ChannelSpec> = (0..channels)
        .map(|channel| ChannelSpec { wave: wave(channel), frequency_hz: 1e6, ..ChannelSpec::default() })
        .collect();
    let block_samples = block_samples(channels.len());
    Ok(SynthSource::new(SynthOptions {
        format: SampleFormat::I16,
        channels,
        rate_hz: RATE_HZ,
        paced: false,
        block_samples,
        samples: Some(samples),
        flush_every: Duration::ZERO,
    })?)
}

/// Samples per channel in such a frame: multiples of 32, so that samples are aligned.
pub(super) fn block_samples(channels: usize) -> u32 {
    let room = (CHUNK_BYTES - grebe_frame::HEADER_BYTES) / (2 * channels);
    (room / 32 * 32) as u32
}

/// Runs a graph to its end, where `grebe top` sees it, and says how long that took.
pub(super) fn timed(graph: Graph) -> Result<(Duration, Snapshot)> {
    let began = Instant::now();
    let running = graph.start()?;
    let published = telemetry::publish(&running, "bench").ok();
    let snapshot = running.wait()?;
    let took = began.elapsed();
    drop(published);
    Ok((took, snapshot))
}

/// The change that a transform makes to samples.
pub(super) type Change = fn(&mut [i16]);

/// Three of them, each reading and writing every sample: offset, gain, inversion.
pub(super) const CHANGES: [Change; 3] = [
    |samples| samples.iter_mut().for_each(|sample| *sample = sample.saturating_add(100)),
    |samples| samples.iter_mut().for_each(|sample| *sample >>= 1),
    |samples| samples.iter_mut().for_each(|sample| *sample = !*sample),
];

/// Changes samples in place.
pub(super) struct Transform(pub(super) Change);

impl Stage for Transform {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        let mut batch = batch.try_unique().map_err(|_| "this stage is the only one that reads the batch")?;
        batch.update::<i16>(|_, _, samples| (self.0)(samples))?;
        output.send(batch.freeze(), ctx);
        Ok(Outcome::Produced)
    }
}

/// Hashes every byte of every payload.
pub(super) struct Hash {
    hash: u64,
    /// Gets the hash, and when it was complete.
    done: mpsc::Sender<(u64, Instant)>,
}

impl Hash {
    pub(super) fn new() -> (Self, mpsc::Receiver<(u64, Instant)>) {
        let (done, result) = mpsc::channel();
        (Self { hash: 0, done }, result)
    }

    /// One more payload.
    #[inline]
    pub(super) fn add(hash: u64, payload: &[u8]) -> u64 {
        hash.rotate_left(1) ^ XxHash3_64::oneshot(payload)
    }
}

impl Stage for Hash {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        for frame in batch.frames() {
            self.hash = Hash::add(self.hash, frame.payload());
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> Result<(), StageError> {
        Ok(self.done.send((self.hash, Instant::now()))?)
    }
}

/// Lends the same batches over and over: what is left is the cost of handing on.
pub(super) struct Relend {
    batches: Vec<Batch>,
    next: usize,
    left: u64,
}

impl Relend {
    /// As many batches of 46 frames of 1400 bytes.
    pub(super) fn new(batches: u64) -> Result<Self> {
        Ok(Self { batches: small_frames(RELENT)?, next: 0, left: batches })
    }
}

impl Stage for Relend {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if self.left == 0 {
            return Ok(Outcome::End);
        }
        self.left -= 1;
        self.next = if self.next + 1 == self.batches.len() { 0 } else { self.next + 1 };
        output.send(self.batches[self.next].clone(), ctx);
        Ok(Outcome::Produced)
    }
}

/// Batches of [`FRAMES`] frames of 1400 bytes.
pub(super) fn small_frames(batches: usize) -> Result<Vec<Batch>> {
    let mut pool = BatchPool::new(batches, CHUNK_BYTES);
    (0..batches)
        .map(|_| {
            let mut batch = pool.acquire().ok_or_else(|| Error::wrong("hop", "a new pool has no chunk"))?;
            for sequence in 0..FRAMES {
                let header =
                    Header { sequence, channel_count: 1, block_length_samples: 668, ..Header::default() };
                let filled = batch.push::<i16>(&header, |_, samples| samples.fill(sequence as i16));
                filled.map_err(|_| Error::wrong("hop", "46 frames of 1400 bytes do not fit into 64 KiB"))?;
            }
            Ok(batch.freeze())
        })
        .collect()
}

/// Takes batches and looks at none.
pub(super) struct Sink;

impl Stage for Sink {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        Ok(if input.next().is_some() { Outcome::Produced } else { Outcome::WantsInput })
    }
}

/// Sleeps for each frame.
pub(super) struct Sleeper(pub(super) Duration);

impl Stage for Sleeper {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        for _ in batch.frames() {
            ctx.sleep_until(Instant::now() + self.0);
        }
        Ok(Outcome::Produced)
    }
}

pub(super) const CHUNK_BYTES: usize = 65_536;
pub(super) const FRAMES: u64 = 46;
pub(super) const RATE_HZ: f64 = 1e9;
const RELENT: usize = 64;
