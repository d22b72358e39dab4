//! Rates, shares and fills: what two snapshots say of the time between them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::slowest::{self, Slowest};
use crate::{Latency, Policy, QueueSnapshot, Snapshot, StageSnapshot};

/// What a graph did over an interval, and all it counted since it started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The process that the graph runs in.
    pub pid: u32,
    /// What it was published as.
    pub name: String,
    /// Seconds since it was published.
    pub uptime_s: f64,
    /// Seconds that the rates and shares are of; 0 before there was an interval, and they are 0 then.
    pub interval_s: f64,
    /// Which stage holds the others up, if any does work.
    pub slowest: Option<Slowest>,
    /// In the order they were added.
    pub stages: Vec<StageReport>,
    /// In the order they were connected.
    pub queues: Vec<QueueReport>,
}

/// What a stage did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// Its name.
    pub name: String,
    /// Frames a second that went through it.
    pub frames_per_s: f64,
    /// Samples a second and channel.
    pub samples_per_s: f64,
    /// The share of the interval that it worked, 0 to 1.
    pub busy_share: f64,
    /// The share that it waited inside its steps, 0 to 1: for room, for a chunk, for its time. What is left, it was not called.
    pub waiting_share: f64,
    /// Frames since the start.
    pub frames: u64,
    /// Samples a channel since the start.
    pub samples: u64,
    /// Frames that it read or handed on where they lie, since the start.
    pub borrowed_frames: u64,
    /// Frames whose samples it copied, since the start.
    pub copied_frames: u64,
    /// From the producer's stamp to this stage, over about the last second.
    pub latency: Option<Latency>,
    /// The stage's own counters, since the start.
    pub own: BTreeMap<String, u64>,
}

/// What a queue did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueReport {
    /// The stage that fills it.
    pub from: String,
    /// The stage that empties it.
    pub to: String,
    /// What happens when it is full.
    pub policy: Policy,
    /// How full it is, 0 to 1: by batches or by bytes, whichever is nearer to its bound.
    pub fill: f64,
    /// Batches queued.
    pub queued_batches: usize,
    /// Batches that fit.
    pub capacity_batches: usize,
    /// Bytes that the queued batches pin.
    pub queued_bytes: u64,
    /// Bytes that fit, where they are bounded.
    pub capacity_bytes: Option<usize>,
    /// Frames a second taken in.
    pub frames_per_s: f64,
    /// Frames a second dropped.
    pub dropped_frames_per_s: f64,
    /// Frames dropped under its policy since the start.
    pub dropped_frames: u64,
    /// Samples a channel in them.
    pub dropped_samples: u64,
}

/// A process that publishes.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// The process.
    pub pid: u32,
    /// What it publishes its graph as.
    pub name: String,
    /// What it said last; `None` until it said something.
    pub report: Option<Report>,
    /// How long ago that was, or since it was found.
    pub silent_for: std::time::Duration,
}

impl Report {
    /// What happened between two snapshots of one graph, the older one first.
    ///
    /// ```
    /// # use grebe_flow::{Snapshot, StageSnapshot, telemetry::Report};
    /// let at = |at_ns, frames_out| Snapshot {
    ///     at_ns,
    ///     stages: vec![StageSnapshot { name: "source".into(), frames_out, ..Default::default() }],
    ///     queues: vec![],
    /// };
    /// let report = Report::between("sg", &at(0, 100), &at(2_000_000_000, 300));
    /// assert_eq!((report.interval_s, report.stages[0].frames_per_s), (2.0, 100.0));
    /// ```
    pub fn between(name: &str, before: &Snapshot, after: &Snapshot) -> Self {
        let interval = Interval::new(before, after);
        let stages: Vec<StageReport> = after
            .stages
            .iter()
            .enumerate()
            .map(|(at, stage)| stage_report(&interval, before.stages.get(at), stage))
            .collect();
        let queues: Vec<QueueReport> = after
            .queues
            .iter()
            .enumerate()
            .map(|(at, queue)| queue_report(&interval, before.queues.get(at), queue))
            .collect();
        Self {
            pid: std::process::id(),
            name: name.to_owned(),
            uptime_s: 0.0,
            interval_s: interval.ns as f64 / 1e9,
            slowest: slowest::of(&stages, &queues),
            stages,
            queues,
        }
    }

    /// The stage of this name.
    pub fn stage(&self, name: &str) -> Option<&StageReport> {
        self.stages.iter().find(|stage| stage.name == name)
    }
}

/// The time between two snapshots.
struct Interval {
    ns: u64,
}

