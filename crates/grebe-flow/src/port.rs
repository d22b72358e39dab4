//! What a stage sees of the graph: its inputs, its outputs, and its context.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use grebe_frame::{Batch, BatchMut, BatchPool};
use grebe_ring::Signal;

use crate::counters::{StageCounts, add};
use crate::latency::LatencyMeter;
use crate::queue::{Offer, QueueReceiver, QueueSender};

/// What leads to a stage.
#[derive(Debug)]
pub struct Inputs {
    ports: Vec<InPort>,
    /// Which port `next` asks first, so that a busy input does not starve the others.
    turn: usize,
    /// A bit each: inputs that the stage found empty in its step, and those that had not ended when the step began.
    dry: u64,
    open: u64,
    counts: Arc<StageCounts>,
    latency: LatencyMeter,
}

#[derive(Debug)]
pub(crate) enum InPort {
    /// From another thread.
    Queue(QueueReceiver),
    /// From a stage of the same thread.
    Inline { waiting: VecDeque<Batch>, is_ended: bool },
}

impl Inputs {
    pub(crate) fn new(ports: Vec<InPort>, counts: Arc<StageCounts>) -> Self {
        Self { ports, turn: 0, dry: 0, open: 0, latency: LatencyMeter::new(counts.clone()), counts }
    }

    /// The next batch of any input, in turn.
    #[allow(clippy::should_implement_trait, reason = "an iterator would end; an input may have more later")]
    pub fn next(&mut self) -> Option<Batch> {
        for _ in 0..self.ports.len() {
            let port = self.turn;
            self.turn = if port + 1 == self.ports.len() { 0 } else { port + 1 };
            if let Some(batch) = self.pop(port) {
                return Some(batch);
            }
        }
        None
    }

    /// The next batch of one input: by position in [`Ports::inputs`](crate::Ports::inputs), or in the order they were
    /// connected where they have no names.
    pub fn pop(&mut self, port: usize) -> Option<Batch> {
        let next = match self.ports.get_mut(port)? {
            InPort::Queue(queue) => queue.pop(),
            InPort::Inline { waiting, .. } => waiting.pop_front(),
        };
        let Some(batch) = next else {
            self.dry |= 1 << port.min(63);
            return None;
        };
        add(&self.counts.frames_in, batch.len() as u64);
        add(&self.counts.samples_in, batch.samples());
        self.latency.arrived(&batch);
        Some(batch)
    }

    /// How many inputs there are.
    pub fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Whether every input has ended and is empty.
    pub fn is_ended(&self) -> bool {
        self.ports.iter().all(InPort::is_ended)
    }

    /// A step of the stage begins: from here on it is noted which inputs it finds empty.
    pub(crate) fn begin_step(&mut self) {
        let open = |mask, (at, port): (usize, &InPort)| mask | u64::from(!port.is_ended()) << at;
        self.open = self.ports.iter().take(64).enumerate().fold(0, open);
        self.dry = 0;
    }

    /// Whether an input that the stage found empty has a batch, or one has ended since the step began. A stage that lets one
    /// input wait until another has something is not called for the first again and again.
    pub(crate) fn has_news(&self) -> bool {
        // A stage that looked at none of them wants any.
        let dry = if self.dry == 0 { u64::MAX } else { self.dry };
        self.ports.iter().take(64).enumerate().any(|(at, port)| {
            dry >> at & 1 == 1 && port.has_batch() || self.open >> at & 1 == 1 && port.is_ended()
        })
    }

    pub(crate) fn has_inline_batch(&self) -> bool {
        self.ports.iter().any(|port| matches!(port, InPort::Inline { waiting, .. } if !waiting.is_empty()))
    }

    /// Takes over what a stage of the same thread handed on.
    pub(crate) fn take_over(&mut self, port: usize, from: &mut VecDeque<Batch>) {
        if let Some(InPort::Inline { waiting, .. }) = self.ports.get_mut(port) {
            waiting.append(from);
        }
    }

    pub(crate) fn end_inline(&mut self, port: usize) {
        if let Some(InPort::Inline { is_ended, .. }) = self.ports.get_mut(port) {
            *is_ended = true;
        }
    }

