//! A UDP source with datagrams in any order and of several senders.

mod support;

use std::time::Duration;

use grebe_datagram::{Options, Sender};
use grebe_flow::{Graph, QueueOptions, StageSnapshot};
use grebe_frame::{Batch, Header};
use grebe_process::Null;
use grebe_stages::{SourceOptions, UdpSource, open_source};
use support::{END, Headers, Tray, channel, headers};

#[test]
fn a_receiver_ends_after_the_requested_samples() {
    for block in [32u32, 20_000] {
        let options = Options { gso: false, gro: false, ..Options::default() };
        let source = UdpSource::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let mut sender = Sender::connect(source.local_addr().unwrap(), &options).unwrap();
        let (tray, taken) = std::sync::mpsc::channel();
        let mut graph = Graph::new();
        let source = graph.add("udp", source.samples(Some(u64::from(block) * 2 + 7)));
        let tray = graph.add("tray", Tray(tray));
        graph.connect(source, tray, QueueOptions::block(64));
        let running = graph.start().unwrap();
        for sequence in 0..4u64 {
            let header = Header {
                sequence,
                channel_count: 1,
                block_length_samples: block,
                first_sample_index: sequence * u64::from(block),
                ..Header::default()
            };
            send(&mut sender, &header, &vec![1; block as usize * 2]);
        }
        // No end of stream was sent.
        running.wait().unwrap();
        let batches: Vec<Batch> = taken.into_iter().collect();
        let lengths: Vec<u32> = headers(&batches).iter().map(|header| header.block_length_samples).collect();
        assert_eq!(lengths, [block, block, 7]);
    }
}

#[test]
fn small_datagrams_are_gathered_and_large_ones_lent_as_they_came() {
    for (block, is_sparse) in [(32u32, true), (20_000, false)] {
        let options = Options { gso: false, gro: false, ..Options::default() };
        let source = UdpSource::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let mut sender = Sender::connect(source.local_addr().unwrap(), &options).unwrap();
        let (tray, taken) = std::sync::mpsc::channel();
        let mut graph = Graph::new();
        let source = graph.add("udp", source);
        let tray = graph.add("tray", Tray(tray));
        graph.connect(source, tray, QueueOptions::block(64));
        let running = graph.start().unwrap();
        let mut last = Header::default();
        for sequence in 0..40u64 {
            last = Header {
                sequence,
                channel_count: 1,
                block_length_samples: block,
                first_sample_index: sequence * u64::from(block),
                ..Header::default()
            };
            send(&mut sender, &last, &vec![sequence as u8; block as usize * 2]);
        }
        send(&mut sender, &last.end_of_stream(1), &[]);
        let snapshot = running.wait().unwrap();
        let batches: Vec<Batch> = taken.into_iter().collect();
        let sequences: Vec<u64> = headers(&batches).iter().map(|header| header.sequence).collect();
        assert_eq!(sequences, (0..40).collect::<Vec<_>>());
        for frame in batches.iter().flat_map(|batch| batch.frames()) {
            let value = frame.header().sequence as u8;
            assert!(frame.payload().iter().all(|&byte| byte == value));
        }
        let copied = snapshot.stage("udp").unwrap().own("copied_frames").unwrap();
        assert_eq!(copied, if is_sparse { 40 } else { 0 });
    }
}

/// Batches of a receiver for the datagrams of `send`, up to the end that `send` must send. The budget of 0.2 s makes
/// the test independent of slow machines.
fn received(send: impl FnOnce(std::net::SocketAddr, &Options)) -> (Vec<Batch>, StageSnapshot) {
    let options =
        Options { gso: false, gro: false, latency: Duration::from_millis(200), ..Options::default() };
    let source = UdpSource::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
    let at = source.local_addr().unwrap();
    let (tray, taken) = std::sync::mpsc::channel();
    let mut graph = Graph::new();
    let source = graph.add("udp", source);
    let tray = graph.add("tray", Tray(tray));
    graph.connect(source, tray, QueueOptions::block(64));
    let running = graph.start().unwrap();
    send(at, &options);
    let snapshot = running.wait().unwrap();
    (taken.into_iter().collect(), snapshot.stage("udp").unwrap().clone())
}

fn numbered(sequence: u64, block: u32) -> Header {
    Header {
        sequence,
        producer_ts_ns: 1_000 + sequence,
        channel_count: 1,
        block_length_samples: block,
        sample_rate_hz: 1e6,
        first_sample_index: sequence * u64::from(block),
        ..Header::default()
    }
}

fn send_all(sender: &mut Sender, order: impl IntoIterator<Item = u64>, block: u32) {
    for sequence in order {
        send(sender, &numbered(sequence, block), &vec![sequence as u8; block as usize * 2]);
    }
}

fn counted(udp: &StageSnapshot) -> [u64; 5] {
    ["lost_frames", "late_frames", "duplicate_frames", "foreign_datagrams", "streams"]
        .map(|name| udp.own(name).unwrap())
}

