//! Recordings whose recorder is killed, or whose disk is full.
#![cfg(unix)]

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::support::kills::kills;
use crate::support::recordings::{SmallDisk, check_saw};
use crate::support::{Good, finish, grebe, run, text};
use grebe::recording::{Error, SampleFile, SigmfSettings, SigmfWriter};

fn record(uri: &str, file: &Path, more: &[&str]) -> Child {
    let mut arguments = vec!["record", uri, file.to_str().unwrap()];
    arguments.extend(more);
    grebe(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_recorder_that_is_killed_at_any_moment_leaves_a_recording() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut worst = Duration::ZERO;
    for number in 0..kills() {
        let file = folder.path().join(format!("{number}.sigmf-meta"));
        let mut recorder = record(
            "synth:saw?channels=1&rate=4M",
            &file,
            &["--write-by", ["io-uring", "threads", "page-cache"][number as usize % 3]],
        );
        // Moments without a fixed phase to periodic work of the recorder.
        let lived = Duration::from_millis(300 + u64::from(number) * 617 % 2_900);
        let began = Instant::now();
        std::thread::sleep(lived);
        recorder.kill().unwrap();
        let killed = SystemTime::now();
        recorder.wait().unwrap();
        let opened = SampleFile::open(&file);
        if let Ok(before) = &opened {
            let output = run(&["repair", file.to_str().unwrap(), "--json"]).good();
            let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(
                (&told[0]["changed"], told[0]["samples"].as_u64()),
                (&true.into(), Some(before.len_samples()))
            );
            let mut closed = SampleFile::open(&file).unwrap();
            assert!(closed.is_whole() && closed.notes().is_empty(), "{:?}", closed.notes());
            assert_eq!(closed.segments(), before.segments());
            check_saw(&mut closed);
            assert!(run(&["info", "--verify", file.to_str().unwrap()]).status.success());
        }
        match opened {
            Ok(mut file) => {
                assert!(file.notes().iter().any(|note| note.contains("its recorder was cut off")));
                check_saw(&mut file);
                let last = *file.segments().last().unwrap();
                let length = Duration::from_secs_f64(last.length_samples as f64 / 4e6);
                let missing = killed.duration_since(last.recorded_at.unwrap() + length).unwrap_or_default();
                worst = worst.max(missing);
            }
            // It had hardly begun; a machine that is busy may take long for that.
            Err(Error::Empty { .. } | Error::File { .. }) if began.elapsed() < Duration::from_secs(10) => {
                println!("no recording yet after {lived:?}");
            }
            Err(error) => panic!("after {lived:?}: {error}"),
        }
    }
    println!("{} kills: at most the last {worst:?} were missing", kills());
}

/// Killed at the first rename, the second, ...: first those of the data, then those of each metadata file.
#[test]
#[cfg(target_os = "linux")]
fn a_recorder_that_is_killed_between_two_names_leaves_no_sum_of_older_metadata() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut without_collection = 0;
    for number in [2, 4, 5, 6, 7, 8] {
        let file = folder.path().join(format!("{number}.sigmf-meta"));
        let recorder =
            grebe(&["record", "synth:saw?channels=2&rate=4M", file.to_str().unwrap(), "--duration", "30s"]);
        let mut traced = std::process::Command::new("strace");
        let inject = format!("inject=/^rename:signal=KILL:when={number}");
        traced.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=/^rename", "-e", &inject]);
        traced.arg(recorder.get_program()).args(recorder.get_args());
        let ended = traced.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !ended.is_ok_and(|status| std::os::unix::process::ExitStatusExt::signal(&status) == Some(9)) {
            println!("skipped: strace is not there, or may not trace");
            return;
        }
        let collection = file.with_extension("sigmf-collection");
        match SampleFile::open(&file) {
            Ok(mut file) => {
                assert_eq!(file.channels(), 2, "kill {number}");
                check_saw(&mut file);
                without_collection += usize::from(!collection.exists());
            }
            // The data have no metadata yet.
            Err(Error::File { .. }) if number <= 4 && !collection.exists() => {}
            Err(error) => panic!("kill {number}: {error}"),
        }
        let Ok(collection) = std::fs::read(&collection) else { continue };
        let collection: serde_json::Value = serde_json::from_slice(&collection).unwrap();
        for stream in collection["collection"]["core:streams"].as_array().unwrap() {
            let meta = folder.path().join(format!("{}.sigmf-meta", stream["name"].as_str().unwrap()));
            let sum = std::process::Command::new("sha512sum").arg(&meta).output().unwrap();
            let is_its = text(&sum.stdout).starts_with(stream["hash"].as_str().unwrap());
            assert!(is_its, "kill {number}: {} has changed", meta.display());
        }
    }
    // After both files of the first recording; for the next one, also before and between them.
    assert_eq!(without_collection, 4);
}

#[test]
fn a_full_disk_ends_a_recording_in_order() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: only root can mount a small file system");
        return;
    };
    for way in ["io-uring", "threads", "page-cache"] {
        let file = disk.path().join("full.sigmf-meta");
        let recorder = record("synth:saw?channels=1&rate=20M", &file, &["--write-by", way, "--overwrite"]);
        let output = finish(recorder);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{way}: {said}");
        assert!(said.contains("No space left") && said.contains("are good"), "{way}: {said}");
        let mut recording = SampleFile::open(&file).unwrap();
        assert!(recording.notes().is_empty(), "{way}: it is closed: {:?}", recording.notes());
        // Of 24 MiB less what the file system takes for itself.
        assert!(recording.len_samples() > 4 << 20, "{way}: {}", recording.len_samples());
        check_saw(&mut recording);
        for entry in std::fs::read_dir(disk.path()).unwrap() {
            let _ = std::fs::remove_file(entry.unwrap().path());
        }
    }
}

