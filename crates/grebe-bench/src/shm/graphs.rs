//! The ways into a program, in front of the same stages: from within it, from shared memory, a pipe, or UDP. Both
//! ends are graphs, with the sources and sinks that grebe's commands use.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use grebe_datagram::Options as SocketOptions;
use grebe_flow::{
    Context, Graph, Inputs, Outcome, Outputs, QueueOptions, Snapshot, Stage, StageError, StageResult,
};
use grebe_frame::BatchPool;
use grebe_shm::{Policy, PublisherOptions};
use grebe_stages::{PipeSink, PipeSource, ShmSink, ShmSource, UdpSink, UdpSource};

use super::consume::subscribe;
use super::options::{Options, PATIENCE, STREAM, ShmTask, Technique};
use super::produce::fill;
use crate::error::{Error, Result};
use crate::peer::{Peer, say, stdin_unbuffered};
use crate::stream::{Checker, Made, Maker, Seen};
use crate::system;

/// How long one side or the other may sleep although there is something to do: the producer until its next look at
/// the clock, and the receiver of datagrams within its latency budget.
pub(super) fn sleep_budget(task: &ShmTask) -> Duration {
    let receives = task.technique == Technique::Udp;
    let receiver = if receives { socket_options().latency / 2 } else { Duration::ZERO };
    task.plan.target_msps.map_or(Duration::ZERO, |_| task.plan.tick) + receiver
}

/// Both ends in this process.
pub(super) fn embedded(task: &ShmTask) -> Result<(Made, Seen)> {
    let (source, made) = Source::new(task, None);
    let (downstream, seen) = Downstream::new(task)?;
    let snapshot = run(Box::new(source), Box::new(downstream))?;
    let seen = Seen { copied: copied_bytes(&snapshot, task), ..found(&seen)? };
    Ok((found(&made)?, seen))
}

/// The producing end.
pub(super) struct Outlet {
    sink: Box<dyn Stage>,
    pool: Option<BatchPool>,
    pub footprint_bytes: usize,
}

impl Outlet {
    /// Opens it, and starts the consumer.
    pub(super) fn open(
        options: &Options,
        task: &ShmTask,
        start: impl FnOnce() -> Result<Peer>,
    ) -> Result<(Self, Peer)> {
        let outlet = |sink| Self { sink, pool: None, footprint_bytes: 0 };
        match task.technique {
            Technique::Shm => {
                let options = PublisherOptions {
                    chunk_bytes: task.chunk_bytes,
                    chunks: options.chunks,
                    consumers_max: 1,
                    directory: Some(task.directory.clone()),
                    ..PublisherOptions::default()
                };
                // Its socket must be there before the consumer looks for it.
                let mut sink = ShmSink::create(STREAM, options)?;
                let consumer = start()?;
                if !sink.wait_for_consumers(1, PATIENCE) {
                    return Err(Error::peer("consumer", "it did not come"));
                }
                let (pool, footprint_bytes) = (sink.lend_pool(), sink.footprint().total_bytes());
                Ok((Self { sink: Box::new(sink), pool, footprint_bytes }, consumer))
            }
            Technique::Udp => {
                let mut consumer = start()?;
                let sink = UdpSink::connect(consumer.answer()?, &socket_options())?;
                Ok((outlet(Box::new(sink)), consumer))
            }
            _ => {
                let mut consumer = start()?;
                consumer.answer::<()>()?;
                Ok((outlet(Box::new(PipeSink::new(consumer.stdin()?))), consumer))
            }
        }
    }

    /// Makes the frames of the task, and sends them; also gives the bytes that were copied.
    pub(super) fn produce(self, task: &ShmTask) -> Result<(Made, u64)> {
        // Excludes the start of the consumer's graph from the measurement.
        std::thread::sleep(Duration::from_millis(100));
        let (source, made) = Source::new(task, self.pool);
        let snapshot = run(Box::new(source), self.sink)?;
        Ok((found(&made)?, copied_bytes(&snapshot, task)))
    }
}

