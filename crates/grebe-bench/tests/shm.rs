//! The bench itself: that each way delivers what was made, that its rows add up, and that it sees what is wrong.

use std::process::Command;
use std::time::Duration;

use grebe_bench::shm::{self, Checker, Job, Maker, Part, Plan, Report, SCENARIOS, Scenario, Technique, Work};
use grebe_frame::{HEADER_BYTES, Header};

/// This program again, as a consumer: why there is no test harness, which would print around the report.
fn peer() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("peer");
    command
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("peer") {
        return shm::peer_main().unwrap();
    }
    if cfg!(target_os = "linux") {
        every_way_delivers_what_was_made();
        every_way_into_a_program_leads_to_the_same_stages();
    } else {
        println!("skipped: there is no shared memory of this kind here");
    }
    stale_and_lost_frames_are_seen_by_either_work();
    a_frame_larger_than_a_chunk_is_refused();
    scenarios_are_chosen_by_part_and_label();
    what_is_out_of_bounds_fails();
    println!("all passed");
}

fn every_way_delivers_what_was_made() {
    let plan = Plan { duration: Duration::from_millis(80), repeats: 1, ..Plan::new(peer) };
    let rows = shm::run(&plan, |_| {}).unwrap();
    let free: Vec<_> = rows.iter().filter(|row| row.label == "free_run").map(|row| row.technique).collect();
    assert_eq!(free, [Technique::Shm, Technique::UnixStream, Technique::Pipe]);
    for row in &rows {
        assert_eq!((row.corrupt, row.reordered), (0, 0), "{}", row.line());
        assert!(row.frames_recv > 0 && row.frames_recv <= row.frames_sent, "{}", row.line());
        if row.target_rate_msps == 0.0 {
            assert_eq!(row.frames_recv, row.frames_sent, "nobody drops: {}", row.line());
        }
        if row.technique == Technique::Shm {
            assert_eq!(row.copies, 0);
            assert!(row.footprint_bytes > 64 << 20);
        }
    }
    let faults = rows.iter().find_map(|row| row.faults).unwrap();
    assert!(faults.noticed_ms.is_some() && faults.leftover_chunks == 0, "{faults:?}");
    let fan_out = rows.iter().find(|row| row.label == "4ch_1GSPS_fanout2").unwrap();
    assert_eq!(fan_out.consumers.len(), 2);
    let copied = &fan_out.consumers[1];
    let payload = fan_out.datagram_size - HEADER_BYTES;
    assert_eq!((copied.work, copied.copied_out), (Work::CopyOut, copied.frames * payload as u64));
    let shm = rows.iter().find(|row| row.label == "free_run").unwrap();
    assert!(shm.ratios.contains_key("pipe") && shm.ratios.contains_key("unix_stream"), "{:?}", shm.ratios);
    assert_eq!(shm::markdown(&rows).lines().count(), 2 + rows.len());
    let json = serde_json::to_value(shm).unwrap();
    for field in
        ["label", "channels", "block_size", "datagram_size", "drop_rate", "mood_before", "near", "latency"]
    {
        assert!(json.get(field).is_some(), "{field}");
    }
}

fn every_way_into_a_program_leads_to_the_same_stages() {
    let plan = Plan {
        scenarios: Scenario::choose(&[Part::Pipe, Part::Ingress], &["free_run", "ingress_10MSPS"]).unwrap(),
        duration: Duration::from_millis(60),
        repeats: 1,
        ..Plan::new(peer)
    };
    let rows = shm::run(&plan, |_| {}).unwrap();
    let ways: Vec<_> = rows.iter().map(|row| (row.label.as_str(), row.name.as_str())).collect();
    let expected = [
        ("free_run", "pipe"),
        ("free_run", "plain_pipe"),
        ("ingress_10MSPS", "embedded"),
        ("ingress_10MSPS", "shm"),
        ("ingress_10MSPS", "pipe"),
        ("ingress_10MSPS", "udp"),
    ];
    assert_eq!(ways, expected);
    for row in &rows {
        assert_eq!((row.corrupt, row.reordered), (0, 0), "{}", row.line());
        assert!(row.frames_recv > 0, "{}", row.line());
        let is_compared = row.label == "ingress_10MSPS" && row.technique != Technique::Embedded;
        assert_eq!(row.latency_ratio.is_some(), is_compared);
        let sleeps_us = match row.technique {
            _ if row.label == "free_run" => 0.0,
            Technique::Udp => 375.0,
            _ => 125.0,
        };
        assert_eq!(row.sleep_budget_us, sleeps_us, "{}", row.line());
        if matches!(row.technique, Technique::Shm | Technique::Embedded) {
            assert_eq!(row.copies, 0, "{}", row.line());
        }
    }
}

