//! What every bridge does when its other end misbehaves: a bridge passes by being in the table.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{finish, grebe, run, signal, text};
use grebe::recording::SampleFile;
use serde_json::Value;

/// A bridge of which both ends are the command's.
struct Bridge {
    /// How its names begin.
    scheme: &'static str,
    /// Both ends, with `@` where the other end is found.
    source: &'static str,
    sink: &'static str,
    listens: Listens,
    index: Index,
    /// How samples are made for it.
    format: &'static str,
}

/// What is known of samples that do not come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Index {
    Nothing,
    /// How many are missing in front of a frame: nobody hears of what was never made behind the last one.
    OfFrames,
    /// How many are missing anywhere.
    ToTheEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Listens {
    /// The source, for datagrams of anybody.
    Datagrams,
    /// The source, for one connection.
    Source,
    /// The sink, for connections.
    Sink,
    /// Neither: they meet by a name.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "shared memory is there on Linux only"))]
    Name,
}

const BRIDGES: &[Bridge] = &[
    Bridge {
        scheme: "udp:",
        source: "udp://@",
        sink: "udp://@",
        listens: Listens::Datagrams,
        index: Index::ToTheEnd,
        format: "i16",
    },
    Bridge {
        scheme: "udp:",
        source: "udp://@?format=i16be&rate=100k&seq=2:u32be&skip=8",
        sink: "udp://@?format=i16be&seq=2:u32be&skip=8",
        listens: Listens::Datagrams,
        index: Index::Nothing,
        format: "i16",
    },
    Bridge {
        scheme: "vrt:",
        source: "vrt://@",
        sink: "vrt://@",
        listens: Listens::Datagrams,
        index: Index::OfFrames,
        format: "i16",
    },
    Bridge {
        scheme: "tcp:",
        source: "tcp://@?format=i16&rate=100k&listen",
        sink: "tcp://@?format=i16",
        listens: Listens::Source,
        index: Index::Nothing,
        format: "i16",
    },
    Bridge {
        scheme: "tcp:",
        source: "tcp://@?format=text&rate=100k&listen",
        sink: "tcp://@?format=text",
        listens: Listens::Source,
        index: Index::Nothing,
        format: "i16",
    },
    Bridge {
        scheme: "tcp:",
        source: "tcp://@?format=i16&rate=100k",
        sink: "tcp://@?format=i16&listen",
        listens: Listens::Sink,
        index: Index::Nothing,
        format: "i16",
    },
    Bridge {
        scheme: "zmq:",
        source: "zmq://@?format=f32&rate=100k&listen",
        sink: "zmq://@?format=f32",
        listens: Listens::Source,
        index: Index::Nothing,
        format: "f32",
    },
    Bridge {
        scheme: "zmq:",
        source: "zmq://@?format=f32&rate=100k",
        sink: "zmq://@?format=f32&listen",
        listens: Listens::Sink,
        index: Index::Nothing,
        format: "f32",
    },
    Bridge {
        scheme: "rtl_tcp:",
        source: "rtl_tcp://@?rate=100k",
        sink: "rtl_tcp://@",
        listens: Listens::Sink,
        index: Index::Nothing,
        format: "cu8",
    },
    #[cfg(target_os = "linux")]
    Bridge {
        scheme: "shm:",
        source: "shm://x",
        sink: "shm://x?wait=1",
        listens: Listens::Name,
        index: Index::ToTheEnd,
        format: "i16",
    },
];

/// Schemes of which an end is no command, and where they are tried.
const ELSEWHERE: &[(&str, &str)] = &[
    ("pipe:", "faults.rs, raw.rs, lines.rs"),
    ("serial:", "serial.rs"),
    ("audio:", "sound.rs"),
    ("soapy:", "soapy"),
    ("zenoh:", "lab.rs"),
    ("synth:", "no other end"),
    ("file:", "recording.rs"),
    #[cfg(not(target_os = "linux"))]
    ("shm:", "Linux alone has it"),
];

/// One bridge with a producer and a recorder, in a directory of its own.
struct Pair {
    folder: tempfile::TempDir,
    producer: Running,
    recorder: Running,
    address: String,
}

struct Running {
    child: Option<Child>,
    said: Option<std::thread::JoinHandle<String>>,
}

