//! Networks that lose, repeat and reorder; senders that send garbage; processes that are killed.

mod pipes;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Listener, example, finish, grebe, text};
use grebe::frame::{Frame, HEADER_BYTES, Header, Refusal};
#[cfg(unix)]
use grebe::recording::SampleFile;
use serde_json::Value;

/// A small generator of its own: the test's faults must not depend on a library's version.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Actions of the network, in the order of delivery.
struct Delivered {
    datagrams: Vec<Vec<u8>>,
}

/// Passes datagrams on from `from` to `to`, loses 1 %, repeats 1 %, delays 2 % by a few datagrams; ends with the stream.
fn damage(from: &UdpSocket, to: &str, seed: u64) -> Delivered {
    let (mut dice, out) = (Dice(seed), UdpSocket::bind("127.0.0.1:0").unwrap());
    let (mut delivered, mut held) = (Vec::new(), Vec::<(u64, Vec<u8>)>::new());
    let mut deliver = |datagram: &[u8]| {
        out.send_to(datagram, to).unwrap();
        delivered.push(datagram.to_vec());
    };
    let mut buffer = [0; 65_536];
    for turn in 0u64.. {
        let bytes = match from.recv(&mut buffer) {
            // A host that was suspended cuts off a wait with a timeout.
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            bytes => bytes.expect("the stream has an end"),
        };
        let datagram = &buffer[..bytes];
        let header = match Header::parse_datagram(datagram) {
            Ok(header) => header,
            // The description of the stream, which the network of this test does not touch.
            Err(Refusal::Description) => {
                out.send_to(datagram, to).unwrap();
                continue;
            }
            Err(reason) => panic!("{reason}"),
        };
        if header.is_end_of_stream() {
            held.drain(..).for_each(|(_, datagram)| deliver(&datagram));
            deliver(datagram);
            break;
        }
        match dice.roll(100) {
            0 => {}
            1 => {
                deliver(datagram);
                deliver(datagram);
            }
            2 | 3 => held.push((turn + 1 + dice.roll(4), datagram.to_vec())),
            _ => deliver(datagram),
        }
        held.retain(|(due, datagram)| {
            if *due <= turn {
                deliver(datagram);
            }
            *due > turn
        });
    }
    Delivered { datagrams: delivered }
}

/// The expected recording: captures (file index, stream index), bytes, and counts.
#[derive(Debug, Default, PartialEq)]
struct Expected {
    captures: Vec<(u64, u64)>,
    data: Vec<u8>,
    lost_frames: u64,
    late_frames: u64,
    duplicate_frames: u64,
}

fn model(delivered: &Delivered) -> Expected {
    let mut expected = Expected::default();
    let mut frames = BTreeMap::new();
    for datagram in &delivered.datagrams {
        let frame = Frame::parse(datagram).unwrap();
        let is_again = frames.insert(frame.header().sequence, frame).is_some();
        expected.duplicate_frames += u64::from(is_again);
    }
    // Delayed by a few frames at most: all of it is put in order.
    let (mut next, mut next_index) = (None, 0);
    for (&sequence, frame) in &frames {
        let header = frame.header();
        expected.lost_frames += next.map_or(0, |next| sequence - next);
        if !header.is_end_of_stream() {
            if next.is_none() || header.first_sample_index != next_index {
                expected.captures.push((expected.data.len() as u64 / 2, header.first_sample_index));
            }
            expected.data.extend_from_slice(frame.payload());
        }
        next = Some(sequence + 1);
        next_index = header.next_sample_index();
    }
    expected
}

fn captures(meta: &Path) -> Vec<(u64, u64)> {
    let meta: Value = serde_json::from_slice(&fs::read(meta).unwrap()).unwrap();
    let number = |capture: &Value, name: &str| capture[name].as_u64().unwrap();
    let captures = meta["captures"].as_array().unwrap().iter();
    captures
        .map(|capture| (number(capture, "core:sample_start"), number(capture, "core:global_index")))
        .collect()
}

