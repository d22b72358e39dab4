//! `annotate`.

use std::process::Command;

use super::*;

fn ok(arguments: &[&str]) -> String {
    let said = run(arguments);
    assert_eq!(said.status.code(), Some(0), "{arguments:?}: {}", text(&said.stderr));
    text(&said.stdout)
}

/// Position, samples, label and comment of each annotation.
fn listed(file: &str) -> Vec<(u64, u64, String, String)> {
    let lines = lines(ok(&["annotate", file, "--json"]).as_bytes());
    let words = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
    let of = |it: &Value| {
        (
            it["position"].as_u64().unwrap(),
            it["samples"].as_u64().unwrap(),
            words(it, "label"),
            words(it, "comment"),
        )
    };
    lines.iter().map(of).collect()
}

fn validated(file: &str) {
    if let Ok(validator) = std::env::var("GREBE_VALIDATE") {
        let said = Command::new(validator).arg(file).output().unwrap();
        assert!(said.status.success(), "{}{}", text(&said.stdout), text(&said.stderr));
    }
}

#[test]
fn annotations_are_added_edited_deleted_exported_and_imported_to_the_sample() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sigmf-meta");
    with_a_gap(&path);
    let file = folder.path().join("x.sigmf-collection").display().to_string();
    let said = |file: &str| -> Value {
        let mut meta: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        meta.as_object_mut().unwrap().remove("annotations");
        meta["global"].as_object_mut().unwrap().remove("core:extensions");
        meta
    };
    let meta = folder.path().join("x_ch1.sigmf-meta").display().to_string();
    let before = said(&meta);
    // 97 ms is three samples after the gap of 90.
    ok(&[
        "annotate",
        &file,
        "--add",
        "late",
        "--start",
        "97ms",
        "-d",
        "2ms",
        "--comment",
        "two",
        "--color",
        "#FF8800",
    ]);
    ok(&["annotate", &file, "--add", "early", "--position", "1", "--band", "-20..1.5k"]);
    let all = [(1, 0, "early", ""), (5, 3, "there", ""), (7, 2, "late", "two")];
    let expected = |all: &[(u64, u64, &str, &str)]| -> Vec<_> {
        all.iter().map(|it| (it.0, it.1, it.2.to_owned(), it.3.to_owned())).collect()
    };
    assert_eq!(listed(&file), expected(&all));
    let line = ok(&["annotate", &file, "--find", "TWO"]);
    assert_eq!(line, "   3           97 ms       2 ms  late  (two)\n");
    ok(&["annotate", &file, "--edit", "2", "--label", "here", "--samples", "1"]);
    assert_eq!(listed(&file)[1], (5, 1, "here".into(), String::new()));
    // An import restores an export exactly.
    let fields = ok(&["annotate", &file, "--json"]);
    for name in ["labels.csv", "labels.sigmf-annotations"] {
        let labels = folder.path().join(name).display().to_string();
        ok(&["annotate", &file, "--export", &labels]);
        assert_eq!(run(&["annotate", &file, "--export", &labels]).status.code(), Some(1), "it is there");
        ok(&["annotate", &file, "--delete", "1,2,3"]);
        assert_eq!(listed(&file), []);
        ok(&["annotate", &file, "--import", &labels]);
        assert_eq!(ok(&["annotate", &file, "--json"]), fields, "{name}");
    }
    let labels = folder.path().join("labels.txt").display().to_string();
    ok(&["annotate", &file, "--export", &labels]);
    let audacity = fs::read_to_string(&labels).unwrap();
    assert_eq!(
        audacity,
        "0.001000\t0.001000\tearly\n\\\t-20.0\t1500.0\n0.095000\t0.096000\there\n0.097000\t0.099000\tlate\n"
    );
    ok(&["annotate", &file, "--delete", "1,3,2"]);
    ok(&["annotate", &file, "--import", &labels]);
    assert_eq!(listed(&file), expected(&[(1, 0, "early", ""), (5, 1, "here", ""), (7, 2, "late", "")]));
    assert_eq!(said(&meta), before, "all else stays");
    validated(&meta);
    for (arguments, why) in [
        (&["--delete", "4"][..], "no annotation 4"),
        (&["--edit", "0"], "no annotation 0"),
        (&["--add", "x"], "needs --start"),
        (&["--add", "x", "--start", "1h"], "after the end"),
        (&["--import", "x.doc"], "unknown kind of label file"),
        (&["--add", "x", "--position", "1", "--color", "red"], "invalid color"),
        (&["--add", "x", "--position", "1", "--delete", "1"], "cannot be used with"),
    ] {
        let said = run(&[&["annotate", &file][..], arguments].concat());
        assert_eq!(said.status.code(), Some(2), "{arguments:?}");
        assert!(text(&said.stderr).contains(why), "{}", text(&said.stderr));
    }
}

