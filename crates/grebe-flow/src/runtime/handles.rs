//! Handles of a running graph for observing, waking, attaching and waiting.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use grebe_ring::Policy;

use crate::clock::monotonic_ns;
use crate::counters::{Counters, StageCounts};
use crate::error::Error;
use crate::queue::QueueCounts;
use crate::snapshot::{QueueSnapshot, Snapshot};
use crate::stage::{Newcomers, Waker};

/// Stage of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node {
    pub(crate) graph: u64,
    pub(crate) at: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Handles {
    /// Graph of the node.
    pub(crate) graph: u64,
    pub(crate) stages: Vec<StageHandle>,
    pub(crate) queues: Vec<QueueHandle>,
}

#[derive(Debug, Clone)]
pub(crate) struct StageHandle {
    pub(crate) name: String,
    pub(crate) waker: Waker,
    pub(crate) counts: Arc<StageCounts>,
    /// The stage's own counters.
    pub(crate) own: Option<Counters>,
    pub(crate) newcomers: Arc<Newcomers>,
}

#[derive(Debug, Clone)]
pub(crate) struct QueueHandle {
    /// Positions of stages.
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) policy: Policy,
    pub(crate) counts: Arc<QueueCounts>,
}

impl Handles {
    pub(crate) fn snapshot(&self) -> Snapshot {
        let stage = |stage: &StageHandle| stage.counts.snapshot(&stage.name, stage.own.as_ref());
        Snapshot {
            at_ns: monotonic_ns(),
            stages: self.stages.iter().map(stage).collect(),
            queues: self.queues.iter().map(|queue| self.queue_snapshot(queue)).collect(),
        }
    }

    /// Frames that all stages have taken from their inputs.
    pub(super) fn frames_taken(&self) -> u64 {
        self.stages.iter().map(|stage| stage.counts.frames_in.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn wake_all(&self) {
        self.stages.iter().for_each(|stage| stage.waker.wake());
    }

    fn queue_snapshot(&self, queue: &QueueHandle) -> QueueSnapshot {
        let counts = &queue.counts;
        let gone = QueueCounts::read(&counts.taken.batches) + QueueCounts::read(&counts.evicted_batches);
        QueueSnapshot {
            from: self.stages[queue.from].name.clone(),
            to: self.stages[queue.to].name.clone(),
            policy: queue.policy,
            capacity_batches: counts.capacity_batches,
            queued_batches: QueueCounts::read(&counts.batches).saturating_sub(gone) as usize,
            capacity_bytes: counts.capacity_bytes,
            queued_bytes: counts.queued_bytes(QueueCounts::read(&counts.taken.bytes)),
            frames: QueueCounts::read(&counts.frames),
            dropped_frames: QueueCounts::read(&counts.dropped_frames),
            dropped_samples: QueueCounts::read(&counts.dropped_samples),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Failed {
    /// Position in the graph.
    pub(crate) at: usize,
    pub(crate) error: Error,
}

/// Result of each stage for waiting threads; `None` while it runs.
#[derive(Debug)]
pub(super) struct Ended {
    results: Mutex<Vec<Option<Result<(), Error>>>>,
    changed: Condvar,
}

impl Ended {
    pub(super) fn new(stages: usize) -> Self {
        Self { results: Mutex::new((0..stages).map(|_| None).collect()), changed: Condvar::new() }
    }

    /// Notes that a worker has ended, with its stages.
    pub(super) fn tell(&self, stages: &[usize], result: Result<(), Failed>) {
        let mut results = self.lock();
        for &stage in stages {
            results[stage] = Some(Ok(()));
        }
        if let Err(Failed { at, error }) = result {
            results[at] = Some(Err(error));
        }
        self.changed.notify_all();
    }

    pub(super) fn is_all(&self) -> bool {
        self.lock().iter().all(Option::is_some)
    }

    /// Whether the predicate holds for a stage that has not ended.
    pub(super) fn is_any_missing(&self, is_so: impl Fn(usize) -> bool) -> bool {
        self.lock().iter().enumerate().any(|(stage, result)| result.is_none() && is_so(stage))
    }

    /// Waits until all have ended. Returns whether they have.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let unfinished = |results: &mut Vec<Option<_>>| results.iter().any(Option::is_none);
        match self.changed.wait_timeout_while(self.lock(), timeout, unfinished) {
            Ok((results, _)) => results.iter().all(Option::is_some),
            Err(_) => false,
        }
    }

    /// First error of a stage, or the name of a stage that has not returned.
    pub(super) fn result(&self, name: impl FnOnce(usize) -> String) -> Result<(), Error> {
        if let Some(error) = self.take_error() {
            return Err(error);
        }
        let results = self.lock();
        match results.iter().position(Option::is_none) {
            Some(missing) => Err(Error::Overstayed(name(missing), DRAIN_TIMEOUT + ABORT_TIMEOUT)),
            None => Ok(()),
        }
    }

    /// Takes the first error of a stage, once.
    pub(super) fn take_error(&self) -> Option<Error> {
        let mut results = self.lock();
        let failed = results.iter_mut().find(|result| matches!(result, Some(Err(_))))?;
        failed.replace(Ok(()))?.err()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Result<(), Error>>>> {
        // One assignment per stage, so a panic leaves no partial write.
        self.results.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Maximum time for draining queues after the sources end, while frames move.
pub(super) const DRAIN_MAX: Duration = Duration::from_secs(5);
/// Maximum time without progress before the rest is discarded.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_millis(700);
/// Maximum time for stages to return afterwards; a slow disk can block a write this long.
pub(super) const ABORT_TIMEOUT: Duration = Duration::from_secs(3);
