//! A checked graph whose queues exist: what becomes threads, and what is left of it for those who watch.

use std::sync::Arc;

use crate::counters::{Counters, QueueSnapshot, Snapshot, StageCounts};
use crate::crew::Crew;
use crate::monotonic_ns;
use crate::port::{Flags, Newcomers, Waker};
use crate::queue::QueueCounts;

/// A graph whose queues exist.
pub(crate) struct Built {
    /// By stage, in the order they were added.
    pub(crate) placed: Vec<Placed>,
    pub(crate) links: Vec<Link>,
    pub(crate) flags: Arc<Flags>,
    pub(crate) batches_in_flight: usize,
    pub(crate) crews: Vec<BuiltCrew>,
}

/// What becomes a thread.
pub(crate) struct BuiltCrew {
    /// Which stage each member is.
    pub(crate) stages: Vec<usize>,
    pub(crate) crew: Crew,
    pub(crate) cpu: Option<usize>,
}

/// A queue, for those who watch it.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) policy: crate::Policy,
    pub(crate) counts: Arc<QueueCounts>,
}

/// What is left of a stage for those who watch it.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) name: String,
    pub(crate) waker: Waker,
    pub(crate) counts: Arc<StageCounts>,
    pub(crate) own: Option<Counters>,
    pub(crate) newcomers: Arc<Newcomers>,
}

pub(crate) fn snapshot(placed: &[Placed], links: &[Link]) -> Snapshot {
    let name = |index: usize| placed.get(index).map(|stage| stage.name.clone()).unwrap_or_default();
    let queue = |link: &Link| {
        let counts = &link.counts;
        let gone = QueueCounts::read(&counts.taken.batches) + QueueCounts::read(&counts.evicted_batches);
        QueueSnapshot {
            from: name(link.from),
            to: name(link.to),
            policy: link.policy,
            capacity_batches: counts.capacity_batches,
            queued_batches: QueueCounts::read(&counts.batches).saturating_sub(gone) as usize,
            capacity_bytes: counts.capacity_bytes,
            queued_bytes: counts.queued_bytes(QueueCounts::read(&counts.taken.bytes)),
            frames: QueueCounts::read(&counts.frames),
            dropped_frames: QueueCounts::read(&counts.dropped_frames),
            dropped_samples: QueueCounts::read(&counts.dropped_samples),
        }
    };
    Snapshot {
        at_ns: monotonic_ns(),
        stages: placed.iter().map(|stage| stage.counts.snapshot(&stage.name, stage.own.as_ref())).collect(),
        queues: links.iter().map(queue).collect(),
    }
}
