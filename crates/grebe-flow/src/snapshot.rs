//! Snapshot of a running graph's counters.

use std::borrow::Cow;

use grebe_ring::Policy;

/// All counters of a graph at about one moment.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Snapshot {
    /// Time of the snapshot, by [`monotonic_ns`](crate::monotonic_ns).
    pub at_ns: u64,
    /// In the order of adding.
    pub stages: Vec<StageSnapshot>,
    /// In the order of connecting.
    pub queues: Vec<QueueSnapshot>,
}

impl Snapshot {
    /// Stage with this name.
    pub fn stage(&self, name: &str) -> Option<&StageSnapshot> {
        self.stages.iter().find(|stage| stage.name == name)
    }

    /// Frames dropped by queues, over the whole graph.
    pub fn dropped_frames(&self) -> u64 {
        self.queues.iter().map(|queue| queue.dropped_frames).sum()
    }

    /// Adds the counters of the same graph `before` its restart. States (gauges, queue fill) stay the present
    /// ones.
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

    /// Adds counters of another host, with stages named `host:name`.
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

/// Counters of one stage.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct StageSnapshot {
    /// Name in the graph.
    pub name: String,
    /// Frames taken from its inputs.
    pub frames_in: u64,
    /// Samples per channel taken from its inputs.
    pub samples_in: u64,
    /// Frames sent, counted once for any number of queues.
    pub frames_out: u64,
    /// Samples per channel sent.
    pub samples_out: u64,
    /// Time spent in the stage's steps, without waits.
    pub busy_ns: u64,
    /// Waits within those steps: for room in a `block` queue, a chunk, a point in time, or something
    /// external.
    pub waited_ns: u64,
    /// Frames whose samples the stage copied ([`Context::count_copied`](crate::Context::count_copied), or its
    /// own counter `copied_frames`).
    pub copied_frames: u64,
    /// Latency from the producer to this stage over the last second; `None` for a source, and in the first
    /// second.
    pub latency: Option<Latency>,
    /// Latency since the start.
    #[serde(skip)]
    pub latency_totals: Option<LatencyTotals>,
    /// The stage's own counters.
    #[serde(with = "as_map")]
    pub own: Vec<(Cow<'static, str>, u64)>,
    /// Those that are gauges.
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

    /// Frames read or passed on in place: all except the copied ones.
    pub(crate) fn borrowed_frames(&self) -> u64 {
        self.frames_in.max(self.frames_out).saturating_sub(self.copied_frames)
    }

    /// One of the stage's own counters.
    pub fn own(&self, name: &str) -> Option<u64> {
        self.own.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// Counters of one queue.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct QueueSnapshot {
    /// Producing stage.
    pub from: String,
    /// Consuming stage.
    pub to: String,
    /// Overflow policy.
    pub policy: Policy,
    /// Capacity in batches.
    pub capacity_batches: usize,
    /// Queued batches.
    pub queued_batches: usize,
    /// Capacity in bytes; `None` without a byte limit.
    pub capacity_bytes: Option<usize>,
    /// Bytes pinned by the queued batches.
    pub queued_bytes: u64,
    /// Frames accepted.
    pub frames: u64,
    /// Frames dropped by the policy.
    pub dropped_frames: u64,
    /// Samples per channel dropped.
    pub dropped_samples: u64,
}

impl QueueSnapshot {
    fn add_before(&mut self, before: &Self) {
        add(&mut self.frames, before.frames);
        add(&mut self.dropped_frames, before.dropped_frames);
        add(&mut self.dropped_samples, before.dropped_samples);
    }

    /// Fill, 0 to 1: by batches or bytes, whichever is closer to its limit.
    pub fn fill(&self) -> f64 {
        let by_batches = self.queued_batches as f64 / self.capacity_batches.max(1) as f64;
        let by_bytes = self.capacity_bytes.map(|bytes| self.queued_bytes as f64 / bytes.max(1) as f64);
        by_bytes.unwrap_or(0.0).max(by_batches).min(1.0)
    }
}

/// Percentiles over one second, from the producer's stamp of a batch's first frame to the moment a stage took
/// it.
///
/// Meaningful only if the producer uses the clock of this machine and boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Latency {
    /// Median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

/// Distribution of latencies since the start, up to one second old.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LatencyTotals {
    /// Number of batches per bucket, by the upper bounds in [`BOUNDS_NS`](Self::BOUNDS_NS); the last bucket
    /// is above all bounds.
    pub counts: [u64; Self::BOUNDS_NS.len() + 1],
    /// Sum of all latencies, within one percent.
    pub sum_ns: u64,
}

impl LatencyTotals {
    /// Upper bounds: 10 us to 10 s, three per decade.
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

    /// Adds `count` batches with this latency.
    pub(crate) fn add(&mut self, took_ns: u64, count: u64) {
        self.counts[Self::BOUNDS_NS.partition_point(|&bound_ns| bound_ns < took_ns)] += count;
        self.sum_ns = self.sum_ns.saturating_add(took_ns.saturating_mul(count));
    }
}

/// Counters of other hosts may have any value.
fn add(to: &mut u64, more: u64) {
    *to = to.saturating_add(more);
}

/// Names and counts as a map, in order.
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
    fn earlier_counts_are_added_and_states_are_current() {
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
        // A restarted graph that has not reported yet.
        let all = Snapshot::default().after(&all);
        assert_eq!((all.stage("disk").unwrap().frames_in, all.queues[0].queued_batches), (12, 0));
        // Counters of another host may have any value.
        let huge = Snapshot { stages: vec![stage("disk", u64::MAX / 10, 0)], ..Snapshot::default() };
        assert_eq!(huge.clone().after(&huge).stage("disk").unwrap().samples_in, u64::MAX);
    }
}