#[test]
fn annotations_beside_a_wav_are_read_wherever_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let wav = folder.path().join("x.wav").display().to_string();
    fs::copy(example("ecg.wav"), &wav).unwrap();
    let before = fs::read(&wav).unwrap();
    ok(&["annotate", &wav, "--add", "beat", "--start", "10s", "-d", "1s"]);
    let said = run(&["find", &wav, "--trigger", "edge", "--level", "100", "--max", "2", "--annotate"]);
    assert!(text(&said.stderr).contains("wrote 2 annotations into"), "{}", text(&said.stderr));
    assert_eq!(fs::read(&wav).unwrap(), before, "the sound is not touched");
    assert_eq!(lines(ok(&["info", &wav, "--json"]).as_bytes())[0]["annotations"], 3);
    let all = listed(&wav);
    assert!(all.iter().any(|it| (it.0, it.1, it.2.as_str()) == (3_600, 360, "beat")), "{all:?}");
    // They go along into each kind of file, and of a part those that are in it.
    for name in ["y.sigmf-meta", "y.npy", "y.wav"] {
        let to = folder.path().join(name).display().to_string();
        ok(&["convert", &wav, &to]);
        assert_eq!(listed(&to), all, "{name}");
    }
    let to = folder.path().join("y.wav").display().to_string();
    ok(&["convert", &wav, &to, "--start", "10s", "-d", "2s", "--overwrite"]);
    assert_eq!(listed(&to), [(0, 360, "beat".into(), String::new())], "none of the previous file");
    let picture = |name: &str| {
        let png = folder.path().join(name).display().to_string();
        ok(&["view", &to, "--png", &png]);
        fs::read(png).unwrap()
    };
    let with = picture("with.png");
    let beside = folder.path().join("y.wav.sigmf-annotations");
    fs::rename(&beside, folder.path().join("away")).unwrap();
    assert_ne!(picture("without.png"), with, "they are drawn");
}

#[cfg(unix)]
#[test]
fn a_command_that_is_killed_leaves_the_old_or_the_new() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sigmf-meta");
    let settings = SigmfSettings { sample_rate_hz: 1e3, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&path, &settings).unwrap();
    writer.write(0, &[&[0i16; 5_000]]).unwrap();
    (0..4_000u64).for_each(|index| writer.annotate(index, 1, "there").unwrap());
    writer.finish().unwrap();
    let file = path.display().to_string();
    let (mut count, mut killed) = (4_000, 0);
    for number in 0..40u64 {
        let mut child =
            grebe(&["annotate", &file, "--add", "new", "--position", &(number + 4_500).to_string()])
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(number * 5 % 130));
        let _ = child.kill();
        let is_done = child.wait().unwrap().success();
        let now = SampleFile::open(&path).unwrap().annotations().len();
        assert!(now == count + 1 || now == count && !is_done, "{now} after {count}");
        (count, killed) = (now, killed + usize::from(!is_done));
    }
    assert!(killed > 0, "none was killed");
    // Nothing that a killed one left is in the way.
    ok(&["annotate", &file, "--add", "last", "--position", "4999"]);
    validated(&file);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(folder.path()).output();
    if !mount.is_ok_and(|mount| mount.status.success()) {
        println!("skipped: this user mounts nothing");
        return;
    }
    let _unmounts = Unmounts(folder.path());
    let path = folder.path().join("x.sigmf-meta");
    let settings = SigmfSettings { sample_rate_hz: 1e3, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&path, &settings).unwrap();
    writer.write(0, &[&[0i16; 2_000]]).unwrap();
    (0..200u64).for_each(|index| writer.annotate(index, 1, "there").unwrap());
    writer.finish().unwrap();
    let file = path.display().to_string();
    fs::write(folder.path().join("fill"), vec![1; 64 << 10]).unwrap_err();
    let before = fs::read(&path).unwrap();
    let said = run(&["annotate", &file, "--add", "x", "--position", "5"]);
    assert_eq!(said.status.code(), Some(5), "{}", text(&said.stderr));
    assert!(text(&said.stderr).contains("No space"), "{}", text(&said.stderr));
    assert_eq!(fs::read(&path).unwrap(), before);
    fs::remove_file(folder.path().join("fill")).unwrap();
    ok(&["annotate", &file, "--add", "x", "--position", "5"]);
    assert_eq!(SampleFile::open(&path).unwrap().annotations().len(), 201);
}

/// Takes a disk away again, however a test ends.
#[cfg(target_os = "linux")]
struct Unmounts<'a>(&'a Path);

#[cfg(target_os = "linux")]
impl Drop for Unmounts<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}
