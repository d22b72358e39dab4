//! `grebe top` beside running grebes, as a user has them.

#[cfg(unix)]
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Killed, text, wait_until};

/// A user's run-time folder, with nobody in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn grebe(&self, arguments: &[&str]) -> Command {
        let mut command = crate::support::grebe(arguments);
        command.env("XDG_RUNTIME_DIR", self.0.path()).env("TMPDIR", self.0.path());
        command.env("LOCALAPPDATA", self.0.path());
        command
    }

    fn top(&self, arguments: &[&str]) -> Output {
        let mut command = self.grebe(&["top"]);
        let child = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        crate::support::finish(child)
    }

    /// A generator that sends to a port where nobody listens, once it can be watched.
    fn generator(&self) -> Killed {
        let arguments = ["sg", "--rate", "1M", "--channels", "2", "--to", "udp://127.0.0.1:9"];
        let child = self.grebe(&arguments).stderr(Stdio::null()).spawn().unwrap();
        let generator = Killed(child);
        wait_until("the generator does not publish", || self.socket(&generator).exists());
        generator
    }

    fn socket(&self, generator: &Killed) -> PathBuf {
        self.folder().join(format!("{}.sg.top", generator.0.id()))
    }

    fn folder(&self) -> PathBuf {
        let folder = self.0.path().join("grebe");
        if cfg!(windows) { folder.join("top") } else { folder }
    }
}

/// Whether only this user can reach a socket.
#[cfg(unix)]
fn is_private(socket: &Path) -> bool {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let of = |path: &Path| fs::metadata(path).unwrap();
    let mode = |path: &Path| of(path).permissions().mode() & 0o777;
    of(socket).file_type().is_socket() && (mode(socket), mode(socket.parent().unwrap())) == (0o600, 0o700)
}

/// The folder is as private as the one above.
#[cfg(windows)]
fn is_private(_: &Path) -> bool {
    true
}

#[test]
fn a_running_generator_is_shown_as_a_table_and_as_json() {
    let place = Place::new();
    let generator = place.generator();
    let id = generator.0.id();
    assert!(is_private(&place.socket(&generator)));

    let table = place.top(&["--once"]);
    let said = text(&table.stdout);
    assert!(table.status.success(), "{}", text(&table.stderr));
    for part in [&*format!("grebe sg  process {id}"), "generator", "sender", "block 64", "slowest: "] {
        assert!(said.contains(part), "no '{part}' in:\n{said}");
    }
    let until = Instant::now() + Duration::from_secs(20);
    let report = loop {
        let json = place.top(&["--once", "--json", &id.to_string()]);
        let report: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
        // Latency is known after a second of it.
        if !report["stages"][1]["latency"].is_null() || Instant::now() > until {
            break report;
        }
    };
    assert_eq!((report["pid"].as_u64(), report["name"].as_str()), (Some(u64::from(id)), Some("sg")));
    let [generator, sender] = [&report["stages"][0], &report["stages"][1]];
    assert!(generator["samples_per_s"].as_f64().unwrap() > 0.0, "{report}");
    assert!(sender["frames"].as_u64().unwrap() > 0, "{report}");
    assert!(sender["latency"]["p99_ns"].as_u64() > Some(0), "{report}");
    assert_eq!(report["queues"][0]["policy"], "block");
    assert!(report["slowest"]["stage"].is_string(), "{report}");

    assert!(place.top(&["--once", "sg"]).status.success());
    let other = place.top(&["--once", "view"]);
    assert_eq!(other.status.code(), Some(1));
    assert!(text(&other.stderr).contains("no grebe process named 'view'"), "{}", text(&other.stderr));
    let nobody = place.top(&["--once", "4294967295"]);
    assert!(text(&nobody.stderr).contains("no grebe process 4294967295"), "{}", text(&nobody.stderr));
}