/// The consuming end, in a process of its own.
pub(super) fn consume(task: &ShmTask) -> Result<Seen> {
    // First, because it takes a while, in which nothing must be sent.
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
            Box::new(subscribe(task, Policy::DropOldest, |options| ShmSource::connect(STREAM, options))?)
        }
        _ => return Err(Error::peer("consumer", "nothing comes into a program by this technique")),
    };
    let snapshot = run(source, Box::new(downstream))?;
    Ok(Seen { copied: copied_bytes(&snapshot, task), ..found(&seen)? })
}

fn run(source: Box<dyn Stage>, sink: Box<dyn Stage>) -> Result<Snapshot> {
    let mut graph = Graph::new();
    let (source, sink) = (graph.add_boxed("source", source), graph.add_boxed("sink", sink));
    graph.connect(source, sink, QueueOptions::block(64));
    Ok(graph.start()?.wait()?)
}

/// Result of a stage, for the waiting caller of its graph.
type Slot<T> = Arc<OnceLock<T>>;

fn found<T: Clone>(slot: &Slot<T>) -> Result<T> {
    slot.get().cloned().ok_or_else(|| Error::peer("graph", "one of its stages never ran"))
}

/// A stage that makes the frames of a run when they are due.
struct Source {
    maker: Option<Maker>,
    task: ShmTask,
    /// Its own, or that of the stream it writes into.
    pool: Option<BatchPool>,
    cpu_before: Option<Duration>,
    made: Slot<Made>,
}

impl Source {
    fn new(task: &ShmTask, pool: Option<BatchPool>) -> (Self, Slot<Made>) {
        let made = Slot::default();
        (Self { maker: None, task: task.clone(), pool, cpu_before: None, made: made.clone() }, made)
    }
}

impl Stage for Source {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let pool = self
            .pool
            .get_or_insert_with(|| BatchPool::new(ctx.batches_in_flight() + 2, self.task.chunk_bytes));
        let maker = self.maker.get_or_insert_with(|| {
            self.cpu_before = system::process_cpu();
            pool.wake_on_return(ctx.signal().clone());
            Maker::new(&self.task.plan)
        });
        let Some(count) = ctx.waiting(|| maker.due()) else { return Ok(Outcome::End) };
        while !ctx.is_stopping() {
            let Some(mut batch) = ctx.acquire(pool) else { continue };
            fill(&mut batch, &maker.frames(count));
            output.send(batch.freeze(), ctx);
            break;
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> Result<(), StageError> {
        if let Some(maker) = self.maker.take() {
            let _ = self.made.set(Made { cpu: cpu_since(self.cpu_before), ..maker.made() });
        }
        Ok(())
    }
}

/// The stage after every input: finds minimum and maximum of each frame in place, and its age.
struct Downstream {
    checker: Option<Checker>,
    cpu_before: Option<Duration>,
    seen: Slot<Seen>,
}

impl Downstream {
    fn new(task: &ShmTask) -> Result<(Self, Slot<Seen>)> {
        let seen = Slot::default();
        let checker = Some(Checker::new(task.plan.format, task.plan.channels, task.plan.block, task.work)?);
        Ok((Self { checker, cpu_before: None, seen: seen.clone() }, seen))
    }
}

impl Stage for Downstream {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let (Some(batch), Some(checker)) = (input.next(), &mut self.checker) else {
            return Ok(Outcome::WantsInput);
        };
        self.cpu_before = self.cpu_before.or_else(system::process_cpu);
        let now_ns = Checker::now_ns();
        for frame in batch.frames() {
            checker.frame(&frame.header(), frame.payload(), now_ns);
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> Result<(), StageError> {
        if let Some(checker) = self.checker.take() {
            let _ = self.seen.set(Seen { cpu: cpu_since(self.cpu_before), ..checker.finish() });
        }
        Ok(())
    }
}

/// Processor time of the whole process: a graph has several threads.
fn cpu_since(before: Option<Duration>) -> Option<Duration> {
    system::since(system::process_cpu(), before)
}

/// Bytes that the stages copied in user space instead of reading in place.
fn copied_bytes(snapshot: &Snapshot, task: &ShmTask) -> u64 {
    let frames: u64 = snapshot.stages.iter().map(|stage| stage.copied_frames).sum();
    frames * task.plan.frame_bytes() as u64
}

/// As `bench udp` has them.
fn socket_options() -> SocketOptions {
    SocketOptions { recv_buffer_bytes: 32 << 20, force_buffers: true, ..SocketOptions::default() }
}
