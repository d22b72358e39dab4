//! Receivers on a network, and connections that come back: the built command at both ends, or as another program would be there.
//!
//! The amount of data fits the queue of a server for slow clients, so that nothing is lost on a machine of any speed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;

use crate::support::{data, example, finish, grebe, listening, run, text};
use grebe::recording::SampleFile;
use serde_json::Value;

/// Recording of a generator, for comparison with the output.
fn made(file: &Path, samples: &str) -> Vec<u8> {
    let made = "sg --format cu8 --rate 2.4M --wave qpsk --seed 3 --free-run --samples".split(' ');
    let made: Vec<&str> = made.chain([samples, "--to", file.to_str().unwrap()]).collect();
    let made = run(&made);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    data(file)
}

#[test]
fn a_recording_is_played_to_clients_of_rtl_tcp() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("x.sigmf-meta"), folder.path().join("y.sigmf-meta"));
    let sent = made(&from, "500k");
    let server =
        ["play", from.to_str().unwrap(), "--free-run", "--to", "rtl_tcp://127.0.0.1:0?listen&wait=2"];
    let (server, address, _stderr) = listening(&server);
    // Another program, beside our own receiver.
    let reading = {
        let address = address.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            TcpStream::connect(address).unwrap().read_to_end(&mut bytes).unwrap();
            bytes
        })
    };
    let uri = format!("rtl_tcp://{address}?frequency=433.92M&rate=2.4M&gain=20.7");
    let recorder = run(&["record", &uri, to.to_str().unwrap(), "--json"]);
    assert_eq!(recorder.status.code(), Some(0), "{}", text(&recorder.stderr));
    let said = text(&recorder.stderr);
    assert!(said.contains("drops of its server cannot be seen"), "{said}");
    let report: Value = serde_json::from_slice(&recorder.stdout).unwrap();
    assert_eq!(report["losses"]["unseen"], true, "{report}");
    assert_eq!(finish(server).status.code(), Some(0));
    assert!(data(&to) == sent);
    let read = reading.join().unwrap();
    assert!(read[..12] == *b"RTL0\0\0\0\x05\0\0\0\x1d" && read[12..] == sent[..]);
    let recording = SampleFile::open(&to).unwrap();
    let description = recording.description(0).unwrap();
    assert_eq!((description.centre_frequency_hz, description.gain_db), (Some(433.92e6), Some(20.7)));
    assert_eq!(recording.rate_hz(), Some(2.4e6));
}

#[cfg(unix)]
#[test]
fn a_slow_client_does_not_delay_the_end() {
    let to = "rtl_tcp://127.0.0.1:0?listen";
    let (server, address, _stderr) =
        listening(&["sg", "--format", "cu8", "--rate", "8M", "--free-run", "--to", to]);
    let mut client = TcpStream::connect(address).unwrap();
    let trickle = std::thread::spawn(move || {
        let mut bytes = [0; 16 << 10];
        while client.read(&mut bytes).is_ok_and(|read| read > 0) {
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
    });
    // By now all that is kept for it is full.
    std::thread::sleep(std::time::Duration::from_secs(3));
    crate::support::signal("-INT", server.id());
    // Within the minute that it may take.
    finish(server);
    drop(trickle);
}

#[test]
fn a_sender_that_goes_and_returns_leaves_a_gap_in_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("tcp://{}?format=ci16&rate=1M&reconnect", listener.local_addr().unwrap());
    let recorder = grebe(&["record", &uri, file.to_str().unwrap(), "--samples", "500", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first ends within a sample.
    listener.accept().unwrap().0.write_all(&[1; 4 * 300 + 3]).unwrap();
    let (mut second, _) = listener.accept().unwrap();
    second.write_all(&[2; 4 * 200]).unwrap();
    let output = finish(recorder);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(data(&file) == [vec![1; 4 * 300], vec![2; 4 * 200]].concat());
    let segments: Vec<_> = SampleFile::open(&file)
        .unwrap()
        .segments()
        .iter()
        .map(|it| (it.first_sample_index, it.length_samples))
        .collect();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lost = report["losses"]["network_samples"].as_u64().unwrap();
    assert!(lost >= 1 && segments == [(0, 300), (300 + lost, 200)], "{segments:?} {report}");
}

#[cfg(unix)]
#[test]
fn a_returning_reader_gets_the_current_samples() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("tcp://{}?format=u8&reconnect", listener.local_addr().unwrap());
    let arguments =
        ["sg", "--wave", "saw", "--format", "u8", "--rate", "1M", "--free-run", "--json", "--to", &uri];
    let sender = grebe(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut first, _) = listener.accept().unwrap();
    first.read_exact(&mut [0; 10_000]).unwrap();
    drop(first);
    let (mut second, _) = listener.accept().unwrap();
    second.read_exact(&mut [0; 10_000]).unwrap();
    crate::support::signal("-INT", sender.id());
    let rest = std::thread::spawn(move || second.read_to_end(&mut Vec::new()));
    let output = finish(sender);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    rest.join().unwrap().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["losses"]["absent_samples"].as_u64().unwrap() > 0, "{report}");
}

#[test]
fn a_server_other_than_rtl_tcp_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("rtl_tcp://{}", listener.local_addr().unwrap());
    let web =
        std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"HTTP/1.1 400 Bad Request\r\n"));
    let output = run(&["record", &uri, "x.sigmf-meta"]);
    web.join().unwrap().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("does not send RTL0"), "{}", text(&output.stderr));
    let ecg = example("ecg.sigmf-meta");
    for (arguments, says) in [
        (&["record", "rtl_tcp://127.0.0.1:1", "x.sigmf-meta"][..], "cannot connect to rtl_tcp://127.0.0.1:1"),
        (&["record", "rtl_tcp://127.0.0.1:1?listen", "x.sigmf-meta"], "which makes it a server"),
        // Refused at once, without a client.
        (&["sg", "--to", "rtl_tcp://127.0.0.1:0", "--samples", "1k"], "rtl_tcp carries cu8 in one"),
        (
            &["play", ecg.to_str().unwrap(), "--to", "rtl_tcp://127.0.0.1:0"],
            "the stream is 1 x i16, but rtl_tcp",
        ),
    ] {
        let output = run(arguments);
        assert_ne!(output.status.code(), Some(0));
        assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));
    }
}
