//! Lines of numbers, from and to other programs: over pipes, TCP and UDP.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Output, Stdio};

use crate::support::{finish, grebe, listening, run, text};
use grebe::recording::SampleFile;
use serde_json::Value;

/// Runs a command with that on its standard input.
fn fed(arguments: &[&str], input: &[u8]) -> Output {
    let mut child =
        grebe(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writing = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = finish(child);
    writing.join().unwrap();
    output
}

/// The channels' names and samples.
fn recorded(file: &Path) -> (Vec<String>, Vec<Vec<f64>>) {
    let mut recording = SampleFile::open(file).unwrap();
    let names = recording
        .description(0)
        .map_or(Vec::new(), |said| said.channels.iter().map(|channel| channel.name.clone()).collect());
    let (channels, length) = (recording.channels(), recording.len_samples());
    let block = recording.block(0, length as usize).unwrap();
    (names, (0..channels).map(|channel| block.channel::<f64>(channel).unwrap().into_owned()).collect())
}

#[test]
fn a_logger_that_goes_within_a_line_and_returns_leaves_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("tcp://{}", listener.local_addr().unwrap());
    let uri = format!("{place}?format=text&rate=1k&reconnect");
    let recorder = grebe(&["record", &uri, file.to_str().unwrap(), "--samples", "5", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for lines in [&b"a:1,b:2\na:3,b:4\na:5,b"[..], b"a:7,b:8\n\xff\xfe\0:\na:9,b:oh\na:10,b:11\na:12,b:13\n"]
    {
        let (mut logger, _) = listener.accept().unwrap();
        logger.write_all(lines).unwrap();
        logger.shutdown(Shutdown::Write).unwrap();
    }
    let output = finish(recorder);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains(&format!("{place} has gone; waiting for it\n")), "{said}");
    assert!(said.contains(&format!("{place} is there again, after ")), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lost = report["losses"]["network_samples"].as_u64().unwrap();
    assert_eq!(report["losses"]["bad_lines"].as_u64(), Some(2), "{report}");
    let (names, samples) = recorded(&file);
    assert_eq!(names, ["a", "b"]);
    assert_eq!(samples, [[1.0, 3.0, 7.0, 10.0, 12.0], [2.0, 4.0, 8.0, 11.0, 13.0]]);
    let segments: Vec<(u64, u64)> = SampleFile::open(&file)
        .unwrap()
        .segments()
        .iter()
        .map(|it| (it.first_sample_index, it.length_samples))
        .collect();
    assert!(lost >= 1 && segments == [(0, 2), (2 + lost, 3)], "{segments:?}");
}

#[test]
fn lines_of_another_program_are_recorded_and_come_out_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let path = file.to_str().unwrap();
    let lines: String = (0..5_000).map(|at| format!("{},{}\r\n", at as f64 / 8.0, -at)).collect();
    let input = format!("temp,\"x, y\"\r\n{lines}nonsense,1\r\n");
    let output = fed(&["record", "pipe:?format=text&rate=100", path, "--json"], input.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["losses"]["bad_lines"].as_u64(), Some(1), "{report}");
    let (names, samples) = recorded(&file);
    assert_eq!(names, ["temp", "x, y"]);
    assert_eq!(samples[0].len(), 5_000);
    assert!((0..5_000).all(|at| samples[0][at] == at as f64 / 8.0 && samples[1][at] == -(at as f64)));
    assert_eq!(SampleFile::open(&file).unwrap().rate_hz(), Some(100.0));

    // The output is what another program would read, and reads back the same.
    let played = run(&["play", path, "--free-run", "--to", "pipe:?format=text"]);
    assert_eq!(played.status.code(), Some(0), "{}", text(&played.stderr));
    let written = text(&played.stdout);
    assert!(written.starts_with("temp,\"x, y\"\n0.0,0.0\n0.125,-1.0\n"), "{}", &written[..60]);
    let again = folder.path().join("y.sigmf-meta");
    let output = fed(&["record", "pipe:?format=text", again.to_str().unwrap()], &played.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(recorded(&again), (names, samples));
}

#[test]
fn a_column_of_times_makes_the_rate_and_the_gaps_and_goes_out_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let path = file.to_str().unwrap();
    let step = |at: u64| if at < 600 { at } else { at + 25 };
    let input: String = (0..1_000).map(|at| format!("t:{} a:{at}\n", 7_000 + step(at) * 4)).collect();
    let output = fed(&["record", "pipe:?format=text&time=t:ms&as=i32", path], input.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut recording = SampleFile::open(&file).unwrap();
    assert_eq!(recording.rate_hz(), Some(250.0));
    let segments: Vec<(u64, u64)> =
        recording.segments().iter().map(|it| (it.first_sample_index, it.length_samples)).collect();
    assert_eq!(segments, [(0, 600), (625, 400)]);
    let block = recording.block(600, 1).unwrap();
    assert_eq!(block.channel::<i32>(0).unwrap()[0], 600);
    let played = run(&["play", path, "--free-run", "--to", "pipe:?format=text&time"]);
    let written = text(&played.stdout);
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!((lines[0], lines[1], lines[2]), ("time_s,a", "0.0,0", "0.004,1"));
    assert_eq!((lines.len(), lines[600], lines[601]), (1_001, "2.396,599", "2.5,600"));
}

#[test]
fn tcp_and_udp_carry_lines() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let uri = "tcp://127.0.0.1:0?format=text&rate=50&listen";
    let (recorder, address, _stderr) = listening(&["record", uri, file.to_str().unwrap()]);
    let mut to = TcpStream::connect(&address).unwrap();
    for at in 0..300 {
        write!(to, "a={at}; b={}", at * 2).unwrap();
        to.write_all(b"\n").unwrap();
    }
    drop(to);
    assert_eq!(finish(recorder).status.code(), Some(0));
    let expected: Vec<Vec<f64>> =
        [1.0, 2.0].map(|factor| (0..300).map(|at| f64::from(at) * factor).collect()).to_vec();
    assert_eq!(recorded(&file), (vec!["a".to_owned(), "b".to_owned()], expected.clone()));

    // The other way round.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("tcp://{}?format=text", listener.local_addr().unwrap());
    let player = grebe(&["play", file.to_str().unwrap(), "--free-run", "--to", &uri]).spawn().unwrap();
    let mut written = String::new();
    listener.accept().unwrap().0.read_to_string(&mut written).unwrap();
    assert_eq!(finish(player).status.code(), Some(0));
    assert_eq!((written.lines().count(), written.lines().next()), (301, Some("a,b")));

    // A datagram ends its last line, and an empty one the stream.
    let file = folder.path().join("y.sigmf-meta");
    let uri = "udp://127.0.0.1:0?format=text&rate=50&channels=a,b";
    let (recorder, address, _stderr) = listening(&["record", uri, file.to_str().unwrap()]);
    let [socket, stranger] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    stranger.send_to(&[], &address).unwrap();
    for pair in (0..300).collect::<Vec<_>>().chunks(3) {
        let lines: Vec<String> = pair.iter().map(|at| format!("a:{at},b:{},c:7", at * 2)).collect();
        socket.send_to(lines.join("\n").as_bytes(), &address).unwrap();
        // An empty datagram of a stranger ends nothing.
        stranger.send_to(&[], &address).unwrap();
    }
    socket.send_to(&[], &address).unwrap();
    assert_eq!(finish(recorder).status.code(), Some(0));
    assert_eq!(recorded(&file).1, expected);
}

#[test]
fn a_change_of_channels_ends_a_recording_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let path = file.to_str().unwrap();
    let lines = "a:1\n".repeat(8) + "a:2\nb:3\n";
    let output = fed(&["record", "pipe:?format=text", path], lines.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("changed from 1 channel of f64") && said.contains("to 2 channels"), "{said}");
    assert_eq!(recorded(&file).1, [[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0]]);
    let named = "pipe:?format=text&channels=a,b&as=f64";
    let output = fed(&["record", named, path, "--overwrite"], b"a:1\na:2\nb:3\n");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let (names, samples) = recorded(&file);
    assert_eq!((names, &samples[0]), (vec!["a".to_owned(), "b".to_owned()], &vec![1.0, 2.0, 2.0]));
    assert!(samples[1][1].is_nan() && samples[1][2] == 3.0);
}

#[test]
fn a_picture_is_drawn_from_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let png = folder.path().join("x.png");
    let input: String = (0..2_000).map(|at| format!("sine:{}\n", (f64::from(at) * 0.01).sin())).collect();
    let arguments = ["view", "pipe:?format=text&rate=1k", "--png", png.to_str().unwrap()];
    let output = fed(&arguments, input.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn errors_say_what_to_do() {
    for (arguments, status, says) in [
        (&["sg", "--samples", "10", "--to", "udp://127.0.0.1:9?format=text"][..], 2, "go out through pipe:"),
        (&["record", "pipe:?format=text&as=cf32", "x.sigmf-meta"], 2, "give i8, u8, i16"),
        (&["record", "serial:", "x.sigmf-meta"], 2, "names no port"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(status), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));
    }
    let nothing = fed(&["record", "pipe:?format=text", "/tmp/never-made.sigmf-meta"], b"hello\nthere\n");
    assert_eq!(nothing.status.code(), Some(1));
    let said = text(&nothing.stderr);
    assert!(said.contains("2 lines were not numbers, such as 'hello'"), "{said}");
    assert!(text(&nothing.stderr).contains("no sample was recorded"), "{}", text(&nothing.stderr));
}
