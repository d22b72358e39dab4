//! Source with a generator (`synth:`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult, UtcClock};
use grebe_frame::{BatchMut, BatchPool, Description, HEADER_BYTES, Header, MAX_CHANNELS, SampleFormat};

use super::generator::Generator;
use super::wave::ChannelSpec;
use crate::error::Error;
use crate::stream::{CHUNK_BYTES, LOOK_INTERVAL, Pacer};

/// Options of a [`SynthSource`].
#[derive(Debug, Clone)]
pub struct SynthOptions {
    /// Sample format.
    pub format: SampleFormat,
    /// One waveform per channel, 1 to 255.
    pub channels: Vec<ChannelSpec>,
    /// Samples per second and channel.
    pub rate_hz: f64,
    /// Whether the stream keeps to the rate; otherwise it runs as fast as its consumers accept.
    pub paced: bool,
    /// Samples per channel and frame ([`block_length`](crate::stream::block_length)).
    pub block_samples: u32,
    /// Samples per channel after which the stream ends.
    pub samples: Option<u64>,
    /// Maximum time that a finished block waits for others.
    pub flush_every: Duration,
}

/// Makes frames of synthetic signals, paced to the rate, and relates the stamping clock to UTC.
///
/// A generator more than 100 ms behind its rate drops the late samples and counts them in every later header
/// (`sg_drops_total`), because a real-time stream does not wait.
#[derive(Debug)]
pub struct SynthSource {
    generators: Vec<Generator>,
    options: SynthOptions,
    counters: Counted,
    pool: Option<BatchPool>,
    /// Pool to use instead of its own, until the first step takes it.
    given: Option<BatchPool>,
    pacer: Option<Pacer>,
    clock: UtcClock,
    centre_frequency_hz: Option<f64>,
    sequence: u64,
    next_sample: u64,
    dropped_samples: u64,
    control: SynthControl,
    is_paused: bool,
}

/// Changes the settings of a running [`SynthSource`] from any thread. Clones control the same one.
#[derive(Debug, Clone, Default)]
pub(super) struct SynthControl(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Checked once per step without the lock.
    is_changed: AtomicBool,
    wanted: Mutex<Wanted>,
}

/// Settings from the next block on. Sample indices continue.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// New settings for the same channels, with generators made in the caller's thread, which may take some
    /// 20 ms per channel.
    pub(super) remade: Option<(SynthOptions, Vec<Generator>)>,
    /// Pauses without omitting a sample.
    pub(super) is_paused: bool,
    pub(super) is_ended: bool,
}

impl SynthControl {
    pub(super) fn change(&self, change: impl FnOnce(&mut Wanted)) {
        change(&mut self.wanted());
        self.0.is_changed.store(true, Ordering::Release);
    }

