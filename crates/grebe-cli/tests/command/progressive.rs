//! Recordings that are viewed while they are copied, and recordings on another machine, with a stand-in for ssh that
//! runs the command here.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Good, finish, grebe, signal, text};
use serde_json::{Value, json};

const SAMPLES: usize = 40_000_000;
const RATE_HZ: usize = 1_000_000;

/// A ramp of small steps with a spike up, one down, and one in the last thousandth.
fn sample(at: usize, late: i16) -> i16 {
    match at {
        12_345_678 => 30_000,
        33_333_333 => -20_000,
        39_995_000 => late,
        _ => (at % 1000) as i16,
    }
}

/// A machine named `lab`, which is this one, and a home for who uses it.
struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let lab = Self { folder };
        lab.script("ssh", SSH);
        for folder in ["config/grebe", "cache", "there", "here"] {
            fs::create_dir_all(lab.path(folder)).unwrap();
        }
        lab.runs(Path::new(env!("CARGO_BIN_EXE_grebe")));
        lab
    }

    /// Processes that were started on the other host.
    fn runs(&self, program: &Path) {
        let (ssh, program) = (self.path("ssh"), program.display());
        let config = format!("[defaults]\nssh = \"{}\"\nremote-path = \"{program}\"\n", ssh.display());
        fs::write(self.path("config/grebe/cp.toml"), config).unwrap();
    }

    fn script(&self, name: &str, script: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn grebe(&self, arguments: &[&str]) -> Command {
        let mut command = grebe(arguments);
        command.env("XDG_CONFIG_HOME", self.path("config")).env("XDG_CACHE_HOME", self.path("cache"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        finish(self.grebe(arguments).spawn().unwrap())
    }

    /// A picture, its measurements, and the messages.
    fn picture(&self, name: &str, more: &[&str]) -> (Value, String) {
        let png = self.path("picture.png");
        let _ = fs::remove_file(&png);
        let output = self.run(&[&["view", name, "--png", png.to_str().unwrap(), "--json"], more].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG"));
        (serde_json::from_slice(&output.stdout).unwrap(), said)
    }

    /// A recording of one channel there.
    fn record(&self, name: &str, late: i16) -> PathBuf {
        let meta = self.path("there").join(format!("{name}.sigmf-meta"));
        let bytes: Vec<u8> = (0..SAMPLES).flat_map(|at| sample(at, late).to_le_bytes()).collect();
        fs::write(meta.with_extension("sigmf-data"), bytes).unwrap();
        let told = json!({
            "global": { "core:datatype": "ri16_le", "core:sample_rate": RATE_HZ, "core:version": "1.2.0" },
            "captures": [{ "core:sample_start": 0 }], "annotations": [],
        });
        fs::write(&meta, told.to_string()).unwrap();
        meta
    }

    /// A viewed recording leaves nothing behind.
    fn assert_nothing_kept(&self) {
        let left = fs::read_dir(self.path("cache/grebe/looks")).map_or(0, |left| left.count());
        assert_eq!(left, 0, "the fetched recording is removed with the viewer");
    }
}

fn there(path: &Path) -> String {
    format!("lab:{}", path.display())
}

fn extremes(told: &Value) -> (f64, f64) {
    let channel = &told["channels"][0];
    (channel["min"].as_f64().unwrap(), channel["max"].as_f64().unwrap())
}

/// Waits for a state; how long that takes is the machine's.
fn until<T>(what: &str, mut state: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(state) = state() {
            return state;
        }
        assert!(began.elapsed() < Duration::from_secs(90), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_remote_recording_is_shown_whole_and_sharp_where_viewed() {
    let lab = Lab::new();
    let meta = lab.record("run7", 5_000);
    // It has no summary: one is made there first.
    let (told, said) = lab.picture(&there(&meta), &[]);
    assert_eq!(told["exact"], true, "{said}");
    assert_eq!(extremes(&told), (-20_000.0, 30_000.0), "{told}");
    assert!(said.contains("0.0 % of the samples have arrived"), "nobody needed any: {said}");
    assert!(meta.with_extension("grebe-summary").is_file());

    let (told, said) = lab.picture(&there(&meta), &["--span", "10ms"]);
    assert_eq!(told["exact"], true, "{said}");
    assert_eq!(extremes(&told), (0.0, 5_000.0), "the spike of the last ten milliseconds: {told}");
    assert_eq!(told["channels"][0]["samples"], 10_000, "{told}");
    lab.assert_nothing_kept();
}

#[test]
fn a_summary_that_contradicts_the_samples_is_not_shown() {
    let lab = Lab::new();
    let meta = lab.record("run7", 5_000);
    lab.picture(&there(&meta), &[]);
    // Other samples with the same time, except for the bytes that identify a recording.
    let data = meta.with_extension("sigmf-data");
    let modified = fs::metadata(&data).unwrap().modified().unwrap();
    lab.record("run7", -15_000);
    fs::File::options().write(true).open(&data).unwrap().set_modified(modified).unwrap();
    let (told, said) = lab.picture(&there(&meta), &["--span", "10ms"]);
    assert_eq!((told["exact"].as_bool(), extremes(&told)), (Some(true), (-15_000.0, 999.0)), "{said}");
    assert!(said.contains("the summary does not match them and is ignored"), "{said}");
}

#[test]
fn several_channels_and_short_recordings_come_too() {
    let lab = Lab::new();
    let made = lab.path("there/two.sigmf-meta");
    let arguments = [
        "sg",
        "--channels",
        "2",
        "--rate",
        "4M",
        "--duration",
        "2s",
        "--free-run",
        "--to",
        made.to_str().unwrap(),
    ];
    lab.run(&arguments).good();
    let collection = made.with_extension("sigmf-collection");
    assert!(collection.is_file(), "two channels have a file each");
    let (local, _) = lab.picture(collection.to_str().unwrap(), &[]);
    let (told, said) = lab.picture(&there(&collection), &[]);
    assert_eq!(told["channels"].as_array().unwrap().len(), 2, "{said}");
    for channel in 0..2 {
        for extreme in ["min", "max"] {
            assert_eq!(told["channels"][channel][extreme], local["channels"][channel][extreme], "{said}");
        }
    }
    let ecg = fs::canonicalize(crate::support::example("ecg.sigmf-meta")).unwrap();
    let (told, said) = lab.picture(&there(&ecg), &[]);
    assert_eq!(told["exact"], true, "{said}");
    lab.assert_nothing_kept();
}

#[test]
fn a_missing_recording_is_an_error() {
    let lab = Lab::new();
    for (name, words) in [
        ("lab:none.sigmf-meta", "none.sigmf-meta"),
        ("lab:~/nowhere/none.sigmf-collection", "none.sigmf-collection"),
    ] {
        let png = lab.path("x.png");
        let output = lab.run(&["view", name, "--png", png.to_str().unwrap()]);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{said}");
        assert!(!png.exists());
    }
    lab.assert_nothing_kept();
}

/// A copy slow enough to be viewed meanwhile.
fn slow_copy(lab: &Lab, meta: &Path) -> Child {
    let here = lab.path("here");
    let arguments =
        ["cp", "--progressive", "--via", "ssh", "--bwlimit", "40M", &there(meta), here.to_str().unwrap()];
    lab.grebe(&arguments).spawn().unwrap()
}

#[test]
fn a_progressive_copy_can_be_viewed_and_resumes_after_a_kill() {
    let lab = Lab::new();
    let meta = lab.record("run7", 5_000);
    lab.picture(meta.to_str().unwrap(), &[]);
    let mut copy = slow_copy(&lab, &meta);
    let here = lab.path("here/run7.sigmf-meta");
    let partial = lab.path("here/.grebe-partial");
    until("metadata, and parts", || {
        let parts = fs::read_dir(&partial).ok()?.flatten();
        let maps = parts.filter(|part| part.file_name().to_string_lossy().starts_with(".grebe-m")).count();
        (here.is_file() && maps > 0).then_some(())
    });
    let (told, said) = lab.picture(here.to_str().unwrap(), &[]);
    assert_eq!((told["exact"].as_bool(), extremes(&told)), (Some(true), (-20_000.0, 30_000.0)), "{said}");
    assert!(said.contains("of the samples have arrived"), "{said}");
    let (told, said) = lab.picture(here.to_str().unwrap(), &["--span", "10ms"]);
    assert_eq!((told["exact"].as_bool(), extremes(&told)), (Some(true), (0.0, 5_000.0)), "{said}");
    let data = lab.path("here/run7.sigmf-data");
    assert!(!data.exists(), "it has no name before it is whole");

    // Until the journal knows something.
    std::thread::sleep(Duration::from_secs(3));
    signal("-KILL", copy.id());
    copy.wait().unwrap();
    // The arrived part can be viewed, even if nothing more arrives.
    let (told, _) = lab.picture(here.to_str().unwrap(), &[]);
    assert_eq!(extremes(&told), (-20_000.0, 30_000.0));

    let folder = lab.path("here");
    let output =
        lab.run(&["cp", "--progressive", "--json", "--via", "ssh", &there(&meta), folder.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let lines = text(&output.stdout);
    let result =
        lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).next_back().unwrap();
    let sent =
        result["result"]["data_bytes"].as_u64().or_else(|| result["result"]["wire_bytes"].as_u64()).unwrap();
    assert!(sent < SAMPLES as u64 * 2, "what had come did not come again: {result}");
    assert!(fs::read(&data).unwrap() == fs::read(meta.with_extension("sigmf-data")).unwrap());
    assert!(!partial.exists());
    let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(modified(&data), modified(&meta.with_extension("sigmf-data")));
}

#[test]
fn a_viewer_before_the_first_sample_waits_for_it() {
    let lab = Lab::new();
    let meta = lab.record("run7", 5_000);
    lab.picture(meta.to_str().unwrap(), &[]);
    let here = lab.path("here/run7.sigmf-meta");
    // The metadata have come, of the samples nothing: a copy that was just begun.
    let partial = lab.path("here/.grebe-partial");
    fs::create_dir(&partial).unwrap();
    fs::set_permissions(&partial, fs::Permissions::from_mode(0o700)).unwrap();
    fs::copy(&meta, &here).unwrap();
    let png = lab.path("picture.png");
    let looking = lab
        .grebe(&["view", here.to_str().unwrap(), "--png", png.to_str().unwrap(), "--json"])
        .spawn()
        .unwrap();
    let mut copy = slow_copy(&lab, &meta);
    let output = finish(looking);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(extremes(&serde_json::from_slice(&output.stdout).unwrap()), (-20_000.0, 30_000.0), "{said}");
    signal("-KILL", copy.id());
    copy.wait().unwrap();
    // Without a copy in progress, nothing waits.
    fs::remove_dir_all(&partial).unwrap();
    let output = lab.run(&["view", here.to_str().unwrap(), "--png", png.to_str().unwrap()]);
    assert!(text(&output.stderr).contains("run7.sigmf-data: No such file"), "{}", text(&output.stderr));
}

#[test]
fn an_older_end_makes_a_plain_copy_and_says_so() {
    let lab = Lab::new();
    let words = "s/,\"knows_order\":true//; s/\"knows_order\":true,//";
    let exe = env!("CARGO_BIN_EXE_grebe");
    lab.runs(&lab.script("old", &format!("#!/bin/sh\n{exe} \"$@\" | sed -u '{words}'\n")));
    let meta = lab.record("run7", 1);
    let here = lab.path("here");
    let output = lab.run(&[
        "cp",
        "--progressive",
        "--first",
        "*.json",
        "--via",
        "tcp",
        &there(&meta),
        here.to_str().unwrap(),
    ]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("knows neither --progressive nor --first") && said.contains("plain copy"),
        "{said}"
    );
    assert!(here.join("run7.sigmf-meta").is_file());
    let output = lab.run(&["view", &there(&meta), "--png", lab.path("x.png").to_str().unwrap()]);
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("copy it (grebe cp"), "{said}");
}

#[test]
fn the_next_viewer_removes_leftovers_of_a_killed_viewer() {
    let lab = Lab::new();
    let left = lab.path("cache/grebe/looks/look-left");
    fs::create_dir_all(left.join("files")).unwrap();
    fs::write(left.join("lock"), "").unwrap();
    let ecg = fs::canonicalize(crate::support::example("ecg.sigmf-meta")).unwrap();
    lab.picture(&there(&ecg), &[]);
    lab.assert_nothing_kept();
}

const SSH: &str = r#"#!/bin/sh
case " $* " in *" -G "*) echo "user me"; echo "hostname 127.0.0.1"; exit 0;; esac
for last; do :; done
exec sh -c "$last"
"#;
