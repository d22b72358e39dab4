//! A graph at work: its threads, from start to the last call of `finish`.
//!
//! ```text
//!   Graph::start --> Assembly --> one thread per worker --> Ended: which stages are done, and how
//!                                   | StageSlot | StageSlot | ...   fused stages, upstream first
//! ```
//!
//! A worker calls its stages in the order of the stream, and sleeps on one [`Signal`](grebe_ring::Signal) when none of them has
//! anything to do. A wait *inside* a step, for room in a full queue or for a point in time, is on a second signal, which only
//! room and the end notify. Every stage is called at least every 100 ms, so that it can be stopped.

mod handles;
#[allow(unsafe_code, reason = "two system calls for which there is no library")]
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

/// A graph at work. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    handles: Handles,
    flags: Arc<Flags>,
    batches_in_flight: usize,
    ended: Arc<Ended>,
}

/// A consumer that was attached while the graph runs. Dropping it detaches the consumer.
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

    /// What has been counted until now. Costs the data path nothing.
    pub fn snapshot(&self) -> Snapshot {
        self.handles.snapshot()
    }

    /// Takes snapshots, also after this handle is gone: for a display, a progress line, a server.
    pub fn observer(&self) -> impl Fn() -> Snapshot + Send + Sync + use<> {
        let handles = self.handles.clone();
        move || handles.snapshot()
    }

    /// What stages tell a person ([`Context::note`]), since it was asked last: for each reader on its own, and also after this handle
    /// is gone. The newest 64 are kept.
    pub fn notes(&self) -> impl FnMut() -> Vec<String> + Send + 'static {
        let (flags, mut seen) = (self.flags.clone(), 0);
        move || flags.notes.since(&mut seen)
    }

    /// Gives a stage that was [opened](crate::Graph::open) one more consumer, on a thread of its own. The stage does not stop
    /// for it, and neither do its other consumers; the new one sees what is produced from now on.
    ///
    /// # Errors
    /// The stage is of another graph or was not opened, the policy is `block` (a consumer that comes and goes must not hold up the others), or the
    /// system gave no thread.
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

    /// As [`attach`](Self::attach), for a consumer that is a task: no thread is added, and the consumer leaves by dropping what
    /// this answers.
    ///
    /// # Errors
    /// As for [`attach`](Self::attach), the thread excepted.
    pub fn attach_async(&self, to: Node, options: QueueOptions) -> Result<BatchStream, Error> {
        let producer = self.opened(to, options)?;
        let (queue, batches) = BatchStream::new(options, producer.waker.step.clone());
        producer.newcomers.push(queue);
        Ok(batches)
    }

    /// The stage, where a consumer with such a queue may be attached to it.
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

    /// Waits until every stage has ended, or `timeout` has passed; whether they have.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.ended.wait(timeout)
    }

    /// How it ended badly, once: the first error of a stage. `None` as long as none has failed.
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

    /// Ends the sources, and waits for nobody: the other stages end when they have taken what is under way.
    pub fn end_sources(&self) {
        self.flags.stop.store(true, Ordering::Release);
        self.handles.wake_all();
    }

    /// Stops: sources end, and what is queued is drained, for up to 5 s and no longer than 0.7 s without a frame that gets on. Then
    /// every stage ends at its next step, within 3 s. A stage's last call ([`Stage::finish`]) takes as long as it takes.
    ///
    /// # Errors
    /// The first error of a stage, or the name of one that did not come back (its thread is left behind).
    pub fn stop(self) -> Result<Snapshot, Error> {
        self.end_sources();
        let (began, mut taken) = (Instant::now(), self.handles.frames_taken());
        while !self.ended.wait(DRAIN_TIMEOUT) {
            // The sources have ended: what is taken now was queued, and that has a bound.
            let before = std::mem::replace(&mut taken, self.handles.frames_taken());
            if taken != before && began.elapsed() < DRAIN_MAX {
                continue;
            }
            self.abort();
            // A stage in its last call is closing a file or telling its peer: work that has a bound, and that must be done.
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
    /// Frames that its queue has taken, and those it dropped.
    pub fn counts(&self) -> (u64, u64) {
        (QueueCounts::read(&self.counts.frames), QueueCounts::read(&self.counts.dropped_frames))
    }

    /// Ends the consumer: its `finish` is called, its queue is given up, the producer goes on.
    ///
    /// # Errors
    /// The consumer's own error, or that it did not come back within four seconds (its thread is left behind).
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

/// Calls each stage of a graph in turn, on the caller's thread: no queue, no thread, and nothing that depends on time.
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

    /// Calls every stage once, upstream first, and again while it has input; whether any of them did something.
    ///
    /// # Errors
    /// The error of the stage that failed.
    pub fn step(&mut self) -> Result<bool, Error> {
        self.worker.round().map_err(|failed| failed.error)
    }

    /// Steps until every stage has ended or nothing happens any more; whether all have ended.
    ///
    /// # Errors
    /// The error of the stage that failed.
    pub fn run(&mut self) -> Result<bool, Error> {
        while self.step()? {}
        Ok(self.worker.is_ended())
    }

    /// What has been counted.
    pub fn snapshot(&self) -> Snapshot {
        self.handles.snapshot()
    }
}
