//! Transmission by a radio.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::radio::{calls, module, run, with_radio};
use crate::support::{finish, text};

/// Recording of a generator, and the samples that its radio must send: a file per channel.
fn made(folder: &Path, channels: usize, samples: &str) -> (String, Vec<Vec<u8>>) {
    let count = channels.to_string();
    let to = folder.join("from.sigmf-meta");
    let generator =
        ["--format", "ci16", "--rate", "1M", "--wave", "noise", "--free-run", "--samples", samples];
    let words =
        [&["sg", "--channels", &count], &generator[..], &["--to", to.to_str().unwrap(), "--overwrite"]];
    let output = run(&words.concat().into_iter().filter(|it| *it != "--overwrite").collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let data = |name: &str| fs::read(folder.join(name)).unwrap();
    match channels {
        1 => (to.to_str().unwrap().to_owned(), vec![data("from.sigmf-data")]),
        _ => {
            let files = (1..=channels).map(|it| data(&format!("from_ch{it}.sigmf-data"))).collect();
            (folder.join("from.sigmf-collection").to_str().unwrap().to_owned(), files)
        }
    }
}

#[test]
fn every_sample_is_sent_however_many_the_radio_takes_at_once() {
    let Some(_) = module() else { return };
    for (channels, args) in [(1, ""), (1, ", short=1000, underflow=1"), (2, ", short=3000")] {
        let folder = tempfile::tempdir().unwrap();
        let (from, expected) = made(folder.path(), channels, "100k");
        let (sent, calls_file) = (folder.path().join("sent"), folder.path().join("calls"));
        let uri = format!(
            "soapy:driver=grebe_test, channels=2, record={}, calls={}{args}?frequency=433.92M&gain=10",
            sent.display(),
            calls_file.display()
        );
        let output = run(&["play", &from, "--free-run", "--to", &uri, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["samples"], 100_000, "{report}");
        for (channel, expected) in expected.iter().enumerate() {
            let sent = fs::read(sent.with_extension(channel.to_string())).unwrap();
            assert!(
                sent == *expected,
                "{args}: channel {channel}: {} of {} bytes",
                sent.len(),
                expected.len()
            );
        }
        let calls = calls(&calls_file);
        assert!(calls.contains(&"rate=1000000.000000".to_owned()), "the stream's own: {calls:?}");
        assert_eq!(calls[calls.len() - 2..], ["end=", "close="]);
        assert_eq!(report["losses"]["underflows"].as_u64() > Some(0), args.contains("underflow"), "{report}");
    }
}

#[test]
fn an_unsupported_transmission_is_an_error() {
    let Some(_) = module() else { return };
    let sg = ["sg", "--rate", "1M", "--samples", "1k"];
    for (format, uri, status, says) in [
        ("ci16", "soapy:driver=grebe_test", 2, "add frequency=, as in frequency=433.92M"),
        (
            "i16",
            "soapy:driver=grebe_test?frequency=100M",
            1,
            "it does not support i16; supported: ci16, cf32, ci8, cu8: put convert before it",
        ),
        ("ci16", "soapy:driver=grebe_test?frequency=100M&channels=0,1", 1, "it has no channel 1 to send by"),
        (
            "ci16",
            "soapy:driver=grebe_test, channels=2?frequency=100M&channels=0,1",
            1,
            "the stream has 1 channels",
        ),
        (
            "ci16",
            "soapy:driver=grebe_test, fail=writeStream:3, short=100?frequency=100M",
            3,
            "failed on purpose in writeStream",
        ),
    ] {
        let output = run(&[&sg[..], &["--channels", "1", "--format", format, "--to", uri]].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{uri}: {said}");
        assert!(said.contains(says), "{uri}: {said}");
    }
}

#[test]
fn a_returning_radio_transmits_the_current_samples() {
    let Some(_) = module() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (plug, sent) = (folder.path().join("plug"), folder.path().join("sent"));
    fs::write(&plug, "").unwrap();
    let uri = format!(
        "soapy:driver=grebe_test, unplug=50000, plug={}, record={}?frequency=433.92M&reconnect",
        plug.display(),
        sent.display()
    );
    let words = [
        "sg",
        "--channels",
        "1",
        "--format",
        "ci16",
        "--rate",
        "100k",
        "--samples",
        "300k",
        "--to",
        &uri,
        "--json",
    ];
    let sender = with_radio(&words).spawn().unwrap();
    while plug.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    fs::write(&plug, "").unwrap();
    // The device is gone the second time, which does not end the sender.
    let output = finish(sender);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let absent = report["losses"]["absent_samples"].as_u64().unwrap();
    let sent = fs::read(sent.with_extension("0")).unwrap().len() as u64 / 4;
    assert!(absent > 0 && sent > 50_000, "{sent} {report}");
    // A generator that was held up has dropped the rest, and says so.
    assert_eq!(Some(sent + absent), report["samples"].as_u64(), "{report}");
}
