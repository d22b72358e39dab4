//! VITA-49 and DIFI packets, between commands with losses in between, and as another program sees them.

use std::io::Read;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Good, finish, listening, run, text};
use grebe::recording::SampleFile;

/// Takes what a sender sends, to the empty datagram that ends the stream.
fn taken(socket: &UdpSocket) -> Vec<Vec<u8>> {
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let (mut datagrams, mut bytes) = (Vec::new(), vec![0; 65_536]);
    loop {
        match socket.recv(&mut bytes).unwrap() {
            0 => return datagrams,
            length => datagrams.push(bytes[..length].to_vec()),
        }
    }
}

/// Packets of `grebe sg` to `vrt://ADDRESS?query`, within 0.1 s: a smaller delay never drops any.
fn generated(query: &str, samples: &str) -> Vec<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = format!("vrt://{}?{query}", socket.local_addr().unwrap());
    let taker = std::thread::spawn(move || taken(&socket));
    let sent = run(&["sg", "--format", "ci16", "--rate", "200k", "--samples", samples, "--to", &to]);
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    taker.join().unwrap()
}

fn is_data(datagram: &[u8]) -> bool {
    datagram[0] >> 4 == 1
}

#[test]
fn losses_are_counted_to_the_sample_and_the_recording_has_them_where_they_were() {
    let folder = tempfile::tempdir().unwrap();
    for (name, query) in
        [("a", "time=utc"), ("b", "time=gps&profile=difi"), ("c", "time=samples&stream=0x1f")]
    {
        let datagrams = generated(query, "15000");
        let file = folder.path().join(name).with_extension("sigmf-meta");
        let recording = ["record", "vrt://127.0.0.1:0", file.to_str().unwrap(), "--json"];
        let (recorder, address, mut stderr) = listening(&recording);
        let mut said = String::new();
        // Twenty in a row: a count of four bits alone would tell of four.
        let is_lost = |number: usize| number == 5 || (10..30).contains(&number);
        let [socket, stranger] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let (mut number, mut lost, mut gaps) = (0, 0, Vec::new());
        // Empty datagrams of a stranger end nothing.
        stranger.send_to(&[], &address).unwrap();
        for datagram in &datagrams {
            let samples = if is_data(datagram) { (datagram.len() - prologue_bytes(datagram)) / 4 } else { 0 };
            if is_data(datagram) {
                if is_lost(number) {
                    lost += samples;
                    gaps.push(number * samples);
                } else {
                    socket.send_to(datagram, &address).unwrap();
                }
                number += 1;
            } else {
                socket.send_to(datagram, &address).unwrap();
            }
        }
        std::thread::sleep(Duration::from_millis(700));
        stranger.send_to(&[], &address).unwrap();
        socket.send_to(&[], &address).unwrap();
        let output = finish(recorder);
        stderr.read_to_string(&mut said).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            report["losses"]["network_samples"].as_u64(),
            Some(lost as u64),
            "{query}: {report} {said}"
        );
        assert_eq!(report["losses"]["network_frames"], 21, "{query}");
        assert_eq!(report["samples"].as_u64(), Some(15_000 - lost as u64), "{query}");
        let mut recording = SampleFile::open(&file).unwrap();
        assert_eq!(recording.rate_hz(), Some(200e3));
        let segments = recording.segments().to_vec();
        let begins: Vec<u64> = segments.iter().map(|it| it.first_sample_index).collect();
        assert_eq!(begins.len(), 3, "{query}");
        assert_eq!(begins[1] as usize, gaps[0] + (gaps[2] - gaps[1]), "{query}");
        // The same samples as those that the generator makes here.
        let made = folder.path().join("made.sigmf-meta");
        let synth = "synth:?format=ci16&rate=200k&samples=15000&channels=1";
        assert_eq!(run(&["record", synth, made.to_str().unwrap(), "--overwrite"]).status.code(), Some(0));
        let mut made = SampleFile::open(&made).unwrap();
        for segment in &segments {
            let length = segment.length_samples as usize;
            let there = recording.block(segment.position, length).unwrap();
            let here = made.block(segment.first_sample_index, length).unwrap();
            assert!(there.channel_bytes(0).unwrap() == here.channel_bytes(0).unwrap(), "{query}");
        }
        let info = run(&["info", file.to_str().unwrap()]);
        let flavour =
            if query.contains("difi") { "DIFI (class 6A-62-1E 0000:0000)" } else { "VITA-49 (no class)" };
        assert!(text(&info.stdout).contains(flavour), "{}", text(&info.stdout));
    }
}

