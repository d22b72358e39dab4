//! The bench itself: that each way delivers what was made, that its rows add up, and that it sees what is wrong.

use std::process::Command;
use std::time::Duration;

use grebe_bench::shm::{self, Checker, Job, Maker, Plan, SCENARIOS, Technique, Work};
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
    } else {
        println!("skipped: there is no shared memory of this kind here");
    }
    stale_and_lost_frames_are_seen_by_either_work();
    a_frame_larger_than_a_chunk_is_refused();
    println!("all passed");
}

fn every_way_delivers_what_was_made() {
    let plan = Plan { duration: Duration::from_millis(60), repeats: 1, ..Plan::new(peer) };
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

fn stale_and_lost_frames_are_seen_by_either_work() {
    for work in [Work::MinMax, Work::CopyOut] {
        let job = Job {
            channels: 2,
            block: 64,
            target_msps: None,
            duration: Duration::from_secs(60),
            tick: Duration::from_micros(100),
            technique: Technique::Shm,
            work,
            queue_batches: 4,
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
