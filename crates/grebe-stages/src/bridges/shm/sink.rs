//! `shm://` as a sink: lends batches to other processes without a copy.

use std::time::{Duration, Instant};

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{Batch, BatchMut, BatchPool, Header};
use grebe_link::announce::shortened_note;
use grebe_shm::{Error as ShmError, Footprint, Publisher, PublisherOptions};

use crate::error::Error;

/// Lends frames to every process that reads the stream of this name.
///
/// Batches from the stream's own pool ([`lend_pool`](Self::lend_pool)) are lent without a copy. Batches of another pool
/// are copied into it and counted.
#[derive(Debug)]
pub struct ShmSink {
    publisher: Publisher,
    /// `None` if a source writes into it.
    pool: Option<BatchPool>,
    is_new: bool,
    is_noted: bool,
    last: Option<Header>,
    copied_frames: u64,
    /// Start of the graph's shutdown.
    stopping: Option<Instant>,
    batches: u32,
    counters: Counted,
}

impl ShmSink {
    /// A stream of this name.
    ///
    /// # Errors
    /// The name is taken, the system refuses, or this system has no shared memory.
    pub fn create(name: &str, options: PublisherOptions) -> Result<Self, ShmError> {
        let (publisher, pool) = Publisher::create(name, options)?;
        let counters = Counted::default();
        Ok(Self {
            publisher,
            pool: Some(pool),
            is_new: true,
            is_noted: false,
            last: None,
            copied_frames: 0,
            stopping: None,
            batches: 0,
            counters,
        })
    }

    /// The stream's pool, for the one source of the graph to write into, as
    /// [`SynthSource::pool`](grebe_process::synth::SynthSource::pool) and [`UdpSource::pool`](crate::UdpSource::pool)
    /// do. Afterwards the sink sends only batches of this pool.
    pub fn lend_pool(&mut self) -> Option<BatchPool> {
        self.pool.take()
    }

    /// Memory that the stream uses.
    pub fn footprint(&self) -> Footprint {
        self.publisher.footprint()
    }

    /// Waits for `count` readers of the stream. Returns whether they came in time.
    pub fn wait_for_consumers(&self, count: usize, timeout: Duration) -> bool {
        self.publisher.wait_for_consumers(count, timeout)
    }

    fn send(&mut self, batch: &Batch, ctx: &Context) -> Result<(), ShmError> {
        let (stopping, mut waiting) = (&mut self.stopping, None);
        // On shutdown, queued batches still go to readers that take them soon.
        let give_up = || {
            waiting.get_or_insert_with(Instant::now);
            ctx.is_stopping() && stopping.get_or_insert_with(Instant::now).elapsed() > DRAIN
        };
        let sent = self.publisher.send(batch, give_up);
        // Called whenever a reader has no room.
        if let Some(began) = waiting {
            ctx.count_waited(began.elapsed());
        }
        if self.publisher.take_shortened() && !std::mem::replace(&mut self.is_noted, true) {
            ctx.note(shortened_note("the description is too long for shared memory"));
        }
        sent.map(drop)
    }

    fn copy(&mut self, batch: &Batch, ctx: &Context) -> Result<(), Error> {
        let mut copy: Option<BatchMut> = None;
        for frame in batch.frames() {
            loop {
                let mut place = match copy.take() {
                    Some(place) => place,
                    None => match self.acquire(ctx) {
                        Some(place) => place,
                        None if ctx.is_stopping() => return Ok(()),
                        None => continue,
                    },
                };
                place.describe(batch.description());
                if place.push_copy(&frame).is_ok() {
                    self.copied_frames += 1;
                    ctx.count_copied(1);
                    copy = Some(place);
                    break;
                }
                if place.is_empty() {
                    let what = "bytes of a frame in shared memory";
                    let (got, expected) = (frame.header().frame_bytes(), place.capacity_bytes());
                    return Err(grebe_process::Error::Shape {
                        what,
                        got: got as u64,
                        expected: expected as u64,
                    }
                    .into());
                }
                self.send(&place.freeze(), ctx)?;
            }
        }
        match copy {
            Some(copy) => Ok(self.send(&copy.freeze(), ctx)?),
            None => Ok(()),
        }
    }

    fn acquire(&mut self, ctx: &Context) -> Option<BatchMut> {
        let pool = self.pool.as_mut()?;
        pool.acquire().or_else(|| {
            self.publisher.reap();
            ctx.acquire(pool)
        })
    }

    fn publish(&self) {
        let totals = self.publisher.totals();
        self.counters.consumers.set(totals.consumers.into());
        self.counters.fullest_queue_percent.set(totals.fullest_queue_percent.into());
        self.counters.chunks_out.set(totals.out_chunks.into());
        self.counters.lent_frames.set(totals.lent_frames);
        self.counters.copied_frames.set(self.copied_frames);
        self.counters.consumer_drops.set(totals.dropped_frames);
        self.counters.consumers_gone.set(totals.hung_up);
        self.counters.consumers_cut_off.set(totals.cut_off);
    }
}

impl Stage for ShmSink {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        if self.is_new {
            self.is_new = false;
            if let Some(pool) = &mut self.pool {
                pool.wake_on_return(ctx.signal().clone());
            }
        }
        let Some(batch) = input.next() else {
            self.publisher.reap();
            self.publish();
            return Ok(Outcome::WantsInput);
        };
        self.batches = self.batches.wrapping_add(1);
        if self.batches.is_multiple_of(PUBLISH_EVERY) {
            self.publish();
        }
        if self.publisher.is_own(&batch) || self.pool.is_none() {
            // Without a pool to copy into, `send` refuses a foreign batch with an error.
            self.send(&batch, ctx)?;
        } else {
            self.copy(&batch, ctx)?;
        }
        self.last = batch.frames().next_back().map(|frame| frame.header()).or(self.last);
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        self.publisher.end(ctx.end_of_stream(self.last).as_ref());
        self.publish();
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

grebe_flow::counters! {
    struct Counted { gauge consumers, gauge fullest_queue_percent, gauge chunks_out, lent_frames, copied_frames, consumer_drops, consumers_gone, consumers_cut_off }
}
/// Maximum batches between two updates of the counters.
const PUBLISH_EVERY: u32 = 64;
/// Maximum wait for readers on shutdown, over all queued batches.
const DRAIN: Duration = Duration::from_millis(400);
