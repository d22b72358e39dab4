//! Tests publishing and watching in this process.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use grebe_flow::telemetry::{Report, Watch, Watched, publish};
use grebe_flow::{Context, Graph, Inputs, Outcome, Outputs, QueueOptions, Running, Stage, StageResult};
use grebe_frame::{BatchPool, Header};

/// Makes a frame of 8 samples every millisecond.
struct Clock(BatchPool, u64);

impl Stage for Clock {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        ctx.sleep_until(Instant::now() + Duration::from_millis(1));
        let Some(mut batch) = ctx.acquire(&mut self.0) else { return Ok(Outcome::Produced) };
        let header = Header {
            sequence: self.1,
            channel_count: 1,
            block_length_samples: 8,
            producer_ts_ns: grebe_flow::monotonic_ns(),
            ..Header::default()
        };
        batch.push::<i16>(&header, |_, samples| samples.fill(1))?;
        output.send(batch.freeze(), ctx);
        self.1 += 1;
        Ok(Outcome::Produced)
    }
}

struct Copy;

impl Stage for Copy {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        if batch.frames().any(|frame| frame.header().sequence.is_multiple_of(2)) {
            ctx.count_copied(batch.len());
        }
        Ok(Outcome::Produced)
    }
}

fn start() -> Running {
    let mut graph = Graph::new();
    let clock = graph.add("clock", Clock(BatchPool::new(16, 4096), 0));
    let copy = graph.add("copy", Copy);
    graph.connect(clock, copy, QueueOptions::block(4).bytes(1 << 20));
    graph.start().unwrap()
}

/// Runs this test again in a process with a private run-time directory. Returns whether this is that process.
fn is_alone(test: &str) -> bool {
    if std::env::var_os("GREBE_TEST_IS_ALONE").is_some() {
        return true;
    }
    let folder = tempfile::tempdir().unwrap();
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("GREBE_TEST_IS_ALONE", "1")
        .env("XDG_RUNTIME_DIR", folder.path())
        .env("TMPDIR", folder.path())
        .env("LOCALAPPDATA", folder.path())
        .output()
        .unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path()).collect();
    assert_eq!(left, [folder.path().join("grebe")], "it published there and nowhere else");
    false
}

/// Connects to a publisher as another program does.
#[cfg(unix)]
fn connect(path: &Path) -> impl Read + use<> {
    std::os::unix::net::UnixStream::connect(path).unwrap()
}

/// Connects to a publisher as another program does.
#[cfg(windows)]
fn connect(path: &Path) -> impl Read + use<> {
    let (mut stream, token) = (windows::reach(path), windows::token(path));
    std::io::Write::write_all(&mut stream, &token).unwrap();
    stream
}

/// Leaves what the death of a process leaves.
fn leave(path: &Path) {
    #[cfg(unix)]
    drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    // The system deletes the file, unless the machine loses power.
    #[cfg(windows)]
    std::fs::write(path, "1 00112233445566778899aabbccddeeff\n").unwrap();
}

