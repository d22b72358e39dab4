//! Tests batches over loopback: contents, order and boundaries, with every technique.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use grebe_datagram::{Error, Gso, Options, Received, Receiver, Sender};

const TECHNIQUES: [(&str, bool, bool, bool); 4] = [
    ("gso to gro", true, true, true),
    ("gso to plain", true, true, false),
    ("mmsg", true, false, false),
    ("one call a datagram", false, false, false),
];

fn loopback(v4: bool) -> SocketAddr {
    let ip: IpAddr = if v4 { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    SocketAddr::new(ip, 0)
}

fn options(batch: bool, gso: bool, gro: bool) -> Options {
    Options { batch, gso, gro, recv_timeout: Duration::from_millis(20), ..Options::default() }
}

/// Datagram whose bytes identify it.
fn datagram(index: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (index * 131 + at * 7) as u8).collect()
}

fn receive_all(receiver: &mut Receiver<Vec<u8>>, count: usize) -> Vec<(Vec<u8>, Received)> {
    let mut got = Vec::new();
    let until = Instant::now() + Duration::from_secs(5);
    while got.len() < count && Instant::now() < until {
        receiver
            .recv(
                || Some(vec![0xEE; 65_536]),
                |slot, received| {
                    got.extend(received.segments().map(|range| (slot[range].to_vec(), received)));
                    Some(slot)
                },
            )
            .unwrap();
    }
    got
}

#[test]
fn every_technique_keeps_contents_order_and_boundaries() {
    // qemu-user loses empty datagrams, because it skips messages without iovecs.
    let emulated = cfg!(target_arch = "aarch64")
        && std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("vendor_id"));
    let empty = usize::from(emulated);
    let sizes =
        [64, 192, 192, 192, 100, 1_400, 1_400, 1_400, 1_400, empty, 9_000, 9_000, 5, 65_507, 1_400, 1_400];
    for v4 in [true, false] {
        if std::net::UdpSocket::bind(loopback(v4)).is_err() {
            println!("skipped: this host has no IPv6");
            continue;
        }
        for (name, batch, gso, gro) in TECHNIQUES {
            let options = options(batch, gso, gro);
            let mut receiver = Receiver::bind(loopback(v4), &options).unwrap();
            let mut sender = Sender::connect(receiver.local_addr().unwrap(), &options).unwrap();
            let sent: Vec<_> = (0..160).map(|index| datagram(index, sizes[index % sizes.len()])).collect();
            let mut batch = sender.batch();
            for bytes in &sent {
                let (header, payload) = bytes.split_at(bytes.len().min(64));
                batch.push(header, payload).unwrap();
            }
            batch.flush().unwrap();
            drop(batch);
            let got = receive_all(&mut receiver, sent.len());
            assert_eq!(got.len(), sent.len(), "{name}, IPv4 {v4}");
            for (index, ((bytes, received), expected)) in got.iter().zip(&sent).enumerate() {
                assert!(bytes == expected, "{name}: datagram {index}");
                assert!(!received.truncated);
                assert_eq!(received.from, sender_address(&sender, v4), "{name}");
            }
            let counters = sender.counters();
            assert_eq!(counters.datagrams, sent.len() as u64);
            assert_eq!(counters.bytes, sent.iter().map(Vec::len).sum::<usize>() as u64);
            assert_eq!(counters.unsent, 0);
        }
    }
}

fn sender_address(sender: &Sender, v4: bool) -> SocketAddr {
    SocketAddr::new(loopback(v4).ip(), sender.local_addr().unwrap().port())
}

#[test]
fn a_run_becomes_datagrams_without_a_copy() {
    for (name, batch, gso, gro) in TECHNIQUES {
        let options = options(batch, gso, gro);
        let mut receiver = Receiver::bind(loopback(true), &options).unwrap();
        let mut sender = Sender::connect(receiver.local_addr().unwrap(), &options).unwrap();
        let run = datagram(3, 300 * 192 + 77);
        let mut batch = sender.batch();
        batch.push_run(&run, 192).unwrap();
        batch.flush().unwrap();
        drop(batch);
        let got = receive_all(&mut receiver, 301);
        assert_eq!(got.len(), 301, "{name}");
        assert_eq!(got.iter().flat_map(|(bytes, _)| bytes.clone()).collect::<Vec<_>>(), run, "{name}");
        assert_eq!(sender.counters().copies, 0);
    }
}

/// Some stacks accept the control message of segmentation offload, ignore it, and send one long datagram.
#[test]
fn offload_is_used_only_where_datagrams_arrive_one_by_one() {
    let options = options(true, true, true);
    let mut receiver = Receiver::bind(loopback(true), &options).unwrap();
    let mut sender = Sender::connect(receiver.local_addr().unwrap(), &options).unwrap();
    let run = datagram(9, 2_500);
    let mut batch = sender.batch();
    batch.push_run(&run, 1_000).unwrap();
    batch.flush().unwrap();
    drop(batch);
    let lengths: Vec<_> = receive_all(&mut receiver, 3).iter().map(|(bytes, _)| bytes.len()).collect();
    assert_eq!(lengths, [1_000, 1_000, 500]);
    if cfg!(not(any(target_os = "linux", target_os = "android", windows))) {
        assert_eq!(sender.gso(), Gso::Disabled);
    }
}

