//! The bench of shared memory as a whole: that each technique delivers what was made, and that its rows add up.

use std::process::Command;
use std::time::Duration;

use grebe_bench::shm::{self, Options, Part};
use grebe_bench::{Launcher, Progress, Row, Runs, markdown, peer_main};
use serde_json::Value;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("peer") {
        return peer_main(None).unwrap();
    }
    if cfg!(target_os = "linux") {
        every_technique_delivers_what_was_made();
        every_way_into_a_program_leads_to_the_same_stages();
    } else {
        println!("skipped: the techniques beside shared memory need Linux");
    }
    a_frame_larger_than_a_chunk_is_refused();
    println!("all passed");
}

/// All parts of the shared memory bench, with this program as a consumer too. A test harness would print between the
/// answers.
fn options(duration_ms: u64) -> Options {
    let launcher = Launcher::new(|| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("peer");
        command
    });
    let runs = Runs { duration: Duration::from_millis(duration_ms), repeats: 1 };
    Options { runs, launcher: Some(launcher), ..Options::default() }
}

fn run(options: &Options) -> (Vec<Row>, Vec<Value>) {
    let mut rows = Vec::new();
    shm::run(options, &mut |progress| {
        if let Progress::Row(row) = progress {
            rows.push(row.clone());
        }
    })
    .unwrap();
    let json = rows.iter().map(|row| serde_json::to_value(row).unwrap()).collect();
    (rows, json)
}

fn number(row: &Value, path: &str) -> f64 {
    row.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {row}"))
}

fn every_technique_delivers_what_was_made() {
    let (rows, json) = run(&options(80));
    let of = |label: &str| json.iter().filter(|row| row["label"] == label).collect::<Vec<_>>();
    let free: Vec<_> = of("free_run").iter().map(|row| row["technique"].as_str().unwrap()).collect();
    assert_eq!(free, ["shm", "unix_stream", "pipe", "udp"]);
    for row in &json {
        assert_eq!((number(row, "/corrupt"), number(row, "/reordered")), (0.0, 0.0), "{row}");
        let (sent, taken) = (number(row, "/frames_sent"), number(row, "/frames_recv"));
        assert!(taken > 0.0 && taken <= sent, "{row}");
        if number(row, "/target_rate_msps") == 0.0 && row["technique"] != "udp" {
            assert_eq!(taken, sent, "nobody drops: {row}");
        }
        if row["technique"] == "shm" {
            assert_eq!(number(row, "/copies"), 0.0);
            assert!(number(row, "/footprint_bytes") > 64e6);
        }
    }
    let faults = of("faults")[0];
    assert!(faults["faults"]["noticed_ms"].is_number(), "{faults}");
    assert_eq!(number(faults, "/faults/leftover_chunks"), 0.0, "{faults}");
    let fan_out = of("4ch_1GSPS_fanout2")[0];
    assert_eq!(fan_out["consumers"].as_array().unwrap().len(), 2);
    let copied = &fan_out["consumers"][1];
    let payload_bytes = number(fan_out, "/datagram_size") - 64.0;
    assert_eq!(copied["work"], "copy_out");
    assert_eq!(number(copied, "/copied_out"), number(copied, "/frames") * payload_bytes);
    let shm = of("free_run")[0];
    assert!(number(shm, "/ratios/pipe") > 0.0 && number(shm, "/ratios/unix_stream") > 0.0);
    for field in
        ["label", "channels", "block_size", "datagram_size", "drop_rate", "machine_before", "near", "latency"]
    {
        assert!(shm.get(field).is_some(), "{field}");
    }
    let goals: usize = json.iter().map(|row| row["goals"].as_array().map_or(0, Vec::len)).sum();
    let lines = markdown(&rows).lines().filter(|line| line.starts_with("| ")).count();
    assert_eq!(lines, 2 + rows.len() + goals, "a table of rows and one of goals");
}

fn every_way_into_a_program_leads_to_the_same_stages() {
    let (_, json) = run(&Options {
        parts: vec![Part::Pipe, Part::Ingress],
        scenario: ["free_run", "ingress_10MSPS"].map(str::to_owned).to_vec(),
        ..options(60)
    });
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
    let techniques: Vec<_> = json.iter().map(|row| (text(row, "label"), text(row, "technique"))).collect();
    let expected = [
        ("free_run", "pipe"),
        ("free_run", "plain_pipe"),
        ("ingress_10MSPS", "embedded"),
        ("ingress_10MSPS", "shm"),
        ("ingress_10MSPS", "pipe"),
        ("ingress_10MSPS", "udp"),
    ];
    assert_eq!(techniques, expected.map(|(label, technique)| (label.to_owned(), technique.to_owned())));
    for row in &json {
        assert_eq!((number(row, "/corrupt"), number(row, "/reordered")), (0.0, 0.0), "{row}");
        assert!(number(row, "/frames_recv") > 0.0, "{row}");
        let is_ingress = row["label"] == "ingress_10MSPS";
        assert_eq!(row["latency_ratio"].is_object(), is_ingress && row["technique"] != "embedded");
        let sleeps_us = match row["technique"].as_str().unwrap() {
            _ if !is_ingress => 0.0,
            "udp" => 375.0,
            _ => 125.0,
        };
        assert_eq!(number(row, "/sleep_budget_us"), sleeps_us, "{row}");
        if row["technique"] == "shm" || row["technique"] == "embedded" {
            assert_eq!(number(row, "/copies"), 0.0, "{row}");
        }
    }
}

fn a_frame_larger_than_a_chunk_is_refused() {
    let options = Options { frame_size: 1 << 20, ..options(20) };
    let error = shm::run(&options, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("does not fit a chunk"), "{error}");
}