    pub(crate) fn close(&mut self) {
        self.ports.clear();
    }
}

impl InPort {
    fn has_batch(&self) -> bool {
        match self {
            InPort::Queue(queue) => queue.has_batch(),
            InPort::Inline { waiting, .. } => !waiting.is_empty(),
        }
    }

    fn is_ended(&self) -> bool {
        match self {
            InPort::Queue(queue) => queue.is_ended(),
            InPort::Inline { waiting, is_ended } => *is_ended && waiting.is_empty(),
        }
    }
}

/// What leads on from a stage.
#[derive(Debug)]
pub struct Outputs {
    queues: Vec<(usize, QueueSender)>,
    /// A buffer for each stage of the same thread that is fed, until the runtime takes it there.
    inline: Vec<InlineOut>,
    newcomers: Arc<Newcomers>,
    counts: Arc<StageCounts>,
}

#[derive(Debug, Default)]
pub(crate) struct InlineOut {
    pub(crate) port: usize,
    pub(crate) buffer: VecDeque<Batch>,
    pub(crate) is_closed: bool,
}

impl Outputs {
    pub(crate) fn new(
        queues: Vec<(usize, QueueSender)>,
        inline: Vec<InlineOut>,
        newcomers: Arc<Newcomers>,
        counts: Arc<StageCounts>,
    ) -> Self {
        Self { queues, inline, newcomers, counts }
    }

    /// Lends a batch to every queue of the first output, each under its own policy. Waits where a `block` queue is full,
    /// until there is room, its consumer is gone, or the graph is aborted.
    pub fn send(&mut self, batch: Batch, ctx: &Context) {
        self.send_to(0, batch, ctx);
    }

    /// As [`send`](Self::send), for the output at this position of [`Ports::outputs`](crate::Ports::outputs).
    pub fn send_to(&mut self, port: usize, batch: Batch, ctx: &Context) {
        add(&self.counts.frames_out, batch.len() as u64);
        add(&self.counts.samples_out, batch.samples());
        if self.newcomers.waiting.load(Ordering::Acquire) {
            self.welcome();
        }
        let mut has_gone = false;
        let mut rest = Some(batch);
        let last = self.queues.len() + self.inline.len();
        let mut reached = 0;
        let mut hand_out = || {
            reached += 1;
            if reached == last { rest.take() } else { rest.clone() }
        };
        for (at, queue) in &mut self.queues {
            let batch = hand_out();
            if *at == port
                && let Some(batch) = batch
            {
                has_gone |= !deliver(queue, batch, ctx);
            }
        }
        for out in &mut self.inline {
            let batch = hand_out();
            if out.port == port && !out.is_closed {
                out.buffer.extend(batch);
            }
        }
        if has_gone && self.newcomers.is_open {
            // Only where consumers come and go: else the last one's absence must be seen.
            self.queues.retain(|(_, queue)| !queue.is_closed());
        }
    }

    /// Whether anybody still listens.
    pub fn is_connected(&self) -> bool {
        self.queues.iter().any(|(_, queue)| !queue.is_closed())
            || self.inline.iter().any(|out| !out.is_closed)
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        let leads_somewhere = !self.queues.is_empty() || !self.inline.is_empty();
        leads_somewhere && !self.newcomers.is_open && !self.is_connected()
    }

    pub(crate) fn inline(&mut self) -> &mut [InlineOut] {
        &mut self.inline
    }

    pub(crate) fn close(&mut self) {
        self.queues.clear();
    }

    #[cold]
    fn welcome(&mut self) {
        self.newcomers.waiting.store(false, Ordering::Release);
        let mut queues = self.newcomers.queues.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.queues.extend(queues.drain(..).map(|queue| (0, queue)));
    }
}

