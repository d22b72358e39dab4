//! Every user error gives one line, and an exit status that distinguishes wrong usage from failure. Nothing is left
//! behind.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;

use serde_json::Value;

use crate::support::{example, run, text};

/// Runs, and checks the status and the one line.
fn refused(arguments: &[&str], status: i32, says: &[&str]) {
    let output = run(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
    for part in says {
        assert!(said.contains(part), "{arguments:?} does not say '{part}': {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
    if status == 1 {
        assert_eq!(said.trim_end().lines().count(), 1, "{arguments:?} says more than a line: {said}");
    }
}

#[test]
fn wrong_usage_is_two() {
    refused(&["--nonsense"], 2, &["--nonsense"]);
    refused(&["sg", "--rate", "fast"], 2, &["give a rate above 0"]);
    refused(&["sg", "--channels", "256"], 2, &["256"]);
    refused(&["sg", "--format", "i24"], 2, &["i24", "ci16"]);
    refused(&["sg", "--to", "http://x:1"], 2, &["unknown kind of stream"]);
    refused(&["sg", "--to", "tcp://x:1"], 2, &["add format="]);
    refused(&["sg", "--to", "udp://127.0.0.1"], 2, &["has no port"]);
    refused(&["sg", "--to", "udp://127.0.0.1:99999"], 2, &["invalid port: give a number up to 65535"]);
    refused(&["sg", "--wave", "wobble"], 2, &["'wobble': unknown waveform; use sine"]);
    refused(&["run", "take.sigmf-meta"], 2, &["is a recording, not a graph file"]);
    refused(
        &["convert", "x.cf32", "y.wav", "--center", "1M"],
        2,
        &["add --bandwidth, such as --bandwidth 200k"],
    );
    refused(&["sg", "--datagram-size", "10"], 2, &["datagram size is 10: give 80 to 65507"]);
    refused(&["sg", "--datagram-size", "66000"], 2, &["datagram size is 66000"]);
    refused(&["sg", "--frequency", "900k", "--rate", "1M"], 2, &["frequency"]);
    refused(&["sg", "--to", "synth:"], 2, &["cannot be sent to"]);
    refused(&["view", "udp://:0", "--after", "2s"], 2, &["--png"]);
    refused(&["play"], 2, &["<FILE>"]);
    refused(&["view", "synth:", "--png", "a.jpg"], 2, &["pictures are PNG", "name it NAME.png"]);
    refused(
        &["view", "synth:?colour=red", "--png", "a.png"],
        2,
        &["unknown 'colour'", "known: wave, channels"],
    );
    refused(
        &["record", "synth:sine?frequency=fast", "a"],
        2,
        &["wrong frequency", "give a frequency in hertz"],
    );
    refused(&["view", "synth:", "--json"], 2, &["--png"]);
    for to in ["pipe:", "pipe:?format=i16", "pipe:?format=text"] {
        refused(&["sg", "--to", to, "--json"], 2, &["would both write to standard output"]);
        refused(&["play", "x.wav", "--to", to, "--json"], 2, &["would both write to standard output"]);
    }
    refused(&["sg", "--frequency", "high"], 2, &["give a frequency in hertz"]);
    refused(&["sg", "--to", "vrt://127.0.0.1:0"], 2, &["'127.0.0.1:0' has port 0"]);
    for listen in ["8080", ":8080", "localhost:80"] {
        refused(&["serve", "synth:", "--listen", listen], 2, &["give ADDRESS:PORT", "0.0.0.0:4780"]);
    }
    refused(&["man", "nonsense"], 2, &["invalid value 'nonsense'"]);
}

#[test]
fn negative_numbers_are_values_and_their_errors_are_explained() {
    refused(&["sg", "--rate", "-5k"], 2, &["'-5k'", "give a rate above 0"]);
    refused(&["sg", "--frequency", "-5"], 2, &["frequency is -5", "give 0 to half"]);
    refused(&["sg", "--duration", "-1s"], 2, &["'-1s'", "--duration"]);
    refused(&["play", "x.wav", "--speed", "-2"], 2, &["give a factor above 0"]);
}

#[test]
fn an_unavailable_resource_is_one_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("udp://{}", taken.local_addr().unwrap());
    refused(
        &["record", &uri, &path("a.sigmf-meta")],
        1,
        &["cannot listen on", &uri, "another program listens there", "choose another port"],
    );
    refused(
        &["view", &uri, "--png", &path("a.png")],
        1,
        &["cannot listen on", "another program listens there"],
    );
    for name in ["a.csv", "a.npy", "a.wav"] {
        refused(&["record", "synth:", &path(name)], 1, &[name, "NAME.sigmf-meta", "grebe convert makes"]);
    }
    for name in ["a.flac", "a.dat", "a.mp3"] {
        let ecg = example("ecg.sigmf-meta");
        refused(&["convert", ecg.to_str().unwrap(), &path(name)], 1, &[name, "no kind of file", ".npy"]);
    }
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing was written");
    refused(&["sg", "--to", "udp://no-such-host.invalid:5000"], 1, &["no-such-host.invalid"]);
    refused(
        &["record", "udp://127.0.0.1:0", &path("none/a.sigmf-meta")],
        1,
        &["cannot create", "none does not exist"],
    );
    refused(&["play", &path("missing.wav")], 1, &["missing.wav"]);
    refused(&["record", "synth:", &path("out.wav")], 1, &["out.wav", "name it NAME.sigmf-meta"]);
    assert!(!folder.path().join("out.wav.sigmf-meta").exists());
    fs::write(folder.path().join("empty.wav"), b"").unwrap();
    refused(&["play", &path("empty.wav")], 1, &["empty.wav"]);
    let wav = fs::read(example("ecg.wav")).unwrap();
    fs::write(folder.path().join("cut.wav"), &wav[..30]).unwrap();
    refused(&["play", &path("cut.wav")], 1, &["cut.wav is truncated"]);
    fs::write(folder.path().join("no.sigmf"), &wav).unwrap();
    refused(&["play", &path("no.sigmf")], 1, &["no.sigmf is not a SigMF archive"]);
    fs::write(folder.path().join("half.sigmf-meta"), b"{\"global\": {").unwrap();
    refused(&["view", &path("half.sigmf-meta"), "--png", &path("a.png")], 1, &["half.sigmf-meta"]);
    refused(&["play", &path("unknown.xyz")], 1, &["cannot open", "unknown.xyz: No such file"]);
    refused(
        &["view", &path("nosuch.csv"), "--png", &path("a.png")],
        1,
        &["cannot open", "nosuch.csv: No such file"],
    );
    refused(&["demo", &path("missing.wav")], 1, &["missing.wav"]);
    refused(&["play", &path("none/x.wav")], 1, &["cannot open", "the folder", "none does not exist"]);
    let mut left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["cut.wav", "empty.wav", "half.sigmf-meta", "no.sigmf"], "nothing half-written is left");
}

#[test]
fn a_recording_is_not_overwritten_unless_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("once.sigmf-meta");
    let (file, ecg) = (file.to_str().unwrap(), example("ecg.wav"));
    let ecg = ecg.to_str().unwrap();
    assert!(run(&["record", ecg, file]).status.success());
    let there = "once.sigmf-meta exists already: choose another name, or remove it";
    refused(&["record", ecg, file], 1, &[there, "; --overwrite replaces it"]);
    for elsewhere in [&["sg", "--to", file][..], &["play", ecg, "--to", file]] {
        let output = run(elsewhere);
        let said = text(&output.stderr);
        assert!(said.contains(there) && !said.contains("--overwrite"), "the option does not exist: {said}");
    }
    assert!(run(&["record", ecg, file, "--overwrite", "--duration", "1s"]).status.success());
    assert_eq!(fs::metadata(folder.path().join("once.sigmf-data")).unwrap().len(), 360 * 2);
}

