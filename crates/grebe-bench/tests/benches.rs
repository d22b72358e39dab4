//! The program, as a developer runs it: what it prints and writes, never how fast anything was.

use std::fs;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grebe-bench"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn run(arguments: &[&str]) -> Output {
    start(arguments).wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs it; returns its JSON output and its standard error.
fn measured(arguments: &[&str]) -> (Vec<Value>, String) {
    let output = run(&[arguments, &["--json"]].concat());
    let said = text(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    (serde_json::from_slice(&output.stdout).unwrap(), said)
}

fn of_kind<'a>(rows: &'a [Value], kind: &str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row["kind"] == kind).collect()
}

fn number(row: &Value, path: &str) -> f64 {
    row.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {row}"))
}

#[test]
fn simulated_links_have_goals_phases_and_tcp_beside_them() {
    let (rows, said) =
        measured(&["transfer", "--parts", "links,random", "--only", "B", "--links", "2", "--repeats", "2"]);
    let links = of_kind(&rows, "link");
    let names: Vec<_> = links.iter().map(|row| row["link"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["B", "1", "2"]);
    assert_eq!(rows.len(), 3);
    for row in &links {
        assert_eq!((row["over"].as_str(), row["runs"].as_u64()), (Some("simulator"), Some(2)));
        assert!(number(row, "/seconds/median") > number(row, "/wire_s") * 0.9);
        assert!(number(row, "/wire_bytes_ratio/low") > 1.0);
        assert_eq!(row["phases"].as_array().unwrap().len(), 8);
        let beside: Vec<_> =
            row["baselines"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(beside, ["TCP CUBIC", "TCP BBR"]);
    }
    assert_eq!(links[1]["link"]["rate_mbit"], 243.0, "the first link of the documentation's seed");
    assert!(said.contains("200 Mbit/s, 50 ms, 0.1 %") && said.contains("time <= 2.50 s"), "{said}");
    let (again, _) = measured(&["transfer", "--parts", "random", "--links", "2", "--repeats", "2"]);
    assert_eq!(again, rows[1..], "the same seed gives the same to the digit");
    let (others, _) =
        measured(&["transfer", "--parts", "random", "--links", "1", "--seed", "5", "--repeats", "1"]);
    assert_ne!(others[0]["link"], rows[1]["link"]);
}

#[test]
fn two_processes_hand_over_a_file_beside_plain_tcp() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().to_str().unwrap();
    let (rows, said) = measured(&[
        "transfer",
        "--parts",
        "loopback",
        "--file-size",
        "3M",
        "--dir",
        directory,
        "--repeats",
        "2",
    ]);
    let copies = of_kind(&rows, "copy");
    let ways: Vec<_> = copies.iter().map(|row| row["way"].as_str().unwrap()).collect();
    assert_eq!(ways[..2], ["grebe", "TCP"]);
    for other in ["iperf3", "scp"] {
        let is_left_out = of_kind(&rows, "left_out").iter().any(|row| row["what"] == other);
        assert_ne!(
            ways.contains(&other),
            is_left_out,
            "{other} is measured, or skipped with a reason: {said}"
        );
    }
    for row in &copies {
        assert_eq!((row["size_bytes"].as_u64(), row["runs"].as_u64()), (Some(3 << 20), Some(2)));
        assert!(number(row, "/gbit_per_s/low") > 0.0);
    }
    assert!(number(copies[0], "/ratios/TCP") > 0.0);
    assert!(said.contains(&format!("{directory} to {directory}, encrypted")), "{said}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is left behind");
}

/// Two namespaces and a wire between them, without delay or loss: the test checks who starts, ends and removes them.
#[cfg(target_os = "linux")]
const EMULATOR: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = --name ] && name=$2; shift; done
trap 'ip netns del "$name-a"; ip netns del "$name-b"; exit 0' INT TERM
ip netns add "$name-a" && ip netns add "$name-b" || exit 1
ip link add wan0 netns "$name-a" type veth peer name wan0 netns "$name-b" || exit 1
ip -n "$name-a" addr add 198.18.0.1/24 dev wan0
ip -n "$name-b" addr add 198.18.0.2/24 dev wan0
ip -n "$name-a" link set wan0 up
ip -n "$name-b" link set wan0 up
while :; do sleep 0.05; done
"#;

