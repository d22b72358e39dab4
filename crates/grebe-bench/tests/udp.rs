//! The bench itself: that it sees what is wrong, and that its rows add up.

use std::time::Duration;

use grebe_bench::udp::{self, Fault, Plan, Scenario, Technique};

fn plan() -> Plan {
    Plan {
        scenarios: vec![Scenario::by_label("4ch_10MSPS").unwrap()],
        datagram_bytes: vec![1_400],
        techniques: vec![Technique::Mmsg, Technique::Gso, Technique::GsoRun],
        duration: Duration::from_millis(150),
        repeats: 1,
        ..Plan::default()
    }
}

#[test]
fn every_technique_delivers_what_was_sent() {
    let rows = udp::run(&plan(), |_| {}).unwrap();
    let techniques: Vec<_> = rows.iter().map(|row| row.technique).collect();
    assert_eq!(techniques, Technique::ALL);
    for row in rows {
        assert_eq!((row.corrupt, row.reordered), (0, 0), "{}", row.line());
        assert!(row.frames_recv > 0 && row.frames_recv <= row.frames_sent, "{}", row.line());
        assert_eq!(row.lost_kernel + row.lost_network, row.frames_sent - row.frames_recv);
        assert_eq!((row.block_size, row.datagram_size), (167, 1_400));
        assert!(row.ratio.is_some() && row.latency.max_us >= row.latency.p50_us);
    }
}

#[test]
fn stale_swapped_and_shifted_samples_are_detected_on_every_technique() {
    for fault in [Fault::Stale, Fault::Swapped, Fault::Shifted] {
        let rows = udp::run(&Plan { fault: Some(fault), ..plan() }, |_| {}).unwrap();
        for row in rows {
            let expected = row.frames_recv / 100;
            assert!(
                row.corrupt.abs_diff(expected) <= 1 + expected / 2 && row.corrupt > 0,
                "{fault:?}: every hundredth frame was spoiled: {}",
                row.line()
            );
        }
    }
}

#[test]
fn the_json_has_the_fields_of_the_seeds() {
    let rows =
        udp::run(&Plan { baseline: false, techniques: vec![Technique::Gso], ..plan() }, |_| {}).unwrap();
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
        "mood_before",
        "mood_after",
        "ratio",
        "latency",
        "lost_kernel",
        "lost_network",
    ] {
        assert!(json.get(field).is_some(), "{field}");
    }
    assert!(udp::markdown(&rows).lines().count() == 3);
}

#[test]
fn a_sweep_ends_below_the_rate_that_fails() {
    let plan = Plan { duration: Duration::from_millis(60), techniques: vec![Technique::Gso], ..plan() };
    let reach = udp::reach(&plan, Scenario::by_label("1ch_1MSPS").unwrap(), 2_000.0, 2).unwrap();
    assert!(reach.tried.len() >= 2);
    if let Some(best) = reach.best {
        assert_eq!(best.frames_recv, best.frames_sent);
    }
}

#[test]
fn amortisation_counts_datagrams_and_calls() {
    let [one, many] = udp::amortise(1, Duration::from_millis(60)).unwrap();
    assert!((one.per_call - 1.0).abs() < f64::EPSILON);
    assert!(many.recv_per_sec > 0.0 && many.per_call > 0.0);
}
