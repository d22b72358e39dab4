//! The ways into a program, in front of the same stages: from within it, from shared memory, a pipe, or UDP. Both ends are graphs,
//! with the sources and sinks that grebe's commands use.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ChildStdin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grebe_datagram::Options as SocketOptions;
use grebe_flow::{Context, Graph, Inputs, Outcome, Outputs, QueueOptions, Snapshot, Stage, StageError};
use grebe_frame::BatchPool;
use grebe_shm::{Policy, PublisherOptions};
use grebe_stages::{PipeSink, PipeSource, ShmSink, ShmSource, UdpSink, UdpSource};

use super::join::{PATIENCE, join, subscriber_options};
use super::maker::Maker;
use super::produce::fill;
use super::task::{STREAM, ShmTask, Technique};
use crate::clock;
use crate::error::{Error, Result};
use crate::peer::{say, stdin_unbuffered};
use crate::stream::{Checker, Made, Seen};

/// How long one side or the other may sleep although there is something to do: the producer until its next look at the clock, and
/// the receiver of datagrams within its latency budget.
pub(super) fn sleep_budget(task: &ShmTask) -> Duration {
    let receiver = match task.technique {
        Technique::Udp => socket_options().latency / 2,
        _ => Duration::ZERO,
    };
    let producer = task.target_msps.map_or(Duration::ZERO, |_| task.tick);
    producer + receiver
}

/// Both ends in this process.
pub(super) fn embedded(task: &ShmTask) -> Result<(Made, Seen)> {
    let (maker, made) = Source::new(task);
    let (downstream, seen) = Downstream::new(task)?;
    let mut graph = Graph::new();
    let source = graph.add("source", maker);
    let sink = graph.add("downstream", downstream);
    graph.connect(source, sink, QueueOptions::block(QUEUE_BATCHES));
    let snapshot = graph.start()?.wait()?;
    let mut seen = take(&seen, "consumer")?;
    seen.copied = copied_bytes(&snapshot, task);
    Ok((take(&made, "producer")?, seen))
}

/// The producing end, once the consumer is there.
pub(super) struct Outlet {
    sink: Box<dyn Stage>,
    pool: Option<BatchPool>,
}

impl Outlet {
    pub(super) fn pipe(pipe: ChildStdin) -> Self {
        Self { sink: Box::new(PipeSink::new(pipe)), pool: None }
    }

    pub(super) fn udp(to: SocketAddr) -> Result<Self> {
        Ok(Self { sink: Box::new(UdpSink::connect(to, &socket_options())?), pool: None })
    }

    /// A stream in shared memory, which waits for its consumer only in [`joined`](Self::joined).
    pub(super) fn shm(task: &ShmTask, chunks: usize) -> Result<ShmSink> {
        let options = PublisherOptions {
            chunk_bytes: task.chunk_bytes,
            chunks,
            consumers_max: 1,
            directory: Some(task.directory.clone()),
            ..PublisherOptions::default()
        };
        Ok(ShmSink::create(STREAM, options)?)
    }

    pub(super) fn joined(mut sink: ShmSink) -> Result<Self> {
        if !sink.wait_for_consumers(1, PATIENCE) {
            return Err(Error::peer("consumer", "it did not come"));
        }
        let pool = sink.lend_pool();
        Ok(Self { sink: Box::new(sink), pool })
    }

    /// Makes the frames of the task, and sends them.
    pub(super) fn produce(self, task: &ShmTask) -> Result<(Made, u64)> {
        // The consumer's graph starts meanwhile: that is not what is measured.
        std::thread::sleep(SETTLE);
        let (mut maker, made) = Source::new(task);
        maker.pool = self.pool;
        let mut graph = Graph::new();
        let source = graph.add("source", maker);
        let sink = graph.add_boxed("sink", self.sink);
        graph.connect(source, sink, QueueOptions::block(QUEUE_BATCHES));
        let snapshot = graph.start()?.wait()?;
        Ok((take(&made, "producer")?, copied_bytes(&snapshot, task)))
    }
}

/// The consuming end, in a process of its own.
pub(super) fn consume(task: &ShmTask) -> Result<Seen> {
    // First: it takes a while, in which nothing is to be sent.
    let (downstream, seen) = Downstream::new(task)?;
    let source: Box<dyn Stage> = match task.technique {
        Technique::Pipe => {
            say(&())?;
            Box::new(PipeSource::new(stdin_unbuffered()?))
        }
        Technique::Udp => {
            let source = UdpSource::bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0), &socket_options())?;
            say(&source.local_addr()?)?;
            Box::new(source)
        }
        Technique::Shm => {
            let options = subscriber_options(task, Policy::DropOldest);
            Box::new(join(|| ShmSource::connect(STREAM, &options))?)
        }
        _ => return Err(Error::peer("consumer", "nothing comes into a program by this technique")),
    };
    let mut graph = Graph::new();
    let source = graph.add_boxed("source", source);
    let sink = graph.add("downstream", downstream);
    graph.connect(source, sink, QueueOptions::block(QUEUE_BATCHES));
    let snapshot = graph.start()?.wait()?;
    let mut seen = take(&seen, "consumer")?;
    seen.copied = copied_bytes(&snapshot, task);
    Ok(seen)
}

