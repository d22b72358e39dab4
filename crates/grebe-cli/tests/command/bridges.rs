//! Behaviour of each bridge if its other end misbehaves. All bridges are in the [`table`].
//!
//! ```text
//!  here      ends, kills, Ctrl-C, silence, garbage    peers  who goes and returns, and who comes beside
//!  links     links that are down, firewalls, buffers  descriptions  at every frame, and too long
//! ```
#![cfg(unix)]

mod descriptions;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "Linux alone has namespaces"))]
mod hosts;
#[cfg(target_os = "linux")]
mod links;
mod pair;
mod peers;
mod table;

use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use grebe::recording::SampleFile;
use pair::{Ended, Plan, Running, assert_adds_up};

use table::{BRIDGES, Bridge, ELSEWHERE, Index, Listens, for_each};

use crate::support::{free_port, grebe, run, text};

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
fn received_and_lost_samples_add_up_to_the_generated_ones() {
    for_each(|bridge| {
        let mut pair = Plan::of(bridge).start(&["--samples", "30k"]);
        let (producer, recorder) = pair.finish();
        assert_eq!(producer.status, Some(0), "{producer:?}");
        recorder.assert_end(bridge);
        assert_adds_up(bridge, 30_000, &producer, &recorder);
    });
}

#[test]
fn a_stopped_producer_continues_without_invented_samples() {
    for_each(|bridge| {
        let mut pair = Plan::of(bridge).start(&["--samples", "200k"]);
        pair.wait_for_samples();
        pair.producer.signal("-STOP");
        std::thread::sleep(Duration::from_millis(1200));
        pair.producer.signal("-CONT");
        let (producer, recorder) = pair.finish();
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
        let mut pair = Plan::of(bridge).start(&[]);
        pair.wait_for_samples();
        pair.producer.signal("-KILL");
        let recorder = pair.recorder.finish();
        pair.assert_whole(&recorder);
        // Another program's closed byte stream looks like its end.
        assert!(matches!(recorder.status, Some(0 | 3)), "{}: {recorder:?}", bridge.source);
        assert!(!bridge.is_datagram() || recorder.status == Some(3), "{recorder:?}");
    });
}

#[test]
fn a_killed_recorder_delays_no_producer() {
    for_each(|bridge| {
        let mut pair = Plan::of(bridge).start(&["--duration", "3s"]);
        pair.wait_for_samples();
        pair.recorder.signal("-KILL");
        let producer = pair.producer.finish();
        producer.assert_in_order(bridge.sink);
        assert!(SampleFile::open(pair.file()).is_ok_and(|file| file.len_samples() > 0), "{}", bridge.source);
    });
}

#[test]
fn ctrl_c_ends_a_recorder_with_a_stalled_producer() {
    for_each(|bridge| {
        let mut pair = Plan::of(bridge).start(&[]);
        pair.wait_for_samples();
        pair.producer.signal("-STOP");
        pair.recorder.signal("-INT");
        let recorder = pair.recorder.finish();
        pair.assert_whole(&recorder);
        pair.producer.signal("-CONT");
    });
}

#[test]
fn ctrl_c_ends_a_producer_with_a_stalled_recorder() {
    for_each(|bridge| {
        let mut pair = Plan::of(bridge).start(&["--free-run"]);
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
        let mut pair = Plan::of(bridge).start(&["--samples", "100k"]);
        pair.wait_for_samples();
        match bridge.listens {
            Listens::Datagrams => {
                let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
                for length in [0, 1, 7, 28, 64, 65, 1400, 0] {
                    stranger.send_to(&noise(length), &pair.address).unwrap();
                }
            }
            // Whom the listener has no place for may be refused at once.
            Listens::Source | Listens::Sink | Listens::Broker => {
                if let Ok(mut stranger) = TcpStream::connect(&pair.address) {
                    let _ = stranger.write_all(&noise(4096));
                }
                // A silent client delays no other.
                std::mem::forget(TcpStream::connect(&pair.address));
            }
            Listens::Name => {}
        }
        let (producer, recorder) = pair.finish();
        assert_eq!(producer.status, Some(0), "{producer:?}");
        recorder.assert_end(bridge);
        assert_adds_up(bridge, 100_000, &producer, &recorder);
    });
}

#[test]
fn waiting_ends_after_the_given_time() {
    for_each(|bridge| {
        if matches!(bridge.listens, Listens::Sink | Listens::Broker) {
            return;
        }
        let (recorder, has_file) = recorded(bridge, "127.0.0.1:0", || ());
        assert!(matches!(recorder.status, Some(1 | 3)), "{}: {recorder:?}", bridge.source);
        assert!(!has_file, "{}", bridge.source);
    });
}

#[test]
fn a_foreign_protocol_ends_no_process() {
    for_each(|bridge| {
        for length in [0, 1, 9, 64, 70_000] {
            let address = format!("127.0.0.1:{}", free_port());
            let listener = TcpListener::bind(&address).unwrap();
            let answer = || drop(listener.accept().unwrap().0.write_all(&noise(length)));
            let what = format!("{length} bytes at {address}: {} {}", bridge.source, bridge.sink);
            if matches!(bridge.listens, Listens::Source | Listens::Broker) {
                let (folder, sink) = (tempfile::tempdir().unwrap(), bridge.sink.replace('@', &address));
                let arguments = ["sg", "--to", &sink, "--format", bridge.format, "--samples", "1k"];
                let (mut producer, _) = Running::start(folder.path(), grebe(&arguments), None);
                answer();
                producer.finish().assert_in_order(&what);
            }
            if matches!(bridge.listens, Listens::Sink | Listens::Broker) {
                recorded(bridge, &address, answer).0.assert_in_order(&what);
            }
            drop(listener);
            if bridge.listens == Listens::Source {
                let call = || drop(TcpStream::connect(&address).unwrap().write_all(&noise(length)));
                recorded(bridge, &address, call).0.assert_in_order(&what);
            }
        }
    });
}

/// Fate of a recorder during an event at its address; returns whether a file exists.
fn recorded(bridge: &Bridge, address: &str, meanwhile: impl FnOnce()) -> (Ended, bool) {
    let folder = tempfile::tempdir().unwrap();
    let (source, file) = (bridge.source.replace('@', address), folder.path().join("x.sigmf-meta"));
    let arguments = ["record", &source, file.to_str().unwrap(), "--json", "--idle-timeout", "500ms"];
    let words = (bridge.listens == Listens::Source && !address.ends_with(":0")).then_some("listening on ");
    let (mut recorder, _) = Running::start(folder.path(), grebe(&arguments), words);
    meanwhile();
    (recorder.finish(), file.exists())
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
