//! Files at their size limit (`ulimit -f`; 4 GB on FAT): the command ends with a message, and the files are closed.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::recordings::check_saw;
use crate::support::trees::{file, noise};
use crate::support::{finish, grebe, path, run, text};
use grebe::recording::SampleFile;
use serde_json::Value;

/// The command, where no file may have more than 3 MiB.
fn limited(arguments: &[&str]) -> Command {
    let grebe = grebe(arguments);
    let mut command = Command::new("sh");
    // In blocks of 512 bytes.
    command
        .args(["-c", "ulimit -f 6144; exec \"$0\" \"$@\""])
        .arg(grebe.get_program())
        .args(grebe.get_args());
    command.envs(grebe.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run_limited(arguments: &[&str]) -> Output {
    finish(limited(arguments).spawn().unwrap())
}

#[test]
fn a_recording_that_reaches_it_is_closed_and_whole_however_it_is_written() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for how in ["io-uring", "threads", "page-cache"] {
        let to = folder.path().join(format!("{how}.sigmf-meta"));
        let uri = "synth:saw?channels=1&rate=4M";
        let ended = run_limited(&["record", uri, path(&to), "--duration", "20s", "--write-by", how]);
        let said = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(5), "{how}: {:?} {said}", ended.status);
        assert!(said.contains("--rotate") && said.contains("ulimit -f"), "{how}: {said}");
        let mut recorded = SampleFile::open(&to).unwrap();
        assert!(recorded.is_whole() && recorded.notes().is_empty(), "{how}: {:?}", recorded.notes());
        assert!(recorded.len_samples() >= 1_000_000, "{how}: {} samples", recorded.len_samples());
        check_saw(&mut recorded);
    }
}

#[test]
fn a_conversion_beyond_the_size_limit_fails_without_a_partial_file() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = |name: &str| folder.path().join(name);
    let from = at("from.sigmf-meta");
    let made = run(&["record", "synth:saw?channels=1&rate=4M", path(&from), "--samples", "4M"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    for to in ["to.sigmf-meta", "to.wav"] {
        let ended = run_limited(&["convert", path(&from), path(&at(to))]);
        let said = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(5), "{to}: {:?} {said}", ended.status);
        assert!(said.contains("ulimit -f"), "{to}: {said}");
    }
    assert!(!at("to.wav").exists());
}

#[test]
fn a_copy_leaves_out_the_file_and_takes_the_others() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir(&from).unwrap();
    file(&from.join("a.bin"), b"a", 1);
    file(&from.join("large.bin"), &noise(5_000_000, 1), 1);
    file(&from.join("z.bin"), b"z", 1);
    let ended = run_limited(&["cp", "--no-config", "-r", path(&from), path(&to)]);
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(4), "{:?} {said}", ended.status);
    assert!(said.contains("large.bin: it cannot be written") && said.contains("ulimit -f"), "{said}");
    assert_eq!(names(&to), ["a.bin", "z.bin"], "and nothing half");
}

#[test]
fn a_received_file_beyond_the_size_limit_is_reported() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (large, into) = (folder.path().join("large.bin"), folder.path().join("into"));
    file(&large, &noise(5_000_000, 1), 1);
    let mut sender = grebe(&["send", path(&large), "--json", "--listen", "127.0.0.1:0"]);
    let mut sender = sender.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(sender.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    let ended = run_limited(&["recv", line["ticket"].as_str().unwrap(), path(&into)]);
    let _ = sender.kill();
    let _ = sender.wait();
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(4), "{:?} {said}", ended.status);
    assert!(said.contains("large.bin: it cannot be written") && said.contains("ulimit -f"), "{said}");
    assert_eq!(names(&into), [""; 0]);
}

#[test]
#[cfg(target_os = "linux")]
fn started_programs_have_the_default_signal_action() {
    let folder = tempfile::tempdir().unwrap();
    let (ssh, told) = (folder.path().join("ssh"), folder.path().join("told"));
    fs::write(&ssh, format!("#!/bin/sh\ngrep Sig /proc/$$/status >> '{}'\n", told.display())).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&ssh, mode).unwrap();
    let _ = run(&["cp", "--no-config", "--ssh", path(&ssh), path(&ssh), "nowhere:x"]);
    let told = fs::read_to_string(told).unwrap();
    let ignored = told.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    assert_eq!(u64::from_str_radix(ignored.trim(), 16).unwrap() >> 24 & 1, 0, "SIGXFSZ is ignored: {told}");
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
