//! Samples without headers, from and to other programs: over pipes, TCP and UDP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{data, finish, free_port, grebe, listening, run, text, until_listening};
use grebe::recording::SampleFile;

fn bytes(count: usize) -> Vec<u8> {
    (0..count as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[test]
fn raw_samples_from_a_pipe_are_recorded_and_played_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = bytes(1_000_003);
    for (format, name) in [("cu8", "a"), ("cf32be&channels=3", "b"), ("i24&channels=2", "c")] {
        let file = folder.path().join(name).with_extension("sigmf-meta");
        let uri = format!("pipe:?format={format}&rate=2.4M&frequency=433.92M");
        let mut recorder = grebe(&["record", &uri, file.to_str().unwrap()])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        recorder.stdin.take().unwrap().write_all(&bytes).unwrap();
        let output = finish(recorder);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let recording = SampleFile::open(&file).unwrap();
        assert_eq!(recording.rate_hz(), Some(2.4e6));
        assert_eq!(recording.description(0).unwrap().centre_frequency_hz, Some(433.92e6));
        let played =
            run(&["play", file.to_str().unwrap(), "--free-run", "--to", &format!("pipe:?format={format}")]);
        assert_eq!(played.status.code(), Some(0), "{}", text(&played.stderr));
        let whole = bytes.len() / recording.channels() / file_bytes(format)
            * recording.channels()
            * file_bytes(format);
        assert!(played.stdout == bytes[..whole], "{format}: {} of {}", played.stdout.len(), bytes.len());
    }
}

fn file_bytes(format: &str) -> usize {
    match &format[..3] {
        "cu8" => 2,
        "i24" => 3,
        _ => 8,
    }
}

#[test]
fn tcp_carries_samples_whoever_listens() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let bytes = bytes(3_000_000);
    let uri = "tcp://127.0.0.1:0?format=ci16&rate=1M&listen";
    let (recorder, address, mut stderr) = listening(&["record", uri, file.to_str().unwrap()]);
    let mut to = TcpStream::connect(&address).unwrap();
    to.write_all(&bytes).unwrap();
    drop(to);
    let status = finish(recorder).status.code();
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(status, Some(0), "{said}");
    assert!(data(&file) == bytes);

    // The other way round: the command connects.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("tcp://{}?format=ci16", listener.local_addr().unwrap());
    let player = grebe(&["play", file.to_str().unwrap(), "--free-run", "--to", &uri])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut played = Vec::new();
    listener.accept().unwrap().0.read_to_end(&mut played).unwrap();
    assert_eq!(finish(player).status.code(), Some(0));
    assert!(played == bytes);
}

#[test]
fn a_reader_that_goes_away_ends_a_sender_in_order() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("tcp://{}?format=i16", listener.local_addr().unwrap());
    let sender = grebe(&["sg", "--rate", "10M", "--to", &uri]).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_exact(&mut [0; 100_000]).unwrap();
    stream.shutdown(Shutdown::Both).unwrap();
    drop(stream);
    let output = finish(sender);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn numbered_datagrams_show_what_was_lost_and_unnumbered_ones_say_that_they_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let uri = "udp://127.0.0.1:0?format=i16be&channels=2&rate=1M&skip=8&seq=2:u32be";
    // 100 datagrams of 50 samples: 30, 31, 32 and 70 are never sent, and 90 follows 91.
    let (lost, samples) = ([30, 31, 32, 70], 50);
    let arguments = ["record", uri, file.to_str().unwrap(), "--json", "--samples", "4750"];
    let (recorder, address, mut stderr) = listening(&arguments);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let value = |index: u32, channel: u32| (index * 2 + channel) as i16;
    let send = |number: u32| {
        let mut datagram = vec![0xee; 8];
        datagram[2..6].copy_from_slice(&number.wrapping_sub(5).to_be_bytes());
        for sample in number * samples..(number + 1) * samples {
            (0..2).for_each(|channel| datagram.extend(value(sample, channel).to_be_bytes()));
        }
        socket.send_to(&datagram, &address).unwrap();
    };
    let order = (0..90).chain([91, 90]).chain(92..100);
    order.filter(|number| !lost.contains(number)).for_each(send);
    let output = finish(recorder);
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["losses"]["network_samples"].as_u64(), Some(5 * u64::from(samples)), "{report} {said}");
    assert_eq!(report["losses"]["late_frames"], 1, "{report}");
    let mut recording = SampleFile::open(&file).unwrap();
    let segments: Vec<(u64, u64)> =
        recording.segments().iter().map(|it| (it.first_sample_index, it.length_samples)).collect();
    assert_eq!(segments, [(0, 1_500), (1_650, 1_850), (3_550, 950), (4_550, 450)]);
    let block = recording.block(1_500, 1).unwrap();
    assert_eq!(block.channel::<i16>(1).unwrap()[0], value(1_650, 1));

    let plain = "udp://127.0.0.1:0?format=u8";
    let file = folder.path().join("y.sigmf-meta");
    let mut recorder = grebe(&["record", plain, file.to_str().unwrap(), "--samples", "10"]);
    let (child, said, _stderr) = until_listening(&mut recorder);
    assert!(said.contains("losses on the network cannot be seen"), "{said}");
    let address = said.split("listening on ").nth(1).unwrap().trim();
    socket.send_to(&[7; 10], address).unwrap();
    assert_eq!(finish(child).status.code(), Some(0));
    assert_eq!(data(&file), [7; 10]);
}

