//! The ends as graphs, with sources and sinks of `zenoh://`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use grebe_flow::{Context, Graph, Inputs, Outcome, Outputs, QueueOptions, Stage, StageError, StageResult};
use grebe_frame::{Batch, BatchPool, HEADER_BYTES, Header};
use grebe_stages::{SinkOptions, SourceOptions, Uri, open_sink, open_source};
use grebe_zenoh::{SessionOptions, configure};

use super::options::ZenohTask;
use super::seen::{RoundTrips, Seen, WARM_UP, measured};
use crate::error::{Error, Result};
use crate::peer::say;

/// Sends frames until the process is ended.
pub(super) fn send(task: &ZenohTask) -> Result<()> {
    let mut graph = joined(task);
    let source = graph.add("source", Pump { frames: Frames::new(task.message_bytes), pool: None });
    let sink = graph.add_boxed("sink", sink(&format!("zenoh://{FRAMES}?policy=block&wait"))?);
    graph.connect(source, sink, QueueOptions::block(QUEUE_BATCHES));
    graph.start()?.wait()?;
    Ok(())
}

/// Counts received data.
pub(super) fn receive(task: &ZenohTask) -> Result<Seen> {
    let count = Arc::new(Count::default());
    let mut graph = joined(task);
    let source = graph.add_boxed("source", source(&format!("zenoh://{FRAMES}?policy=block"))?);
    let sink = graph.add("sink", Counting { count: count.clone(), next: None });
    graph.connect(source, sink, QueueOptions::block(QUEUE_BATCHES));
    let _running = graph.start()?;
    say(&())?;
    measured(|| count.bytes.load(Ordering::Relaxed), || count.lost.load(Ordering::Relaxed), task.duration)
}

/// Sends a frame whenever one has come back.
pub(super) fn ping(task: &ZenohTask) -> Result<Seen> {
    let seen = Arc::new(Mutex::new(None));
    let ping = Pinging {
        frames: Frames::new(task.message_bytes),
        pool: None,
        sent: None,
        began: None,
        until: WARM_UP + task.duration,
        trips: RoundTrips::default(),
        seen: seen.clone(),
    };
    let mut graph = joined(task);
    let source = graph.add_boxed("source", source(&format!("zenoh://{PONG}?policy=block"))?);
    let ping = graph.add("ping", ping);
    let sink = graph.add_boxed("sink", sink(&format!("zenoh://{PING}?policy=block&wait"))?);
    graph.fuse(source, ping);
    graph.fuse(ping, sink);
    graph.start()?.wait()?;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).take();
    seen.ok_or_else(|| Error::peer("ping", "it never ended"))
}

/// Sends received data back, until the process is ended.
pub(super) fn pong(task: &ZenohTask) -> Result<()> {
    let mut graph = joined(task);
    let source = graph.add_boxed("source", source(&format!("zenoh://{PING}?policy=block"))?);
    let sink = graph.add_boxed("sink", sink(&format!("zenoh://{PONG}?policy=block"))?);
    graph.fuse(source, sink);
    let running = graph.start()?;
    say(&())?;
    running.wait()?;
    Ok(())
}

/// A graph of a process that joins by the configuration of the run.
fn joined(task: &ZenohTask) -> Graph {
    grebe_flow::short_slices();
    configure(SessionOptions { config: Some(task.config.clone()), ..SessionOptions::default() });
    Graph::new()
}

fn source(uri: &str) -> Result<Box<dyn Stage>> {
    Ok(open_source(&uri.parse::<Uri>()?, SourceOptions::default(), &mut |_| {})?.stage)
}

fn sink(uri: &str) -> Result<Box<dyn Stage>> {
    Ok(open_sink(&uri.parse::<Uri>()?, &SinkOptions::default(), &mut |_| {})?.stage)
}

/// Frames of one size, one a batch. Their samples are what is in the memory: the baseline sends the same bytes again
/// and again, too.
struct Frames {
    next: Header,
    frame_bytes: usize,
}

impl Frames {
    fn new(message_bytes: usize) -> Self {
        let samples = (message_bytes.max(HEADER_BYTES + 2) - HEADER_BYTES) / 2;
        let next = Header {
            channel_count: 1,
            block_length_samples: u32::try_from(samples).unwrap_or(u32::MAX),
            sample_rate_hz: 1e9,
            ..Header::default()
        };
        Self { next, frame_bytes: next.frame_bytes() }
    }

    fn batch(&mut self, pool: &mut Option<BatchPool>, ctx: &Context) -> Option<Batch> {
        let pool =
            pool.get_or_insert_with(|| ctx.pool(ctx.batches_in_flight().clamp(4, 64), self.frame_bytes));
        let mut batch = ctx.acquire(pool)?;
        // The chunk is as long as the frame.
        batch.push_bytes(&self.next, |_, _| {}).ok()?;
        self.next.sequence += 1;
        self.next.first_sample_index += u64::from(self.next.block_length_samples);
        Some(batch.freeze())
    }
}

/// Sends as fast as it goes.
struct Pump {
    frames: Frames,
    pool: Option<BatchPool>,
}

impl Stage for Pump {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if let Some(batch) = self.frames.batch(&mut self.pool, ctx) {
            output.send(batch, ctx);
        }
        Ok(Outcome::Produced)
    }
}

/// Counts for the thread that measures time.
#[derive(Default)]
struct Count {
    bytes: AtomicU64,
    lost: AtomicU64,
}

struct Counting {
    count: Arc<Count>,
    /// The sequence of the frame that is to come.
    next: Option<u64>,
}

impl Stage for Counting {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        for frame in batch.frames() {
            let header = frame.header();
            let next = self.next.replace(header.sequence + 1).unwrap_or(header.sequence);
            self.count.lost.fetch_add(header.sequence.saturating_sub(next), Ordering::Relaxed);
            self.count.bytes.fetch_add(header.frame_bytes() as u64, Ordering::Relaxed);
        }
        Ok(Outcome::Produced)
    }
}

/// Between a source and a sink: a frame that came sends the next.
struct Pinging {
    frames: Frames,
    pool: Option<BatchPool>,
    sent: Option<(u64, Instant)>,
    began: Option<Instant>,
    until: Duration,
    trips: RoundTrips,
    seen: Arc<Mutex<Option<Seen>>>,
}

impl Stage for Pinging {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let came = input.next();
        let elapsed = self.began.get_or_insert_with(Instant::now).elapsed();
        if let Some((sequence, at)) = self.sent {
            let Some(came) = came else { return Ok(Outcome::WantsInput) };
            if came.frames().next().map(|frame| frame.header().sequence) != Some(sequence) {
                return Err(StageError::from("another frame came back than was sent"));
            }
            if elapsed >= WARM_UP {
                self.trips.add(at.elapsed());
            }
        }
        if elapsed >= self.until {
            *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.trips.seen());
            return Ok(Outcome::End);
        }
        let sequence = self.frames.next.sequence;
        if let Some(batch) = self.frames.batch(&mut self.pool, ctx) {
            self.sent = Some((sequence, Instant::now()));
            output.send(batch, ctx);
        }
        Ok(Outcome::Produced)
    }
}

const QUEUE_BATCHES: usize = 64;
const FRAMES: &str = "bench/frames";
const PING: &str = "bench/ping";
const PONG: &str = "bench/pong";
