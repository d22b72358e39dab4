//! Outputs of a stage.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use grebe_frame::Batch;

use super::context::{Context, STEP_TIMEOUT};
use crate::counters::{StageCounts, add};
use crate::queue::{Offer, QueueSender};

/// Outputs of a stage.
#[derive(Debug)]
pub struct Outputs {
    queues: Vec<(usize, QueueSender)>,
    /// Buffer for each fed stage of the same thread, until the runtime moves it.
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

    /// Lends a batch to every queue of the first output, each under its own policy. Blocks on a full `block`
    /// queue until there is room, its consumer is gone, or the graph is aborted.
    pub fn send(&mut self, batch: Batch, ctx: &Context) {
        self.send_to(0, batch, ctx);
    }

    /// Like [`send`](Self::send), for the output at this position of
    /// [`Ports::outputs`](crate::Ports::outputs).
    pub fn send_to(&mut self, port: usize, batch: Batch, ctx: &Context) {
        add(&self.counts.frames_out, batch.len() as u64);
        add(&self.counts.samples_out, batch.samples());
        if self.newcomers.waiting.load(Ordering::Acquire) {
            self.take_newcomers();
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
            // Only for stages with temporary consumers; otherwise the loss of the last one must be noticed.
            self.queues.retain(|(_, queue)| !queue.is_closed());
        }
    }

    fn is_connected(&self) -> bool {
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
        self.newcomers.close();
    }

    #[cold]
    fn take_newcomers(&mut self) {
        self.newcomers.waiting.store(false, Ordering::Release);
        let mut queues = self.newcomers.lock();
        self.queues.extend(queues.iter_mut().flat_map(|queues| queues.drain(..)).map(|queue| (0, queue)));
    }
}

/// Offers a batch until it is taken or the graph is aborted. Returns whether the consumer still exists.
pub(crate) fn deliver(queue: &mut QueueSender, batch: Batch, ctx: &Context) -> bool {
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
                ctx.waiting(|| queue.wait(STEP_TIMEOUT, || ctx.is_aborted()));
                offered = batch;
            }
        }
    }
}

/// Queues of newly attached consumers, until the producing stage takes them.
#[derive(Debug)]
pub(crate) struct Newcomers {
    /// Whether consumers may be attached; such a stage continues without any.
    is_open: bool,
    waiting: AtomicBool,
    /// `None` once the stage has ended.
    queues: Mutex<Option<Vec<QueueSender>>>,
}

impl Newcomers {
    pub(crate) fn open(is_open: bool) -> Arc<Self> {
        Arc::new(Self { is_open, waiting: AtomicBool::new(false), queues: Mutex::new(Some(Vec::new())) })
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// After the stage has ended, the consumer learns so at once.
    pub(crate) fn push(&self, queue: QueueSender) {
        if let Some(queues) = self.lock().as_mut() {
            queues.push(queue);
            self.waiting.store(true, Ordering::Release);
        }
    }

    fn close(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<QueueSender>>> {
        self.queues.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