#[test]
fn the_faults_of_a_bad_network_are_in_the_recording() {
    for seed in [1, 20_261, 77_777] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bad.sigmf-meta");
        let recorder = Listener::record(&file, &["--latency", "200ms"]);
        let network = UdpSocket::bind("127.0.0.1:0").unwrap();
        network.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let via = format!("udp://{}", network.local_addr().unwrap());
        let ecg = example("ecg.sigmf-meta");
        let player =
            grebe(&["play", ecg.to_str().unwrap(), "--to", &via, "--speed", "100", "--datagram-size", "192"])
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
        let delivered = damage(&network, &recorder.address, seed);
        assert!(finish(player).status.success());
        let (status, report, said) = recorder.finish();
        assert_eq!(status, Some(0), "{said}");
        let count = |name: &str| report["losses"][name].as_u64().unwrap();
        let recorded = Expected {
            captures: captures(&file),
            data: fs::read(folder.path().join("bad.sigmf-data")).unwrap(),
            lost_frames: count("network_frames"),
            late_frames: count("late_frames"),
            duplicate_frames: count("duplicate_frames"),
        };
        let expected = model(&delivered);
        let number = |datagram: &Vec<u8>| Frame::parse(datagram).unwrap().header().sequence;
        let swapped =
            delivered.datagrams.windows(2).filter(|pair| number(&pair[0]) > number(&pair[1])).count();
        assert!(expected.captures.len() > 5 && swapped > 5, "the network was too good to test anything");
        assert_eq!(recorded.captures, expected.captures, "seed {seed}");
        assert!(recorded == expected, "other samples, or other counts: seed {seed}");
    }
}

/// A good stream of one channel by hand: `frames` frames of 64 samples and the end.
fn stream(frames: u64) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut data = Vec::new();
    let mut header =
        Header { channel_count: 1, block_length_samples: 64, sample_rate_hz: 1e3, ..Header::default() };
    let mut datagrams = Vec::new();
    for sequence in 0..frames {
        header =
            Header { sequence, producer_ts_ns: sequence + 1, first_sample_index: sequence * 64, ..header };
        let mut datagram = vec![0; HEADER_BYTES];
        header.write(datagram.first_chunk_mut().unwrap());
        for sample in 0..64 {
            datagram.extend((sequence as i16 * 3 + sample).to_le_bytes());
        }
        data.extend_from_slice(&datagram[HEADER_BYTES..]);
        datagrams.push(datagram);
    }
    let mut end = vec![0; HEADER_BYTES];
    header.end_of_stream(frames + 1).write(end.first_chunk_mut().unwrap());
    datagrams.push(end);
    (datagrams, data)
}

#[test]
fn garbage_is_counted_by_reason_and_changes_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clean.sigmf-meta");
    let recorder = Listener::record(&file, &[]);
    let (good, bad) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let (datagrams, data) = stream(40);
    let damaged = |at: usize, value: u8| {
        let mut datagram = datagrams[0].clone();
        datagram[36..40].fill(0);
        datagram[at] = value;
        datagram
    };
    let mut long = datagrams[0].clone();
    long.push(0);
    let mut wrong_crc = datagrams[0].clone();
    wrong_crc[8] ^= 1;
    let mut negative_rate = damaged(0, b'G');
    negative_rate[40..48].copy_from_slice(&(-1f64).to_le_bytes());
    let garbage: [(&str, Vec<u8>); 12] = [
        ("short", vec![7; 20]),
        ("magic", vec![0x5a; 300]),
        ("header_bytes", damaged(4, 65)),
        ("channel_count", damaged(24, 0)),
        ("sample_format", damaged(25, 10)),
        ("kind", damaged(26, 2)),
        ("description", damaged(26, 1)),
        ("payload_bytes", damaged(32, 1)),
        ("truncated", datagrams[0][..100].to_vec()),
        ("trailing", long),
        ("crc", wrong_crc),
        ("rate", negative_rate),
    ];
    for (turn, datagram) in datagrams.iter().enumerate() {
        if turn > 0 {
            let (_, bytes) = &garbage[turn % garbage.len()];
            bad.send_to(bytes, &recorder.address).unwrap();
        }
        good.send_to(datagram, &recorder.address).unwrap();
    }
    let (status, report, said) = recorder.finish();
    assert_eq!(status, Some(0), "{said}");
    for (position, (reason, _)) in garbage.iter().enumerate() {
        let sent = (1..datagrams.len()).filter(|turn| turn % garbage.len() == position).count() as u64;
        assert_eq!(report["refused_datagrams"][reason].as_u64(), Some(sent), "{reason}: {report}");
    }
    assert_eq!(fs::read(folder.path().join("clean.sigmf-data")).unwrap(), data);
    assert_eq!(
        (report["samples"].as_u64(), report["losses"]["network_frames"].as_u64()),
        (Some(40 * 64), Some(0))
    );
}

