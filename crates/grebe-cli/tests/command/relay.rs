//! `grebe relay` between `grebe send` and `grebe recv`, as processes: over loopback, and between NATs in namespaces.
#![cfg(unix)]

#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod nats;

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

use crate::support::{Good, finish, grebe, listening, run, signal, text, wait_until};
use crate::transfer::peers::{Ended, Waiting, file, path, send, sent, wait_for_note};

/// A relay at a port of this machine, until the test is over.
struct Relay {
    child: Option<Child>,
    address: String,
    metrics: SocketAddr,
    /// Read from time to time it would not fill; it says three lines.
    stderr: BufReader<ChildStderr>,
}

impl Relay {
    fn start(more: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", more)
    }

    fn start_at(address: &str, more: &[&str]) -> Self {
        let arguments = [&["relay", "--listen", address, "--metrics", "127.0.0.1:0"], more].concat();
        let (child, address, mut stderr) = listening(&arguments);
        let mut line = String::new();
        std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
        let metrics = line.trim().strip_prefix("metrics at http://").unwrap_or_else(|| panic!("{line}"));
        let metrics = metrics.strip_suffix("/metrics").unwrap().parse().unwrap();
        Self { child: Some(child), address, metrics, stderr }
    }

    /// A figure as Prometheus would read it.
    fn figure(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(self.metrics).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("grebe_relay_{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
    }

    fn wait_for(&self, name: &str, least: u64) {
        wait_until(&format!("{name} does not reach {least}"), || self.figure(name) >= least);
    }

    fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn assert_good(sender: &Ended, receiver: &Ended) {
    let said = format!("{}\n{}", sender.said, receiver.said);
    assert_eq!((sender.status, receiver.status), (Some(0), Some(0)), "{said}");
}

#[test]
fn a_transfer_without_a_direct_route_is_relayed_in_both_directions() {
    let relay = Relay::start(&[]);
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, contents) = file(from.path(), "large.bin", 8_000_000);
    let receiver = Waiting::start(&["recv", path(into.path()), "--relay", &relay.address, "--via", "relay"]);
    let sender = sent(send(&[&large], &receiver.ticket, &[]));
    let receiver = receiver.finish();
    assert_good(&sender, &receiver);
    assert!(fs::read(into.path().join("large.bin")).unwrap() == contents);
    for side in [&sender, &receiver] {
        assert_eq!(side.result["route"], "relayed", "{}", side.result);
        assert_eq!(side.result["peer"], relay.address, "neither learns where the other is");
        assert!(side.said.contains(&format!("relayed by {}", relay.address)), "{}", side.said);
    }
    relay.wait_for("relayed_bytes_total", 8_000_000);

    // The sender may also be the waiting end.
    let into = tempfile::tempdir().unwrap();
    let sender = Waiting::start(&["send", path(&large), "--relay", &relay.address]);
    let mut receiver = grebe(&["recv", path(into.path()), "--json", "--via", "relay"]);
    receiver.env("GREBE_TICKET", &sender.ticket).stdout(Stdio::piped()).stderr(Stdio::piped());
    let receiver = sent(receiver.spawn().unwrap());
    assert_good(&sender.finish(), &receiver);
    assert_eq!(receiver.result["route"], "relayed");
    assert!(receiver.said.contains("as requested"), "{}", receiver.said);
    assert!(fs::read(into.path().join("large.bin")).unwrap() == contents);
}

#[test]
fn the_relay_forwards_nothing_if_a_direct_route_works() {
    let relay = Relay::start(&[]);
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, contents) = file(from.path(), "one", 300_000);
    let mut receiver = Waiting::start(&["recv", path(into.path()), "--relay", &relay.address]);
    // Without the addresses in it, as a ticket would be read that was advertised badly.
    receiver.ticket = without_addresses(&receiver.ticket);
    let sender = sent(send(&[&one], &receiver.ticket, &[]));
    let receiver = receiver.finish();
    assert_good(&sender, &receiver);
    assert!(fs::read(into.path().join("one")).unwrap() == contents);
    assert_eq!((&sender.result["route"], &receiver.result["route"]), (&"direct".into(), &"direct".into()));
    assert!(sender.said.contains("directly to 127.0.0.1:"), "{}", sender.said);
    assert_eq!(relay.figure("relayed_bytes_total"), 0);
    // Both have said that they are done.
    wait_until("the places are still kept", || relay.figure("sessions") == 0);
}

