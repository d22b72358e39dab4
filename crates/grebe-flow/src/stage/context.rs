//! What a stage may ask of the thread that drives it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grebe_frame::{BatchMut, BatchPool, Header};
use grebe_ring::Signal;

use crate::clock::monotonic_ns;
use crate::counters::{StageCounts, add};
use crate::notes::Notes;

/// What a stage may ask of the thread that drives it.
#[derive(Debug)]
pub struct Context {
    pub(crate) waker: Waker,
    pub(crate) flags: Arc<Flags>,
    /// Ends this stage alone.
    pub(crate) detached: Arc<AtomicBool>,
    pub(crate) batches_in_flight: usize,
    pub(crate) counts: Arc<StageCounts>,
    /// Of the stage before, where there is just one.
    pub(crate) upstream: Option<Arc<StageCounts>>,
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

    /// Tells a person what they should know while the graph runs and what is no error: a device has gone and is waited for, or refuses
    /// a setting. Whoever runs the graph shows it ([`Running::notes`](crate::Running::notes)). It allocates and takes a lock: it is for
    /// what happens now and then.
    pub fn note(&self, words: impl Into<String>) {
        self.flags.notes.tell(words.into());
    }

    /// A pool of `chunks` chunks of `chunk_bytes` each, from the heap, which wakes this stage when a chunk comes back.
    pub fn pool(&self, chunks: usize, chunk_bytes: usize) -> BatchPool {
        let mut pool = BatchPool::new(chunks, chunk_bytes);
        pool.wake_on_return(self.signal().clone());
        pool
    }

    /// An empty batch of `pool`; waits where all are lent, at most until the graph is stopped or 100 ms have passed. A pool from
    /// which nothing was taken yet, and which wakes nobody, wakes this stage from here on.
    pub fn acquire(&self, pool: &mut BatchPool) -> Option<BatchMut> {
        pool.wake_by_default(self.signal());
        if let Some(batch) = pool.acquire() {
            return Some(batch);
        }
        self.waiting(|| self.waker.signal.wait(STEP_TIMEOUT, || pool.has_free() || self.is_stopping()));
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

    /// The end of the stream behind its last frame, to be called in [`finish`](crate::Stage::finish): with the sample index
    /// and the drops that the source told for what it could not hand on as a frame any more. `None` where there is nothing
    /// to end: no frame, and no source that says what it would have sent.
    pub fn end_of_stream(&self, last: Option<Header>) -> Option<Header> {
        let told = self.upstream.as_ref().and_then(|counts| counts.end.get()).copied();
        let end = last.map(|last| last.end_of_stream(monotonic_ns()));
        match (end, told) {
            // A stream that began again may end before the one that the source speaks of.
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

    /// Tells the stages behind where the stream ends, beyond the last frame that they got: what a source dropped at its end is
    /// seen by nobody else. To be called in [`finish`](crate::Stage::finish); a stage that does not call it passes on what the
    /// stage before told.
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

/// Makes the runtime call a stage again although no input came (a viewport was asked for, a setting changed).
#[derive(Debug, Clone, Default)]
pub struct Waker {
    /// What may give the stage work: its inputs, its pool.
    pub(crate) signal: Arc<Signal>,
    /// What ends a wait inside a step: room in the queue that it waits for, and the end. Nothing else disturbs it: a stage that
    /// sleeps is not woken for each batch that its full input takes in.
    pub(crate) step: Arc<Signal>,
    pub(crate) poked: Arc<AtomicBool>,
}

impl Waker {
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
    /// What stages tell a person.
    pub(crate) notes: Notes,
}

/// How long a stage sleeps at most before it is called again, and a wait before it looks at the flags.
pub(crate) const STEP_TIMEOUT: Duration = Duration::from_millis(100);