#[test]
fn another_sender_is_counted_and_not_mixed_in() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ours.sigmf-meta");
    let recorder = Listener::record(&file, &[]);
    let (ours, theirs) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let (datagrams, data) = stream(10);
    for datagram in &datagrams {
        ours.send_to(datagram, &recorder.address).unwrap();
        if datagram.len() > HEADER_BYTES {
            theirs.send_to(&datagrams[3], &recorder.address).unwrap();
        }
    }
    let (status, report, said) = recorder.finish();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(report["losses"]["foreign_datagrams"].as_u64(), Some(10));
    assert_eq!(fs::read(folder.path().join("ours.sigmf-data")).unwrap(), data);
}

#[test]
fn the_end_of_a_takeover_does_not_end_the_recording_of_the_first_sender() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("both.sigmf-meta");
    let recorder = Listener::record(&file, &[]);
    let (first, second) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let send = |from: &UdpSocket, datagrams: &[Vec<u8>]| {
        datagrams.iter().for_each(|it| assert!(from.send_to(it, &recorder.address).is_ok()));
    };
    let (ours, theirs) = (stream(20).0, stream(10).0);
    send(&first, &ours[..5]);
    std::thread::sleep(Duration::from_millis(700));
    send(&second, &theirs[..10]);
    // Ignored: the port now belongs to the other, whose end follows.
    send(&first, &ours[5..6]);
    send(&second, &theirs[10..]);
    // Not read together with that end.
    std::thread::sleep(Duration::from_millis(150));
    send(&first, &ours[6..]);
    let (status, report, said) = recorder.finish();
    assert_eq!(status, Some(0), "{said}");
    // The same samples of the same clock are recorded once.
    assert_eq!(report["samples"].as_u64(), Some(20 * 64), "{report} {said}");
}

#[test]
fn a_sender_that_falls_silent_ends_the_recording_with_a_status_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("silent.sigmf-meta");
    let recorder = Listener::record(&file, &["--idle-timeout", "300ms"]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (datagrams, data) = stream(5);
    for datagram in &datagrams[..5] {
        socket.send_to(datagram, &recorder.address).unwrap();
    }
    let (status, _, said) = recorder.finish();
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("no sender is there, or it is gone"), "{said}");
    assert_eq!(fs::read(folder.path().join("silent.sigmf-data")).unwrap(), data, "what had arrived is good");
}