/// Whether the consumer is still there.
fn deliver(queue: &mut QueueSender, batch: Batch, ctx: &Context) -> bool {
    let mut offered = batch;
    loop {
        match queue.offer(offered) {
            Offer::Queued | Offer::Dropped => return true,
            Offer::Closed => return false,
            Offer::Full(batch) if ctx.is_aborted() => {
                queue.give_up(&batch);
                return true;
            }
            Offer::Full(batch) => {
                ctx.waiting(|| queue.wait(LOOK_AROUND, || ctx.is_aborted()));
                offered = batch;
            }
        }
    }
}

/// Queues of consumers that were attached while the graph runs, until the producing stage takes them up.
#[derive(Debug, Default)]
pub(crate) struct Newcomers {
    /// Whether consumers may be attached at all: such a stage goes on although nobody listens.
    is_open: bool,
    waiting: AtomicBool,
    queues: Mutex<Vec<QueueSender>>,
}

impl Newcomers {
    pub(crate) fn open(is_open: bool) -> Arc<Self> {
        Arc::new(Self { is_open, ..Self::default() })
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    pub(crate) fn push(&self, queue: QueueSender) {
        self.queues.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(queue);
        self.waiting.store(true, Ordering::Release);
    }
}

/// What a stage may ask of the thread that drives it.
#[derive(Debug)]
pub struct Context {
    pub(crate) waker: Waker,
    pub(crate) flags: Arc<Flags>,
    /// Ends this stage alone.
    pub(crate) detached: Arc<AtomicBool>,
    pub(crate) batches_in_flight: usize,
    pub(crate) counts: Arc<StageCounts>,
}

impl Context {
    /// Whether the graph is being stopped. Sources are ended by the runtime at their next step; a stage asks only inside a
    /// step that could last.
    pub fn is_stopping(&self) -> bool {
        self.flags.stop.load(Ordering::Acquire) || self.is_aborted()
    }

    /// Sleeps until `at`, or until the graph is stopped; whether `at` was reached.
    pub fn sleep_until(&self, at: Instant) -> bool {
        self.waiting(|| {
            loop {
                let left = at.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
                let Some(left) = left else { return true };
                if self.waker.step.wait(left, || self.is_stopping()) {
                    return false;
                }
            }
        })
    }

    /// Does what waits for something outside the graph (a socket, a device), so that it counts as waiting and not as work.
    pub fn waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = wait();
        self.count_waited(began.elapsed());
        result
    }

    /// Counts time of this step that was spent waiting, where [`waiting`](Self::waiting) cannot be put around it.
    pub fn count_waited(&self, waited: Duration) {
        add(&self.counts.waited_ns, waited.as_nanos() as u64);
    }

    /// Counts frames whose samples were copied instead of lent on or changed in place.
    pub fn count_copied(&self, frames: usize) {
        add(&self.counts.copied_frames, frames as u64);
    }

    /// An empty batch of `pool`; waits where all are lent, at most until the graph is stopped or 100 ms have passed.
    pub fn acquire(&self, pool: &mut BatchPool) -> Option<BatchMut> {
        if let Some(batch) = pool.acquire() {
            return Some(batch);
        }
        self.waiting(|| self.waker.signal.wait(LOOK_AROUND, || pool.has_free() || self.is_stopping()));
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

    pub(crate) fn is_aborted(&self) -> bool {
        self.flags.abort.load(Ordering::Acquire) || self.detached.load(Ordering::Acquire)
    }
}

/// Makes the runtime call a stage again although no input came (a viewport was asked for, a setting changed).
#[derive(Debug, Clone)]
pub struct Waker {
    /// What may give the stage work: its inputs, its pool.
    pub(crate) signal: Arc<Signal>,
    /// What ends a wait inside a step: room in the queue that it waits for, and the end. Nothing else disturbs it: a stage that
    /// sleeps is not woken for each batch that its full input takes in.
    pub(crate) step: Arc<Signal>,
    pub(crate) poked: Arc<AtomicBool>,
}

impl Waker {
    pub(crate) fn new() -> Self {
        Self {
            signal: Arc::new(Signal::new()),
            step: Arc::new(Signal::new()),
            poked: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Has the stage called once more.
    pub fn wake(&self) {
        self.poked.store(true, Ordering::Release);
        self.signal.notify();
        self.step.notify();
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
