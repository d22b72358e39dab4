//! Running graph: its threads, from the start to the last call of `finish`.
//!
//! ```text
//!   Graph::start --> Assembly --> one thread per worker --> Ended: finished stages and their results
//!                                   | StageSlot | StageSlot | ...   fused stages, upstream first
//! ```
//!
//! A worker calls its stages in stream order. It sleeps on one [`Signal`](grebe_ring::Signal) when none has
//! work. A wait *inside* a step, for room in a full queue or for a point in time, uses a second signal. Only
//! room and the end notify it. Every stage is called at least every 100 ms, so that it can stop.

mod handles;
#[allow(unsafe_code, reason = "two system calls without a library")]
mod thread;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grebe_ring::Policy;

pub use handles::Node;
use handles::{ABORT_TIMEOUT, DRAIN_MAX, DRAIN_TIMEOUT, Ended};
pub(crate) use handles::{Handles, QueueHandle, StageHandle};
pub use thread::{idle_disk_priority, short_slices};
pub(crate) use worker::{Assembly, Route, StageSlot, Worker};

use crate::batch_stream::BatchStream;
use crate::counters::StageCounts;
use crate::error::Error;
use crate::queue::{QueueCounts, QueueOptions, queue};
use crate::snapshot::Snapshot;
use crate::stage::{Context, Flags, InPort, Inputs, Newcomers, Outputs, Stage, Waker};

/// A running graph. Dropping it stops the graph.
#[derive(Debug)]
pub struct Running {
    handles: Handles,
    flags: Arc<Flags>,
    batches_in_flight: usize,
    ended: Arc<Ended>,
}

/// A consumer attached to a running graph. Dropping it detaches the consumer.
#[derive(Debug)]
pub struct Attached {
    name: String,
    waker: Waker,
    detached: Arc<AtomicBool>,
    counts: Arc<QueueCounts>,
    ended: Arc<Ended>,
}

impl Running {
    pub(crate) fn start(assembly: Assembly) -> Result<Self, Error> {
        let running = Self {
            ended: Arc::new(Ended::new(assembly.handles.stages.len())),
            handles: assembly.handles,
            flags: assembly.flags,
            batches_in_flight: assembly.batches_in_flight,
        };
        for worker in assembly.workers {
            thread::spawn(worker, running.ended.clone())?;
        }
        Ok(running)
    }

    /// Present counters. Costs the data path nothing.
    pub fn snapshot(&self) -> Snapshot {
        self.handles.snapshot()
    }

    /// Function that takes snapshots, even after this handle is gone: for a display, a progress line, a
    /// server.
    pub fn observer(&self) -> impl Fn() -> Snapshot + Send + Sync + use<> {
        let handles = self.handles.clone();
        move || handles.snapshot()
    }

