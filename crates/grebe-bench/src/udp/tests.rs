//! The bench itself: that it sees what is wrong, and that its rows add up.

use std::time::Duration;

use super::options::scenarios;
use super::run::{all, reach};
use super::{Buffers, Options, Technique};
use crate::row::{Progress, markdown};
use crate::runs::Runs;
use crate::stream::StreamRun;

fn options() -> Options {
    Options {
        scenario: vec!["4ch_10MSPS".to_owned()],
        datagram_size: vec![1_400],
        technique: vec![Technique::Mmsg, Technique::Gso, Technique::GsoRun],
        buffers: Buffers::Privileged,
        runs: Runs { duration: Duration::from_millis(150), repeats: 1 },
        ..Options::default()
    }
}

fn runs(options: &Options) -> Vec<StreamRun> {
    let mut runs = Vec::new();
    all(options, &mut |run| runs.push(run)).unwrap();
    runs
}

#[test]
fn every_technique_delivers_the_sent_datagrams() {
    let runs = runs(&options());
    let techniques: Vec<_> = runs.iter().map(|run| run.technique.as_str()).collect();
    assert_eq!(techniques, ["one_call", "mmsg", "gso", "gso_run"]);
    for run in runs {
        assert_eq!((run.corrupt, run.reordered), (0, 0), "{run:?}");
        assert!(run.frames_recv > 0 && run.frames_recv <= run.frames_sent, "{run:?}");
        assert_eq!((run.block_size, run.datagram_size), (167, 1_400));
        assert!(run.latency.max_us >= run.latency.p50_us);
        let sockets = run.sockets.unwrap();
        assert_eq!(sockets.lost_kernel + sockets.lost_network, run.frames_sent - run.frames_recv);
        assert!(sockets.ratio.is_some());
    }
}

#[test]
fn stale_swapped_and_shifted_samples_are_detected_on_every_technique() {
    // The samples of the frame before, the second half in place of the first, and samples moved by one.
    for (fault, spoiled_by) in [("stale", -64), ("swapped", 668), ("shifted", 2)] {
        for run in runs(&Options { spoiled_by, ..options() }) {
            let expected = run.frames_recv / 100;
            assert!(
                run.corrupt.abs_diff(expected) <= 1 + expected / 2 && run.corrupt > 0,
                "{fault}: every hundredth frame was spoiled: {run:?}"
            );
        }
    }
}

#[test]
fn the_json_has_the_fields_of_the_seeds() {
    let options = Options { no_baseline: true, technique: vec![Technique::Gso], ..options() };
    let mut rows = Vec::new();
    super::run(&options, &mut |progress| {
        if let Progress::Row(row) = progress {
            rows.push(row.clone());
        }
    })
    .unwrap();
    let json = serde_json::to_value(&rows[0]).unwrap();
    for field in [
        "label",
        "channels",
        "block_size",
        "datagram_size",
        "burst_size",
        "target_rate_msps",
        "duration_s",
        "frames_sent",
        "frames_recv",
        "frames_per_sec",
        "throughput_msps",
        "throughput_mbps",
        "drop_rate",
        "technique",
        "machine_before",
        "machine_after",
        "ratio",
        "latency",
        "lost_kernel",
        "lost_network",
    ] {
        assert!(json.get(field).is_some(), "{field}");
    }
    assert_eq!(markdown(&rows).lines().filter(|line| line.starts_with('|')).count(), 3);
}

#[test]
fn a_search_ends_below_the_rate_that_fails() {
    let options = Options {
        scenario: vec!["1ch_1MSPS".to_owned()],
        runs: Runs { duration: Duration::from_millis(60), repeats: 1 },
        technique: vec![Technique::Gso],
        ..options()
    };
    let (mut tried, mut rows) = (0, 0);
    reach(&options, 2_000.0, 2, &mut |progress| match progress {
        Progress::Doing(_) => tried += 1,
        Progress::Row(_) => rows += 1,
    })
    .unwrap();
    assert!(tried >= 2 && rows == 1);
}

fn scenario(label: &str) -> crate::Result<crate::stream::Stream> {
    scenarios(&[label.to_owned()]).map(|found| found[0])
}

#[test]
fn all_names_every_scenario() {
    assert_eq!(scenarios(&["all".to_owned()]).unwrap().len(), 14);
}

#[test]
fn blocks_are_those_of_the_seeds() {
    let block = |label, bytes| scenario(label).unwrap().block_for(bytes, 1).unwrap();
    assert_eq!(block("1ch_max", 1_400), 668);
    assert_eq!(block("1ch_max", 65_000), 32_468);
    assert_eq!(block("4ch_max", 65_000), 8_117);
    assert_eq!(block("1ch_256", 1_400), 256);
}

#[test]
fn an_unknown_label_is_answered_with_the_known_ones() {
    let error = scenario("9ch").unwrap_err().to_string();
    assert!(error.contains("9ch") && error.contains("4ch_1GSPS"), "{error}");
}

#[test]
fn a_datagram_without_room_is_refused() {
    assert!(scenario("4ch_max").unwrap().block_for(71, 1).is_err());
}
