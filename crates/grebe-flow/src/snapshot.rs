//! What was counted while a graph runs, at one moment.

use std::borrow::Cow;

use grebe_ring::Policy;

/// All counters of a graph, at about one moment.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
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

    /// What was counted together with what the same graph counted `before`, when it ran until it was started again. States (gauges, what
    /// queues hold) stay those of now.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        for earlier in &before.stages {
            match self.stages.iter_mut().find(|stage| stage.name == earlier.name) {
                Some(stage) => stage.add_before(earlier),
                None => self.stages.push(earlier.clone()),
            }
        }
        for earlier in &before.queues {
            let same = |queue: &&mut QueueSnapshot| queue.from == earlier.from && queue.to == earlier.to;
            match self.queues.iter_mut().find(same) {
                Some(queue) => queue.add_before(earlier),
                None => {
                    self.queues.push(QueueSnapshot { queued_batches: 0, queued_bytes: 0, ..earlier.clone() })
                }
            }
        }
        self
    }

    /// Adds what was counted on another host, its stages under `host:name`.
    pub fn add_host(&mut self, host: &str, of_host: Self) {
        let named = |name: &str| format!("{host}:{name}");
        let stages = of_host.stages.into_iter();
        self.stages.extend(stages.map(|stage| StageSnapshot { name: named(&stage.name), ..stage }));
        let queues = of_host.queues.into_iter();
        self.queues.extend(queues.map(|queue| QueueSnapshot {
            from: named(&queue.from),
            to: named(&queue.to),
            ..queue
        }));
    }
}

/// What one stage has done.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct StageSnapshot {
    /// Its name in the graph.
    pub name: String,
    /// Frames taken from its inputs.
    pub frames_in: u64,
    /// Samples per channel taken from its inputs.
    pub samples_in: u64,
    /// Frames handed on (once, however many queues they went to).
    pub frames_out: u64,
    /// Samples per channel handed on.
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
    /// The same since the start.
    #[serde(skip)]
    pub latency_totals: Option<LatencyTotals>,
    /// The stage's own counters.
    #[serde(with = "as_map")]
    pub own: Vec<(Cow<'static, str>, u64)>,
    /// Those of them that may go down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_gauges: Vec<Cow<'static, str>>,
}

impl StageSnapshot {
    fn add_before(&mut self, before: &Self) {
        add(&mut self.frames_in, before.frames_in);
        add(&mut self.samples_in, before.samples_in);
        add(&mut self.frames_out, before.frames_out);
        add(&mut self.samples_out, before.samples_out);
        add(&mut self.busy_ns, before.busy_ns);
        add(&mut self.waited_ns, before.waited_ns);
        add(&mut self.copied_frames, before.copied_frames);
        for (name, value) in &before.own {
            match self.own.iter_mut().find(|(known, _)| known == name) {
                Some(_) if before.own_gauges.contains(name) => {}
                Some((_, now)) => add(now, *value),
                None => self.own.push((name.clone(), *value)),
            }
        }
    }

    /// Frames that it read or handed on where they lie: all but the copied ones.
    pub(crate) fn borrowed_frames(&self) -> u64 {
        self.frames_in.max(self.frames_out).saturating_sub(self.copied_frames)
    }

    /// One of the stage's own counters.
    pub fn own(&self, name: &str) -> Option<u64> {
        self.own.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// What one queue has carried.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
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
    /// Samples per channel in them.
    pub dropped_samples: u64,
}

impl QueueSnapshot {
    fn add_before(&mut self, before: &Self) {
        add(&mut self.frames, before.frames);
        add(&mut self.dropped_frames, before.dropped_frames);
        add(&mut self.dropped_samples, before.dropped_samples);
    }

    /// How full it is, 0 to 1: by batches or by bytes, whichever is nearer to its bound.
    pub fn fill(&self) -> f64 {
        let by_batches = self.queued_batches as f64 / self.capacity_batches.max(1) as f64;
        let by_bytes = self.capacity_bytes.map(|bytes| self.queued_bytes as f64 / bytes.max(1) as f64);
        by_bytes.unwrap_or(0.0).max(by_batches).min(1.0)
    }
}

/// Percentiles of one second: producer's stamp of a batch's first frame to the moment a stage took it.
///
/// Absolute where the producer's clock is this machine's, of the same boot; else without meaning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Latency {
    /// Half of the batches took no longer.
    pub p50_ns: u64,
    /// 95 %.
    pub p95_ns: u64,
    /// 99 %.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// How long batches took since the start, as a distribution; up to a second behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LatencyTotals {
    /// How many took no longer than the bound of [`BOUNDS_NS`](Self::BOUNDS_NS) at the same place, and longer than the one before it; the
    /// last took longer than all of them.
    pub counts: [u64; Self::BOUNDS_NS.len() + 1],
    /// How long all of them took together, to a hundredth.
    pub sum_ns: u64,
}

