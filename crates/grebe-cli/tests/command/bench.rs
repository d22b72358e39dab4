//! `grebe bench`, as a user runs it: that each bench runs, checks its data and ends; never how fast anything was.

use crate::support::{run, text};
use serde_json::Value;

/// Rows of a bench, and its standard error.
fn measured(arguments: &[&str]) -> (Vec<Value>, String) {
    let output = run(&[&["bench"], arguments, &["--json"]].concat());
    let said = text(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    (serde_json::from_slice(&output.stdout).unwrap(), said)
}

#[test]
fn udp_goes_from_process_to_process_beside_one_call_per_datagram() {
    let (rows, said) = measured(&[
        "udp",
        "--duration",
        "100ms",
        "--repeats",
        "1",
        "--datagram-size",
        "1400",
        "--buffers",
        "plain",
    ]);
    let techniques: Vec<_> = rows.iter().map(|row| row["technique"].as_str().unwrap()).collect();
    assert_eq!(techniques, ["one_call", "gso"]);
    for row in &rows {
        assert_eq!((row["corrupt"].as_u64(), row["privileged"].as_bool()), (Some(0), Some(false)), "{row}");
        assert!(row["frames_recv"].as_u64().unwrap() > 0, "{row}");
    }
    assert!(said.contains("1ch_max") && said.contains("MSPS/ch"), "{said}");
}

#[test]
fn small_datagrams_are_received_one_and_several_per_call() {
    let (rows, _) = measured(&["udp", "--recv", "--duration", "100ms", "--repeats", "1"]);
    assert_eq!(rows.len(), 8);
    assert!(rows.iter().all(|row| row["recv_per_sec"].as_f64().unwrap() > 0.0), "{rows:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn shared_memory_is_measured_beside_pipes_sockets_and_udp() {
    let arguments = ["--scenario", "free_run", "--duration", "50ms", "--repeats", "1"];
    let (rows, said) = measured(&[&["shm"][..], &arguments].concat());
    let techniques: Vec<_> = rows.iter().map(|row| row["technique"].as_str().unwrap()).collect();
    assert_eq!(techniques, ["shm", "unix_stream", "pipe", "udp"], "{said}");
    assert!(rows.iter().all(|row| row["corrupt"] == 0), "{said}");
}

#[test]
fn names_that_are_unknown_are_answered_with_the_known_ones() {
    for (arguments, says) in [
        (&["udp", "--scenario", "9ch"][..], "no scenario is called 9ch; there are 1ch_max"),
        (&["udp", "--technique", "smoke"], "[possible values: one_call, mmsg, gso, gso_run]"),
        (&["shm", "--parts", "pipe", "--scenario", "faults"], "there are 1ch_1GSPS, free_run"),
        (&["flow"], "unrecognized subcommand"),
        (&["udp", "--json", "--table"], "cannot be used with"),
        (&["--udp"], "--udp"),
    ] {
        let output = run(&[&["bench"], arguments].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?} does not say '{says}': {said}");
    }
}
