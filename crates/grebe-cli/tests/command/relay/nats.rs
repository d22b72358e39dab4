//! Which pairs of NATs connect directly, and which by the relay. `--nocapture` prints the table of docs/relay.md.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;

use super::assert_good;
use super::namespaces::{Nat, Network};
use crate::transfer::peers::{Ended, ended, file, path, sent, wait_for_note};

#[test]
fn each_pair_of_nats_connects_directly_if_possible_else_by_the_relay() {
    let Some(place) = Place::make("t") else { return };
    println!("| who waits | who asks | way | s until the session |");
    for waits in NATS {
        for asks in NATS {
            place.network.set_nats(waits, asks).unwrap();
            let (sender, receiver, right) = place.transfer(100_000, &[]);
            assert_good(&sender, &receiver);
            assert!(right, "{waits:?} {asks:?}");
            // The port of a symmetric NAT is unpredictable, and a restricted NAT admits only known ports.
            let is_hopeless = matches!(
                (waits, asks),
                (Nat::Symmetric, Nat::Symmetric | Nat::Restricted) | (Nat::Restricted, Nat::Symmetric)
            );
            let expected = if is_hopeless { "relayed" } else { "direct" };
            let seconds = sender.result["handshake_seconds"].as_f64().unwrap();
            println!(
                "| {waits:?} | {asks:?} | {} | {seconds:.2} |",
                sender.result["route"].as_str().unwrap_or("?")
            );
            for side in [&sender, &receiver] {
                assert_eq!(side.result["route"], expected, "{waits:?} {asks:?}: {}", side.said);
                let words =
                    if is_hopeless { "relayed by 203.0.113.1:4737, because" } else { "through both NATs" };
                assert!(side.said.contains(words), "{waits:?} {asks:?}: {}", side.said);
            }
        }
    }
}

#[test]
fn ipv6_goes_directly_whatever_the_nats_of_ipv4_are() {
    let Some(place) = Place::make("s") else { return };
    place.network.set_nats(Nat::Symmetric, Nat::Symmetric).unwrap();
    if let Err(why) = place.network.add_ipv6() {
        eprintln!("skipped: no IPv6 between network namespaces: {why}");
        return;
    }
    let (sender, receiver, right) = place.transfer(100_000, &[]);
    assert_good(&sender, &receiver);
    assert!(right);
    assert_eq!(sender.result["route"], "direct", "{}", sender.said);
    assert!(sender.said.contains("directly to [2001:db8:1::2]:"), "{}", sender.said);
}

#[test]
fn a_direct_way_that_dies_is_left_for_the_relay() {
    let Some(place) = Place::make("d") else { return };
    let pair = place.start(12_000_000, &["--bwlimit", "20M"]);
    wait_for_note(pair.into.path(), 1);
    place.network.cut_direct_way();
    let (sender, receiver, right) = pair.finish();
    assert_good(&sender, &receiver);
    assert!(right);
    for side in [&sender, &receiver] {
        assert_eq!(side.result["route"], "relayed", "{}", side.said);
        assert!(side.said.contains("through both NATs"), "{}", side.said);
        assert!(side.said.contains("because the direct way has fallen silent"), "{}", side.said);
    }
    assert_eq!(sender.result["resumed_bytes"], 0, "it is the same session");
}

const NATS: [Nat; 3] = [Nat::FullCone, Nat::Restricted, Nat::Symmetric];

/// The network, with a relay that runs.
struct Place {
    network: Network,
    relay: Child,
}

/// A transfer from host 2 to host 1, under way.
struct Pair {
    from: tempfile::TempDir,
    into: tempfile::TempDir,
    sender: Child,
    receiver: Child,
    stdout: BufReader<ChildStdout>,
}

impl Place {
    fn make(name: &str) -> Option<Self> {
        let network = Network::make(name).inspect_err(|why| eprintln!("skipped: {why}")).ok()?;
        let mut relay = network.command("relay", GREBE).arg("relay").stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(relay.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains(":4737"), "{line}");
        Some(Self { network, relay })
    }

    fn start(&self, bytes: usize, more: &[&str]) -> Pair {
        let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (large, _) = file(from.path(), "large.bin", bytes);
        let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join("state");
        let mut receiver = self.network.command("host1", GREBE);
        receiver.args(["recv", path(into.path()), "--json", "--relay", "203.0.113.1"]);
        receiver.env("XDG_STATE_HOME", &state).env_remove("GREBE_TICKET");
        let mut receiver = receiver.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(receiver.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no ticket: {line:?}"));
        let ticket = line["ticket"].as_str().unwrap();
        let mut sender = self.network.command("host2", GREBE);
        sender.args(["send", "--json"]).args(more).arg(&large).args(["--wait", "30s", "--to"]);
        sender.env("XDG_STATE_HOME", &state).env_remove("GREBE_TICKET").stdin(Stdio::piped());
        let mut sender = sender.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        writeln!(sender.stdin.take().unwrap(), "{ticket}").unwrap();
        Pair { from, into, sender, receiver, stdout }
    }

    fn transfer(&self, bytes: usize, more: &[&str]) -> (Ended, Ended, bool) {
        self.start(bytes, more).finish()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.relay.kill();
        let _ = self.relay.wait();
    }
}

impl Pair {
    /// How both ended, and whether the received data equals the sent data.
    fn finish(mut self) -> (Ended, Ended, bool) {
        let sender = sent(self.sender);
        let output = super::finish(self.receiver);
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).unwrap();
        let receiver = ended(&output, &stdout);
        let read = |directory: &tempfile::TempDir| fs::read(directory.path().join("large.bin")).ok();
        let right = read(&self.into).is_some_and(|came| Some(came) == read(&self.from));
        (sender, receiver, right)
    }
}

const GREBE: &str = env!("CARGO_BIN_EXE_grebe");
