//! Differences between two snapshots, and the slowest stage.

use std::collections::BTreeMap;

use grebe_ring::Policy;

use super::report::{FULL, QueueReport, Report, Slowest, StageReport};
use crate::snapshot::{QueueSnapshot, Snapshot, StageSnapshot};

impl Report {
    /// Compares two snapshots of one graph, the older one first.
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
        let interval = Interval { ns: after.at_ns.saturating_sub(before.at_ns) };
        let stages = after.stages.iter().enumerate();
        let stages: Vec<_> =
            stages.map(|(at, stage)| stage_report(&interval, before.stages.get(at), stage)).collect();
        let queues = after.queues.iter().enumerate();
        let queues: Vec<_> =
            queues.map(|(at, queue)| queue_report(&interval, before.queues.get(at), queue)).collect();
        Self {
            pid: std::process::id(),
            name: name.to_owned(),
            about: BTreeMap::new(),
            uptime_s: 0.0,
            interval_s: interval.ns as f64 / 1e9,
            slowest: slowest(&stages, &queues),
            stages,
            queues,
        }
    }
}

struct Interval {
    ns: u64,
}

impl Interval {
    /// Rate of a counter between two values.
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
        // A latency from before a pause of the stream is obsolete.
        latency: after.latency.filter(|_| has_moved),
        own: after.own.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
    }
}

fn queue_report(interval: &Interval, before: Option<&QueueSnapshot>, after: &QueueSnapshot) -> QueueReport {
    let (frames, dropped) = before.map_or((0, 0), |before| (before.frames, before.dropped_frames));
    QueueReport {
        queue: after.clone(),
        fill: after.fill(),
        frames_per_s: interval.per_s(frames, after.frames),
        dropped_frames_per_s: interval.per_s(dropped, after.dropped_frames),
    }
}

/// The last stage with a full input, or the busiest stage if no input is full.
///
/// A slow stage fills the `block` queues before it one by one, up to the source. So the slow one is the last
/// stage with a full input.
fn slowest(stages: &[StageReport], queues: &[QueueReport]) -> Option<Slowest> {
    let input_fill = |stage: &StageReport| {
        queues.iter().filter(|at| at.queue.to == stage.name).map(|at| at.fill).fold(0.0, f64::max)
    };
    let is_held_up = |stage: &StageReport| {
        queues
            .iter()
            .any(|at| at.queue.from == stage.name && at.queue.policy == Policy::Block && at.fill >= FULL)
    };
    let busiest = |among: &mut dyn Iterator<Item = &StageReport>| {
        among.max_by(|a, b| a.busy_share.total_cmp(&b.busy_share)).map(|stage| Slowest {
            stage: stage.name.clone(),
            busy_share: stage.busy_share,
            input_fill: input_fill(stage),
        })
    };
    busiest(&mut stages.iter().filter(|stage| input_fill(stage) >= FULL && !is_held_up(stage)))
        .or_else(|| busiest(&mut stages.iter().filter(|stage| stage.busy_share > 0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Latency;

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
                own: vec![("lost_frames".into(), 7)],
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
        assert_eq!((queue.dropped_frames_per_s, queue.queue.dropped_frames), (8.0, 9));
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

    /// Chain source > filter > sink with these busy shares and fills.
    fn slowest_of(busy: [u64; 3], fills: [usize; 2], policy: Policy) -> Option<Slowest> {
        let names = ["source", "filter", "sink"];
        let at = |at_ns: u64| Snapshot {
            at_ns,
            stages: (0..3)
                .map(|stage| StageSnapshot {
                    name: names[stage].into(),
                    busy_ns: busy[stage] * at_ns / 100,
                    ..StageSnapshot::default()
                })
                .collect(),
            queues: (0..2)
                .map(|queue| QueueSnapshot {
                    from: names[queue].into(),
                    to: names[queue + 1].into(),
                    policy,
                    capacity_batches: 100,
                    queued_batches: fills[queue],
                    capacity_bytes: None,
                    queued_bytes: 0,
                    frames: 0,
                    dropped_frames: 0,
                    dropped_samples: 0,
                })
                .collect(),
        };
        Report::between("test", &at(0), &at(1_000_000_000)).slowest
    }

    #[test]
    fn the_last_stage_with_a_full_input_is_the_slow_one() {
        let sink = slowest_of([90, 70, 60], [100, 97], Policy::Block).unwrap();
        assert_eq!(sink.stage, "sink");
        assert_eq!(
            sink.to_string(),
            "sink, busy 60 %: its input is 97 % full and the stages before it wait or drop"
        );
        assert_eq!(slowest_of([90, 70, 60], [100, 3], Policy::Block).unwrap().stage, "filter");
        // A dropping queue blocks nobody: both stages are too slow for their input, and the busier one is
        // named.
        assert_eq!(slowest_of([20, 95, 60], [100, 97], Policy::DropOldest).unwrap().stage, "filter");
    }

    #[test]
    fn without_full_queues_the_busiest_stage_is_named() {
        let source = slowest_of([97, 30, 20], [5, 0], Policy::Block).unwrap();
        assert_eq!(source.to_string(), "source, busy 97 %: it sets the pace");
        assert_eq!(
            slowest_of([10, 30, 20], [5, 0], Policy::Block).unwrap().to_string(),
            "filter, busy 30 %: nothing waits for it"
        );
        assert_eq!(slowest_of([0, 0, 0], [0, 0], Policy::Block), None);
    }
}
