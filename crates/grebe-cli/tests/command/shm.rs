//! Streams in shared memory between built commands: bit for bit, to several readers, through kills, and without leftovers.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Good, finish, grebe, signal, text};
use grebe::shm::{Error as ShmError, Policy, Subscriber, SubscriberOptions};
use tempfile::TempDir;

/// A place of its own for the sockets of a test.
struct Room {
    folder: TempDir,
}

impl Room {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the command makes its sockets.
    fn sockets(&self) -> PathBuf {
        self.folder.path().join("grebe")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = grebe(arguments);
        command.env("XDG_RUNTIME_DIR", self.folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self, arguments: &[&str]) -> Running {
        Running(Some(self.command(arguments).spawn().unwrap()))
    }

    fn record(&self, uri: &str, file: &Path) -> Running {
        self.start(&["record", uri, file.to_str().unwrap(), "--json"])
    }

    /// Joins the stream from this process, once it is there.
    fn join(&self, policy: Policy) -> Subscriber {
        let options =
            SubscriberOptions { policy, directory: Some(self.sockets()), ..SubscriberOptions::default() };
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            match Subscriber::connect("x", &options) {
                Ok(subscriber) => return subscriber,
                Err(ShmError::NoStream { .. }) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// No stream's socket is left. (Sockets of killed processes for `grebe top` stay here until the next listing.)
    fn is_empty(&self) -> bool {
        fs::read_dir(self.sockets()).is_ok_and(|entries| {
            entries.flatten().all(|entry| entry.path().extension() != Some("shm".as_ref()))
        })
    }
}

/// A command that ends with the test.
struct Running(Option<Child>);

impl Running {
    fn id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    fn finish(mut self) -> Output {
        finish(self.0.take().unwrap())
    }

    fn kill(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

/// Processes that map shared memory by this name, which no other test may use: they run at the same time.
fn holders(stream: &str) -> usize {
    let name = format!("grebe:{stream}");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| fs::read_to_string(process.path().join("maps")).ok())
        .filter(|maps| maps.contains(&name))
        .count()
}

const WAVE: [&str; 8] = ["--channels", "2", "--rate", "8M", "--wave", "chirp,noise", "--samples", "600_001"];

#[test]
fn two_readers_record_the_generated_samples_bit_for_bit() {
    let room = Room::new();
    let (direct, one, two) =
        (room.path("d.sigmf-meta"), room.path("one.sigmf-meta"), room.path("two.sigmf-meta"));
    let (a, b) = (room.record("shm://held", &one), room.record("shm://held", &two));
    let sent =
        room.start(&[&["sg", "--json", "--to", "shm://held?wait=2"], &WAVE[..]].concat()).finish().good();
    assert!(text(&sent.stderr).contains("MiB of shared memory, fixed"), "{}", text(&sent.stderr));
    assert_eq!((&json(&sent)["samples"], &json(&sent)["copied_frames"]), (&600_001.into(), &0.into()));
    for recorded in [a.finish(), b.finish()] {
        assert!(recorded.status.success(), "{}", text(&recorded.stderr));
        let report = json(&recorded);
        assert_eq!((&report["samples"], &report["copied_frames"]), (&600_001.into(), &0.into()), "{report}");
        assert_eq!(report["losses"]["network_frames"], 0);
    }
    room.start(&[&["sg", "--to", direct.to_str().unwrap()], &WAVE[..]].concat()).finish().good();
    for channel in 1..=2 {
        let data = |name: &str| fs::read(room.path(&format!("{name}_ch{channel}.sigmf-data"))).unwrap();
        assert!(data("d") == data("one") && data("d") == data("two"), "channel {channel}");
        assert_eq!(data("d").len(), 600_001 * 2);
    }
    assert!(room.is_empty());
    assert_eq!(holders("held"), 0);
}

/// A graph that lends a generator's samples, with `more` after the stream's name; the command, and its messages.
fn start_graph(room: &Room, more: &str) -> (Running, BufReader<ChildStderr>) {
    let graph = format!(
        r#"
        stage = [
            {{ id = "generator", kind = "synth", params = {{ samples = 600_001, rate = "8M", wave = "noise" }} }},
            {{ id = "lent", kind = "shm_out", params = {{ uri = "shm://x{more}" }} }},
        ]
        edge = [{{ from = "generator", to = "lent" }}]
        "#
    );
    let path = room.path("graph.toml");
    fs::write(&path, graph).unwrap();
    let mut child = room.start(&["run", path.to_str().unwrap()]);
    let said = BufReader::new(child.0.as_mut().unwrap().stderr.take().unwrap());
    (child, said)
}

/// Reads a command's output up to a line that contains `part`.
fn read_to(said: &mut impl BufRead, part: &str) -> String {
    let mut all = String::new();
    while !all.contains(part) {
        assert!(said.read_line(&mut all).unwrap() > 0, "it ended without '{part}': {all}");
    }
    all
}

#[test]
fn a_graph_that_waits_for_its_readers_begins_with_the_last_of_them() {
    let room = Room::new();
    let (running, mut said) = start_graph(&room, "?wait=2");
    read_to(&mut said, "lent: waiting for 2 to read it");
    let mut first = Witness::new(room.join(Policy::DropOldest));
    first.read_for(Duration::from_millis(200));
    assert_eq!(first.frames, 0, "it began with one reader");
    let late = room.record("shm://x", &room.path("late.sigmf-meta"));
    first.read_for(Duration::from_secs(1));
    assert!(first.frames > 0);
    let recorded = late.finish().good();
    let report = json(&recorded);
    assert_eq!(report["samples"], 600_001, "who comes last has every sample: {report}");
    assert_eq!(report["losses"]["network_frames"], 0, "{report}");
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("nothing lost"), "{rest}");
    assert_eq!(running.finish().status.code(), Some(0));
    assert!(room.is_empty());
}

#[test]
fn ctrl_c_ends_a_graph_that_waits_for_its_readers() {
    let room = Room::new();
    let (running, mut said) = start_graph(&room, "?wait=2");
    read_to(&mut said, "waiting for 2");
    // One is not enough.
    let reader = room.join(Policy::DropOldest);
    signal("-INT", running.id());
    assert_eq!(running.finish().status.code(), Some(130));
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "an interruption is not an error");
    assert!(room.is_empty());
    drop(reader);
}

#[test]
fn a_wait_that_makes_no_sense_is_refused_at_its_line() {
    for (more, says) in [
        ("?wait=many", "give a number"),
        ("?wait=-1", "give a number"),
        ("?wait=", "give a number"),
        ("?wait=5", "add readers=5"),
        ("?wait=2&readers=1", "add readers=2"),
    ] {
        let room = Room::new();
        let (running, mut said) = start_graph(&room, more);
        let said = read_to(&mut said, "1 error");
        assert!(said.contains("graph.toml:4:") && said.contains(says), "{more}: {said}");
        assert_eq!(running.finish().status.code(), Some(2));
    }
}

#[test]
fn a_recording_is_played_through_shared_memory_and_its_copies_are_counted() {
    let room = Room::new();
    let file = room.path("out.sigmf-meta");
    let recorder = room.record("shm://x", &file);
    let ecg = crate::support::example("ecg.sigmf-meta");
    let arguments = ["play", ecg.to_str().unwrap(), "--to", "shm://x?wait=1", "--speed", "5000", "--json"];
    let played = room.start(&arguments).finish().good();
    assert_eq!(json(&played)["copied_frames"], json(&played)["frames"]);
    recorder.finish().good();
    let data = fs::read(room.path("out.sigmf-data")).unwrap();
    assert!(data == fs::read(crate::support::example("ecg.sigmf-data")).unwrap());
}

#[test]
fn a_picture_of_a_stream_that_never_comes_is_given_up() {
    let room = Room::new();
    let viewed = room.start(&["view", "shm://x", "--png", room.path("x.png").to_str().unwrap()]).finish();
    assert_eq!(viewed.status.code(), Some(1), "{}", text(&viewed.stderr));
    assert!(text(&viewed.stderr).contains("the stream 'x' does not exist"), "{}", text(&viewed.stderr));
    assert!(!room.path("x.png").exists());
}

#[test]
fn a_picture_of_a_stream_in_shared_memory() {
    let room = Room::new();
    let picture = room.path("x.png");
    let generator = room.start(&["sg", "--channels", "2", "--rate", "10M", "--to", "shm://x"]);
    room.start(&["view", "shm://x", "--png", picture.to_str().unwrap(), "--after", "200ms"]).finish().good();
    assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
    signal("-TERM", generator.id());
    assert_eq!(generator.finish().status.code(), Some(130));
    assert!(room.is_empty(), "an interruption removes the socket");
}

#[test]
fn a_name_that_is_taken_is_refused_and_a_dead_one_is_taken_over() {
    let room = Room::new();
    let first = room.start(&["sg", "--to", "shm://x"]);
    drop(room.join(Policy::DropOldest));
    let second = room.start(&["sg", "--to", "shm://x"]).finish();
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stderr).contains("a stream 'x' exists already"), "{}", text(&second.stderr));
    first.kill();
    assert!(room.sockets().join("x.shm").exists(), "a kill leaves the socket");
    room.start(&["sg", "--to", "shm://x", "--samples", "1000"]).finish().good();
    assert!(room.is_empty());
}

