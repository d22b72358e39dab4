//! Output of a graph to async code, or to a thread of the caller.
//!
//! ```text
//!   stage --> AsyncEnd (same thread) --offer--> queue --next().await--> a task, of any runtime
//!                                                 +---wait, try_next--> a thread of the caller's
//! ```
//!
//! The task registers with the queue's [`Signal`], which wakes it like a thread. This works with any runtime.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use grebe_frame::Batch;
use grebe_ring::Signal;

use crate::queue::{QueueCounts, QueueOptions, QueueReceiver, QueueSender, queue};
use crate::stage::{Context, Inputs, Outcome, Outputs, Ports, Stage, StageResult, deliver};

/// Batches of a stage, for async code or a thread of the caller: from
/// [`Graph::connect_async`](crate::Graph::connect_async) or
/// [`Running::attach_async`](crate::Running::attach_async).
///
/// It is also a [`Stream`], for combinators. Dropping it removes the consumer. The stage continues for its
/// other consumers, and ends if it has none.
#[derive(Debug)]
pub struct BatchStream {
    queue: QueueReceiver,
    signal: Arc<Signal>,
}

impl BatchStream {
    /// Makes a queue from a stage that waits for room on `producer`.
    pub(crate) fn new(options: QueueOptions, producer: Arc<Signal>) -> (QueueSender, Self) {
        let signal = Arc::new(Signal::new());
        let (tx, rx) = queue(options, producer, signal.clone());
        (tx, Self { queue: rx, signal })
    }

    /// Next batch; `None` after the last one, when the graph has ended or failed ([`Running::wait`] tells
    /// which). Cancel safe: dropping the future loses nothing.
    ///
    /// [`Running::wait`]: crate::Running::wait
    pub async fn next(&mut self) -> Option<Batch> {
        poll_fn(|cx| self.poll_batch(cx)).await
    }

    /// Next batch, if one is queued. For a thread, which calls [`wait`](Self::wait) in between.
    pub fn try_next(&mut self) -> Option<Batch> {
        self.queue.pop()
    }

    /// Blocks until a batch is queued, the stream has ended, or `timeout` has passed. Returns whether one of
    /// the first two holds. Takes nothing.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.signal.wait(timeout, || self.queue.has_batch() || self.queue.is_ended())
    }

    /// Whether the graph has ended or failed, and all batches were taken.
    pub fn is_ended(&self) -> bool {
        self.queue.is_ended()
    }

    /// Samples per channel dropped by its queue.
    pub fn dropped_samples(&self) -> u64 {
        QueueCounts::read(&self.queue.counts().dropped_samples)
    }

    /// Frames accepted and frames dropped by its queue.
    pub fn counts(&self) -> (u64, u64) {
        let counts = self.queue.counts();
        (QueueCounts::read(&counts.frames), QueueCounts::read(&counts.dropped_frames))
    }

    fn poll_batch(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<Batch>> {
        loop {
            if let Some(batch) = self.queue.pop() {
                return Poll::Ready(Some(batch));
            }
            if self.queue.is_ended() {
                return Poll::Ready(None);
            }
            // Ready, but possibly nothing to pop: under `drop_oldest` the producer may evict the batch.
            ready!(self.signal.poll(cx, || self.queue.has_batch() || self.queue.is_ended()));
        }
    }
}

impl Stream for BatchStream {
    type Item = Batch;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<Batch>> {
        self.poll_batch(cx)
    }
}

/// Last stage before the task: moves batches into its queue, on the thread of the previous stage.
pub(crate) struct AsyncEnd(pub(crate) Option<QueueSender>);

impl Stage for AsyncEnd {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(queue) = &mut self.0 else { return Ok(Outcome::End) };
        if queue.is_closed() {
            return Ok(Outcome::End);
        }
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        Ok(if deliver(queue, batch, ctx) { Outcome::Produced } else { Outcome::End })
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> StageResult<()> {
        // Ends the task's stream now, not when the other stages of this thread have ended.
        self.0 = None;
        Ok(())
    }

    fn ports(&self) -> Ports {
        Ports::SINK
    }
}