#[test]
fn only_small_datagrams_are_copied() {
    let options = Options::default();
    let receiver: Receiver<Vec<u8>> = Receiver::bind(loopback(true), &options).unwrap();
    let mut sender = Sender::connect(receiver.local_addr().unwrap(), &options).unwrap();
    let data = [1_u8; 2_000];
    let mut batch = sender.batch();
    for bytes in [128, 448, 449, 1_336] {
        batch.push(&data[..64], &data[..bytes]).unwrap();
    }
    batch.flush().unwrap();
    drop(batch);
    let copies = if sender.gso() == Gso::Disabled { 0 } else { 2 };
    assert_eq!(sender.counters().copies, copies);
}

#[test]
fn several_destinations_share_a_batch() {
    let options = options(true, true, true);
    let mut receivers: Vec<Receiver<Vec<u8>>> =
        (0..3).map(|_| Receiver::bind(loopback(true), &options).unwrap()).collect();
    let addresses: Vec<_> = receivers.iter().map(|receiver| receiver.local_addr().unwrap()).collect();
    let mut sender = Sender::unconnected(loopback(true), &options).unwrap();
    let data = datagram(1, 3_000);
    let mut batch = sender.batch();
    assert!(matches!(batch.push(&data, &[]), Err(Error::NoDestination)));
    for round in 0..20 {
        for (index, to) in addresses.iter().enumerate() {
            batch.push_to(*to, &data[index..index + 1], &data[round * 10..round * 10 + 600]).unwrap();
            batch.push_run_to(*to, &data[..index * 1_000], 500).unwrap();
        }
    }
    batch.flush().unwrap();
    drop(batch);
    for (index, receiver) in receivers.iter_mut().enumerate() {
        let got = receive_all(receiver, 20 * (1 + 2 * index));
        assert_eq!(got.len(), 20 * (1 + 2 * index));
        let firsts: Vec<_> = got.iter().filter(|(bytes, _)| bytes.len() == 601).collect();
        assert_eq!(firsts.len(), 20);
        for (round, (bytes, _)) in firsts.iter().enumerate() {
            assert_eq!(bytes[0], data[index]);
            assert_eq!(bytes[1..], data[round * 10..round * 10 + 600]);
        }
    }
}

#[test]
fn a_burst_of_one_leaves_at_once() {
    let options = Options { burst: 1, recv_timeout: Duration::from_millis(20), ..Options::default() };
    let mut receiver = Receiver::bind(loopback(true), &options).unwrap();
    let mut sender = Sender::connect(receiver.local_addr().unwrap(), &options).unwrap();
    let data = [5_u8; 700];
    let mut batch = sender.batch();
    batch.push(&data, &[]).unwrap();
    assert_eq!(batch.pending(), 0);
    assert_eq!(receive_all(&mut receiver, 1).len(), 1);
}

#[test]
fn a_dropped_batch_is_sent() {
    let options = options(true, true, true);
    let mut receiver = Receiver::bind(loopback(true), &options).unwrap();
    let mut sender = Sender::connect(receiver.local_addr().unwrap(), &options).unwrap();
    sender.batch().push(&[1; 700], &[]).unwrap();
    assert_eq!(receive_all(&mut receiver, 1).len(), 1);
}

#[test]
fn a_slot_that_is_too_small_is_reported() {
    for batch in [true, false] {
        let options = Options { batch, gso: false, gro: false, slots: 2, ..Options::default() };
        let mut receiver = Receiver::bind(loopback(true), &options).unwrap();
        let mut sender = Sender::connect(receiver.local_addr().unwrap(), &options).unwrap();
        sender.batch().push(&[1; 700], &[2; 700]).unwrap();
        let mut seen = None;
        receiver
            .recv(
                || Some([0_u8; 1_000]),
                |_, received| {
                    seen = Some(received);
                    None
                },
            )
            .unwrap();
        let seen = seen.unwrap();
        assert!(seen.truncated);
        assert_eq!(seen.len, 1_000);
    }
}

#[test]
fn datagrams_that_come_one_by_one_come_into_the_slot_that_was_handed_back_last() {
    let options = Options { slots: 8, ..options(true, true, true) };
    let mut receiver = Receiver::bind(loopback(true), &options).unwrap();
    let mut sender = Sender::connect(receiver.local_addr().unwrap(), &options).unwrap();
    let mut made = 0;
    let mut filled = Vec::new();
    for index in 0..10 {
        let bytes = datagram(index, 700);
        sender.batch().push(&bytes, &[]).unwrap();
        receiver
            .recv(
                || {
                    made += 1;
                    Some(Numbered { number: made, memory: vec![0; 65_536] })
                },
                |slot: Numbered, _| {
                    filled.push(slot.number);
                    Some(slot)
                },
            )
            .unwrap();
    }
    assert_eq!(filled, [1; 10]);
}

