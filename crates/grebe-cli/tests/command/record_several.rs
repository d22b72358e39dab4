//! Recordings of several streams whose recorder is killed: the collection must still be correct.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{Good, grebe, run, text, wait_until};
use grebe::recording::SampleFile;
use serde_json::Value;

/// One of them becomes a collection of its own.
const STREAMS: [&str; 2] = ["synth:saw?channels=1&rate=1M", "synth:saw?channels=2&rate=1M"];

fn arguments<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["record"][..], &STREAMS, &[file], more].concat()
}

/// The streams of a collection, which all open. The hash of each metadata file in the collection is right.
fn streams(collection: &Path) -> Vec<Value> {
    let said: Value = serde_json::from_slice(&fs::read(collection).unwrap()).unwrap();
    assert_eq!(said["collection"]["grebe:alignment"], "time", "{said}");
    let streams = said["collection"]["core:streams"].as_array().unwrap().clone();
    for stream in &streams {
        let meta = collection.with_file_name(format!("{}.sigmf-meta", stream["name"].as_str().unwrap()));
        SampleFile::open(&meta).unwrap();
        if let Some(hash) = stream["hash"].as_str() {
            let sum = Command::new("sha512sum").arg(&meta).output().unwrap();
            assert!(text(&sum.stdout).starts_with(hash), "{} has changed", meta.display());
        }
    }
    streams
}

/// Output of the commands for a collection of a killed recorder, before and after its repair.
fn check_killed(collection: &Path) {
    let path = collection.to_str().unwrap();
    let channels = streams(collection).len();
    let said = run(&["info", path]);
    let before = SampleFile::open(collection).unwrap();
    assert_eq!(before.channels(), channels);
    let is_whole = before.is_whole();
    assert_eq!(said.status.code(), Some(if is_whole { 0 } else { 4 }), "{}", text(&said.stderr));
    if !is_whole {
        let said = text(&said.stdout) + &text(&said.stderr);
        assert!(said.contains("its recorder was cut off"), "{said}");
    }
    let verified = run(&["info", "--verify", path]);
    assert_eq!(verified.status.code(), said.status.code(), "{}", text(&verified.stderr));
    let picture = collection.with_file_name("both.png");
    let viewed = run(&["view", path, "--png", picture.to_str().unwrap()]);
    assert!(viewed.status.success() && picture.is_file(), "{}", text(&viewed.stderr));

    let first = collection.with_file_name(format!("{}_1.sigmf-meta", stem(collection)));
    let first_len = || SampleFile::open(&first).ok().map(|first| first.len_samples());
    let before_repair = first_len();
    run(&["repair", path]).good();
    let after = SampleFile::open(collection).unwrap();
    assert!(after.is_whole(), "{:?}", after.notes());
    assert_eq!(after.channels(), channels);
    // Channels of one stream end together, after the last sample of a closed one.
    assert!(after.len_samples() >= before.len_samples());
    assert!(streams(collection).iter().all(|stream| stream["hash"].is_string()), "with its sums");
    // A recording keeps what the others do not have.
    assert_eq!(first_len(), before_repair);
    let again = run(&["repair", path]);
    assert!(text(&again.stdout).lines().all(|line| line.contains("unchanged")), "{}", text(&again.stdout));
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

fn wait_for(path: &Path) {
    wait_until(&format!("{} does not come", path.display()), || path.exists());
}

#[test]
fn a_killed_recorder_of_several_streams_leaves_a_collection() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for later_ms in [0, 130, 410, 1_170] {
        let file = folder.path().join(format!("{later_ms}.sigmf-meta"));
        let mut recorder = grebe(&arguments(file.to_str().unwrap(), &[]))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let collection = file.with_extension("sigmf-collection");
        wait_for(&collection);
        thread::sleep(Duration::from_millis(later_ms));
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        assert!(streams(&collection).iter().all(|stream| stream.get("hash").is_none()), "they were growing");
        check_killed(&collection);
    }
}

/// Killed where it begins to give a file its name, the first, the second, ... to the end, over older recordings of
/// these names.
#[test]
fn a_kill_between_two_renames_leaves_no_checksum_of_older_metadata() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (mut with_collection, mut killed) = (0, 0);
    for number in [1, 2, 4, 6, 7, 8, 9, 11, 13, 15, 17, 19, 21] {
        let folder = folder.path().join(number.to_string());
        fs::create_dir(&folder).unwrap();
        let file = folder.join("both.sigmf-meta");
        let collection = file.with_extension("sigmf-collection");
        run(&arguments(file.to_str().unwrap(), &["--samples", "100k"])).good();
        assert!(streams(&collection).iter().all(|stream| stream["hash"].is_string()));
        let recorder = grebe(&arguments(file.to_str().unwrap(), &["--duration", "700ms", "--overwrite"]));
        let mut traced = Command::new("strace");
        let inject = format!("inject=/^rename:signal=KILL:when={number}");
        traced.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=/^rename", "-e", &inject]);
        traced.arg(recorder.get_program()).args(recorder.get_args());
        let ended = traced.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let Ok(ended) = ended else {
            println!("skipped: strace is not there");
            return;
        };
        match std::os::unix::process::ExitStatusExt::signal(&ended) {
            Some(9) => killed += 1,
            _ if ended.success() => {}
            _ => {
                println!("skipped: strace may not trace");
                return;
            }
        }
        if collection.exists() {
            with_collection += 1;
            check_killed(&collection);
        }
    }
    assert!(killed >= 6 && with_collection >= 4, "{killed} were killed, {with_collection} have a collection");
}

#[test]
fn a_recording_without_samples_leaves_the_earlier_collection() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("both.sigmf-meta");
    let collection: PathBuf = file.with_extension("sigmf-collection");
    run(&arguments(file.to_str().unwrap(), &["--samples", "100k"])).good();
    let before = fs::read(&collection).unwrap();
    let silent = ["udp://127.0.0.1:0", "udp://127.0.0.1:0"];
    let more = ["--overwrite", "--idle-timeout", "300ms"];
    let ended = run(&[&["record"][..], &silent, &[file.to_str().unwrap()], &more].concat());
    assert!(!ended.status.success(), "{}", text(&ended.stderr));
    assert_eq!(fs::read(&collection).unwrap(), before);
    assert_eq!(SampleFile::open(&collection).unwrap().channels(), 3);
}
