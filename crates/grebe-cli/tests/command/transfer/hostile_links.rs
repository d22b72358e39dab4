//! Links that stop in the middle, in one direction or for long datagrams only, and that lose what begins a transfer.

use std::fs;
use std::process::Stdio;

use super::detour::{Datagram, detour};
use super::peers::{Ended, Waiting, file, path, send, sent};
use crate::support::grebe;

/// Sends 4 MB through a detour; how the sender and the receiver ended.
fn transfer(
    sender_waits: bool,
    options: &[&str],
    passes: impl FnMut(Datagram) -> bool + Send + 'static,
) -> [Ended; 2] {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, contents) = file(from.path(), "large.bin", 4_000_000);
    let ends = if sender_waits {
        let sender = Waiting::start(&[&["send", path(&large)], options].concat());
        let mut receiver = grebe(&["recv", path(into.path()), "--json"]);
        receiver.env("GREBE_TICKET", detour(&sender.ticket, passes));
        let receiver = receiver.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let receiver = sent(receiver);
        [sender.finish(), receiver]
    } else {
        let receiver = Waiting::recv(into.path());
        let sender = sent(send(&[&large], &detour(&receiver.ticket, passes), options));
        [sender, receiver.finish()]
    };
    for end in &ends {
        assert_eq!(end.status, Some(0), "sender waits: {sender_waits}: {} {}", ends[0].said, ends[1].said);
    }
    assert!(fs::read(into.path().join("large.bin")).unwrap() == contents);
    ends
}

#[test]
fn a_transfer_continues_by_tcp_if_udp_stops_in_part() {
    /// After this many datagrams; the first hundred are the start.
    const BEGIN: u64 = 600;
    type Stops = fn(Datagram, bool) -> bool;
    let stops: [(&str, Stops); 4] = [
        ("data", |datagram, is_data| is_data && datagram.number >= BEGIN),
        ("reports", |datagram, is_data| !is_data && datagram.number >= BEGIN),
        ("reports, early", |datagram, is_data| !is_data && datagram.number >= 40),
        ("long datagrams", |datagram, _| datagram.bytes > 1_100 && datagram.number >= BEGIN),
    ];
    std::thread::scope(|scope| {
        for (what, stops) in stops {
            for sender_waits in [false, true] {
                scope.spawn(move || {
                    let passes =
                        move |datagram: Datagram| !stops(datagram, datagram.is_to_waiting != sender_waits);
                    for end in transfer(sender_waits, &["--bwlimit", "20M"], passes) {
                        let said = end.said.matches("over TCP").count();
                        assert_eq!(said, 1, "{what}, sender waits: {sender_waits}: {}", end.said);
                        assert_eq!(end.result["route"], "tcp");
                    }
                });
            }
        }
    });
}