#[test]
fn a_recording_has_its_name_with_and_without_an_extension() {
    let folder = tempfile::tempdir().unwrap();
    for (stream, written) in
        [("synth:?channels=1", "out.sigmf-meta"), ("synth:?channels=2", "many.sigmf-collection")]
    {
        let written = folder.path().join(written);
        let name = written.with_extension("");
        let output = run(&["record", stream, name.to_str().unwrap(), "--samples", "1000"]);
        let said = text(&output.stderr);
        assert!(said.contains(&format!("wrote {}\n", written.display())), "{said}");
        let about = |name: &Path| run(&["info", name.to_str().unwrap(), "--json"]);
        assert!(about(&name).status.success(), "{}", text(&about(&name).stderr));
        let said = |name| serde_json::from_slice::<Value>(&about(name).stdout).unwrap();
        assert_eq!(said(&name), said(&written));
        assert_eq!(said(&name)["samples"], 1000);
        let again =
            run(&["record", stream, name.to_str().unwrap(), "--samples", "10", "--overwrite", "--json"]);
        let again: Value = serde_json::from_slice(&again.stdout).unwrap();
        assert_eq!(again["file"], written.to_str().unwrap());
    }
}

#[test]
fn every_failure_ends_with_a_line_of_json_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.wav");
    for (arguments, status, says) in [
        (&["sg", "--rate", "fast"][..], 2, "invalid value 'fast' for '--rate <RATE>'"),
        (&["sg", "--frequency", "900k", "--rate", "1M"], 2, "frequency is 900000"),
        (&["play", missing.to_str().unwrap()], 1, "missing.wav"),
        (&["info", missing.to_str().unwrap()], 1, "missing.wav"),
        (&["save", "--last", "1s", missing.to_str().unwrap()], 1, "missing.wav"),
        (&["run", "missing.toml"], 1, "missing.toml"),
        (&["probe", "hello"], 2, "'hello': not a ticket"),
        (&["recv", "one", "two", "three"], 2, "three"),
        (&["cp", missing.to_str().unwrap(), "elsewhere"], 1, "missing.wav"),
    ] {
        let output = run(&[arguments, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stderr));
        let said = text(&output.stdout);
        let line: Value = serde_json::from_str(said.lines().last().unwrap_or_default()).unwrap();
        assert!(line["error"].as_str().is_some_and(|error| error.contains(says)), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments:?} tells it once: {said}");
    }
}

