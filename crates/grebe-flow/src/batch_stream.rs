//! Where batches leave a graph for async code, or for a thread that is none of its own.
//!
//! ```text
//!   stage --> AsyncEnd (same thread) --offer--> queue --next().await--> a task, of any runtime
//!                                                 +---wait, try_next--> a thread of the caller's
//! ```
//!
//! The task registers with the queue's [`Signal`], which wakes it as it would wake a thread. Nothing here knows a runtime.

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

/// The batches of a stage, in async code or in a thread of the caller's: from [`Graph::connect_async`](crate::Graph::connect_async) or
/// [`Running::attach_async`](crate::Running::attach_async).
///
/// It is a [`Stream`], too, for what combines those. Dropping it takes the consumer away: the stage goes on for its others,
/// and ends where it has none.
#[derive(Debug)]
pub struct BatchStream {
    queue: QueueReceiver,
    signal: Arc<Signal>,
}

impl BatchStream {
    /// A queue from a stage that waits for room on `producer`.
    pub(crate) fn new(options: QueueOptions, producer: Arc<Signal>) -> (QueueSender, Self) {
        let signal = Arc::new(Signal::new());
        let (tx, rx) = queue(options, producer, signal.clone());
        (tx, Self { queue: rx, signal })
    }

    /// The next batch; `None` after the last, when the graph has ended or failed (which of the two, [`Running::wait`] says).
    /// To give this future up loses nothing.
    ///
    /// [`Running::wait`]: crate::Running::wait
    pub async fn next(&mut self) -> Option<Batch> {
        poll_fn(|cx| self.poll_batch(cx)).await
    }

    /// The next batch, where one is queued: for a thread, which [`wait`](Self::wait)s in between.
    pub fn try_next(&mut self) -> Option<Batch> {
        self.queue.pop()
    }

    /// Waits, with the calling thread, until a batch is queued, the stream has ended, or `timeout` has passed; whether one of the
    /// first two is so. Takes nothing.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.signal.wait(timeout, || self.queue.has_batch() || self.queue.is_ended())
    }

    /// Whether the graph has ended or failed, and everything was taken.
    pub fn is_ended(&self) -> bool {
        self.queue.is_ended()
    }

    /// Samples per channel that its queue dropped.
    pub fn dropped_samples(&self) -> u64 {
        QueueCounts::read(&self.queue.counts().dropped_samples)
    }

    /// Frames that its queue has taken, and those it dropped.
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
            // Ready, and yet nothing to pop: under `drop_oldest` the producer may take it out again.
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

/// The last stage before the task: moves batches into its queue, on the thread of the stage before.
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
        // The task learns of the end now, not when the other stages of this thread have ended.
        self.0 = None;
        Ok(())
    }

    fn ports(&self) -> Ports {
        Ports::SINK
    }
}