fn without_addresses(word: &str) -> String {
    let purpose = grebe_connection::Purpose::Transfer;
    let mut ticket = grebe_connection::Ticket::from_word(word, purpose).unwrap();
    assert!(ticket.relay.is_some());
    ticket.addresses.clear();
    ticket.word().to_string()
}

#[test]
fn without_its_relay_a_ticket_still_leads_to_its_addresses() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, contents) = file(from.path(), "one", 300_000);
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let receiver = Waiting::start(&["recv", path(into.path()), "--relay", &nobody]);
    let sender = sent(send(&[&one], &receiver.ticket, &[]));
    assert_good(&sender, &receiver.finish());
    assert!(fs::read(into.path().join("one")).unwrap() == contents);

    let receiver = Waiting::start(&["recv", path(into.path()), "--relay", &nobody, "--via", "relay"]);
    let sender = sent(send(&[&one], &receiver.ticket, &["--wait", "3s"]));
    assert_eq!(sender.status, Some(3), "{}", sender.said);
    assert!(sender.said.contains(&format!("no answer from the relay {nobody}")), "{}", sender.said);
    assert!(sender.said.contains("cannot meet at the relay") && sender.said.contains("is it running"));
    signal("-INT", receiver.id());
    let receiver = receiver.finish();
    assert_eq!(receiver.status, Some(130));
    assert!(receiver.said.contains("no answer from the relay"), "{}", receiver.said);
}

#[test]
fn a_relay_that_is_killed_and_started_again_costs_a_pause() {
    let mut relay = Relay::start(&[]);
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, contents) = file(from.path(), "large.bin", 16_000_000);
    let receiver = Waiting::start(&["recv", path(into.path()), "--relay", &relay.address, "--via", "relay"]);
    let sender = send(&[&large], &receiver.ticket, &["--bwlimit", "30M"]);
    wait_for_note(into.path(), 1);
    relay.kill();
    let relay = Relay::start_at(&relay.address, &[]);
    let (sender, receiver) = (sent(sender), receiver.finish());
    assert_good(&sender, &receiver);
    assert!(fs::read(into.path().join("large.bin")).unwrap() == contents);
    assert_eq!(sender.result["resumed_bytes"], 0, "it is the same session");
    assert!(relay.figure("relayed_bytes_total") > 0);
}

#[test]
fn a_side_with_another_ticket_meets_nobody() {
    let relay = Relay::start(&[]);
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, contents) = file(from.path(), "one", 1_000);
    let start = || Waiting::start(&["recv", path(into.path()), "--relay", &relay.address, "--via", "relay"]);
    let (gone, receiver) = (start(), start());
    relay.wait_for("sessions", 2);
    signal("-INT", gone.id());
    let ticket = gone.ticket.clone();
    assert_eq!(gone.finish().status, Some(130));
    let stranger = sent(send(&[&one], &ticket, &["--wait", "2s"]));
    assert_eq!(stranger.status, Some(3), "{}", stranger.said);
    assert!(stranger.said.contains("the other side is not there"), "{}", stranger.said);
    // The one who waits has not noticed.
    assert_good(&sent(send(&[&one], &receiver.ticket, &[])), &receiver.finish());
    assert!(fs::read(into.path().join("one")).unwrap() == contents);
}