/// A distinguishable slot.
struct Numbered {
    number: u32,
    memory: Vec<u8>,
}

impl AsMut<[u8]> for Numbered {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}

#[test]
fn without_slots_nothing_is_lost_and_the_outcome_says_so() {
    let options = options(true, true, true);
    let mut receiver: Receiver<Vec<u8>> = Receiver::bind(loopback(true), &options).unwrap();
    let mut sender = Sender::connect(receiver.local_addr().unwrap(), &options).unwrap();
    let data = datagram(0, 65_000 * 4);
    let mut batch = sender.batch();
    batch.push_run(&data, 65_000).unwrap();
    batch.flush().unwrap();
    drop(batch);
    let outcome = receiver.recv(|| None, |_, _| unreachable!()).unwrap();
    assert!(outcome.starved);
    assert_eq!(outcome.datagrams, 0);
    // One slot at a time, from a pool of one.
    let mut pool: VecDeque<_> = [vec![0_u8; 65_536]].into();
    let mut seen = Vec::new();
    for _ in 0..4 {
        let mut back = None;
        receiver
            .recv(
                || pool.pop_front(),
                |slot, received| {
                    seen.extend_from_slice(&slot[..received.len]);
                    back = Some(slot);
                    None
                },
            )
            .unwrap();
        pool.extend(back);
    }
    assert_eq!(seen, data);
}

#[test]
fn silence_ends_within_the_timeout_and_is_no_error() {
    let options = Options { recv_timeout: Duration::from_millis(5), ..Options::default() };
    let mut receiver = Receiver::bind(loopback(true), &options).unwrap();
    let outcome = receiver.recv(|| Some(vec![0_u8; 65_536]), |_, _| unreachable!()).unwrap();
    assert_eq!((outcome.datagrams, outcome.starved), (0, false));
}

#[test]
fn a_datagram_that_udp_cannot_carry_is_refused_before_the_call() {
    let mut sender = Sender::connect(([127, 0, 0, 1], 9).into(), &Options::default()).unwrap();
    let data = vec![0; 70_000];
    let mut batch = sender.batch();
    assert!(matches!(batch.push(&data[..64], &data[..65_444]), Err(Error::TooLong { bytes: 65_508, .. })));
    assert!(matches!(batch.push_run(&data, 66_000), Err(Error::TooLong { .. })));
    assert!(matches!(batch.push_run(&data, 0), Err(Error::EmptySegment)));
    assert_eq!(batch.pending(), 0);
}

#[test]
fn a_sender_on_a_receivers_socket_has_its_port_and_its_peer() {
    let options = Options { recv_timeout: Duration::from_secs(5), ..Options::default() };
    let mut far: Receiver<Vec<u8>> = Receiver::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
    let near: Receiver<Vec<u8>> = Receiver::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
    let mut unconnected = Sender::on(&near, &options).unwrap();
    assert!(matches!(unconnected.batch().push(b"", b"whereto"), Err(grebe_datagram::Error::NoDestination)));
    near.connect(far.local_addr().unwrap()).unwrap();
    let mut sender = Sender::on(&near, &options).unwrap();
    let mut batch = sender.batch();
    batch.push(b"", b"hello").unwrap();
    batch.flush().unwrap();
    drop(batch);
    let mut from = None;
    far.recv(
        || Some(vec![0; 65_536]),
        |slot, received| {
            from = Some(received.from);
            Some(slot)
        },
    )
    .unwrap();
    assert_eq!(from, Some(near.local_addr().unwrap()));
}

#[test]
fn a_sender_can_be_kept_from_crossing_routers() {
    let receiver: Receiver<Vec<u8>> = Receiver::bind(loopback(true), &Options::default()).unwrap();
    let hops = |unicast_hops| {
        let options = Options { unicast_hops, ..Options::default() };
        let sender = Sender::connect(receiver.local_addr().unwrap(), &options).unwrap();
        sender.try_clone_socket().unwrap().ttl().unwrap()
    };
    assert_eq!(hops(Some(1)), 1);
    assert!(hops(None) > 1);
    let Ok(receiver) = Receiver::<Vec<u8>>::bind(loopback(false), &Options::default()) else { return };
    let options = Options { unicast_hops: Some(1), ..Options::default() };
    let sender = Sender::connect(receiver.local_addr().unwrap(), &options).unwrap();
    let socket = sender.try_clone_socket().unwrap();
    assert_eq!(socket2::SockRef::from(&socket).unicast_hops_v6().unwrap(), 1);
}