#[test]
fn a_listing_removes_leftovers_of_dead_processes() {
    let room = Room::new();
    let (dead, alive) = (room.start(&["sg", "--to", "shm://x"]), room.start(&["sg", "--to", "shm://y"]));
    drop(room.join(Policy::DropOldest));
    while !room.sockets().join("y.shm").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    dead.kill();
    assert_eq!(grebe::shm::streams(Some(&room.sockets())).unwrap(), ["y"]);
    assert!(!room.sockets().join("x.shm").exists());
    drop(alive);
}

#[test]
fn a_non_waiting_producer_refuses_readers_that_would_block_it() {
    let room = Room::new();
    let generator = room.start(&["sg", "--to", "shm://x?block=no"]);
    drop(room.join(Policy::DropOldest));
    let recorded = room.record("shm://x", &room.path("r.sigmf-meta")).finish();
    assert_eq!(recorded.status.code(), Some(1));
    assert!(text(&recorded.stderr).contains("use drop_oldest or drop_latest"), "{}", text(&recorded.stderr));
    drop(generator);
}

/// Kills readers at random moments, each while it reads and holds batches; another one must see every frame.
fn kill_readers(count: u32) {
    let room = Room::new();
    let generator = room.start(&["sg", "--channels", "2", "--rate", "50M", "--to", "shm://x?wait=1"]);
    let mut witness = Witness::new(room.join(Policy::Block));
    for turn in 0..count {
        let policy = ["block", "drop_oldest", "drop_latest"][turn as usize % 3];
        let file = room.path("victim.sigmf-meta");
        let uri = format!("shm://x?policy={policy}");
        let victim = room.start(&["record", &uri, file.to_str().unwrap(), "--overwrite"]);
        // From before it has joined to well after.
        witness.read_for(Duration::from_micros(u64::from(turn.wrapping_mul(7919) % 60) * 1000));
        victim.kill();
        witness.read_for(Duration::from_millis(2));
    }
    witness.read_for(Duration::from_millis(50));
    assert!(witness.frames > 0);
    assert_eq!(witness.lost, 0, "a bystander lost frames");
    let mut late = Witness::new(room.join(Policy::DropOldest));
    let until = Instant::now() + Duration::from_secs(30);
    while late.frames == 0 && Instant::now() < until {
        late.read_for(Duration::from_millis(50));
    }
    assert!(late.frames > 0, "the stream goes on, and takes consumers in");
    drop((witness, late));
    drop(generator);
    grebe::shm::streams(Some(&room.sockets())).unwrap();
    assert!(room.is_empty());
}