/// The recording after these signals has everything that was sent, and is closed.
#[cfg(unix)]
fn is_whole_after(signals: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("int.sigmf-meta");
    let recorder = Listener::record(&file, &[]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (datagrams, data) = stream(20);
    for datagram in &datagrams[..20] {
        socket.send_to(datagram, &recorder.address).unwrap();
    }
    // Until the recorder has taken them: the file is created with the first.
    while !file.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    signals.iter().for_each(|signal| crate::support::signal(signal, recorder.id()));
    let (status, report, said) = recorder.finish();
    assert_eq!(status, Some(130), "{said}");
    assert_eq!(report["samples"].as_u64(), Some(20 * 64), "{signals:?}: {said}");
    assert_eq!(fs::read(folder.path().join("int.sigmf-data")).unwrap(), data);
    assert!(SampleFile::open(&file).unwrap().notes().is_empty(), "closed in order");
}

#[cfg(unix)]
#[test]
fn an_interrupted_recording_is_whole() {
    is_whole_after(&["-INT"]);
}

#[cfg(unix)]
#[test]
fn a_recording_whose_terminal_is_closed_is_whole() {
    // Under nohup the recorder would ignore it. A signal with a handler here has its default action in child
    // processes.
    signal_hook::flag::register(signal_hook::consts::SIGHUP, std::sync::Arc::default()).unwrap();
    // From the system, which takes the terminal away, from the shell, and from the system again when the shell has ended.
    is_whole_after(&["-HUP", "-HUP", "-HUP"]);
}

#[cfg(unix)]
#[test]
fn a_killed_recorder_leaves_its_written_samples() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("killed.sigmf-meta");
    let recorder = Listener::record(&file, &[]);
    let generator = grebe(&["sg", "--rate", "2M", "--wave", "saw", "--to", &recorder.uri()])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while SampleFile::open(&file).map_or(0, |recording| recording.len_samples()) < 2 << 20 {
        std::thread::sleep(Duration::from_millis(10));
    }
    crate::support::signal("-KILL", recorder.id());
    drop(recorder);
    crate::support::signal("-INT", generator.id());
    assert_eq!(finish(generator).status.code(), Some(130));
    let mut recording = SampleFile::open(&file).unwrap();
    assert!(recording.len_samples() >= 2 << 20);
    let block = recording.block(0, 10_000).unwrap();
    // The default saw has a period of 2500 samples.
    let samples = block.channel::<i16>(0).unwrap();
    assert_eq!(samples[..2500], samples[2500..5000]);
    assert!(samples[..2500].windows(2).all(|pair| pair[0] <= pair[1]));
}

#[cfg(unix)]
#[test]
fn a_generator_ends_with_its_owner() {
    let mut generator = grebe(&["sg", "--tethered", "--rate", "1k", "--to", "udp://127.0.0.1:9"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(generator.try_wait().unwrap().is_none(), "it runs while the tether holds");
    drop(generator.stdin.take());
    assert_eq!(finish(generator).status.code(), Some(130));
}

/// As `nohup` starts it.
#[cfg(target_os = "linux")]
#[test]
fn a_recorder_started_with_nohup_outlives_its_terminal() {
    use std::io::{BufRead, BufReader};

    let folder = tempfile::tempdir().unwrap();
    let grebe = env!("CARGO_BIN_EXE_grebe");
    let line = format!("trap '' HUP; exec '{grebe}' record udp://127.0.0.1:0 x.sigmf-meta");
    let mut shell = std::process::Command::new("sh");
    let mut recorder = shell.args(["-c", &line]).current_dir(&folder).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(recorder.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().starts_with("listening on ")));
    crate::support::signal("-HUP", recorder.id());
    std::thread::sleep(Duration::from_millis(500));
    assert!(recorder.try_wait().unwrap().is_none(), "the terminal is gone, and it runs");
    crate::support::signal("-INT", recorder.id());
    assert_eq!(finish(recorder).status.code(), Some(130));
}

#[test]
fn a_sender_that_begins_again_is_another_segment_with_a_label() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("twice.sigmf-meta");
    let recorder = Listener::record(&file, &[]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (datagrams, data) = stream(6);
    datagrams[..6].iter().for_each(|datagram| assert!(socket.send_to(datagram, &recorder.address).is_ok()));
    for datagram in &datagrams {
        // The same stream again, later by its producer's clock.
        let mut again = datagram.clone();
        let mut header = Header::parse_datagram(&again).unwrap();
        header.producer_ts_ns += 1_000_000;
        header.write(again.first_chunk_mut().unwrap());
        socket.send_to(&again, &recorder.address).unwrap();
    }
    let (status, report, said) = recorder.finish();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(report["losses"]["network_frames"].as_u64(), Some(0));
    assert_eq!(captures(&file), [(0, 0), (6 * 64, 0)]);
    let meta: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(meta["annotations"][0]["core:sample_start"].as_u64(), Some(6 * 64), "{meta}");
    let recorded = fs::read(folder.path().join("twice.sigmf-data")).unwrap();
    assert_eq!(recorded, [data.clone(), data].concat());
}
