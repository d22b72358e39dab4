//! Which stage holds the others up, and how that is known.

use grebe_ring::Policy;

use super::report::{FULL, QueueReport, Slowest, StageReport};

/// The stage before which work piles up and behind which it does not; where nothing piles up, the busiest.
///
/// A slow stage fills the `block` queues before it, one after the other up to the source: the slow one is the last of the
/// stages with a full input.
pub(crate) fn of(stages: &[StageReport], queues: &[QueueReport]) -> Option<Slowest> {
    let input_fill = |stage: &StageReport| {
        queues.iter().filter(|queue| queue.to == stage.name).map(|queue| queue.fill).fold(0.0, f64::max)
    };
    let is_held_up = |stage: &StageReport| {
        queues
            .iter()
            .any(|queue| queue.from == stage.name && queue.policy == Policy::Block && queue.fill >= FULL)
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
    use crate::telemetry::Report;
    use crate::{QueueSnapshot, Snapshot, StageSnapshot};

    /// A chain source > filter > sink with these busy shares and fills.
    fn slowest(busy: [u64; 3], fills: [usize; 2], policy: Policy) -> Option<Slowest> {
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
        let sink = slowest([90, 70, 60], [100, 97], Policy::Block).unwrap();
        assert_eq!(sink.stage, "sink");
        assert_eq!(
            sink.to_string(),
            "sink, busy 60 %: its input is 97 % full and the stages before it wait or drop"
        );
        assert_eq!(slowest([90, 70, 60], [100, 3], Policy::Block).unwrap().stage, "filter");
        // A queue that drops holds nobody up: both are too slow for their input, and the busier one is named.
        assert_eq!(slowest([20, 95, 60], [100, 97], Policy::DropOldest).unwrap().stage, "filter");
    }

    #[test]
    fn where_nothing_piles_up_the_busiest_is_named() {
        let source = slowest([97, 30, 20], [5, 0], Policy::Block).unwrap();
        assert_eq!(source.to_string(), "source, busy 97 %: it sets the pace");
        assert_eq!(
            slowest([10, 30, 20], [5, 0], Policy::Block).unwrap().to_string(),
            "filter, busy 30 %: nothing waits for it"
        );
        assert_eq!(slowest([0, 0, 0], [0, 0], Policy::Block), None);
    }
}