    /// Function that returns the notices of stages ([`Context::note`]) since its last call. Each reader is
    /// independent, even after this handle is gone. The newest 64 notices are kept.
    pub fn notes(&self) -> impl FnMut() -> Vec<String> + Send + 'static {
        let (flags, mut seen) = (self.flags.clone(), 0);
        move || flags.notes.since(&mut seen)
    }

    /// Attaches a consumer on its own thread to an [open](crate::Graph::open) stage. The stage and its other
    /// consumers do not stop for it. The consumer sees data produced from now on.
    ///
    /// # Errors
    /// The stage belongs to another graph or is not open, the policy is `block` (a temporary consumer must
    /// not block the others), or the system could not start a thread.
    pub fn attach(
        &self,
        to: Node,
        name: impl Into<String>,
        stage: impl Stage + 'static,
        options: QueueOptions,
    ) -> Result<Attached, Error> {
        let name = name.into();
        let producer = self.opened(to, options)?;
        let waker = Waker::default();
        let (tx, rx) = queue(options, producer.waker.step.clone(), waker.signal.clone());
        let (queue_counts, counts) = (tx.counts(), Arc::new(StageCounts::default()));
        let detached = Arc::new(AtomicBool::new(false));
        let slot = StageSlot {
            at: 0,
            name: name.clone(),
            stage: Box::new(stage),
            is_source: false,
            is_fed: false,
            ends_graph: false,
            input: Inputs::new(vec![InPort::Queue(rx)], counts.clone()),
            output: Outputs::new(Vec::new(), Vec::new(), Newcomers::open(false), counts.clone()),
            routes: Vec::new(),
            ctx: Context {
                waker: waker.clone(),
                flags: self.flags.clone(),
                detached: detached.clone(),
                batches_in_flight: self.batches_in_flight,
                counts,
                upstream: Some(producer.counts.clone()),
            },
            is_ended: false,
        };
        let ended = Arc::new(Ended::new(1));
        thread::spawn(Worker { slots: vec![slot], waker: waker.clone(), cpu: None }, ended.clone())?;
        producer.newcomers.push(tx);
        Ok(Attached { name, waker, detached, counts: queue_counts, ended })
    }

    /// Like [`attach`](Self::attach), for a consumer that is a task. It adds no thread, and the consumer
    /// leaves by dropping the result.
    ///
    /// # Errors
    /// Those of [`attach`](Self::attach), except for the thread.
    pub fn attach_async(&self, to: Node, options: QueueOptions) -> Result<BatchStream, Error> {
        let producer = self.opened(to, options)?;
        let (queue, batches) = BatchStream::new(options, producer.waker.step.clone());
        producer.newcomers.push(queue);
        Ok(batches)
    }

    /// The stage, if a consumer with such a queue may be attached.
    fn opened(&self, to: Node, options: QueueOptions) -> Result<&StageHandle, Error> {
        let own = self.handles.stages.get(to.at).filter(|_| to.graph == self.handles.graph);
        let producer = own.ok_or(Error::ForeignNode)?;
        if !producer.newcomers.is_open() || options.policy == Policy::Block {
            return Err(Error::NotOpen(producer.name.clone()));
        }
        Ok(producer)
    }

    /// Whether every stage has ended.
    pub fn is_ended(&self) -> bool {
        self.ended.is_all()
    }

    /// Waits until every stage has ended, or `timeout` has passed. Returns whether all have ended.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.ended.wait(timeout)
    }

    /// Takes the first error of a stage, once. `None` while none has failed.
    pub fn take_error(&self) -> Option<Error> {
        self.ended.take_error()
    }

    /// Waits until every stage has ended by itself.
    ///
    /// # Errors
    /// The first error of a stage.
    pub fn wait(self) -> Result<Snapshot, Error> {
        while !self.ended.wait(Duration::from_secs(3600)) {}
        self.close()
    }

    /// Ends the sources without waiting. The other stages end after the queued data.
    pub fn end_sources(&self) {
        self.flags.stop.store(true, Ordering::Release);
        self.handles.wake_all();
    }

    /// Stops the graph: ends the sources, then drains the queues for up to 5 s, or until no frame moves for
    /// 0.7 s. Then every stage must end at its next step, within 3 s. A stage's last call ([`Stage::finish`])
    /// has no time limit.
    ///
    /// # Errors
    /// The first error of a stage, or the name of one that did not return (its thread is left behind).
    pub fn stop(self) -> Result<Snapshot, Error> {
        self.end_sources();
        let (began, mut taken) = (Instant::now(), self.handles.frames_taken());
        while !self.ended.wait(DRAIN_TIMEOUT) {
            // The sources have ended, so these frames were queued, and queues are bounded.
            let before = std::mem::replace(&mut taken, self.handles.frames_taken());
            if taken != before && began.elapsed() < DRAIN_MAX {
                continue;
            }
            self.abort();
            // A stage in its last call closes a file or informs its peer: bounded work that must be done.
            let is_finishing =
                |stage: usize| self.handles.stages[stage].counts.is_finishing.load(Ordering::Acquire);
            while !self.ended.wait(ABORT_TIMEOUT) && self.ended.is_any_missing(is_finishing) {}
            break;
        }
        self.close()
    }

    fn abort(&self) {
        self.flags.abort.store(true, Ordering::Release);
        self.handles.wake_all();
    }

    fn close(&self) -> Result<Snapshot, Error> {
        let snapshot = self.snapshot();
        self.ended.result(|missing| self.handles.stages[missing].name.clone())?;
        Ok(snapshot)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended.is_all() {
            self.flags.stop.store(true, Ordering::Release);
            self.abort();
        }
    }
}

impl Attached {
    /// Frames accepted and frames dropped by its queue.
    pub fn counts(&self) -> (u64, u64) {
        (QueueCounts::read(&self.counts.frames), QueueCounts::read(&self.counts.dropped_frames))
    }

    /// Ends the consumer: calls its `finish` and discards its queue. The producer continues.
    ///
    /// # Errors
    /// The consumer's own error, or that it did not return within four seconds (its thread is left behind).
    pub fn detach(self) -> Result<(), Error> {
        self.leave();
        self.ended.wait(DRAIN_TIMEOUT + ABORT_TIMEOUT);
        self.ended.result(|_| self.name.clone())
    }

    fn leave(&self) {
        self.detached.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Calls each stage of a graph in turn on the caller's thread, without queues, threads or dependence on time.
#[derive(Debug)]
pub struct Stepper {
    worker: Worker,
    handles: Handles,
}

impl Stepper {
    pub(crate) fn new(assembly: Assembly) -> Self {
        let worker = assembly.workers.into_iter().next().unwrap_or_default();
        Self { worker, handles: assembly.handles }
    }

    /// Calls every stage once, upstream first, and repeats while it has input. Returns whether any of them
    /// did something.
    ///
    /// # Errors
    /// The error of the stage that failed.
    pub fn step(&mut self) -> Result<bool, Error> {
        self.worker.round().map_err(|failed| failed.error)
    }

    /// Steps until every stage has ended or nothing happens any more. Returns whether all have ended.
    ///
    /// # Errors
    /// The error of the stage that failed.
    pub fn run(&mut self) -> Result<bool, Error> {
        while self.step()? {}
        Ok(self.worker.is_ended())
    }

    /// Present counters.
    pub fn snapshot(&self) -> Snapshot {
        self.handles.snapshot()
    }
}
