//! What is counted while a graph runs, readable at any time without slowing it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::{Latency, Policy};

/// A stage's own counters: named, each written by the stage's thread alone, read by anybody.
///
/// ```
/// let counters = grebe_flow::Counters::new(&["refused", "late"]);
/// let reader = counters.clone();
/// counters.add(1, 3);
/// assert_eq!(reader.iter().collect::<Vec<_>>(), [("refused", 0), ("late", 3)]);
/// ```
#[derive(Debug, Clone)]
pub struct Counters {
    names: &'static [&'static str],
    values: Arc<[AtomicU64]>,
}

impl Counters {
    /// One counter a name, all zero.
    pub fn new(names: &'static [&'static str]) -> Self {
        Self { names, values: names.iter().map(|_| AtomicU64::new(0)).collect() }
    }

    /// Sets the counter at this position of the names.
    pub fn set(&self, position: usize, value: u64) {
        self.values[position].store(value, Ordering::Relaxed);
    }

    /// Adds to the counter at this position of the names.
    pub fn add(&self, position: usize, value: u64) {
        add(&self.values[position], value);
    }

    /// The counter of this name, if there is one.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.names.iter().zip(self.values.iter()).map(|(name, value)| (*name, value.load(Ordering::Relaxed)))
    }
}

/// All counters of a graph, at about one moment.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Snapshot {
    /// When it was taken, by [`monotonic_ns`](crate::monotonic_ns).
    pub at_ns: u64,
    /// In the order the stages were added.
    pub stages: Vec<StageSnapshot>,
    /// In the order they were connected.
    pub queues: Vec<QueueSnapshot>,
}

impl Snapshot {
    /// The stage of this name.
    pub fn stage(&self, name: &str) -> Option<&StageSnapshot> {
        self.stages.iter().find(|stage| stage.name == name)
    }

    /// Frames that queues dropped, over the whole graph.
    pub fn dropped_frames(&self) -> u64 {
        self.queues.iter().map(|queue| queue.dropped_frames).sum()
    }
}

/// What one stage has done.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct StageSnapshot {
    /// Its name in the graph.
    pub name: String,
    /// Frames taken from its inputs.
    pub frames_in: u64,
    /// Samples a channel taken from its inputs.
    pub samples_in: u64,
    /// Frames handed on (once, however many queues they went to).
    pub frames_out: u64,
    /// Samples a channel handed on.
    pub samples_out: u64,
    /// Time spent in the stage's own steps, without what it waited in them.
    pub busy_ns: u64,
    /// Time in those steps in which it waited: for room in a `block` queue, for a chunk, for a point in time, for the outside.
    pub waited_ns: u64,
    /// Frames whose samples the stage copied ([`Context::count_copied`](crate::Context::count_copied), or its own counter
    /// `copied_frames`).
    pub copied_frames: u64,
    /// From the producer to this stage, over the last second; `None` for a source, and in the first second.
    pub latency: Option<Latency>,
    /// The stage's own counters.
    #[serde(serialize_with = "as_map")]
    pub own: Vec<(&'static str, u64)>,
}

impl StageSnapshot {
    /// Frames that it read or handed on where they lie: all but the copied ones.
    pub fn borrowed_frames(&self) -> u64 {
        self.frames_in.max(self.frames_out).saturating_sub(self.copied_frames)
    }

    /// One of the stage's own counters.
    pub fn own(&self, name: &str) -> Option<u64> {
        self.own.iter().find(|(known, _)| *known == name).map(|&(_, value)| value)
    }
}

/// What one queue has carried.
#[derive(Debug, Clone, serde::Serialize)]
pub struct QueueSnapshot {
    /// The stage that fills it.
    pub from: String,
    /// The stage that empties it.
    pub to: String,
    /// What happens when it is full.
    pub policy: Policy,
    /// Batches that fit.
    pub capacity_batches: usize,
    /// Batches queued.
    pub queued_batches: usize,
    /// Bytes that fit; `None` where only batches bound it.
    pub capacity_bytes: Option<usize>,
    /// Bytes that the queued batches pin.
    pub queued_bytes: u64,
    /// Frames taken in.
    pub frames: u64,
    /// Frames dropped under its policy.
    pub dropped_frames: u64,
    /// Samples a channel in them.
    pub dropped_samples: u64,
}

impl QueueSnapshot {
    /// How full it is, 0 to 1: by batches or by bytes, whichever is nearer to its bound.
    pub fn fill(&self) -> f64 {
        let by_batches = self.queued_batches as f64 / self.capacity_batches.max(1) as f64;
        let by_bytes = self.capacity_bytes.map(|bytes| self.queued_bytes as f64 / bytes.max(1) as f64);
        by_bytes.unwrap_or(0.0).max(by_batches).min(1.0)
    }
}

/// On cache lines of its own: every stage writes one of these for each batch.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct StageCounts {
    pub(crate) frames_in: AtomicU64,
    pub(crate) samples_in: AtomicU64,
    pub(crate) frames_out: AtomicU64,
    pub(crate) samples_out: AtomicU64,
    pub(crate) busy_ns: AtomicU64,
    pub(crate) waited_ns: AtomicU64,
    pub(crate) copied_frames: AtomicU64,
    /// Written once a second.
    pub(crate) latency: Mutex<Option<Latency>>,
}

impl StageCounts {
    pub(crate) fn snapshot(&self, name: &str, own: Option<&Counters>) -> StageSnapshot {
        let own: Vec<(&'static str, u64)> = own.map(|own| own.iter().collect()).unwrap_or_default();
        let copied = own.iter().find(|(name, _)| *name == "copied_frames").map_or(0, |&(_, copied)| copied);
        StageSnapshot {
            name: name.to_owned(),
            frames_in: self.frames_in.load(Ordering::Relaxed),
            samples_in: self.samples_in.load(Ordering::Relaxed),
            frames_out: self.frames_out.load(Ordering::Relaxed),
            samples_out: self.samples_out.load(Ordering::Relaxed),
            busy_ns: self.busy_ns.load(Ordering::Relaxed),
            waited_ns: self.waited_ns.load(Ordering::Relaxed),
            copied_frames: self.copied_frames.load(Ordering::Relaxed) + copied,
            latency: *self.latency.lock().unwrap_or_else(|poisoned| poisoned.into_inner()),
            own,
        }
    }
}

fn as_map<S: serde::Serializer>(own: &[(&'static str, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(own.iter().copied())
}

/// A counter with one writer needs no locked instruction.
#[inline]
pub(crate) fn add(counter: &AtomicU64, value: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(value), Ordering::Relaxed);
}