/// How a side ended.
#[derive(Debug)]
struct Ended {
    status: Option<i32>,
    result: Value,
    said: String,
}

impl Pair {
    /// Both sides, with these options of the producer. A producer of `None` is not started.
    fn start(bridge: &Bridge, producer: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let mut address =
            if bridge.listens == Listens::Datagrams { "127.0.0.1:0".to_owned() } else { free() };
        let file = folder.path().join("x.sigmf-meta");
        let record = |address: &str| {
            let source = bridge.source.replace('@', address);
            Running::start(
                folder.path(),
                &["record", &source, file.to_str().unwrap(), "--json", "--idle-timeout", "4s"],
                matches!(bridge.listens, Listens::Datagrams | Listens::Source).then_some("listening on "),
            )
        };
        let produce = |address: &str| {
            let sink = bridge.sink.replace('@', address);
            let options = ["sg", "--to", &sink, "--format", bridge.format, "--rate", "100k", "--json"];
            let waits = (bridge.listens == Listens::Sink).then_some("listening on ");
            Running::start(folder.path(), &[&options[..], producer].concat(), waits)
        };
        let (producer, recorder) = if bridge.listens == Listens::Sink {
            let (producer, _) = produce(&address);
            (producer, record(&address).0)
        } else {
            let (recorder, said) = record(&address);
            if bridge.listens == Listens::Datagrams {
                said.rsplit("://").next().unwrap().trim().clone_into(&mut address);
                address = address.rsplit("listening on ").next().unwrap().to_owned();
            }
            (produce(&address).0, recorder)
        };
        Self { folder, producer, recorder, address }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("x.sigmf-meta")
    }

