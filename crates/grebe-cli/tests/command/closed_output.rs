//! A reader that goes away, a full disk, a terminal that is gone: none of them is a panic.
#![cfg(target_os = "linux")] // there a full disk is a device: /dev/full

use std::fs::{File, OpenOptions};
use std::process::{Output, Stdio};

use crate::support::{example, finish, grebe, text};

/// The writing end of a pipe that nobody reads.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// A disk without room.
fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

fn with_output(arguments: &[&str], stdout: Stdio, stderr: Stdio) -> Output {
    let output = finish(grebe(arguments).stdout(stdout).stderr(stderr).spawn().unwrap());
    assert!(!text(&output.stderr).contains("panicked"), "{arguments:?}: {}", text(&output.stderr));
    output
}

const ECG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/ecg.sigmf-meta");

const TO_NOBODY: &str = "udp://127.0.0.1:9";

/// Commands that write to standard output and end by themselves.
fn writers() -> [Vec<&'static str>; 11] {
    [
        vec!["doctor"],
        vec!["doctor", "--json"],
        vec!["info", ECG],
        vec!["find", ECG, "--trigger", "edge", "--level", "1"],
        vec!["sg", "--samples", "1000", "--json", "--to", TO_NOBODY],
        vec!["run", "--kinds"],
        vec!["run", "--kinds", "--json"],
        vec!["completions", "bash"],
        vec!["man"],
        vec!["--help"],
        vec!["probe", "--serve", "--bind", "127.0.0.1:0", "--idle-timeout", "10ms"],
    ]
}

#[test]
fn a_reader_that_has_gone_changes_nothing() {
    for arguments in writers() {
        let output = with_output(&arguments, closed_pipe(), Stdio::piped());
        // Nobody probes it: that is its failure, and not the reader's.
        let status = if arguments[0] == "probe" { 1 } else { 0 };
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn top_ends_with_its_reader_although_nothing_runs() {
    let output = with_output(&["top", "no-such-grebe", "--json"], closed_pipe(), Stdio::piped());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_an_error_in_words() {
    for arguments in writers().iter().filter(|arguments| arguments[0] != "--help") {
        let output = with_output(arguments, full().into(), Stdio::piped());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{arguments:?}: {said}");
        assert!(said.contains("cannot write to standard output: No space left"), "{arguments:?}: {said}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_recording_outlives_the_terminal_of_its_messages() {
    let folder = tempfile::tempdir().unwrap();
    let ecg = example("ecg.wav");
    for (turn, stderr) in [closed_pipe(), full().into()].into_iter().enumerate() {
        let file = folder.path().join(format!("{turn}.sigmf-meta"));
        let arguments = ["record", ecg.to_str().unwrap(), file.to_str().unwrap(), "--json"];
        let output = with_output(&arguments, Stdio::piped(), stderr);
        assert!(output.status.success());
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report["samples"].as_u64() > Some(0), "{report}");
        assert!(file.exists());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_error_that_cannot_be_printed_keeps_its_status() {
    for stderr in [closed_pipe(), full().into()] {
        let output = with_output(&["play", "missing.wav", "--to", TO_NOBODY], Stdio::null(), stderr);
        assert_eq!(output.status.code(), Some(1));
    }
}
