//! A consumer that was attached while the graph runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ended::{ABORT_TIMEOUT, DRAIN_TIMEOUT, Ended};
use crate::error::Error;
use crate::queue::QueueCounts;
use crate::stage::Waker;

/// A consumer that was attached while the graph runs. Dropping it detaches the consumer.
#[derive(Debug)]
pub struct Attached {
    name: String,
    waker: Waker,
    detached: Arc<AtomicBool>,
    counts: Arc<QueueCounts>,
    ended: Arc<Ended>,
}

impl Attached {
    pub(super) fn new(
        name: String,
        waker: Waker,
        detached: Arc<AtomicBool>,
        counts: Arc<QueueCounts>,
        ended: Arc<Ended>,
    ) -> Self {
        Self { name, waker, detached, counts, ended }
    }

    /// Frames that its queue has taken, and those it dropped.
    pub fn counts(&self) -> (u64, u64) {
        (QueueCounts::read(&self.counts.frames), QueueCounts::read(&self.counts.dropped_frames))
    }

    /// Ends the consumer: its `finish` is called, its queue is given up, the producer goes on.
    ///
    /// # Errors
    /// The consumer's own error, or that it did not come back within a second (its thread is left behind).
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
