//! What a stage sees of the graph: its inputs, its outputs, and its context.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grebe_frame::{Batch, BatchMut, BatchPool};
use grebe_ring::Signal;

use crate::counters::{StageCounts, add};
use crate::queue::{Offer, QueueReceiver, QueueSender};

/// The queues that lead to a stage.
#[derive(Debug)]
pub struct Inputs {
    queues: Vec<QueueReceiver>,
    /// Which queue `next` asks first, so that a busy input does not starve the others.
    turn: usize,
    counts: Arc<StageCounts>,
}

impl Inputs {
    pub(crate) fn new(queues: Vec<QueueReceiver>, counts: Arc<StageCounts>) -> Self {
        Self { queues, turn: 0, counts }
    }

    /// The next batch of any input, in turn.
    #[allow(clippy::should_implement_trait, reason = "an iterator would end; an input may have more later")]
    pub fn next(&mut self) -> Option<Batch> {
        for _ in 0..self.queues.len() {
            let port = self.turn;
            self.turn = (self.turn + 1) % self.queues.len();
            if let Some(batch) = self.pop(port) {
                return Some(batch);
            }
        }
        None
    }

    /// The next batch of one input, numbered in the order they were connected.
    pub fn pop(&mut self, port: usize) -> Option<Batch> {
        let batch = self.queues.get_mut(port)?.pop()?;
        add(&self.counts.frames_in, batch.len() as u64);
        add(&self.counts.samples_in, batch.samples());
        Some(batch)
    }

    /// How many inputs there are.
    pub fn ports(&self) -> usize {
        self.queues.len()
    }

    /// Whether every input has ended and is empty.
    pub fn is_ended(&self) -> bool {
        self.queues.iter().all(QueueReceiver::is_ended)
    }

    pub(crate) fn has_batch(&self) -> bool {
        self.queues.iter().any(QueueReceiver::has_batch)
    }
}

/// The queues that lead on from a stage.
#[derive(Debug)]
pub struct Outputs {
    queues: Vec<QueueSender>,
    counts: Arc<StageCounts>,
}

impl Outputs {
    pub(crate) fn new(queues: Vec<QueueSender>, counts: Arc<StageCounts>) -> Self {
        Self { queues, counts }
    }

    /// Lends a batch to every queue, each under its own policy. Waits where a `block` queue is full, until there is room,
    /// its consumer is gone, or the graph is aborted.
    pub fn send(&mut self, batch: Batch, ctx: &Context) {
        add(&self.counts.frames_out, batch.len() as u64);
        add(&self.counts.samples_out, batch.samples());
        let Some((last, others)) = self.queues.split_last_mut() else { return };
        for queue in others {
            deliver(queue, batch.clone(), ctx);
        }
        deliver(last, batch, ctx);
    }

    /// Whether anybody still listens.
    pub fn is_connected(&self) -> bool {
        self.queues.iter().any(|queue| !queue.is_closed())
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        !self.queues.is_empty() && !self.is_connected()
    }
}

fn deliver(queue: &mut QueueSender, batch: Batch, ctx: &Context) {
    let mut offered = batch;
    loop {
        match queue.offer(offered) {
            Offer::Queued | Offer::Dropped | Offer::Closed => return,
            Offer::Full(batch) if ctx.flags.abort.load(Ordering::Acquire) => return queue.give_up(&batch),
            Offer::Full(batch) => {
                let go_on =
                    || queue.has_room() || queue.is_closed() || ctx.flags.abort.load(Ordering::Acquire);
                ctx.waker.signal.wait(LOOK_AROUND, go_on);
                offered = batch;
            }
        }
    }
}

/// What a stage may ask of the thread that drives it.
#[derive(Debug)]
pub struct Context {
    pub(crate) waker: Waker,
    pub(crate) flags: Arc<Flags>,
    pub(crate) batches_in_flight: usize,
}

impl Context {
    /// Whether the graph is being stopped. Sources are ended by the runtime at their next step; a stage asks only inside a
    /// step that could last.
    pub fn is_stopping(&self) -> bool {
        self.flags.stop.load(Ordering::Acquire)
    }

    /// Sleeps until `at`, or until the graph is stopped; whether `at` was reached.
    pub fn sleep_until(&self, at: Instant) -> bool {
        loop {
            let Some(left) = at.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                return true;
            };
            if self.waker.signal.wait(left, || self.is_stopping()) {
                return false;
            }
        }
    }

    /// An empty batch of `pool`; waits where all are lent, at most until the graph is stopped or 100 ms have passed.
    pub fn acquire(&self, pool: &mut BatchPool) -> Option<BatchMut> {
        if let Some(batch) = pool.acquire() {
            return Some(batch);
        }
        self.waker.signal.wait(LOOK_AROUND, || pool.has_free() || self.is_stopping());
        pool.acquire()
    }

    /// How many batches the queues of this graph can hold, and its stages have in hand: a source whose pool has as many
    /// chunks never waits for one.
    pub fn batches_in_flight(&self) -> usize {
        self.batches_in_flight
    }

    /// The signal this stage's thread sleeps on, for its pool ([`BatchPool::wake_on_return`]).
    pub fn signal(&self) -> &Arc<Signal> {
        &self.waker.signal
    }

    /// Wakes this stage from another thread.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }
}

/// Makes the runtime call a stage again although no input came (a viewport was asked for, a setting changed).
#[derive(Debug, Clone)]
pub struct Waker {
    pub(crate) signal: Arc<Signal>,
    pub(crate) poked: Arc<AtomicBool>,
}

impl Waker {
    pub(crate) fn new() -> Self {
        Self { signal: Arc::new(Signal::new()), poked: Arc::new(AtomicBool::new(false)) }
    }

    /// Has the stage called once more.
    pub fn wake(&self) {
        self.poked.store(true, Ordering::Release);
        self.signal.notify();
    }
}

#[derive(Debug, Default)]
pub(crate) struct Flags {
    /// Sources end; what is queued is drained.
    pub(crate) stop: AtomicBool,
    /// Everybody ends at the next step.
    pub(crate) abort: AtomicBool,
}

/// How long a stage sleeps at most before it is called again, and a wait before it looks at the flags.
pub(crate) const LOOK_AROUND: Duration = Duration::from_millis(100);