/// Sends `share` of a device's samples for `seconds`. Nothing goes out for 1.5 s in the middle, and all of that afterwards.
/// Returns the number of samples not sent.
fn device(listener: &TcpListener, rate_hz: f64, seconds: f64, share: f64) -> u64 {
    let (mut stream, _) = listener.accept().unwrap();
    let began = Instant::now();
    let mut sent = 0;
    loop {
        let now_s = began.elapsed().as_secs_f64().min(seconds);
        let is_paused = (2.0..3.5).contains(&now_s);
        let due = (now_s * rate_hz * share) as u64;
        if due > sent && !is_paused {
            stream.write_all(&vec![7; (due - sent) as usize]).unwrap();
            sent = due;
        }
        if now_s >= seconds {
            return (rate_hz * seconds) as u64 - sent;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn missing_samples_are_found_by_the_clock() {
    for share in [0.8, 1.0] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.sigmf-meta");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("tcp://{}?format=u8&rate=100k", listener.local_addr().unwrap());
        let recorder = grebe(&["record", &uri, file.to_str().unwrap(), "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lost = device(&listener, 100e3, 8.0, share);
        let output = finish(recorder);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let told = report["losses"]["clock_samples"].as_u64().unwrap();
        let recording = SampleFile::open(&file).unwrap();
        let labels = recording
            .annotations()
            .iter()
            .filter(|it| it.fields["core:label"].to_string().contains("by the clock"));
        if share == 1.0 {
            assert_eq!((told, labels.count()), (0, 0), "{report}");
        } else {
            // Losses in the first second do not count, nor while this machine stalls.
            assert!((lost / 4..=lost + lost / 16).contains(&told), "{told} of {lost}: {report}");
            assert!(labels.count() > 0);
        }
    }
}

#[test]
fn an_empty_datagram_ends_the_stream_of_its_sender_and_of_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let uri = "udp://127.0.0.1:0?format=u8&rate=1k";
    let (recorder, address, _stderr) = listening(&["record", uri, file.to_str().unwrap(), "--json"]);
    let [first, second, stranger] = [(); 3].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let send = |from: &UdpSocket, bytes: &[u8]| assert!(from.send_to(bytes, &address).is_ok());
    let silence = || std::thread::sleep(Duration::from_millis(700));
    send(&stranger, &[]);
    send(&first, &[1; 10]);
    silence();
    send(&stranger, &[]);
    // The other takes the port over, while the first still sends.
    send(&second, &[2; 10]);
    send(&first, &[9; 10]);
    send(&second, &[]);
    send(&first, &[3; 10]);
    send(&first, &[]);
    let output = finish(recorder);
    assert_eq!(output.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["losses"]["foreign_datagrams"], 3, "{report}");
    assert_eq!(data(&file), [[1; 10], [2; 10], [3; 10]].concat());
}

#[test]
fn bytes_of_an_incomplete_sample_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    for json in [true, false] {
        let mut arguments =
            vec!["record", "udp://127.0.0.1:0?format=i16", file.to_str().unwrap(), "--overwrite"];
        arguments.extend(json.then_some("--json"));
        let (recorder, address, mut stderr) = listening(&arguments);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for datagram in [&[1; 5][..], &[2; 4], &[3; 1], &[4; 7], &[]] {
            socket.send_to(datagram, &address).unwrap();
        }
        let output = finish(recorder);
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        if json {
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(report["losses"]["odd_bytes"], 3, "{report}");
            assert_eq!(report["losses"]["short_datagrams"], 1, "{report}");
        } else {
            assert!(said.contains("3 bytes of incomplete samples dropped"), "{said}");
        }
        assert_eq!(data(&file).len(), 14);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn kernel_drops_are_reported_where_numbers_show_too_little() {
    let folder = tempfile::tempdir().unwrap();
    for number in ["", "&seq=0:u8"] {
        let file = folder.path().join("x.sigmf-meta");
        let uri = format!("udp://127.0.0.1:0?format=u8{number}");
        let mut recorder = grebe(&["record", &uri, file.to_str().unwrap(), "--json", "--overwrite"]);
        let (recorder, said, mut stderr) = until_listening(&mut recorder);
        assert!(said.contains(" cannot be seen"), "{said}");
        let address = said.rsplit("listening on ").next().unwrap().trim().to_owned();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut datagram = vec![0; 60_000];
        let mut send = |count: u8| {
            for at in 0..count {
                datagram[0] = at;
                socket.send_to(&datagram, &address).unwrap();
            }
        };
        send(3);
        crate::support::signal("-STOP", recorder.id());
        // 240 MB: more than any buffer that it is granted.
        (0..16).for_each(|_| send(250));
        crate::support::signal("-CONT", recorder.id());
        std::thread::sleep(Duration::from_millis(1_500));
        send(3);
        socket.send_to(&[], &address).unwrap();
        let output = finish(recorder);
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report["losses"]["kernel_drops"].as_u64() > Some(0), "{number}: {report}");
        assert_eq!(report["losses"]["unseen"], true, "{number}: {report}");
    }
}

#[test]
fn raw_datagrams_go_out_as_they_come_in() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let query = "format=f32&channels=4&interleave=block&seq=0:u16";
    let uri = format!("udp://127.0.0.1:0?{query}&rate=1M");
    // It ends with its sender.
    let (recorder, address, _stderr) = listening(&["record", &uri, file.to_str().unwrap()]);
    let to = format!("udp://{address}?{query}");
    let wave = ["--wave", "saw,sine,square,noise", "--format", "f32", "--channels", "4"];
    let sender = run(&[&["sg", "--rate", "1M", "--samples", "20000", "--to", &to][..], &wave].concat());
    assert_eq!(sender.status.code(), Some(0), "{}", text(&sender.stderr));
    assert_eq!(finish(recorder).status.code(), Some(0));
    let reference = folder.path().join("y.sigmf-meta");
    let generator = "synth:saw,sine,square,noise?format=f32&channels=4&rate=1M&samples=20000";
    assert_eq!(run(&["record", generator, reference.to_str().unwrap()]).status.code(), Some(0));
    let mut both = [&file, &reference].map(|path| SampleFile::open(path).unwrap());
    let [sent, made] = both.each_mut().map(|file| file.block(0, 20_000).unwrap());
    for channel in 0..4 {
        assert!(sent.channel_bytes(channel).unwrap() == made.channel_bytes(channel).unwrap(), "{channel}");
    }
}

#[test]
fn errors_say_what_to_do() {
    for (arguments, says) in [
        (
            &["record", "tcp://127.0.0.1:1?format=i16", "x.sigmf-meta"][..],
            "cannot connect to tcp://127.0.0.1:1",
        ),
        (&["record", "tcp://127.0.0.1:1", "x.sigmf-meta"], "add format="),
        (
            &["sg", "--samples", "10", "--to", "pipe:?format=cf32"],
            "the stream is i16 in 1 channel, but the sink expects cf32 in 1 channel",
        ),
    ] {
        let output = run(arguments);
        assert_ne!(output.status.code(), Some(0));
        assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));
    }
}

#[test]
fn reconnect_waits_for_a_missing_peer() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let address = format!("127.0.0.1:{}", free_port());
    let uri = format!("tcp://{address}?format=i16&rate=1k");
    let output =
        finish(grebe(&["record", &uri, file.to_str().unwrap()]).stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!(output.status.code(), Some(1), "without reconnect: {}", text(&output.stderr));
    let uri = format!("{uri}&reconnect");
    let mut recorder = grebe(&["record", &uri, file.to_str().unwrap(), "--samples", "500"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(recorder.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert!(said.ends_with("; waiting for it\n"), "{said}");
    let (mut sending, _) = TcpListener::bind(address).unwrap().accept().unwrap();
    sending.write_all(&bytes(1_000)).unwrap();
    assert_eq!(finish(recorder).status.code(), Some(0));
    assert_eq!(data(&file), bytes(1_000));
}