    /// Takes the changed settings, if any.
    fn take_change(&self) -> Option<Wanted> {
        if !self.0.is_changed.swap(false, Ordering::Acquire) {
            return None;
        }
        let mut wanted = self.wanted();
        let Wanted { remade, is_paused, is_ended } = &mut *wanted;
        Some(Wanted { remade: remade.take(), is_paused: *is_paused, is_ended: *is_ended })
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        // Each change leaves valid values, even if the lock is poisoned.
        self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SynthOptions {
    /// Makes a generator per channel.
    pub(super) fn generators(&self) -> Result<Vec<Generator>, Error> {
        let setting = |what, got: String, must| Err(Error::Setting { what, got, must });
        if self.channels.is_empty() || self.channels.len() > MAX_CHANNELS as usize {
            return setting("number of channels", self.channels.len().to_string(), "give 1 to 255");
        }
        let frame_bytes =
            HEADER_BYTES + self.block_samples as usize * self.channels.len() * self.format.bytes();
        if self.block_samples == 0 || frame_bytes > CHUNK_BYTES {
            return setting("block length", self.block_samples.to_string(), "a frame must fit into 64 KiB");
        }
        self.channels.iter().map(|spec| Generator::of_format(spec, self.rate_hz, self.format)).collect()
    }
}

impl SynthSource {
    /// Makes a source of these channels.
    ///
    /// # Errors
    /// A setting out of range.
    pub fn new(options: SynthOptions) -> Result<Self, Error> {
        let generators = options.generators()?;
        Ok(Self {
            control: SynthControl::default(),
            generators,
            options,
            counters: Counted::default(),
            pool: None,
            given: None,
            pacer: None,
            clock: UtcClock::default(),
            centre_frequency_hz: None,
            sequence: 0,
            next_sample: 0,
            dropped_samples: 0,
            is_paused: false,
        })
    }

    /// Control handle for changes while it runs.
    pub(super) fn control(&self) -> SynthControl {
        self.control.clone()
    }

    /// Uses this pool instead of its own, for example in memory that other processes read. Its chunks need at
    /// least 64 KiB.
    pub fn pool(mut self, pool: BatchPool) -> Self {
        self.given = Some(pool);
        self
    }

    /// States the frequency that 0 Hz stands for; the samples stay the same.
    pub(super) fn centre_frequency_hz(self, hertz: Option<f64>) -> Self {
        Self { centre_frequency_hz: hertz, ..self }
    }

    /// Applies changed settings.
    fn adopt(&mut self, wanted: Wanted) {
        self.is_paused = wanted.is_paused;
        if wanted.is_ended {
            self.options.samples = Some(self.next_sample);
        }
        if let Some((options, generators)) = wanted.remade {
            self.options = SynthOptions { samples: self.options.samples, ..options };
            self.generators = generators;
        }
        // Samples due during the pause are neither made nor lost, because the schedule starts anew.
        self.pacer = None;
    }

    /// Samples per channel until the stream ends.
    fn samples_left(&self) -> u64 {
        self.options.samples.unwrap_or(u64::MAX).saturating_sub(self.next_sample)
    }

    fn next_block(&self) -> u64 {
        u64::from(self.options.block_samples).min(self.samples_left())
    }

    /// Header of the next frame with this number of samples; 0 for the end of the stream.
    fn header(&self, block_samples: u32) -> Header {
        Header {
            format: self.options.format,
            sequence: self.sequence,
            producer_ts_ns: self.stamp_ns(),
            channel_count: self.generators.len() as u32,
            block_length_samples: block_samples,
            sample_rate_hz: self.options.rate_hz,
            sg_drops_total: self.dropped_samples,
            first_sample_index: self.next_sample,
        }
    }

    /// Due time of the next sample.
    fn stamp_ns(&self) -> u64 {
        self.pacer.as_ref().map_or(0, |pacer| pacer.stamp_ns(self.next_sample))
    }

    /// End of the blocks that travel together, within the flush interval.
    fn together(&self) -> u64 {
        let interval = (self.options.rate_hz * self.options.flush_every.as_secs_f64()) as u64;
        self.next_sample + self.next_block().max(interval.min(self.samples_left()))
    }

    /// Drops samples that are too late.
    fn skip_what_is_late(&mut self, due_samples: u64) {
        let late = due_samples.saturating_sub(self.next_sample).min(self.samples_left());
        // Blocks that travel together are due together, and not late.
        let together = self.together() - self.next_sample;
        if late as f64 > self.options.rate_hz * BACKLOG_S_MAX + together as f64 {
            self.next_sample += late;
            self.dropped_samples += late;
            self.counters.dropped_samples.set(self.dropped_samples);
        }
    }

    /// Fills the batch with the due blocks.
    fn fill(&mut self, batch: &mut BatchMut, due_samples: u64) {
        loop {
            let block = self.next_block();
            if block == 0 || due_samples.saturating_sub(self.next_sample) < block {
                return;
            }
            let header = self.header(block as u32);
            let generators = &self.generators;
            let first = header.first_sample_index;
            let filled = if header.format == SampleFormat::I16 {
                batch.push::<i16>(&header, |channel, samples| generators[channel].fill(first, samples))
            } else {
                batch.push_bytes(&header, |channel, bytes| generators[channel].fill_bytes(first, bytes))
            };
            if filled.is_err() {
                return;
            }
            self.sequence += 1;
            self.next_sample += block;
        }
    }
}

impl Stage for SynthSource {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if let Some(wanted) = self.control.take_change() {
            self.adopt(wanted);
        }
        if self.samples_left() == 0 {
            return Ok(Outcome::End);
        }
        if self.is_paused {
            ctx.sleep_until(Instant::now() + LOOK_INTERVAL);
            return Ok(Outcome::Produced);
        }
        let rate_hz = if self.options.paced { self.options.rate_hz } else { 0.0 };
        let (next, together) = (self.next_sample + self.next_block(), self.together());
        let pacer = self.pacer.get_or_insert_with(|| Pacer::start(rate_hz, self.next_sample));
        let Some(due_samples) = pacer.due_samples(next, together) else {
            pacer.sleep_until_due(together, ctx);
            return Ok(Outcome::Produced);
        };
        if !pacer.is_free() {
            self.skip_what_is_late(due_samples);
        }
        let pool = self.pool.get_or_insert_with(|| {
            let own = || BatchPool::new(ctx.batches_in_flight(), CHUNK_BYTES);
            let mut pool = self.given.take().unwrap_or_else(own);
            pool.wake_on_return(ctx.signal().clone());
            pool
        });
        let stamp_ns = self.pacer.as_ref().map_or(0, |pacer| pacer.stamp_ns(self.next_sample));
        if let Some(clock) = self.clock.renewed(stamp_ns) {
            pool.describe(Some(Arc::new(Description {
                first_sample_index: self.next_sample,
                clock: Some(clock),
                centre_frequency_hz: self.centre_frequency_hz,
                ..Description::default()
            })));
        }
        let Some(mut batch) = ctx.acquire(pool) else { return Ok(Outcome::Produced) };
        self.fill(&mut batch, due_samples);
        if !batch.is_empty() {
            output.send(batch.freeze(), ctx);
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        ctx.set_end_of_stream(self.header(0));
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

grebe_flow::counters! {
    struct Counted { dropped_samples }
}
const BACKLOG_S_MAX: f64 = 0.1;
