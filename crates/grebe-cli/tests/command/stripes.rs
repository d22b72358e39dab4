//! Recordings on several disks that take turns.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime};

use crate::support::kills::kills;
use crate::support::recordings::{SmallDisk, check_saw};
use crate::support::{finish, grebe, run, text};
use grebe::recording::{Error, SampleFile};

/// Folders that stand for disks.
fn disks() -> (tempfile::TempDir, [PathBuf; 2]) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let disks = ["one", "two"].map(|disk| folder.path().join(disk));
    disks.iter().for_each(|disk| std::fs::create_dir(disk).unwrap());
    (folder, disks)
}

/// A recording of a saw, which another recorder takes as fast as it can.
fn saw(folder: &Path, samples: &str, channels: &str) -> String {
    let path = folder.join("saw.sigmf-meta").to_str().unwrap().to_owned();
    let made =
        ["sg", "--wave", "saw", "--rate", "1M", "--free-run", "--samples", samples, "--channels", channels];
    let made = run(&[&made[..], &["--to", &path]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    path
}

/// `NAME.sigmf-meta` on the first disk, and the folder of the second.
fn record(uri: &str, to: &[&Path], more: &[&str]) -> Child {
    let mut arguments = vec!["record", uri];
    to.iter().for_each(|to| arguments.extend(["--to", to.to_str().unwrap()]));
    arguments.extend(more);
    grebe(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Whether both have the same samples, from the same index on.
fn assert_same(one: &mut SampleFile, other: &mut SampleFile) {
    assert_eq!(one.segments().len(), other.segments().len());
    assert_eq!((one.channels(), one.len_samples()), (other.channels(), other.len_samples()));
    assert_eq!(one.segments()[0].first_sample_index, other.segments()[0].first_sample_index);
    let length = 100_000;
    for at in (0..one.len_samples()).step_by(length) {
        let length = (one.len_samples() - at).min(length as u64) as usize;
        let (one, other) = (one.block(at, length).unwrap(), other.block(at, length).unwrap());
        for channel in 0..one.channels() {
            assert!(
                one.channel_bytes(channel).unwrap() == other.channel_bytes(channel).unwrap(),
                "near {at}"
            );
        }
    }
}

#[test]
fn two_disks_take_turns_and_either_opens_the_whole() {
    for channels in ["1", "2"] {
        let (folder, [one, two]) = disks();
        let source = saw(folder.path(), "12M", channels);
        let file = one.join("x.sigmf-meta");
        let output = finish(record(&source, &[&file, &two], &["--buffer", "8M", "--json"]));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let share = |disk: usize| told["disks"][disk]["samples"].as_u64().unwrap();
        assert_eq!(share(0) + share(1), 12_000_000, "{told}");
        assert!(share(0) >= 2_000_000 && share(1) >= 2_000_000, "{told}");
        assert_eq!(told["disks"][0]["state"], "good");
        let mut made = SampleFile::open(&source).unwrap();
        for disk in [&one, &two] {
            let path = disk.join("x.sigmf-meta");
            let mut file = SampleFile::open(&path).unwrap();
            assert!(file.notes().is_empty() && file.is_whole());
            assert_same(&mut file, &mut made);
            let data = std::fs::read_dir(disk).unwrap().map(|it| it.unwrap().metadata().unwrap().len());
            assert!(data.sum::<u64>() > 2_000_000, "it has its part");
        }
        // Each file has its checksums; a range of the whole equals that range of the source.
        let verified = run(&["info", "--verify", file.to_str().unwrap(), "--json"]);
        assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stdout));
        let verified: serde_json::Value = serde_json::from_slice(&verified.stdout).unwrap();
        assert_eq!(verified["verified"].as_array().unwrap().len(), 2 * channels.parse::<usize>().unwrap());
        let part = |from: &str, to: &str| {
            let to = folder.path().join(to);
            let output = run(&["convert", from, to.to_str().unwrap(), "--start", "1.7s", "--duration", "9s"]);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            std::fs::read(to).unwrap()
        };
        assert!(part(file.to_str().unwrap(), "a.wav") == part(&source, "b.wav"));
        let output = run(&["info", file.to_str().unwrap(), "--json"]);
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((told["samples"].as_u64(), told["gaps"]["count"].as_u64()), (Some(12_000_000), Some(0)));
    }
}

#[test]
fn a_short_recording_names_the_disk_that_it_is_on() {
    let (_folder, [one, two]) = disks();
    let (first, second) = (one.join("x"), two.to_str().unwrap());
    let to = ["--to", first.to_str().unwrap(), "--to", second, "-d", "100ms"];
    let output = run(&[&["record", "synth:?rate=1k"][..], &to].concat());
    let said = text(&output.stderr);
    let is_on = |disk: &Path| disk.join("x.sigmf-meta").is_file();
    assert!(output.status.success() && said.contains("wrote "), "{said}");
    for disk in [&one, &two] {
        let unwritten = format!("{} was not written", disk.join("x").display());
        assert_eq!(said.contains(&unwritten), !is_on(disk), "{said}");
    }
}

#[test]
fn a_full_disk_is_dropped_and_the_other_continues() {
    for small_is_first in [true, false] {
        let Some(small) = SmallDisk::mount() else {
            println!("skipped: only root can mount a small file system");
            return;
        };
        let (folder, [large, _]) = disks();
        // Enough for a small disk that gets an eighth of it.
        let source = saw(folder.path(), "64M", "1");
        let (first, second) =
            if small_is_first { (small.path(), large.clone()) } else { (large.clone(), small.path()) };
        let output = finish(record(&source, &[&first.join("x.sigmf-meta"), &second], &["--buffer", "8M"]));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("the disk is full; recording continues on the other disks"), "{said}");
        assert!(said.contains("nothing lost") && said.contains(", then full"), "{said}");
        let small_bytes = std::fs::metadata(small.path().join("x.sigmf-data")).unwrap().len();
        assert!(small_bytes >= 4 << 20, "it has what there was room for: {small_bytes}");
        let mut file = SampleFile::open(large.join("x.sigmf-meta")).unwrap();
        assert!(file.is_whole() && file.notes().is_empty());
        assert_same(&mut file, &mut SampleFile::open(&source).unwrap());
    }
}

#[test]
fn disks_that_are_all_full_end_the_recording_in_order() {
    let (Some(one), Some(two)) = (SmallDisk::mount(), SmallDisk::mount()) else {
        println!("skipped: only root can mount a small file system");
        return;
    };
    let file = one.path().join("x.sigmf-meta");
    let output = finish(record("synth:saw?channels=1&rate=20M", &[&file, &two.path()], &["--buffer", "8M"]));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    for path in [file, two.path().join("x.sigmf-meta")] {
        let mut file = SampleFile::open(&path).unwrap();
        assert!(file.is_whole(), "{:?}", file.notes());
        assert!(file.len_samples() > 8 << 20, "{}", file.len_samples());
        check_saw(&mut file);
    }
}

#[test]
fn a_killed_recorder_leaves_the_samples_of_all_disks() {
    let mut worst = Duration::ZERO;
    for number in 0..kills() {
        let (_folder, [one, two]) = disks();
        let file = one.join("x.sigmf-meta");
        let mut recorder = record("synth:saw?channels=1&rate=4M", &[&file, &two], &["--buffer", "4M"]);
        // Moments without a fixed phase to periodic work of the recorder.
        std::thread::sleep(Duration::from_millis(800 + u64::from(number) * 617 % 2_900));
        recorder.kill().unwrap();
        let killed = SystemTime::now();
        recorder.wait().unwrap();
        let mut lengths = Vec::new();
        for disk in [&one, &two] {
            match SampleFile::open(disk.join("x.sigmf-meta")) {
                Ok(mut file) => {
                    assert!(!file.is_whole() && !file.notes().is_empty());
                    check_saw(&mut file);
                    // Samples of one disk after the last of the other follow a gap, at their index.
                    let last = *file.segments().last().unwrap();
                    let length = Duration::from_secs_f64(last.length_samples as f64 / 4e6);
                    let end = last.recorded_at.unwrap() + length;
                    worst = worst.max(killed.duration_since(end).unwrap_or_default());
                    lengths.push(file.len_samples());
                }
                // It had no turn, or had hardly begun.
                Err(Error::Empty { .. } | Error::File { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        lengths.dedup();
        assert!(lengths.len() <= 1, "either disk opens the same: {lengths:?}");
        println!("{:?} samples per channel", lengths.first());
    }
    println!("{} kills: at most the last {worst:?} were missing", kills());
}

#[test]
fn impossible_options_are_errors() {
    let (_folder, [one, two]) = disks();
    let file = one.join("x.sigmf-meta");
    let said = |to: &[&Path], more: &[&str], status: i32| {
        let output = finish(record("synth:saw?channels=1&samples=10", to, more));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{said}");
        said
    };
    assert!(said(&[&file, &one], &[], 2).contains("it is named twice"));
    assert!(said(&[&one, &two], &[], 1).contains("is a folder: name the recording"));
    let absent = two.join("absent/");
    assert!(said(&[&file, &absent], &[], 1).contains("a folder that is not there"));
    assert!(!two.join("absent.sigmf-meta").exists());
    assert!(said(&[&file, &two], &["--ring", "1m"], 2).contains("--ring"));
    assert!(said(&[&file, &two], &["--rotate", "1m"], 2).contains("--rotate"));
    let nowhere = Path::new("/nowhere/at/all/");
    assert!(said(&[&file, nowhere], &[], 1).contains("/nowhere/at/all"));
    assert!(said(&[], &[], 2).contains("no recording to write"));
    // Whichever of them has the name. So few samples lie on one of both.
    let fourth = one.join("first");
    std::fs::create_dir(&fourth).unwrap();
    said(&[&fourth, &two.join("w.sigmf-meta")], &[], 0);
    assert!([&fourth, &two].iter().any(|disk| disk.join("w.sigmf-meta").exists()));
    // One disk alone is an ordinary recording.
    said(&[&file], &[], 0);
    assert!(!std::fs::read_to_string(&file).unwrap().contains("stripe"));
    assert!(said(&[&two.join("y.sigmf-meta"), &file], &[], 1).contains("exists already"));
}
