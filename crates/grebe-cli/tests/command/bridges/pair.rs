//! A producer and a recorder with a bridge between them, as commands.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use grebe::recording::SampleFile;
use serde_json::Value;

use super::hosts::Hosts;
use super::table::{Bridge, Index, Listens};
use crate::support::{finish, free_port, grebe, signal, text, wait_until};

/// How both sides of a bridge are started.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) bridge: &'a Bridge,
    /// `None`: both on this host.
    pub(crate) hosts: Option<&'a Hosts>,
    pub(crate) rate: &'a str,
    pub(crate) idle_timeout: &'a str,
    pub(crate) reconnects: bool,
    /// File for the producer to play, instead of a generator.
    pub(crate) plays: Option<&'a Path>,
}

/// A producer and a recorder, in a directory of their own.
pub(crate) struct Pair<'a> {
    plan: Plan<'a>,
    folder: tempfile::TempDir,
    pub(crate) broker: Option<Running>,
    pub(crate) producer: Running,
    pub(crate) recorder: Running,
    pub(crate) address: String,
}

/// A command that runs; it is killed at the end.
pub(crate) struct Running {
    child: Option<Child>,
    said: Option<JoinHandle<String>>,
}

/// How a side ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: Option<i32>,
    pub(crate) result: Value,
    pub(crate) said: String,
}

impl<'a> Plan<'a> {
    pub(crate) fn of(bridge: &'a Bridge) -> Self {
        Self { bridge, hosts: None, rate: "100k", idle_timeout: "4s", reconnects: false, plays: None }
    }

    /// Both sides, with these options of the producer, and a broker where one is between them.
    pub(crate) fn start(self, producer: &[&str]) -> Pair<'a> {
        let folder = tempfile::tempdir().unwrap();
        let listens = self.bridge.listens;
        let number = match listens {
            Listens::Datagrams | Listens::Source => 2,
            Listens::Sink | Listens::Broker | Listens::Name => 1,
        };
        let host = self.hosts.map_or_else(|| "127.0.0.1".to_owned(), |_| Hosts::address(number));
        let port = if listens == Listens::Datagrams { 0 } else { free_port() };
        let mut address = format!("{host}:{port}");
        let broker = (listens == Listens::Broker).then(|| self.broker(folder.path(), &address));
        let file = folder.path().join("x.sigmf-meta");
        let (producer, recorder) = if listens == Listens::Sink {
            let producer = self.producer(1, folder.path(), &address, producer);
            (producer, self.recorder(folder.path(), &address, &file).0)
        } else {
            let (recorder, said) = self.recorder(folder.path(), &address, &file);
            if listens == Listens::Datagrams {
                let at = said.rsplit("listening on ").next().unwrap().trim();
                at.rsplit("://").next().unwrap().clone_into(&mut address);
            }
            (self.producer(1, folder.path(), &address, producer), recorder)
        };
        Pair { plan: self, folder, broker, producer, recorder, address }
    }

    fn recorder(&self, folder: &Path, address: &str, file: &Path) -> (Running, String) {
        let source = self.name(self.bridge.source, address);
        let words = match self.bridge.listens {
            Listens::Datagrams | Listens::Source => Some("listening on "),
            // It has subscribed.
            Listens::Broker => Some("cannot be seen"),
            Listens::Sink | Listens::Name => None,
        };
        let file = file.to_str().unwrap();
        let arguments = ["record", &source, file, "--json", "--idle-timeout", self.idle_timeout];
        Running::start(folder, self.command(2, &arguments), words)
    }

    fn producer(&self, host: usize, folder: &Path, address: &str, more: &[&str]) -> Running {
        let sink = self.name(self.bridge.sink, address);
        let options = match self.plays {
            Some(file) => vec!["play", file.to_str().unwrap(), "--to", &sink, "--json"],
            None => vec!["sg", "--to", &sink, "--format", self.bridge.format, "--rate", self.rate, "--json"],
        };
        let words = (self.bridge.listens == Listens::Sink).then_some("listening on ");
        Running::start(folder, self.command(host, &[&options, more].concat()), words).0
    }

    fn broker(&self, folder: &Path, address: &str) -> Running {
        let (host, port) = address.rsplit_once(':').unwrap();
        let settings = folder.join("mosquitto.conf");
        let text = format!(
            "listener {port} {host}\nallow_anonymous true\nuser root\nlog_type information\nlog_type error\nmax_queued_messages 0\n"
        );
        std::fs::write(&settings, text).unwrap();
        let mut command = Command::new("mosquitto");
        command.arg("-c").arg(settings).stdin(Stdio::null());
        Running::start(folder, self.at(1, command), Some(" running")).0
    }

    fn name(&self, end: &str, address: &str) -> String {
        let name = end.replace('@', address);
        match (self.reconnects && self.bridge.reconnects, name.contains('?')) {
            (true, true) => name + "&reconnect",
            (true, false) => name + "?reconnect",
            (false, _) => name,
        }
    }

    fn command(&self, host: usize, arguments: &[&str]) -> Command {
        self.at(host, grebe(arguments))
    }

    fn at(&self, host: usize, command: Command) -> Command {
        match self.hosts {
            Some(hosts) => hosts.command(host, &command),
            None => command,
        }
    }
}