#[test]
fn samples_that_a_sink_refuses_are_not_called_sent() {
    let output = run(&["sg", "--to", "pipe:?format=cf32", "--samples", "1000"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("sent 0 samples per channel in 0 frames; "), "{said}");
    assert!(said.contains("the stream is i16 in 1 channel, but the sink expects cf32"), "{said}");
}

#[test]
fn a_source_without_samples_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let waiting = crate::support::Listener::record(&file, &["--idle-timeout", "3s"]);
    let (status, report, said) = waiting.finish();
    assert_eq!(status, Some(3), "{said}");
    let words = "waiting for the first sample from udp://127.0.0.1:0; the wait ends after 3s";
    assert_eq!(said.matches(words).count(), 1, "{said}");
    assert!(
        report["error"].as_str().is_some_and(|error| error.contains("nothing arrived for 3s")),
        "{report}"
    );

    let png = folder.path().join("x.png");
    let output = run(&["view", "udp://127.0.0.1:0", "--png", png.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert!(
        said.contains("waiting for the first sample from udp://127.0.0.1:0; the wait ends after 10s"),
        "{said}"
    );
}

#[test]
fn a_view_without_a_terminal_or_a_display_says_so() {
    let output = crate::support::grebe(&["view", "synth:"])
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let output = crate::support::finish(output);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("terminal"), "{}", text(&output.stderr));
}