impl Interval {
    fn new(before: &Snapshot, after: &Snapshot) -> Self {
        Self { ns: after.at_ns.saturating_sub(before.at_ns) }
    }

    /// Of a counter that had one value and has another.
    fn per_s(&self, before: u64, after: u64) -> f64 {
        if self.ns == 0 { 0.0 } else { after.saturating_sub(before) as f64 * 1e9 / self.ns as f64 }
    }

    fn share(&self, before_ns: u64, after_ns: u64) -> f64 {
        (self.per_s(before_ns, after_ns) / 1e9).min(1.0)
    }
}

fn stage_report(interval: &Interval, before: Option<&StageSnapshot>, after: &StageSnapshot) -> StageReport {
    let none = StageSnapshot::default();
    let before = before.unwrap_or(&none);
    let frames = |stage: &StageSnapshot| stage.frames_in.max(stage.frames_out);
    let samples = |stage: &StageSnapshot| stage.samples_in.max(stage.samples_out);
    let has_moved = frames(before) != frames(after);
    StageReport {
        name: after.name.clone(),
        frames_per_s: interval.per_s(frames(before), frames(after)),
        samples_per_s: interval.per_s(samples(before), samples(after)),
        busy_share: interval.share(before.busy_ns, after.busy_ns),
        waiting_share: interval.share(before.waited_ns, after.waited_ns),
        frames: frames(after),
        samples: samples(after),
        borrowed_frames: after.borrowed_frames(),
        copied_frames: after.copied_frames,
        // What was measured before the stream paused says nothing of now.
        latency: after.latency.filter(|_| has_moved),
        own: after.own.iter().map(|&(name, value)| (name.to_owned(), value)).collect(),
    }
}

fn queue_report(interval: &Interval, before: Option<&QueueSnapshot>, after: &QueueSnapshot) -> QueueReport {
    let (frames, dropped) = before.map_or((0, 0), |before| (before.frames, before.dropped_frames));
    QueueReport {
        from: after.from.clone(),
        to: after.to.clone(),
        policy: after.policy,
        fill: after.fill(),
        queued_batches: after.queued_batches,
        capacity_batches: after.capacity_batches,
        queued_bytes: after.queued_bytes,
        capacity_bytes: after.capacity_bytes,
        frames_per_s: interval.per_s(frames, after.frames),
        dropped_frames_per_s: interval.per_s(dropped, after.dropped_frames),
        dropped_frames: after.dropped_frames,
        dropped_samples: after.dropped_samples,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(at_ns: u64, frames: u64, busy_ns: u64, dropped_frames: u64) -> Snapshot {
        Snapshot {
            at_ns,
            stages: vec![StageSnapshot {
                name: "udp".into(),
                frames_in: frames,
                samples_in: frames * 10,
                busy_ns,
                waited_ns: busy_ns / 2,
                latency: Some(Latency::default()),
                own: vec![("lost_frames", 7)],
                ..StageSnapshot::default()
            }],
            queues: vec![QueueSnapshot {
                from: "udp".into(),
                to: "scope".into(),
                policy: Policy::DropOldest,
                capacity_batches: 8,
                queued_batches: 2,
                capacity_bytes: Some(1000),
                queued_bytes: 900,
                frames,
                dropped_frames,
                dropped_samples: dropped_frames * 10,
            }],
        }
    }

    #[test]
    fn rates_and_shares_are_of_the_interval() {
        let report =
            Report::between("view", &snapshot(1_000, 100, 0, 5), &snapshot(500_001_000, 300, 250_000_000, 9));
        let (stage, queue) = (&report.stages[0], &report.queues[0]);
        assert_eq!((stage.frames_per_s, stage.samples_per_s), (400.0, 4000.0));
        assert_eq!((stage.busy_share, stage.waiting_share), (0.5, 0.25));
        assert_eq!((queue.dropped_frames_per_s, queue.dropped_frames), (8.0, 9));
        assert!((queue.fill - 0.9).abs() < 1e-9, "by bytes it is fuller than by batches");
    }

    #[test]
    fn without_an_interval_nothing_is_infinite() {
        let at = snapshot(1_000, 100, 77, 5);
        let report = Report::between("view", &at, &at);
        assert_eq!((report.stages[0].frames_per_s, report.stages[0].busy_share), (0.0, 0.0));
        assert_eq!(report.stages[0].latency, None, "nothing moved: an old latency is not told");
    }

    #[test]
    fn a_report_survives_its_line_of_json() {
        let report = Report::between("view", &snapshot(0, 1, 0, 0), &snapshot(1_000_000_000, 3, 10, 1));
        let line = serde_json::to_string(&report).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Report>(&line).unwrap(), report);
    }
}
