//! Services of the driving thread for a stage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grebe_frame::{BatchMut, BatchPool, Header};
use grebe_ring::Signal;

use crate::clock::monotonic_ns;
use crate::counters::{StageCounts, add};
use crate::notes::Notes;

/// Services of the driving thread for a stage.
#[derive(Debug)]
pub struct Context {
    pub(crate) waker: Waker,
    pub(crate) flags: Arc<Flags>,
    /// Ends only this stage.
    pub(crate) detached: Arc<AtomicBool>,
    pub(crate) batches_in_flight: usize,
    pub(crate) counts: Arc<StageCounts>,
    /// Counters of the previous stage, if there is exactly one.
    pub(crate) upstream: Option<Arc<StageCounts>>,
}

impl Context {
    /// Whether the graph is stopping. The runtime ends sources at their next step; a stage asks only inside a
    /// long step.
    pub fn is_stopping(&self) -> bool {
        self.flags.stop.load(Ordering::Acquire) || self.is_aborted()
    }

    /// Sleeps until `at`, or until the graph stops. Returns whether `at` was reached.
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

    /// Runs a wait for something external (a socket, a device), so that it counts as waiting and not as work.
    pub fn waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = wait();
        self.count_waited(began.elapsed());
        result
    }

    /// Counts waiting time within this step, if [`waiting`](Self::waiting) cannot wrap it.
    pub fn count_waited(&self, waited: Duration) {
        add(&self.counts.waited_ns, waited.as_nanos() as u64);
    }

    /// Counts frames whose samples were copied instead of lent or changed in place.
    pub fn count_copied(&self, frames: usize) {
        add(&self.counts.copied_frames, frames as u64);
    }

    /// Shows a non-fatal notice to the user while the graph runs, for example that a device is gone or
    /// refuses a setting. The owner of the graph displays it ([`Running::notes`](crate::Running::notes)).
    /// Allocates and takes a lock, so use it for rare events.
    pub fn note(&self, words: impl Into<String>) {
        self.flags.notes.tell(words.into());
    }

    /// Makes a heap pool of `chunks` chunks with `chunk_bytes` each. A returned chunk wakes this stage.
    pub fn pool(&self, chunks: usize, chunk_bytes: usize) -> BatchPool {
        let mut pool = BatchPool::new(chunks, chunk_bytes);
        pool.wake_on_return(self.signal().clone());
        pool
    }

    /// Takes an empty batch from `pool`. If all are lent, waits until the graph stops or 100 ms have passed.
    /// A fresh pool without a wake-up wakes this stage from now on.
    pub fn acquire(&self, pool: &mut BatchPool) -> Option<BatchMut> {
        pool.wake_by_default(self.signal());
        if let Some(batch) = pool.acquire() {
            return Some(batch);
        }
        self.waiting(|| self.waker.signal.wait(STEP_TIMEOUT, || pool.has_free() || self.is_stopping()));
        pool.acquire()
    }

    /// Maximum batches in the queues and stages of this graph. A source with as many chunks never waits for
    /// one.
    pub fn batches_in_flight(&self) -> usize {
        self.batches_in_flight
    }

    /// Signal that this stage's thread sleeps on, for its pool ([`BatchPool::wake_on_return`]).
    pub fn signal(&self) -> &Arc<Signal> {
        &self.waker.signal
    }

    /// Handle to wake this stage from another thread.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// End of the stream after its last frame, to be called in [`finish`](crate::Stage::finish). It includes
    /// the sample index and drops that the source reported for data it could not send as a frame. `None`
    /// without a frame and without such a report.
    pub fn end_of_stream(&self, last: Option<Header>) -> Option<Header> {
        let told = self.upstream.as_ref().and_then(|counts| counts.end.get()).copied();
        let end = last.map(|last| last.end_of_stream(monotonic_ns()));
        match (end, told) {
            // A restarted stream may end before the position that the source reported.
            (Some(end), Some(told)) if told.first_sample_index >= end.first_sample_index => Some(Header {
                sequence: told.sequence.max(end.sequence),
                first_sample_index: told.first_sample_index,
                sg_drops_total: told.sg_drops_total.max(end.sg_drops_total),
                ..end
            }),
            (Some(end), _) => Some(end),
            (None, told) => told.map(|told| Header { producer_ts_ns: monotonic_ns(), ..told }),
        }
    }

    /// Tells later stages the end of the stream beyond their last frame. Otherwise nobody would notice drops
    /// of a source at its end. Call it in [`finish`](crate::Stage::finish); a stage that does not call it
    /// passes on the end of the previous stage.
    pub fn set_end_of_stream(&self, end: Header) {
        // A stage ends once.
        let _ = self.counts.end.set(Header { block_length_samples: 0, ..end });
    }

    pub(crate) fn pass_on_end(&self) {
        if let Some(told) = self.upstream.as_ref().and_then(|counts| counts.end.get()) {
            self.set_end_of_stream(*told);
        }
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.flags.abort.load(Ordering::Acquire) || self.detached.load(Ordering::Acquire)
    }
}

/// Makes the runtime call a stage without input, for example after a changed setting.
#[derive(Debug, Clone, Default)]
pub struct Waker {
    /// Notified of work for the stage: by its inputs and its pool.
    pub(crate) signal: Arc<Signal>,
    /// Ends a wait inside a step: notified of room in the queue it waits for, and of the end. A full input
    /// does not wake a sleeping stage for each batch.
    pub(crate) step: Arc<Signal>,
    pub(crate) poked: Arc<AtomicBool>,
}

impl Waker {
    /// Makes the runtime call the stage once more.
    pub fn wake(&self) {
        self.poked.store(true, Ordering::Release);
        self.signal.notify();
        self.step.notify();
    }
}

#[derive(Debug, Default)]
pub(crate) struct Flags {
    /// Sources end, and queues drain.
    pub(crate) stop: AtomicBool,
    /// All stages end at the next step.
    pub(crate) abort: AtomicBool,
    /// Notices of stages for the user.
    pub(crate) notes: Notes,
}

/// Maximum sleep of a stage, and maximum wait before it checks the flags.
pub(crate) const STEP_TIMEOUT: Duration = Duration::from_millis(100);