#[test]
fn neighbours_that_the_network_swapped_are_put_in_order() {
    for block in [32u32, 4_000, 20_000] {
        // 0 | 1 | 2 | 4 3 | 5 | 7 6 | ... and one frame seven frames late, which a chunk can hold.
        let mut order: Vec<u64> = (0..60).collect();
        order[3..].chunks_exact_mut(3).for_each(|three| three.swap(0, 1));
        if block < 20_000 {
            let late = order.remove(30);
            order.insert(37, late);
        }
        let (batches, udp) = received(|at, options| {
            let mut sender = Sender::connect(at, options).unwrap();
            send_all(&mut sender, order, block);
            send(&mut sender, &numbered(59, block).end_of_stream(2_000), &[]);
        });
        let sequences: Vec<u64> = headers(&batches).iter().map(|header| header.sequence).collect();
        assert_eq!(sequences, (0..60).collect::<Vec<_>>(), "{block}");
        for frame in batches.iter().flat_map(|batch| batch.frames()) {
            let value = frame.header().sequence as u8;
            assert!(frame.payload().iter().all(|&byte| byte == value));
        }
        assert_eq!(counted(&udp), [0, 0, 0, 0, 1], "{block}");
    }
}

#[test]
fn late_frames_are_not_lost_and_duplicates_count_once() {
    let (batches, udp) = received(|at, options| {
        let mut sender = Sender::connect(at, options).unwrap();
        // 1 comes after the limit of held frames; 60 comes twice while 59 is missing; 71 never comes, and 103 is
        // swapped meanwhile.
        send_all(&mut sender, (0..1).chain(2..50).chain([1]).chain(50..59).chain([60, 60, 59, 61]), 100);
        send_all(&mut sender, (62..71).chain(72..103).chain([104, 105, 106, 103]).chain(107..120), 100);
        send(&mut sender, &numbered(119, 100).end_of_stream(2_000), &[]);
    });
    let sequences: Vec<u64> = headers(&batches).iter().map(|header| header.sequence).collect();
    assert_eq!(sequences, (0..1).chain(2..71).chain(72..120).collect::<Vec<_>>());
    assert_eq!(counted(&udp), [1, 1, 1, 0, 1]);
    assert_eq!((udp.own("lost_samples"), udp.own("late_samples")), (Some(100), Some(100)));
}

#[test]
fn a_sender_that_begins_again_takes_over_at_once_and_the_old_one_is_left_out() {
    let (batches, udp) = received(|at, options| {
        let mut first = Sender::connect(at, options).unwrap();
        send_all(&mut first, 0..100, 100);
        let mut again = Sender::connect(at, options).unwrap();
        for sequence in 0..50 {
            let header = Header { producer_ts_ns: 5_000 + sequence, ..numbered(sequence, 100) };
            send(&mut again, &header, &[7; 200]);
        }
        // The first was not dead, only replaced.
        send_all(&mut first, 100..105, 100);
        let end = Header { producer_ts_ns: 6_000, ..numbered(49, 100) }.end_of_stream(7_000);
        send(&mut again, &end, &[]);
    });
    let sequences: Vec<u64> = headers(&batches).iter().map(|header| header.sequence).collect();
    assert_eq!(sequences, (0..100).chain(0..50).collect::<Vec<_>>());
    assert_eq!(counted(&udp), [0, 0, 0, 5, 2]);
}

#[test]
fn foreign_senders_are_listed_by_address() {
    let options = Options { gso: false, gro: false, ..Options::default() };
    let source = UdpSource::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
    let (at, second) = (source.local_addr().unwrap(), source.second_sender());
    let mut graph = Graph::new();
    let (tray, _taken) = std::sync::mpsc::channel();
    let source = graph.add("udp", source);
    let tray = graph.add("tray", Tray(tray));
    graph.connect(source, tray, QueueOptions::block(64));
    let running = graph.start().unwrap();
    let sockets = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    let send = |socket: &std::net::UdpSocket, header: &Header, payload: &[u8]| {
        let mut head = [0; 64];
        header.write(&mut head);
        socket.send_to(&[&head, payload].concat(), at).unwrap();
    };
    let [ours, theirs] = &sockets;
    send(ours, &numbered(0, 100), &[1; 200]);
    assert_eq!(second.address(), None);
    for sequence in 1..20 {
        send(theirs, &numbered(5_000 + sequence, 100), &[2; 200]);
        send(ours, &numbered(sequence, 100), &[1; 200]);
    }
    send(ours, &numbered(20, 100).end_of_stream(9_000), &[]);
    let snapshot = running.wait().unwrap();
    assert_eq!(snapshot.stage("udp").unwrap().own("foreign_datagrams"), Some(19));
    assert_eq!(second.address(), theirs.local_addr().ok());
}

