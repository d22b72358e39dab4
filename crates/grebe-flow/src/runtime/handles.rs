//! What is left of a graph for those who watch it, wake it and attach to it once its stages are on their threads.

use std::sync::Arc;

use grebe_ring::Policy;

use crate::clock::monotonic_ns;
use crate::counters::{Counters, StageCounts};
use crate::queue::QueueCounts;
use crate::snapshot::{QueueSnapshot, Snapshot};
use crate::stage::{Newcomers, Waker};

/// A stage of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node(pub(crate) usize);

/// The stages and queues of a graph.
#[derive(Debug, Clone)]
pub(crate) struct Handles {
    /// By [`Node`].
    pub(crate) stages: Vec<StageHandle>,
    /// In the order they were connected.
    pub(crate) queues: Vec<QueueHandle>,
}

/// What is left of a stage.
#[derive(Debug, Clone)]
pub(crate) struct StageHandle {
    pub(crate) name: String,
    pub(crate) waker: Waker,
    pub(crate) counts: Arc<StageCounts>,
    /// The stage's own counters.
    pub(crate) own: Option<Counters>,
    pub(crate) newcomers: Arc<Newcomers>,
}

/// What is left of a queue.
#[derive(Debug, Clone)]
pub(crate) struct QueueHandle {
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) policy: Policy,
    pub(crate) counts: Arc<QueueCounts>,
}

impl Handles {
    /// All counters, now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let stage = |stage: &StageHandle| stage.counts.snapshot(&stage.name, stage.own.as_ref());
        Snapshot {
            at_ns: monotonic_ns(),
            stages: self.stages.iter().map(stage).collect(),
            queues: self.queues.iter().map(|queue| self.queue_snapshot(queue)).collect(),
        }
    }

    pub(crate) fn wake_all(&self) {
        self.stages.iter().for_each(|stage| stage.waker.wake());
    }

    fn queue_snapshot(&self, queue: &QueueHandle) -> QueueSnapshot {
        let counts = &queue.counts;
        let gone = QueueCounts::read(&counts.taken.batches) + QueueCounts::read(&counts.evicted_batches);
        QueueSnapshot {
            from: self.stages[queue.from.0].name.clone(),
            to: self.stages[queue.to.0].name.clone(),
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