/// Generators are killed at random times. The reader takes complete frames in order, and reports the loss.
fn kill_producers(count: u32) {
    let room = Room::new();
    for turn in 0..count {
        let generator = room.start(&["sg", "--channels", "2", "--rate", "50M", "--to", "shm://x"]);
        let mut witness = Witness::new(room.join(Policy::Block));
        witness.read_for(Duration::from_micros(u64::from(turn.wrapping_mul(7919) % 40) * 1000));
        generator.kill();
        let ended = witness.read_for(Duration::from_secs(30));
        assert!(matches!(ended, Some(ShmError::ProducerGone { .. })), "{ended:?}");
        assert_eq!(witness.lost, 0);
    }
    assert_eq!(grebe::shm::streams(Some(&room.sockets())).unwrap(), [""; 0]);
    assert!(room.is_empty());
}

/// Reads a stream, and checks that no frame is missing.
struct Witness {
    subscriber: Subscriber,
    next: Option<u64>,
    frames: u64,
    lost: u64,
}

impl Witness {
    fn new(subscriber: Subscriber) -> Self {
        Self { subscriber, next: None, frames: 0, lost: 0 }
    }

    /// How the stream ended, if it did.
    fn read_for(&mut self, time: Duration) -> Option<ShmError> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            while let Some(batch) = self.subscriber.pop().unwrap() {
                for frame in batch.frames() {
                    let sequence = frame.header().sequence;
                    self.lost += sequence - self.next.unwrap_or(sequence);
                    self.next = Some(sequence + 1);
                    self.frames += 1;
                }
            }
            if let Err(error) = self.subscriber.wait(Duration::from_millis(1)) {
                return Some(error);
            }
        }
        None
    }
}