#[test]
fn a_flood_changes_nothing_and_is_counted() {
    let relay = Relay::start(&[]);
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, contents) = file(from.path(), "large.bin", 6_000_000);
    let receiver = Waiting::start(&["recv", path(into.path()), "--relay", &relay.address, "--via", "relay"]);
    let sender = send(&[&large], &receiver.ticket, &["--bwlimit", "20M"]);
    wait_for_note(into.path(), 1);
    let strangers: Vec<_> = (0..20).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    let mut answers = 0;
    for round in 0..200_u32 {
        for stranger in &strangers {
            // A request without a proof, an unreadable one, one to forward, and an empty one.
            let mut question = [round as u8; 400];
            (question[0], question[1], question[2]) = (0x80, 1, 0);
            question[139..].fill(0);
            let mut garbage = question;
            garbage[2] = 77;
            for datagram in [&question[..], &garbage, &[0x40; 1_200], &[]] {
                let _ = stranger.send_to(datagram, &relay.address);
            }
            stranger.set_nonblocking(true).unwrap();
            let mut answer = [0; 500];
            while let Ok(length) = stranger.recv(&mut answer) {
                assert!(
                    length == 400 && answer[0] == 0x81,
                    "no more than the question, and no more than a challenge"
                );
                answers += 1;
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(answers > 0);
    assert_eq!(relay.figure("sessions"), 1);
    let (sender, receiver) = (sent(sender), receiver.finish());
    assert_good(&sender, &receiver);
    assert!(fs::read(into.path().join("large.bin")).unwrap() == contents);
    relay.wait_for("ignored_questions_total{reason=\"malformed\"}", 100);
    relay.wait_for("dropped_datagrams_total{reason=\"stranger\"}", 100);
    relay.wait_for("challenges_total", 100);
}

#[test]
fn a_relay_keeps_its_limits_and_reports_them() {
    let relay = Relay::start(&["--sessions", "1", "--session-rate", "16M"]);
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, contents) = file(from.path(), "large.bin", 3_000_000);
    let receiver = Waiting::start(&["recv", path(into.path()), "--relay", &relay.address, "--via", "relay"]);
    relay.wait_for("sessions", 1);
    let second = Waiting::start(&["recv", path(into.path()), "--relay", &relay.address, "--via", "relay"]);
    relay.wait_for("refused_total", 1);
    signal("-INT", second.id());
    let second = second.finish();
    assert!(second.said.contains("refuses: it has as many sessions as it takes"), "{}", second.said);
    // Packets beyond the rate are dropped, and the congestion control treats them as losses.
    let sender = sent(send(&[&large], &receiver.ticket, &[]));
    assert_good(&sender, &receiver.finish());
    assert!(fs::read(into.path().join("large.bin")).unwrap() == contents);
    relay.wait_for("dropped_datagrams_total{reason=\"rate\"}", 1);
}

#[test]
fn the_relay_may_be_named_once_for_all_and_ends_well() {
    let mut relay = Relay::start(&[]);
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, _) = file(from.path(), "one", 1_000);
    let mut command = grebe(&["send", path(&one), "--json", "--via", "relay"]);
    command.env("GREBE_RELAY", &relay.address).env_remove("GREBE_TICKET").stdout(Stdio::piped());
    let mut sender = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(sender.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    run(&["recv", line["ticket"].as_str().unwrap(), path(into.path())]).good();
    assert!(finish(sender).status.success());
    relay.wait_for("relayed_bytes_total", 1_000);

    let child = relay.child.take().unwrap();
    signal("-TERM", child.id());
    assert!(finish(child).status.success(), "it was stopped");
    let mut said = String::new();
    relay.stderr.read_to_string(&mut said).unwrap();
    assert!(said.contains("relayed ") && said.contains(" datagrams"), "{said}");
    let mut with_address = said.lines().filter(|line| line.contains("127.0.0.1"));
    assert!(with_address.all(|line| line.contains(&relay.address)), "it tells who met: {said}");
}

/// A port where a relay is reachable by TCP only: UDP is dropped, as by a firewall.
struct TcpOnly {
    address: String,
    _swallows: UdpSocket,
}

impl TcpOnly {
    fn to(relay: &str) -> Self {
        let (listener, swallows) = loop {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            if let Ok(socket) = UdpSocket::bind(listener.local_addr().unwrap()) {
                break (listener, socket);
            }
        };
        let (address, relay) = (listener.local_addr().unwrap().to_string(), relay.to_owned());
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let (near, far) = (near.unwrap(), TcpStream::connect(&relay).unwrap());
                let pairs = [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)];
                for (mut from, mut to) in pairs {
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(std::net::Shutdown::Write);
                    });
                }
            }
        });
        Self { address, _swallows: swallows }
    }
}