#[cfg(target_os = "linux")]
#[test]
fn over_an_emulator_real_processes_transfer_and_no_namespace_stays() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let emulator = folder.path().join("emulator");
    fs::write(&emulator, EMULATOR).unwrap();
    fs::set_permissions(&emulator, fs::Permissions::from_mode(0o755)).unwrap();
    let emulator = emulator.to_str().unwrap();
    let arguments = ["transfer", "--wanlink", emulator, "--only", "B", "--repeats", "2", "--json"];
    let child = start(&arguments);
    let name = format!("grebe-bench-{}", child.id());
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    let is_left = |side: &str| std::path::Path::new("/var/run/netns").join(format!("{name}-{side}")).exists();
    assert!(!is_left("a") && !is_left("b"), "{said}");
    if ["needs root", "needs the ip command", "emulator failed"].iter().any(|why| said.contains(why)) {
        println!("skipped: no network namespaces here: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let links = of_kind(&rows, "link");
    assert_eq!(
        (links.len(), links[0]["over"].as_str(), links[0]["runs"].as_u64()),
        (1, Some("emulator"), Some(2))
    );
    assert_eq!(links[0]["phases"][0]["phase"], "handshake");
    // The device has counted what went over the wire: the file and its headers.
    let ratio = number(links[0], "/wire_bytes_ratio/median");
    assert!((1.0..1.5).contains(&ratio), "{ratio}");
    let baselines = links[0]["baselines"].as_array().unwrap().len();
    let refused = of_kind(&rows, "left_out")
        .iter()
        .filter(|row| row["what"].as_str().unwrap().starts_with("TCP"))
        .count();
    assert_eq!(baselines + refused, 2, "{said}");
}

#[test]
fn invalid_bench_options_are_errors() {
    let refused = |arguments: &[&str], status: i32, says: &str| {
        let output = run(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?} does not say '{says}': {said}");
    };
    refused(&["flow", "--parts", "speed"], 2, "fan_out");
    refused(&["flow", "--json", "--table"], 2, "cannot be used with");
    let transfer = |more: &[&'static str]| [&["transfer"], more].concat();
    refused(&transfer(&["--parts", "speed"]), 2, "[possible values: links, random, shares, loopback]");
    refused(&transfer(&["--only", "Q"]), 2, "no link is called Q; there are A, B, C, D, E");
    refused(&transfer(&["--file-size", "0"]), 2, "--file-size 0");
    refused(&transfer(&["--duration", "1s"]), 2, "--duration");
    refused(&transfer(&["--parts", "loopback", "--dir", "/no/such/directory"]), 1, "/no/such/directory");
    refused(&transfer(&["--parts", "shares", "--wanlink", "x"]), 2, "cannot be used with");
    refused(&transfer(&["--wanlink", "/no/such/program"]), 1, "--wanlink");
}

#[test]
fn the_table_has_the_options_and_the_measurements() {
    let output = run(&["flow", "--parts", "hop", "--duration", "2ms", "--repeats", "3", "--table"]);
    let (table, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert!(table.contains("| hop | to another thread |") && table.contains("<= 40 ns per frame"), "{table}");
    assert!(said.contains("clone and drop alone"), "{said}");
}

#[test]
#[cfg(feature = "zenoh")]
fn streams_are_measured_beside_zenohs_own_programs() {
    let (rows, _) = measured(&["zenoh", "--sizes", "64K", "--duration", "50ms", "--repeats", "1"]);
    let benches: Vec<_> = rows.iter().map(|row| row["bench"].as_str().unwrap()).collect();
    assert_eq!(benches, ["throughput", "ping"]);
    for row in &rows {
        for side in ["ours", "baseline"] {
            assert!(row[side]["median"].as_f64() > Some(0.0), "{row}");
        }
        assert_eq!(row["lost_frames"], 0, "who blocks loses nothing: {row}");
    }
}

/// Ending a run in the middle of a transfer ends all its processes.
#[cfg(unix)]
#[test]
fn an_interrupted_or_killed_run_leaves_no_files() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::time::{Duration, Instant};

    for (signal, status) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().to_str().unwrap();
        let options = ["--file-size", "64M", "--dir", directory, "--repeats", "100"];
        let child = start(&[&["transfer", "--parts", "loopback"][..], &options].concat());
        let rooms = || fs::read_dir(folder.path()).unwrap().map(|room| room.unwrap().path());
        let comes = || {
            rooms().any(|room| fs::read_dir(room.join("came")).is_ok_and(|mut files| files.next().is_some()))
        };
        let until = Instant::now() + Duration::from_secs(30);
        while !comes() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), status, "{}", text(&output.stderr));
        // One that was killed cannot wait for the others.
        let until = Instant::now() + Duration::from_secs(10);
        while status.is_none() && rooms().next().is_some() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(rooms().count(), 0, "nothing is left behind after {signal:?}");
    }
}
