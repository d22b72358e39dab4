//! The key `R` of the scope in a terminal saves the visible samples unchanged, with their metadata.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::grebe;
use rustix::ioctl::{Getter, Setter, ioctl};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};

/// A terminal with its keys and screen, and the arguments of the command.
fn terminal() -> (File, PathBuf) {
    let master = File::options().read(true).write(true).open("/dev/ptmx").unwrap();
    // SAFETY: both are of ioctl_tty(2), with the types that it says.
    let number = unsafe {
        ioctl(&master, Setter::<UNLOCK, i32>::new(0)).unwrap();
        ioctl(&master, Getter::<NUMBER, u32>::new()).unwrap()
    };
    tcsetwinsize(&master, Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    (master, format!("/dev/pts/{number}").into())
}

/// `TIOCSPTLCK` and `TIOCGPTN`.
const UNLOCK: rustix::ioctl::Opcode = 0x4004_5431;
const NUMBER: rustix::ioctl::Opcode = 0x8004_5430;

/// The metadata file that the scope wrote into a folder, where it did.
fn saved_file(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_saved = |path: &PathBuf| {
        path.extension().is_some_and(|it| it == "sigmf-meta")
            && path.file_stem().is_some_and(|it| it != "from")
    };
    files.into_iter().find(is_saved)
}

/// Shows a source, presses `R`, and reads the saved metadata; `None` without a terminal.
fn saved(source: &str, folder: &Path) -> Value {
    let (mut master, path) = terminal();
    let open = || File::options().read(true).write(true).open(&path).unwrap();
    let mut scope = grebe(&["view", source, "--term", "--no-session"])
        .current_dir(folder)
        .env("TERM", "xterm-256color")
        .stdin(Stdio::from(open()))
        .stdout(Stdio::from(open()))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut screen = master.try_clone().unwrap();
    // Reads the output, because the command would block.
    std::thread::spawn(move || {
        let mut seen = [0; 4096];
        while screen.read(&mut seen).is_ok_and(|length| length > 0) {}
    });
    // All samples are visible by then, so all are saved.
    std::thread::sleep(Duration::from_secs(3));
    let began = Instant::now();
    let meta = loop {
        let file = saved_file(folder);
        let bytes = file.as_ref().and_then(|file| fs::read(file).ok());
        let meta = bytes.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        if let Some(meta) = meta.filter(|meta| meta["global"]["core:sha512"].is_string()) {
            break meta;
        }
        assert!(began.elapsed() < Duration::from_secs(50), "nothing was saved");
        assert!(scope.try_wait().unwrap().is_none(), "the scope has ended");
        if file.is_none() {
            master.write_all(b"R").unwrap();
        }
        std::thread::sleep(Duration::from_millis(500));
    };
    let _ = master.write_all(b"q");
    let _ = scope.kill();
    scope.wait().unwrap();
    meta
}

fn recording(folder: &Path, captures: &Value) -> PathBuf {
    let path = folder.join("from.sigmf-meta");
    let global = json!({
        "core:datatype": "ri16_le", "core:version": "1.0.0", "core:sample_rate": 1000, "core:hw": "a probe",
        "grebe:channels": [{"name": "motor", "unit": "A", "scale": 0.25, "offset": 1.0}],
    });
    let annotations = json!([{"core:sample_start": 100, "core:sample_count": 50, "core:label": "start", "core:comment": "x"}]);
    let meta = json!({"global": global, "captures": captures, "annotations": annotations});
    fs::write(&path, meta.to_string()).unwrap();
    let samples: Vec<u8> = (0..2_000i16).flat_map(i16::to_le_bytes).collect();
    fs::write(path.with_extension("sigmf-data"), samples).unwrap();
    path
}

#[test]
fn samples_that_are_saved_from_a_recording_keep_time_frequency_names_units_and_labels() {
    let folder = tempfile::tempdir().unwrap();
    let captures = json!([
        {"core:sample_start": 0, "core:frequency": 100e6, "core:datetime": "2020-01-02T03:04:05Z"},
        {"core:sample_start": 1000, "core:frequency": 101e6, "core:datetime": "2020-01-02T03:04:06Z"},
    ]);
    let from = recording(folder.path(), &captures);
    let meta = saved(from.to_str().unwrap(), folder.path());
    assert_eq!(meta["global"]["core:hw"], "a probe", "{meta}");
    let name = saved_file(folder.path()).unwrap();
    assert_eq!(
        name.file_name().unwrap(),
        "from_20200102T030405Z.sigmf-meta",
        "its source, and its first sample"
    );
    assert_eq!(
        meta["global"]["grebe:channels"],
        json!([{"name": "motor", "unit": "A", "scale": 0.25, "offset": 1.0}])
    );
    let captures: Vec<_> = meta["captures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (it["core:sample_start"].as_u64(), it["core:frequency"].as_f64(), it["core:datetime"].as_str())
        })
        .collect();
    let expected = [
        (Some(0), Some(100e6), Some("2020-01-02T03:04:05.000000Z")),
        (Some(1000), Some(101e6), Some("2020-01-02T03:04:06.000000Z")),
    ];
    assert_eq!(captures, expected, "{meta}");
    let label = &meta["annotations"][0];
    assert_eq!((&label["core:sample_start"], &label["core:sample_count"]), (&100.into(), &50.into()));
    assert_eq!((&label["core:label"], &label["core:comment"]), (&"start".into(), &"x".into()));
}

#[test]
fn samples_whose_time_nobody_knows_are_saved_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let from = recording(folder.path(), &json!([{"core:sample_start": 0}]));
    let meta = saved(from.to_str().unwrap(), folder.path());
    assert!(meta["captures"][0].get("core:datetime").is_none(), "{meta}");
}

#[test]
fn samples_of_a_live_stream_are_saved_with_the_time_at_which_they_were_made() {
    let folder = tempfile::tempdir().unwrap();
    let meta = saved("synth:sine?rate=10k&channels=1", folder.path());
    let saved = meta["captures"][0]["core:datetime"].as_str().unwrap();
    let file = grebe::recording::SampleFile::open(saved_file(folder.path()).unwrap()).unwrap();
    let made = file.segments()[0].recorded_at.unwrap();
    let length = Duration::from_secs_f64(file.len_samples() as f64 / 10e3);
    let written = fs::metadata(saved_file(folder.path()).unwrap().with_extension("sigmf-data"))
        .unwrap()
        .modified()
        .unwrap();
    // Its first sample is as much older as there are samples; a clock of files ticks in 10 ms.
    let age = written.duration_since(made).unwrap();
    assert!(age + Duration::from_millis(50) >= length, "{saved}: {age:?}, and {length:?} were saved");
}