/// A stage that makes the frames of a run when they are due.
struct Source {
    maker: Option<Maker>,
    task: ShmTask,
    /// Its own, or that of the stream it writes into.
    pool: Option<BatchPool>,
    is_new: bool,
    cpu_before: Option<Duration>,
    made: Slot<Made>,
}

impl Source {
    fn new(task: &ShmTask) -> (Self, Slot<Made>) {
        let made = Slot::default();
        let this = Self {
            maker: None,
            task: task.clone(),
            pool: None,
            is_new: true,
            cpu_before: None,
            made: made.clone(),
        };
        (this, made)
    }
}

impl Stage for Source {
    fn process(
        &mut self,
        _: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        let pool = self
            .pool
            .get_or_insert_with(|| BatchPool::new(ctx.batches_in_flight() + 2, self.task.chunk_bytes));
        if self.is_new {
            self.is_new = false;
            self.cpu_before = clock::process_cpu();
            pool.wake_on_return(ctx.signal().clone());
        }
        let maker = self.maker.get_or_insert_with(|| Maker::new(&self.task));
        let Some(mut left) = ctx.waiting(|| maker.due()) else { return Ok(Outcome::End) };
        let frame_bytes = self.task.frame_bytes();
        while left > 0 && !ctx.is_stopping() {
            let Some(mut batch) = ctx.acquire(pool) else { continue };
            let frames = self.task.frames_max().min(left);
            fill(&mut batch, frames as usize, frame_bytes, maker);
            output.send(batch.freeze(), ctx);
            left -= frames;
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> Result<(), StageError> {
        let made = self.maker.take().map(|maker| Made { cpu: since(self.cpu_before), ..maker.finish() });
        put(&self.made, made);
        Ok(())
    }
}

/// The stage behind every way in: finds minimum and maximum of each frame where it lies, and looks how old it is.
struct Downstream {
    checker: Option<Checker>,
    cpu_before: Option<Duration>,
    seen: Slot<Seen>,
}

impl Downstream {
    fn new(task: &ShmTask) -> Result<(Self, Slot<Seen>)> {
        let seen = Slot::default();
        let checker = Some(Checker::new(task.channels, task.block, task.work)?);
        Ok((Self { checker, cpu_before: None, seen: seen.clone() }, seen))
    }
}

impl Stage for Downstream {
    fn process(
        &mut self,
        input: &mut Inputs,
        _: &mut Outputs,
        _: &mut Context,
    ) -> Result<Outcome, StageError> {
        let (Some(batch), Some(checker)) = (input.next(), &mut self.checker) else {
            return Ok(Outcome::WantsInput);
        };
        self.cpu_before = self.cpu_before.or_else(clock::process_cpu);
        let now_ns = Checker::now_ns();
        for frame in batch.frames() {
            checker.frame(&frame.header(), frame.payload(), now_ns);
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> Result<(), StageError> {
        let seen =
            self.checker.take().map(|checker| Seen { cpu: since(self.cpu_before), ..checker.finish() });
        put(&self.seen, seen);
        Ok(())
    }
}

/// Where a stage leaves what it found out, for who waits for its graph.
type Slot<T> = Arc<Mutex<Option<T>>>;

fn put<T>(slot: &Slot<T>, value: Option<T>) {
    *slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = value;
}

fn take<T>(slot: &Slot<T>, side: &'static str) -> Result<T> {
    let found = slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    found.ok_or_else(|| Error::peer(side, "it never ran"))
}

/// Processor time of the whole process: a graph has several threads.
fn since(before: Option<Duration>) -> Option<Duration> {
    clock::since(clock::process_cpu(), before)
}

/// What the stages copied in user space instead of reading it where it lay.
fn copied_bytes(snapshot: &Snapshot, task: &ShmTask) -> u64 {
    let frames: u64 = snapshot.stages.iter().map(|stage| stage.copied_frames).sum();
    frames * task.frame_bytes() as u64
}

/// As `bench udp` has them.
fn socket_options() -> SocketOptions {
    SocketOptions { recv_buffer_bytes: 32 << 20, force_buffers: true, ..SocketOptions::default() }
}

const QUEUE_BATCHES: usize = 64;
const SETTLE: Duration = Duration::from_millis(100);