fn stale_and_lost_frames_are_seen_by_either_work() {
    for work in [Work::MinMax, Work::CopyOut] {
        let job = Job {
            channels: 2,
            block: 64,
            target_msps: None,
            duration: Duration::from_secs(60),
            tick: Duration::from_micros(100),
            technique: Technique::Shm,
            in_graph: false,
            work,
            queue_batches: 4,
            chunk_bytes: 1 << 16,
            core: None,
            directory: "/".into(),
        };
        let (mut maker, mut checker) = (Maker::new(&job), Checker::new(&job).unwrap());
        let mut frame = vec![0; job.frame_bytes()];
        for sequence in 0..10u64 {
            let before = frame.clone();
            let header: Header = maker.write(&mut frame);
            match sequence {
                // Its samples are those of the frame before.
                4 => checker.frame(&header, &before[HEADER_BYTES..], 0),
                7 => {}
                _ => checker.frame(&header, &frame[HEADER_BYTES..], 0),
            }
        }
        maker.write(&mut frame);
        checker.end(&maker.end());
        let seen = checker.finish();
        assert_eq!((seen.frames, seen.corrupt, seen.lost, seen.ended), (9, 1, 2, true), "{work:?}");
    }
}

fn a_frame_larger_than_a_chunk_is_refused() {
    let plan = Plan { frame_bytes: 1 << 20, scenarios: vec![SCENARIOS[0]], ..Plan::new(peer) };
    let error = shm::run(&plan, |_| {}).unwrap_err().to_string();
    assert!(error.contains("does not fit a chunk"), "{error}");
}

fn scenarios_are_chosen_by_part_and_label() {
    let labels = |parts: &[Part], labels: &[&str]| -> Vec<_> {
        Scenario::choose(parts, labels)
            .unwrap()
            .iter()
            .map(|scenario| (scenario.part, scenario.label))
            .collect()
    };
    assert_eq!(labels(&[Part::Pipe], &["free_run"]), [(Part::Pipe, "free_run")]);
    assert_eq!(labels(&[Part::Shm, Part::Pipe, Part::Ingress], &[]).len(), SCENARIOS.len());
    let error = Scenario::choose(&[Part::Pipe], &["faults"]).unwrap_err().to_string();
    assert!(error.contains("faults") && error.contains("1ch_1GSPS, free_run"), "{error}");
}

fn what_is_out_of_bounds_fails() {
    let plan = Plan {
        scenarios: Scenario::choose(&[Part::Pipe], &["1ch_1GSPS"]).unwrap(),
        duration: Duration::from_millis(20),
        repeats: 1,
        ..Plan::new(peer)
    };
    let mut row = shm::run(&plan, |_| {}).unwrap().remove(0);
    (row.frames_skipped, row.latency.max_us) = (0, 49_999.0);
    row.consumers[0].lost = 0;
    assert_eq!(Report::of(vec![row.clone()]).failed(), 0);
    row.latency.max_us = 50_001.0;
    row.consumers[0].lost = 1;
    let report = Report::of(vec![row]);
    assert_eq!(report.failed(), 2);
    assert_eq!(report.markdown().matches("FAIL").count(), 2);
}