#[test]
fn tcp_reaches_the_relay_if_udp_does_not() {
    let relay = Relay::start(&[]);
    let blocked = TcpOnly::to(&relay.address);
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, contents) = file(from.path(), "large.bin", 6_000_000);
    let receiver =
        Waiting::start(&["recv", path(into.path()), "--relay", &blocked.address, "--via", "relay"]);
    let sender = sent(send(&[&large], &receiver.ticket, &[]));
    let receiver = receiver.finish();
    assert_good(&sender, &receiver);
    assert!(fs::read(into.path().join("large.bin")).unwrap() == contents);
    for side in [&sender, &receiver] {
        assert_eq!(side.result["route"], "relayed", "{}", side.result);
        assert_eq!(side.result["peer"], blocked.address, "{}", side.result);
        assert!(side.said.contains(&format!("{} is reached over TCP", blocked.address)), "{}", side.said);
        assert!(!side.said.contains("no answer from the relay"), "it is not waited for: {}", side.said);
    }
    relay.wait_for("relayed_bytes_total", 6_000_000);
    // Both reported their end, and no connection broke.
    wait_until("connections are left", || relay.figure("connections") == 0);
    assert_eq!((relay.figure("sessions"), relay.figure("closed_connections_total")), (0, 0));
}

#[test]
fn one_side_may_reach_the_relay_by_tcp_and_the_other_by_udp() {
    let relay = Relay::start(&[]);
    let blocked = TcpOnly::to(&relay.address);
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, contents) = file(from.path(), "one", 3_000_000);
    let mut receiver =
        Waiting::start(&["recv", path(into.path()), "--relay", &relay.address, "--via", "relay"]);
    // The same relay, by the port that lets no UDP through.
    let purpose = grebe_connection::Purpose::Transfer;
    let mut ticket = grebe_connection::Ticket::from_word(&receiver.ticket, purpose).unwrap();
    ticket.relay = Some(blocked.address.parse::<SocketAddr>().unwrap().into());
    receiver.ticket = ticket.word().to_string();
    let sender = sent(send(&[&one], &receiver.ticket, &[]));
    let receiver = receiver.finish();
    assert_good(&sender, &receiver);
    assert!(fs::read(into.path().join("one")).unwrap() == contents);
    assert!(sender.said.contains("is reached over TCP"), "{}", sender.said);
    assert!(!receiver.said.contains("is reached over TCP"), "{}", receiver.said);
    assert_eq!((&sender.result["route"], &receiver.result["route"]), (&"relayed".into(), &"relayed".into()));
}

#[test]
fn invalid_relay_options_are_wrong_usage() {
    let from = tempfile::tempdir().unwrap();
    let (one, _) = file(from.path(), "one", 10);
    let no_relay = run(&["send", path(&one), "--via", "relay"]);
    assert_eq!(no_relay.status.code(), Some(2));
    assert!(text(&no_relay.stderr).contains("--relay HOST"), "{}", text(&no_relay.stderr));
    let bad = run(&["recv", "--relay", "host:port"]);
    assert_eq!(bad.status.code(), Some(2));
    let unknown = run(&["recv", path(from.path()), "--relay", "no-such-host.invalid"]);
    assert_eq!(unknown.status.code(), Some(3), "{}", text(&unknown.stderr));
    assert!(text(&unknown.stderr).contains("its name is not found"), "{}", text(&unknown.stderr));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let metrics = taken.local_addr().unwrap().to_string();
    let relay = run(&["relay", "--listen", "127.0.0.1:0", "--metrics", &metrics]);
    assert_eq!(relay.status.code(), Some(1));
    assert!(text(&relay.stderr).contains(&metrics), "{}", text(&relay.stderr));
}