/// Header, stream identifier, class identifier, times.
fn prologue_bytes(datagram: &[u8]) -> usize {
    let class = if datagram[0] & 8 == 0 { 0 } else { 8 };
    let seconds = if datagram[1] >> 6 == 0 { 0 } else { 4 };
    let fraction = if datagram[1] >> 4 & 3 == 0 { 0 } else { 8 };
    8 + class + seconds + fraction
}

#[test]
fn wireshark_reads_the_sent_packets() {
    let is_there = Command::new("tshark").arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !is_there.is_ok_and(|status| status.success()) {
        println!("skipped: tshark is not there to read VITA-49 packets");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.pcap");
    let datagrams = generated("profile=difi&stream=0xbeef", "5000");
    std::fs::write(&file, capture(&datagrams)).unwrap();
    let fields =
        ["vrt.type", "vrt.sid", "vrt.seq", "vrt.tsi", "vrt.tsf", "vrt.oui", "vrt.len", "_ws.malformed"];
    let mut arguments = vec!["-r", file.to_str().unwrap(), "-d", "udp.port==4991,vrt", "-T", "fields"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    let output = Command::new("tshark").args(arguments).output().unwrap().good();
    let read: Vec<Vec<String>> =
        text(&output.stdout).lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect();
    assert_eq!(read.len(), datagrams.len());
    let mut data_packets = 0;
    for (packet, datagram) in read.iter().zip(&datagrams) {
        let number = |at: usize| {
            let text: &str = &packet[at];
            let parsed =
                text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16));
            parsed.unwrap_or_else(|_| panic!("{}: {packet:?}", fields[at]))
        };
        assert_eq!(number(0), if is_data(datagram) { 1 } else { 4 }, "{packet:?}");
        assert_eq!((number(1), number(3), number(4)), (0xbeef, 1, 2), "{packet:?}");
        assert_eq!(number(6) as usize * 4, datagram.len(), "{packet:?}");
        assert_eq!(number(5), 0x6a_621e, "{packet:?}");
        assert!(packet.get(7).is_none_or(String::is_empty), "{packet:?}");
        if is_data(datagram) {
            assert_eq!(number(2), data_packets % 16, "{packet:?}");
            data_packets += 1;
        }
    }
    assert_eq!(data_packets, 15, "5,000 samples, 343 a packet");
}

/// A capture file of datagrams to port 4991.
fn capture(datagrams: &[Vec<u8>]) -> Vec<u8> {
    let mut file = [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat();
    for datagram in datagrams {
        let bytes = 28 + datagram.len() as u32;
        file.extend([0, 0, bytes, bytes].map(u32::to_le_bytes).concat());
        let mut ip = [0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1];
        ip[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
        file.extend(ip);
        let udp_bytes = 8 + datagram.len() as u16;
        file.extend([4_990u16, 4_991, udp_bytes, 0].map(u16::to_be_bytes).concat());
        file.extend(datagram);
    }
    file
}

#[test]
fn errors_say_what_to_do() {
    for (arguments, says) in [
        (
            &["sg", "--samples", "10", "--to", "vrt://127.0.0.1:9?profile=difi"][..],
            "DIFI carries ci8 and ci16 in one",
        ),
        (&["sg", "--samples", "10", "--to", "vrt://127.0.0.1"], "has no port"),
        (&["record", "vrt://:0?profile=x", "x.sigmf-meta"], "give vita49 or difi"),
    ] {
        let output = run(arguments);
        assert_ne!(output.status.code(), Some(0));
        assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));
    }
}
