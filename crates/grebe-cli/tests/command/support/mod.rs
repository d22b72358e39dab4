//! The built command, as a user runs it.
#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "tests of other systems use less of it"))]

pub(crate) mod kills;
pub(crate) mod recordings;
pub(crate) mod remote_host;
#[cfg(target_os = "linux")]
pub(crate) mod screen;
#[cfg(unix)]
pub(crate) mod trees;

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, UdpSocket};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// First line of a command that `ssh` started.
pub(crate) const MARK: &str = "grebe-is-here-5d0b1f7c24e9";

/// A free port that no other test gets, even if network namespaces have all ports free.
///
/// It lies below the ports that a system gives to sockets by itself, so that none of these takes it before its user does.
pub(crate) fn free_port() -> u16 {
    // The block of ports of this process, taken by its first one.
    static BLOCK: LazyLock<(UdpSocket, AtomicU16)> = LazyLock::new(|| {
        let mut blocks = (10_000..30_000).step_by(BLOCK_PORTS);
        let taken = blocks.find_map(|first| Some((UdpSocket::bind(("127.0.0.1", first)).ok()?, first + 1)));
        taken.map(|(socket, next)| (socket, next.into())).unwrap()
    });
    let mut ports = std::iter::repeat_with(|| BLOCK.1.fetch_add(1, Ordering::Relaxed));
    ports.find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok()).unwrap()
}

/// More than one run of all tests takes.
const BLOCK_PORTS: usize = 1_000;

/// The path of the command that is tested.
pub(crate) fn program() -> String {
    env::var("GREBE_COMMAND").unwrap_or_else(|_| env!("CARGO_BIN_EXE_grebe").to_owned())
}

/// The command with these arguments: the one built with the tests, or the one in GREBE_COMMAND.
pub(crate) fn grebe(arguments: &[&str]) -> Command {
    let built = env::var_os("GREBE_COMMAND").unwrap_or_else(|| env!("CARGO_BIN_EXE_grebe").into());
    let mut command = Command::new(built);
    // Tests must not write into the user's own directories.
    let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join("state");
    command.args(arguments).stdin(Stdio::null()).env("XDG_STATE_HOME", state);
    command
}

/// Runs it to its end, which must come within a minute.
pub(crate) fn run(arguments: &[&str]) -> Output {
    let child = grebe(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    finish(child)
}

/// Waits for a child, a minute at most.
pub(crate) fn finish(mut child: Child) -> Output {
    // Read while waiting: a child that fills its pipe would wait for us.
    let stdout = child.stdout.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).unwrap();
            bytes
        })
    });
    let stderr = child.stderr.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).unwrap();
            bytes
        })
    });
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            panic!("the command did not end within a minute");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let collect = |thread: Option<std::thread::JoinHandle<Vec<u8>>>| thread.map(|it| it.join().unwrap());
    Output {
        status,
        stdout: collect(stdout).unwrap_or_default(),
        stderr: collect(stderr).unwrap_or_default(),
    }
}

/// A listening command, its address, and the rest of its standard error.
pub(crate) fn listening(arguments: &[&str]) -> (Child, String, BufReader<ChildStderr>) {
    let (child, said, stderr) = until_listening(&mut grebe(arguments));
    let place = said.rsplit("listening on ").next().unwrap().trim();
    (child, place.split_once("://").map_or(place, |(_, address)| address).to_owned(), stderr)
}

/// A listening command, its messages until then, and the rest of its standard error. The address is after the last
/// `listening on `.
pub(crate) fn until_listening(command: &mut Command) -> (Child, String, BufReader<ChildStderr>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("listening on ") {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "it ended before it listened: {said}");
    }
    (child, said, stderr)
}

/// The samples of a recording, as its file has them.
pub(crate) fn data(file: &Path) -> Vec<u8> {
    std::fs::read(file.with_extension("sigmf-data")).unwrap()
}

/// A listener on a port of the system's choice; ends with the test.
pub(crate) struct Listener {
    pub child: Option<Child>,
    pub address: String,
    stderr: BufReader<ChildStderr>,
}

impl Listener {
    /// `grebe record udp://127.0.0.1:0 FILE --json ...`, up to where it listens.
    pub(crate) fn record(file: &Path, more: &[&str]) -> Self {
        let mut arguments = vec!["record", "udp://127.0.0.1:0", file.to_str().unwrap(), "--json"];
        arguments.extend(more);
        let (child, address, stderr) = listening(&arguments);
        Self { child: Some(child), address, stderr }
    }

    pub(crate) fn uri(&self) -> String {
        format!("udp://{}", self.address)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Waits for its end: exit status, JSON, remaining messages.
    pub(crate) fn finish(mut self) -> (Option<i32>, serde_json::Value, String) {
        let output = finish(self.child.take().unwrap());
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default(), said)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A file of `examples/data`.
pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name)
}

/// Waits until something is so, for a minute.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A program that is killed with the test.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Deref for Killed {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Killed {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

pub(crate) fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A program that is to succeed.
pub(crate) trait Good {
    /// Panics with its messages if it failed.
    fn good(self) -> Self;
}

impl Good for Output {
    #[track_caller]
    fn good(self) -> Self {
        assert!(self.status.success(), "{}: {}{}", self.status, text(&self.stdout), text(&self.stderr));
        self
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Sends a signal as a shell would: its own `kill`, since a minimal system has no other.
#[cfg(unix)]
pub(crate) fn signal(name: &str, id: u32) {
    let sent = Command::new("sh").args(["-c", &format!("kill {name} {id}")]).status().unwrap();
    assert!(sent.success());
}

/// Compares a part of a docs page, between two marks, or rewrites it if `UPDATE_SNAPSHOTS` is set.
pub(crate) fn check_page(page: &str, name: &str, told: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let (begin, end) = (format!("<!-- {name}: written by a test -->"), format!("<!-- end of {name} -->"));
    let whole = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = whole.split_once(&begin).expect("the page has the first mark");
    let (there, after) = rest.split_once(&end).expect("the page has the last mark");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, format!("{before}{begin}{told}{end}{after}")).unwrap();
        return;
    }
    assert_eq!(there, told, "UPDATE_SNAPSHOTS=1 and this test write it anew");
}