    /// Waits until the recorder has written samples.
    fn wait_for_samples(&self) {
        let until = Instant::now() + Duration::from_secs(30);
        while !SampleFile::open(&self.file()).is_ok_and(|file| file.len_samples() > 0) {
            assert!(Instant::now() < until, "nothing comes");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Running {
    /// A command, and what it said up to the line that has these words.
    fn start(folder: &Path, arguments: &[&str], until: Option<&str>) -> (Self, String) {
        let mut command = grebe(arguments);
        command.env("XDG_RUNTIME_DIR", folder).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut begun = String::new();
        while until.is_some_and(|words| !begun.contains(words)) {
            assert!(stderr.read_line(&mut begun).unwrap() > 0, "it ended: {begun}");
        }
        let rest = std::thread::spawn(move || {
            let mut said = Vec::new();
            let _ = stderr.read_to_end(&mut said);
            text(&said)
        });
        (Self { child: Some(child), said: Some(rest) }, begun)
    }

    fn signal(&self, name: &str) {
        signal(name, self.child.as_ref().unwrap().id());
    }

    fn finish(&mut self) -> Ended {
        let output = finish(self.child.take().unwrap());
        let said = self.said.take().unwrap().join().unwrap();
        // Behind the results of one that failed stands its error.
        let results = text(&output.stdout);
        let result = serde_json::Deserializer::from_str(&results).into_iter().next().and_then(Result::ok);
        Ended { status: output.status.code(), result: result.unwrap_or_default(), said }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Ended {
    fn samples(&self) -> u64 {
        self.result["samples"].as_u64().unwrap_or_else(|| panic!("{self:?}"))
    }

    /// Samples that it says are missing.
    fn lost_samples(&self) -> u64 {
        let losses = self.result["losses"].as_object().unwrap_or_else(|| panic!("{self:?}"));
        losses.iter().filter(|(name, _)| name.ends_with("_samples")).filter_map(|(_, it)| it.as_u64()).sum()
    }

    /// Those of them that were never made.
    fn unmade_samples(&self) -> u64 {
        self.result["losses"]["generator_samples"].as_u64().unwrap_or(0)
    }

    /// It ended by itself, in order: neither a panic nor a signal.
    fn assert_in_order(&self, what: &str) {
        assert!(self.status.is_some_and(|status| status != 101), "{what}: {self:?}");
        assert!(!self.said.contains("panicked"), "{what}: {self:?}");
    }
}

/// Tries it with a few bridges at a time: mostly they wait.
fn for_each(test: impl Fn(&Bridge) + Sync) {
    for bridges in BRIDGES.chunks(3) {
        std::thread::scope(|scope| {
            for bridge in bridges {
                scope.spawn(|| {
                    eprintln!("{} -> {}", bridge.sink, bridge.source);
                    test(bridge);
                });
            }
        });
    }
}

/// What came and what either side says is lost is what was asked for.
fn assert_adds_up(bridge: &Bridge, asked: u64, producer: &Ended, recorder: &Ended) {
    let heard = recorder.samples() + recorder.lost_samples();
    let unmade = producer.unmade_samples();
    let lost = producer.lost_samples() - unmade;
    let (least, most) = match bridge.index {
        _ if recorder.result["losses"]["unseen"] == true => (0, asked - lost),
        Index::Nothing => (asked - unmade - lost, asked - unmade - lost),
        Index::OfFrames => (asked - unmade - lost, asked - lost),
        Index::ToTheEnd => (asked - lost, asked - lost),
    };
    assert!((least..=most).contains(&heard), "{heard} of {least}..={most}: {producer:?} {recorder:?}");
}

/// The recording opens, and holds what was said.
fn assert_whole(pair: &Pair, recorder: &Ended, what: &str) {
    recorder.assert_in_order(what);
    let file = SampleFile::open(&pair.file()).unwrap_or_else(|error| panic!("{what}: {error}: {recorder:?}"));
    assert_eq!(file.len_samples(), recorder.samples(), "{what}");
    assert!(file.len_samples() > 0, "{what}");
}

#[test]
fn every_scheme_is_in_the_table_or_tried_elsewhere() {
    let refused = run(&["record", "no scheme", "x.sigmf-meta"]);
    let said = text(&refused.stderr);
    let names = said.split_once("known: ").unwrap_or_else(|| panic!("{said}")).1;
    let schemes = names.split(", ").filter_map(|name| Some(format!("{}:", name.split_once(':')?.0)));
    for scheme in schemes {
        let is_here = BRIDGES.iter().any(|bridge| bridge.scheme == scheme);
        assert!(is_here || ELSEWHERE.iter().any(|(other, _)| *other == scheme), "{scheme}");
    }
}

#[test]
fn what_came_and_what_is_said_lost_is_what_was_made() {
    for_each(|bridge| {
        let mut pair = Pair::start(bridge, &["--samples", "30k"]);
        let (producer, recorder) = (pair.producer.finish(), pair.recorder.finish());
        assert_eq!((producer.status, recorder.status), (Some(0), Some(0)), "{producer:?} {recorder:?}");
        assert_whole(&pair, &recorder, bridge.source);
        assert_adds_up(bridge, 30_000, &producer, &recorder);
    });
}

#[test]
fn a_producer_that_stands_still_goes_on_and_nothing_is_made_up() {
    for_each(|bridge| {
        let mut pair = Pair::start(bridge, &["--samples", "200k"]);
        pair.wait_for_samples();
        pair.producer.signal("-STOP");
        std::thread::sleep(Duration::from_millis(1200));
        pair.producer.signal("-CONT");
        let (producer, recorder) = (pair.producer.finish(), pair.recorder.finish());
        assert_whole(&pair, &recorder, bridge.source);
        // Numbers of datagrams tell how many are missing, and not how long they were.
        if bridge.index != Index::Nothing {
            assert_adds_up(bridge, 200_000, &producer, &recorder);
        }
        assert!(recorder.samples() <= 200_000 - producer.lost_samples(), "{producer:?} {recorder:?}");
    });
}

#[test]
fn a_killed_producer_leaves_a_recording_that_is_whole() {
    for_each(|bridge| {
        let mut pair = Pair::start(bridge, &[]);
        pair.wait_for_samples();
        pair.producer.signal("-KILL");
        let recorder = pair.recorder.finish();
        assert_whole(&pair, &recorder, bridge.source);
        // A byte stream of another program's that is closed has ended, as far as anybody can tell.
        assert!(matches!(recorder.status, Some(0 | 3)), "{}: {recorder:?}", bridge.source);
        assert!(bridge.listens != Listens::Datagrams || recorder.status == Some(3), "{recorder:?}");
    });
}

#[test]
fn a_killed_recorder_holds_up_no_producer() {
    for_each(|bridge| {
        let mut pair = Pair::start(bridge, &["--duration", "3s"]);
        pair.wait_for_samples();
        pair.recorder.signal("-KILL");
        let producer = pair.producer.finish();
        producer.assert_in_order(bridge.sink);
        assert!(SampleFile::open(&pair.file()).is_ok_and(|file| file.len_samples() > 0), "{}", bridge.source);
    });
}

#[test]
fn ctrl_c_ends_a_recorder_whose_producer_stands_still() {
    for_each(|bridge| {
        let mut pair = Pair::start(bridge, &[]);
        pair.wait_for_samples();
        pair.producer.signal("-STOP");
        pair.recorder.signal("-INT");
        let recorder = pair.recorder.finish();
        assert_whole(&pair, &recorder, bridge.source);
        pair.producer.signal("-CONT");
    });
}

#[test]
fn ctrl_c_ends_a_producer_whose_recorder_stands_still() {
    for_each(|bridge| {
        let mut pair = Pair::start(bridge, &["--free-run"]);
        pair.wait_for_samples();
        pair.recorder.signal("-STOP");
        std::thread::sleep(Duration::from_millis(300));
        pair.producer.signal("-INT");
        pair.producer.finish().assert_in_order(bridge.sink);
        pair.recorder.signal("-CONT");
    });
}

#[test]
fn strangers_neither_end_a_stream_nor_come_into_it() {
    for_each(|bridge| {
        let mut pair = Pair::start(bridge, &["--samples", "100k"]);
        pair.wait_for_samples();
        match bridge.listens {
            Listens::Datagrams => {
                let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
                for length in [0, 1, 7, 28, 64, 65, 1400, 0] {
                    stranger.send_to(&noise(length), &pair.address).unwrap();
                }
            }
            // Whom the listener has no place for may be refused at once.
            Listens::Source | Listens::Sink => {
                if let Ok(mut stranger) = TcpStream::connect(&pair.address) {
                    let _ = stranger.write_all(&noise(4096));
                }
                // Who says nothing holds up nobody.
                std::mem::forget(TcpStream::connect(&pair.address));
            }
            Listens::Name => {}
        }
        let (producer, recorder) = (pair.producer.finish(), pair.recorder.finish());
        assert_eq!((producer.status, recorder.status), (Some(0), Some(0)), "{producer:?} {recorder:?}");
        assert_whole(&pair, &recorder, bridge.source);
        assert_adds_up(bridge, 100_000, &producer, &recorder);
    });
}

#[test]
fn nobody_is_waited_for_any_longer_than_told() {
    for bridge in BRIDGES.iter().filter(|bridge| bridge.listens != Listens::Sink) {
        eprintln!("{}", bridge.source);
        let folder = tempfile::tempdir().unwrap();
        let (source, file) = (bridge.source.replace('@', "127.0.0.1:0"), folder.path().join("x.sigmf-meta"));
        let arguments = ["record", &source, file.to_str().unwrap(), "--json", "--idle-timeout", "500ms"];
        let (mut recorder, _) = Running::start(folder.path(), &arguments, None);
        let recorder = recorder.finish();
        assert!(matches!(recorder.status, Some(1 | 3)), "{}: {recorder:?}", bridge.source);
        assert!(!file.exists(), "{}", bridge.source);
    }
}

#[test]
fn who_speaks_another_language_ends_no_process() {
    for bridge in BRIDGES.iter().filter(|bridge| bridge.listens == Listens::Source) {
        for length in [0, 1, 9, 64, 70_000] {
            let folder = tempfile::tempdir().unwrap();
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
            let (source, file) = (bridge.source.replace('@', &address), folder.path().join("x.sigmf-meta"));
            let arguments = ["record", &source, file.to_str().unwrap(), "--json", "--idle-timeout", "1s"];
            let (mut recorder, _) = Running::start(folder.path(), &arguments, Some("listening on "));
            let mut stranger = TcpStream::connect(&address).unwrap();
            let _ = stranger.write_all(&noise(length));
            drop(stranger);
            recorder.finish().assert_in_order(&format!("{length} bytes to {}", bridge.source));
        }
    }
}

/// Bytes without a pattern, the same each time.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| byte()).collect()
}