#[test]
fn readers_that_are_killed_cost_nobody_a_frame() {
    kill_readers(12);
}

#[test]
fn after_a_killed_producer_readers_have_all_complete_batches() {
    kill_producers(8);
}

#[test]
#[ignore = "a minute"]
fn two_hundred_killed_readers_and_fifty_killed_producers() {
    kill_readers(200);
    kill_producers(50);
}

#[test]
fn a_stopped_reader_delays_nobody() {
    let room = Room::new();
    let to = "shm://x?wait=2&memory=16M";
    let generator = room.start(&["sg", "--channels", "2", "--rate", "20M", "--to", to]);
    let file = room.path("stopped.sigmf-meta");
    let stopped = room.start(&["record", "shm://x?policy=drop_oldest", file.to_str().unwrap()]);
    let mut witness = Witness::new(room.join(Policy::Block));
    witness.read_for(Duration::from_millis(100));
    signal("-STOP", stopped.id());
    // All memory of the stream is filled again and again, with frames of 64 KiB.
    let (enough, until) = (witness.frames + 1000, Instant::now() + Duration::from_secs(60));
    while witness.frames < enough {
        witness.read_for(Duration::from_millis(100));
        assert!(Instant::now() < until, "the stream does not go on");
    }
    assert_eq!(witness.lost, 0);
    signal("-CONT", stopped.id());
    signal("-TERM", generator.id());
    let sent = generator.finish();
    assert_eq!(sent.status.code(), Some(130), "{}", text(&sent.stderr));
    stopped.finish().good();
}

#[test]
fn a_reader_that_blocks_and_takes_nothing_is_cut_off() {
    let room = Room::new();
    let generator = room.start(&["sg", "--channels", "2", "--rate", "50M", "--to", "shm://x?wait=1"]);
    let mut stopped = room.join(Policy::Block);
    let mut witness = Witness::new(room.join(Policy::DropOldest));
    let mut frames = 0;
    let until = Instant::now() + Duration::from_secs(30);
    // At first both wait for the reader that takes nothing; after its end, the other continues.
    while frames == 0 || witness.frames - frames < 1000 {
        witness.read_for(Duration::from_millis(100));
        if frames == 0 && witness.frames > 0 {
            frames = witness.frames;
        }
        assert!(Instant::now() < until, "the stream did not go on");
    }
    // The queue of a killed reader is lost, which its first read reports.
    let ended = loop {
        match stopped.pop().and_then(|batch| Ok(batch.is_some() || stopped.wait(Duration::from_secs(1))?)) {
            Ok(_) => assert!(Instant::now() < until),
            Err(error) => break error.to_string(),
        }
    };
    assert!(ended.contains("cut this consumer off: it accepted nothing for 2s"), "{ended}");
    drop(generator);
}