/// This process's graph of that name, after its first report.
fn watched(watch: &mut Watch, name: &str) -> Option<Watched> {
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        let found = watch.look().into_iter().find(|one| one.pid == std::process::id() && one.name == name);
        if found.as_ref().is_some_and(|found| found.report.is_some()) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

#[test]
fn a_published_graph_is_found_read_and_gone_when_it_ends() {
    if !is_alone("a_published_graph_is_found_read_and_gone_when_it_ends") {
        return;
    }
    let running = start();
    let published = publish(&running, "told").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(published.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let mut watch = Watch::new().unwrap();
    let report = watched(&mut watch, "told").unwrap().report.unwrap();
    let (clock, copy) = (report.stage("clock").unwrap(), report.stage("copy").unwrap());
    // Counters are read one by one while the stages run, so a preempted reader sees a few more frames.
    let (frames, samples) = (clock.frames_per_s * report.interval_s, clock.samples_per_s * report.interval_s);
    assert!(frames > 0.0 && (samples - frames * 8.0).abs() <= (frames * 8.0 / 4.0).max(16.0), "{clock:?}");
    assert!(clock.waiting_share > 0.0, "it sleeps: {clock:?}");
    assert!(copy.copied_frames > 0 && copy.borrowed_frames > 0, "{copy:?}");
    let (copied, borrowed) = (copy.copied_frames, copy.borrowed_frames);
    assert!(copied.abs_diff(borrowed) <= (copied / 4).max(2), "every other one is copied: {copy:?}");
    assert_eq!(report.queues[0].queue.capacity_bytes, Some(1 << 20));
    let path = published.path().to_owned();
    drop(published);
    assert!(!path.exists());
    assert!(watch.look().iter().all(|one| one.name != "told"), "who hung up is no longer listed");
    running.stop().unwrap();
}

#[test]
fn graphs_of_one_name_in_one_process_are_distinguished() {
    if !is_alone("graphs_of_one_name_in_one_process_are_distinguished") {
        return;
    }
    let (one, other) = (start(), start());
    let published = [publish(&one, "twin").unwrap(), publish(&other, "twin").unwrap()];
    let mut watch = Watch::new().unwrap();
    assert!(watched(&mut watch, "twin").is_some() && watched(&mut watch, "twin-2").is_some());
    drop(published);
}

#[test]
fn a_reader_that_never_reads_does_not_affect_others() {
    if !is_alone("a_reader_that_never_reads_does_not_affect_others") {
        return;
    }
    let running = start();
    let published = publish(&running, "patient").unwrap();
    let dead: Vec<_> = (0..8).map(|_| connect(published.path())).collect();
    let mut good = BufReader::new(connect(published.path()));
    let mut last = 0.0;
    for _ in 0..3 {
        let mut line = String::new();
        good.read_line(&mut line).unwrap();
        let report: Report = serde_json::from_str(&line).unwrap();
        assert!(report.uptime_s > last, "a report a second");
        last = report.uptime_s;
    }
    drop(published);
    drop(dead);
    running.stop().unwrap();
}

#[test]
fn a_listing_removes_what_a_dead_process_left() {
    if !is_alone("a_listing_removes_what_a_dead_process_left") {
        return;
    }
    let running = start();
    let published = publish(&running, "neighbour").unwrap();
    let dead = published.path().with_file_name("4000000000.sg.top");
    leave(&dead);
    assert!(dead.exists());
    let mut watch = Watch::new().unwrap();
    watch.look();
    assert!(!dead.exists() && published.path().exists());
    assert!(watched(&mut watch, "neighbour").is_some());
}

/// Publishes in a process of its own, for the test below.
#[test]
fn publisher() {
    if std::env::var_os("GREBE_TEST_PUBLISHES").is_none() {
        return;
    }
    let running = start();
    let _published = publish(&running, "killed").unwrap();
    running.wait().unwrap();
}

#[test]
fn a_killed_process_is_gone_from_the_list_and_the_folder() {
    if !is_alone("a_killed_process_is_gone_from_the_list_and_the_folder") {
        return;
    }
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "publisher"])
        .env("GREBE_TEST_PUBLISHES", "1")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = process.id();
    let mut watch = Watch::new().unwrap();
    let mut wait_until = |is_reached: &dyn Fn(Option<&Watched>) -> bool| {
        let until = Instant::now() + Duration::from_secs(60);
        while !is_reached(watch.look().iter().find(|one| one.pid == pid)) {
            assert!(Instant::now() < until, "nothing changed");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    wait_until(&|found| found.is_some_and(|found| found.report.is_some()));
    process.kill().unwrap();
    process.wait().unwrap();
    wait_until(&|found| found.is_none());
    let running = start();
    let published = publish(&running, "alive").unwrap();
    let files = || -> Vec<PathBuf> {
        let files = std::fs::read_dir(published.path().parent().unwrap()).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    };
    assert_eq!(files(), [published.path()]);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_listing_removes_the_unnamed_socket_of_a_dead_process() {
        if !is_alone("unix::a_listing_removes_the_unnamed_socket_of_a_dead_process") {
            return;
        }
        let running = start();
        let published = publish(&running, "neighbour").unwrap();
        // One was killed before its socket had its name, and one is about to rename it.
        let mut ended = Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let unnamed = |pid: u32| published.path().with_file_name(format!("{pid}.view.new"));
        let (never, soon) = (unnamed(ended.id()), unnamed(std::process::id()));
        leave(&never);
        leave(&soon);
        assert!(never.exists());
        Watch::new().unwrap().look();
        assert!(!never.exists() && soon.exists() && published.path().exists());
        std::fs::remove_file(soon).unwrap();
    }

    #[test]
    fn the_socket_of_a_process_that_died_with_a_connection_is_removed_after_hang_up() {
        if !is_alone("unix::the_socket_of_a_process_that_died_with_a_connection_is_removed_after_hang_up") {
            return;
        }
        let running = start();
        let published = publish(&running, "neighbour").unwrap();
        let dying = published.path().with_file_name("4000000000.view.top");
        // The system frees a killed process's memory before it closes its sockets.
        let listener = UnixListener::bind(&dying).unwrap();
        let mut watch = Watch::new().unwrap();
        assert!(watch.look().iter().any(|one| one.name == "view"), "it still listens");
        drop(listener);
        assert!(watch.look().iter().all(|one| one.name != "view"));
        assert!(!dying.exists() && published.path().exists());
    }
}

#[cfg(windows)]
mod windows {
    use std::io::Write;
    use std::net::TcpStream;

    use super::*;

    /// Port and token in hexadecimal.
    fn content(path: &Path) -> (u16, String) {
        let text = std::fs::read_to_string(path).unwrap();
        let (port, token) = text.trim_end().split_once(' ').unwrap();
        (port.parse().unwrap(), token.to_owned())
    }

    pub(crate) fn token(path: &Path) -> Vec<u8> {
        let (_, token) = content(path);
        (0..token.len()).step_by(2).map(|at| u8::from_str_radix(&token[at..at + 2], 16).unwrap()).collect()
    }

    /// Connects as anybody on this machine can.
    pub(crate) fn reach(path: &Path) -> TcpStream {
        TcpStream::connect(("127.0.0.1", content(path).0)).unwrap()
    }

    #[test]
    fn a_stranger_without_the_token_gets_nothing_and_delays_nobody() {
        if !is_alone("windows::a_stranger_without_the_token_gets_nothing_and_delays_nobody") {
            return;
        }
        let running = start();
        let published = publish(&running, "guarded").unwrap();
        // More than all places.
        let mut silent: Vec<TcpStream> = (0..40).map(|_| reach(published.path())).collect();
        let mut guesses = reach(published.path());
        guesses.write_all(&[0; 16]).unwrap();
        let mut owner = BufReader::new(connect(published.path()));
        let mut line = String::new();
        owner.read_line(&mut line).unwrap();
        assert!(serde_json::from_str::<Report>(&line).is_ok(), "{line}");
        for stranger in silent.iter_mut().chain([&mut guesses]) {
            // An end or a reset, and no byte; it is not left open either.
            assert!(matches!(stranger.read(&mut [0]), Ok(0) | Err(_)));
        }
        // The owner keeps its place.
        line.clear();
        owner.read_line(&mut line).unwrap();
        assert!(serde_json::from_str::<Report>(&line).is_ok(), "{line}");
        let mut watch = Watch::new().unwrap();
        assert!(watched(&mut watch, "guarded").is_some());
    }
}