#[test]
fn foreign_senders_without_headers_are_listed_by_address() {
    let uri = "udp://127.0.0.1:0?format=i16&rate=1k".parse().unwrap();
    let source = open_source(&uri, SourceOptions::default(), &mut |_| ()).unwrap();
    let (at, second) = (source.address.unwrap(), source.second_sender.unwrap());
    let mut graph = Graph::new();
    let (tray, taken) = std::sync::mpsc::channel();
    let source = graph.add_boxed("udp", source.stage);
    let tray = graph.add("tray", Tray(tray));
    graph.connect(source, tray, QueueOptions::block(64));
    let running = graph.start().unwrap();
    let [ours, theirs] = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    for _ in 0..20 {
        ours.send_to(&[1; 2], at).unwrap();
        theirs.send_to(&[2; 2], at).unwrap();
    }
    ours.send_to(&[], at).unwrap();
    let snapshot = running.wait().unwrap();
    assert_eq!(snapshot.stage("udp").unwrap().own("foreign_datagrams"), Some(20));
    assert_eq!(second.address(), theirs.local_addr().ok());
    assert_eq!(channel(&taken.iter().collect::<Vec<_>>(), 0), [0x0101; 20]);
}

fn send(sender: &mut Sender, header: &Header, payload: &[u8]) {
    let mut head = [0; 64];
    header.write(&mut head);
    let mut batch = sender.batch();
    batch.push(&head, payload).unwrap();
    batch.flush().unwrap();
}

#[test]
fn a_sender_that_never_comes_is_silent_too() {
    let options = SourceOptions { idle_timeout: Some(Duration::from_millis(50)), ..SourceOptions::default() };
    let source = open_source(&"udp://127.0.0.1:0".parse().unwrap(), options, &mut |_| ()).unwrap();
    let mut graph = Graph::new();
    let (source, sink) = (graph.add_boxed("source", source.stage), graph.add("sink", Null {}));
    graph.connect(source, sink, QueueOptions::block(4));
    let error = graph.start().unwrap().wait().unwrap_err().to_string();
    assert!(error.contains("no sender is there, or it is gone"), "{error}");
}

#[test]
fn a_port_without_a_host_listens_on_ipv4_and_ipv6() {
    let source = open_source(&"udp://:0".parse().unwrap(), SourceOptions::default(), &mut |_| ()).unwrap();
    let port = source.address.unwrap().port();
    let (tell, heard) = std::sync::mpsc::channel();
    let mut graph = Graph::new();
    let (source, sink) = (graph.add_boxed("source", source.stage), graph.add("headers", Headers(tell)));
    graph.connect(source, sink, QueueOptions::block(4));
    let running = graph.start().unwrap();
    let mut frame = [0; 64 + 24];
    let header = Header { block_length_samples: 6, ..END };
    header.write(frame.first_chunk_mut().unwrap());
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&frame, ("127.0.0.1", port)).unwrap();
    assert_eq!(heard.recv_timeout(Duration::from_secs(10)).unwrap().block_length_samples, 6);
    running.stop().unwrap();
    // A machine without IPv6 has one protocol.
    if std::net::UdpSocket::bind("[::1]:0").is_ok() {
        let source =
            open_source(&"udp://:0".parse().unwrap(), SourceOptions::default(), &mut |_| ()).unwrap();
        assert!(source.address.unwrap().is_ipv6());
    }
}

#[test]
fn a_receiver_that_listens_on_tells_the_end_and_takes_the_next_stream_at_once() {
    let from = SourceOptions { listens_on: true, ..SourceOptions::default() };
    let source = open_source(&"udp://127.0.0.1:0".parse().unwrap(), from, &mut |_| ()).unwrap();
    let address = source.address.unwrap();
    let (tell, headers) = std::sync::mpsc::channel();
    let mut graph = Graph::new();
    let source = graph.add_boxed("udp", source.stage);
    let sink = graph.add("headers", Headers(tell));
    graph.connect(source, sink, QueueOptions::block(8));
    let running = graph.start().unwrap();
    // The second sender has the younger clock.
    for producer_ts_ns in [9_000_000, 5_000_000] {
        let mut sender = Sender::connect(address, &Options::default()).unwrap();
        for (sequence, block) in [(0, 32), (1, 32), (2, 0), (2, 0)] {
            let header = Header {
                sequence,
                producer_ts_ns: producer_ts_ns + sequence,
                channel_count: 1,
                block_length_samples: block,
                first_sample_index: sequence * 32,
                ..Header::default()
            };
            send(&mut sender, &header, &vec![1; block as usize * 2]);
        }
        for expected in [(0, 32), (1, 32), (2, 0)] {
            let header: Header = headers.recv_timeout(Duration::from_secs(20)).unwrap();
            assert_eq!((header.sequence, header.block_length_samples), expected, "{producer_ts_ns}");
        }
    }
    running.stop().unwrap();
}