impl LatencyTotals {
    /// Upper bounds: 10 us to 10 s, three to a decade.
    pub const BOUNDS_NS: [u64; 19] = [
        10_000,
        20_000,
        50_000,
        100_000,
        200_000,
        500_000,
        1_000_000,
        2_000_000,
        5_000_000,
        10_000_000,
        20_000_000,
        50_000_000,
        100_000_000,
        200_000_000,
        500_000_000,
        1_000_000_000,
        2_000_000_000,
        5_000_000_000,
        10_000_000_000,
    ];

    /// Adds so many that took so long.
    pub(crate) fn add(&mut self, took_ns: u64, count: u64) {
        self.counts[Self::BOUNDS_NS.partition_point(|&bound_ns| bound_ns < took_ns)] += count;
        self.sum_ns = self.sum_ns.saturating_add(took_ns.saturating_mul(count));
    }
}

/// What other hosts count may be anything.
fn add(to: &mut u64, more: u64) {
    *to = to.saturating_add(more);
}

/// Names and counts as a map, in their order.
mod as_map {
    use std::borrow::Cow;
    use std::fmt;

    use serde::de::{Deserializer, MapAccess, Visitor};
    use serde::ser::Serializer;

    type Counts = Vec<(Cow<'static, str>, u64)>;

    pub(super) fn serialize<S: Serializer>(own: &Counts, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(own.iter().map(|(name, count)| (name, count)))
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Counts, D::Error> {
        from.deserialize_map(InOrder)
    }

    struct InOrder;

    impl<'a> Visitor<'a> for InOrder {
        type Value = Counts;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("counts by name")
        }

        fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Counts, A::Error> {
            let mut counts = Vec::new();
            while let Some((name, count)) = map.next_entry::<String, u64>()? {
                counts.push((Cow::Owned(name), count));
            }
            Ok(counts)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &str, frames: u64, clients: u64) -> StageSnapshot {
        StageSnapshot {
            name: name.to_owned(),
            frames_in: frames,
            samples_in: 10 * frames,
            own: vec![("lost_frames".into(), frames), ("clients".into(), clients)],
            own_gauges: vec!["clients".into()],
            ..StageSnapshot::default()
        }
    }

    fn queue(frames: u64, queued_batches: usize) -> QueueSnapshot {
        QueueSnapshot {
            from: "adc".to_owned(),
            to: "disk".to_owned(),
            policy: Policy::Block,
            capacity_batches: 8,
            queued_batches,
            capacity_bytes: None,
            queued_bytes: 0,
            frames,
            dropped_frames: 1,
            dropped_samples: 10,
        }
    }

    #[test]
    fn what_was_counted_before_is_added_and_states_are_those_of_now() {
        let before = Snapshot { at_ns: 1, stages: vec![stage("disk", 5, 2)], queues: vec![queue(5, 3)] };
        let now = Snapshot { at_ns: 2, stages: vec![stage("disk", 7, 1)], queues: vec![queue(7, 2)] };
        let all = now.after(&before);
        let disk = all.stage("disk").unwrap();
        assert_eq!((all.at_ns, disk.frames_in, disk.samples_in), (2, 12, 120));
        assert_eq!((disk.own("lost_frames"), disk.own("clients")), (Some(12), Some(1)));
        assert_eq!(
            (all.queues[0].frames, all.queues[0].dropped_samples, all.queues[0].queued_batches),
            (12, 20, 2)
        );
        // It has told nothing yet.
        let all = Snapshot::default().after(&all);
        assert_eq!((all.stage("disk").unwrap().frames_in, all.queues[0].queued_batches), (12, 0));
        // What another host says may be anything.
        let huge = Snapshot { stages: vec![stage("disk", u64::MAX / 10, 0)], ..Snapshot::default() };
        assert_eq!(huge.clone().after(&huge).stage("disk").unwrap().samples_in, u64::MAX);
    }
}