#[test]
fn json_lines_continue_until_the_reader_or_the_process_ends() {
    let place = Place::new();
    let generator = place.generator();
    let mut top = place.grebe(&["top", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<serde_json::Value>(&lines.next().unwrap().unwrap()).unwrap();
    let (first, second) = (next(), next());
    assert!(first["uptime_s"].as_f64() < second["uptime_s"].as_f64());
    drop(generator);
    let later = place.generator();
    let third = loop {
        let line = next();
        if line["pid"].as_u64() == Some(u64::from(later.0.id())) {
            break line;
        }
    };
    assert_eq!(third["name"], "sg", "one that started later is heard too");
    drop(lines);
    assert!(crate::support::finish(top).status.success(), "a closed pipe is not a failure");
}

#[test]
fn the_next_listing_removes_leftovers_of_a_killed_process() {
    let place = Place::new();
    let mut generator = place.generator();
    let socket = place.socket(&generator);
    generator.0.kill().unwrap();
    generator.0.wait().unwrap();
    #[cfg(unix)]
    assert!(socket.exists(), "killed, it could not clean up");
    let none = place.top(&["--once"]);
    assert_eq!(none.status.code(), Some(0));
    let said = text(&none.stderr);
    assert!(said.contains("no grebe process runs as this user") && said.contains("grebe sg"), "{said}");
    assert!(!socket.exists());
}

#[cfg(unix)]
#[test]
fn an_ended_process_leaves_nothing() {
    let place = Place::new();
    let mut generator = place.generator();
    crate::support::signal("-INT", generator.0.id());
    generator.0.wait().unwrap();
    assert_eq!(fs::read_dir(place.folder()).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_scope_whose_terminal_is_gone_leaves_nothing() {
    leaves_nothing("exec");
}

#[cfg(target_os = "linux")]
#[test]
fn a_scope_that_nohup_started_ends_with_its_terminal_all_the_same() {
    leaves_nothing("trap '' HUP; exec");
}

/// Hung up on, and at last by its own decision: a terminal that is gone may never answer a read.
#[cfg(target_os = "linux")]
fn leaves_nothing(exec: &str) {
    if !Path::new("/usr/bin/script").is_file() {
        println!("skipped: no script to lend a terminal");
        return;
    }
    let place = Place::new();
    let line = format!("{exec} '{}' view synth: --term --no-session", env!("CARGO_BIN_EXE_grebe"));
    let mut script = Command::new("/usr/bin/script");
    script.args(["-qefc", &line, "/dev/null"]).env("TERM", "xterm");
    script.env("XDG_RUNTIME_DIR", place.0.path()).env("TMPDIR", place.0.path());
    let terminal = script.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let mut terminal = Killed(terminal);
    let folder = place.folder();
    let is_published = || fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
    let wait_until = |is_there: bool, what: &str| {
        wait_until(what, || is_published() == is_there);
    };
    wait_until(true, "the scope does not publish");
    terminal.0.kill().unwrap();
    wait_until(false, "what it told grebe top lies there still");
}

#[cfg(unix)]
#[test]
fn readers_that_never_read_do_not_stop_the_process() {
    use std::os::unix::net::UnixStream;

    let place = Place::new();
    let generator = place.generator();
    // More than are served at a time: the rest waits.
    let dead: Vec<UnixStream> =
        (0..40).map(|_| UnixStream::connect(place.socket(&generator)).unwrap()).collect();
    let frames = |json: Output| {
        let report: serde_json::Value = serde_json::from_slice(&json.stdout).ok()?;
        report["stages"][1]["frames"].as_u64()
    };
    assert_eq!(frames(place.top(&["--once", "--json"])), None, "all places are taken");
    drop(dead);
    let first = frames(place.top(&["--once", "--json"])).unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    assert!(frames(place.top(&["--once", "--json"])).unwrap() > first);
}

#[test]
fn without_a_terminal_the_error_names_the_options() {
    let place = Place::new();
    let refused = place.top(&[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("--once"), "{}", text(&refused.stderr));
}