impl Pair<'_> {
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("x.sigmf-meta")
    }

    /// Another producer to the same place.
    pub(crate) fn another_producer(&self, more: &[&str]) -> Running {
        self.plan.producer(1, self.folder.path(), &self.address, more)
    }

    /// A producer of the recorder's own host.
    pub(crate) fn producer_beside(&self, more: &[&str]) -> Running {
        self.plan.producer(2, self.folder.path(), &self.address, more)
    }

    /// Another recorder from the same place, and its file.
    pub(crate) fn another_recorder(&self) -> (Running, PathBuf) {
        let file = self.folder.path().join("another.sigmf-meta");
        (self.plan.recorder(self.folder.path(), &self.address, &file).0, file)
    }

    /// The broker again, at the same place.
    pub(crate) fn another_broker(&self) -> Running {
        self.plan.broker(self.folder.path(), &self.address)
    }

    /// Waits until the recorder has written samples.
    pub(crate) fn wait_for_samples(&self) {
        wait_for_samples(&self.file(), 1);
    }

    /// Runs both to their end, in order, with the described recording.
    pub(crate) fn finish(&mut self) -> (Ended, Ended) {
        let (producer, recorder) = (self.producer.finish(), self.recorder.finish());
        producer.assert_in_order(self.plan.bridge.sink);
        self.assert_whole(&recorder);
        (producer, recorder)
    }

    /// The recording opens, and matches the description.
    pub(crate) fn assert_whole(&self, recorder: &Ended) {
        let what = self.plan.bridge.source;
        recorder.assert_in_order(what);
        let file =
            SampleFile::open(self.file()).unwrap_or_else(|error| panic!("{what}: {error}: {recorder:?}"));
        assert_eq!(file.len_samples(), recorder.samples(), "{what}");
        assert!(file.len_samples() > 0, "{what}");
    }
}

/// Waits until a recording has this many samples.
pub(crate) fn wait_for_samples(file: &Path, samples: u64) {
    wait_until(&format!("nothing comes into {}", file.display()), || {
        SampleFile::open(file).is_ok_and(|file| file.len_samples() >= samples)
    });
}

impl Running {
    /// A command, and its messages up to the line with these words.
    pub(crate) fn start(folder: &Path, mut command: Command, until: Option<&str>) -> (Self, String) {
        command.env("XDG_RUNTIME_DIR", folder).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut begun = String::new();
        while until.is_some_and(|words| !begun.contains(words)) {
            assert!(stderr.read_line(&mut begun).unwrap() > 0, "it ended: {begun}");
        }
        let before = begun.clone();
        let rest = std::thread::spawn(move || {
            let mut said = Vec::new();
            let _ = stderr.read_to_end(&mut said);
            before + &text(&said)
        });
        (Self { child: Some(child), said: Some(rest) }, begun)
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(name, self.child.as_ref().unwrap().id());
    }

    pub(crate) fn finish(&mut self) -> Ended {
        let output = finish(self.child.take().unwrap());
        let said = self.said.take().unwrap().join().unwrap();
        // The error of a failed command follows its results.
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
    pub(crate) fn samples(&self) -> u64 {
        self.result["samples"].as_u64().unwrap_or_else(|| panic!("{self:?}"))
    }

    /// Its counter of this name.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.result["losses"][name].as_u64().unwrap_or(0)
    }

    /// Samples that it says are missing.
    pub(crate) fn lost_samples(&self) -> u64 {
        let losses = self.result["losses"].as_object().unwrap_or_else(|| panic!("{self:?}"));
        // A recording's gaps repeat the other losses, and the clock estimates them.
        let is_a_loss =
            |name: &str| name.ends_with("_samples") && !["gap_samples", "clock_samples"].contains(&name);
        losses.iter().filter(|(name, _)| is_a_loss(name)).filter_map(|(_, it)| it.as_u64()).sum()
    }

    /// Those of them that were never made.
    fn unmade_samples(&self) -> u64 {
        self.count("generator_samples")
    }

    /// It ended by itself, in order: neither a panic nor a signal.
    pub(crate) fn assert_in_order(&self, what: &str) {
        assert!(self.status.is_some_and(|status| status != 101), "{what}: {self:?}");
        assert!(!self.said.contains("panicked"), "{what}: {self:?}");
    }

    /// The stream ended, as far as its reader can tell.
    pub(crate) fn assert_end(&self, bridge: &Bridge) {
        assert_eq!(self.status, Some(if bridge.ends { 0 } else { 3 }), "{}: {self:?}", bridge.source);
    }
}

/// Arrived samples plus reported losses equal the requested number.
pub(crate) fn assert_adds_up(bridge: &Bridge, asked: u64, producer: &Ended, recorder: &Ended) {
    let heard = recorder.samples() + recorder.lost_samples();
    let unmade = producer.unmade_samples();
    let lost = producer.lost_samples() - unmade;
    let (least, most) = match bridge.index {
        _ if recorder.result["losses"]["unseen"] == true => (0, asked - lost),
        // Numbers of datagrams tell of a gap, and round it up to whole datagrams.
        Index::Nothing => match recorder.result["losses"]["gaps"].as_u64() {
            Some(gaps @ 1..) => (asked - unmade - lost, asked - lost + gaps * DATAGRAM_SAMPLES),
            _ => (asked - unmade - lost, asked - unmade - lost),
        },
        Index::OfFrames => (asked - unmade - lost, asked - lost),
        Index::ToTheEnd => (asked - lost, asked - lost),
    };
    assert!(
        (least..=most).contains(&heard),
        "{}: {heard} of {least}..={most}: {producer:?} {recorder:?}",
        bridge.source
    );
}

/// At 100 kS/s: 10 ms.
const DATAGRAM_SAMPLES: u64 = 1_000;