#[test]
fn the_end_says_how_the_disk_kept_up() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let arguments = ["record", "synth:saw?channels=1&samples=10k", file.to_str().unwrap(), "--buffer", "8M"];
    let output = run(&[&arguments[..], &["--write-by", "page-cache"]].concat());
    let said = text(&output.stderr);
    assert!(said.contains("disk: threads, through the page cache; longest stall "), "{said}");
    assert!(said.contains("buffer of 8 MB at most "), "{said}");
    let output = run(&[&arguments[..], &["--overwrite", "--json"]].concat());
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["disk"]["buffer_bytes"], 8 << 20);
    assert_eq!(told["disk"]["waited_us"], 0);
}

/// The parts of a recording, in their order.
fn parts(folder: &Path) -> Vec<std::path::PathBuf> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_meta = |path: &std::path::PathBuf| path.extension().is_some_and(|it| it == "sigmf-meta");
    let mut parts: Vec<_> = names.filter(is_meta).collect();
    parts.sort();
    parts
}

#[test]
fn parts_follow_each_other_without_a_sample_between_them() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("night.sigmf-meta");
    // From a file, which is taken as fast as it is recorded, and without a gap.
    let source_folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let source = source_folder.path().join("saw.sigmf-meta");
    let samples = 4_000_000;
    let to = source.to_str().unwrap();
    let made = run(&["sg", "--wave", "saw", "--samples", "4M", "--rate", "1M", "--free-run", "--to", to]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let record_in = |more: &[&str]| finish(record(to, &file, more));
    // Half a million samples of two bytes each.
    let output = record_in(&["--rotate", "1M"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(", 8 parts"), "{}", text(&output.stderr));
    let (mut next, mut time) = (0, None);
    for (number, part) in parts(folder.path()).iter().enumerate() {
        assert!(part.ends_with(format!("night_{:06}.sigmf-meta", number + 1)), "{part:?}");
        let mut file = SampleFile::open(part).unwrap();
        assert!(file.notes().is_empty());
        let [only] = file.segments() else { panic!("{:?}", file.segments()) };
        assert_eq!(only.first_sample_index, next);
        // By the clock of the producer, which said when it began.
        let began = only.recorded_at.unwrap();
        if let Some(time) = time {
            let since = began.duration_since(time).unwrap().as_secs_f64();
            assert!((since - next as f64 / 1e6).abs() < 1e-3, "{since} s at sample {next}");
        }
        time = time.or(Some(began));
        next += file.len_samples();
        check_saw(&mut file);
    }
    assert_eq!(next, samples);
    assert!(!folder.path().join("night.sigmf-meta").exists());

    // The next run counts on, and keeps what there is room for.
    let output = record_in(&["--rotate", "1s", "--keep", "3M"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let left = parts(folder.path());
    assert!(left.last().unwrap().ends_with("night_000012.sigmf-meta"), "{left:?}");
    let bytes: u64 =
        std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().metadata().unwrap().len()).sum();
    assert!(left.len() >= 2 && bytes <= 6 << 20, "{bytes} bytes in {left:?}");
    let data = |it: &std::path::PathBuf| it.with_extension("sigmf-data").exists();
    assert!(left.iter().all(data));
}

#[test]
fn a_recording_ends_before_it_is_larger_than_allowed() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let output = run(&["record", "synth:saw?channels=2", file.to_str().unwrap(), "--max-size", "1000001"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(SampleFile::open(&file).unwrap().len_samples(), 250_000);
}

#[test]
fn a_byte_that_changed_is_found() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // Faster than SHA-512, and longer than the part that is hashed at the end.
    let path = folder.path().join("x.sigmf-meta");
    let settings = SigmfSettings { sample_rate_hz: 1e9, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&path, &settings).unwrap();
    let block = vec![7i16; 1 << 20];
    for index in 0..33 {
        writer.write(index << 20, &[&block]).unwrap();
    }
    writer.finish().unwrap();
    let verify = |more: &[&str]| run(&[&["info", "--verify", path.to_str().unwrap()], more].concat());
    let output = verify(&[]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    assert!(text(&output.stdout).contains("x.sigmf-data: unchanged, "), "{}", text(&output.stdout));

    let data = path.with_extension("sigmf-data");
    let file = std::fs::OpenOptions::new().write(true).open(&data).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[8], 12_345_678).unwrap();
    let output = verify(&["--json"]);
    assert_eq!(output.status.code(), Some(4));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["verified"][0]["changed"], serde_json::json!([[0, 33 << 21]]));
    file.set_len(1_000).unwrap();
    let output = verify(&[]);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stdout).contains("changed between bytes"), "{}", text(&output.stdout));
}

#[test]
fn a_disk_is_measured_and_left_as_it_was() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = folder.path().to_str().unwrap();
    let output = run(&["doctor", "--disk", at, "--size", "64M", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!((64_000_000..72_000_000).contains(&told["bytes"].as_u64().unwrap()), "{told}");
    assert!(told["safe_bytes_s"].as_f64().unwrap() > 0.0);
    assert_eq!(told["beyond_caches"], false);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    for (at, size, status, says) in
        [("/nowhere/at/all", "1G", 1, "cannot write into /nowhere/at/all"), (at, "0", 2, "a larger --size")]
    {
        let output = run(&["doctor", "--disk", at, "--size", size]);
        assert_eq!(output.status.code(), Some(status));
        assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));
    }
}
