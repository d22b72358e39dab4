use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};

use grebe_datagram::Options;
use grebe_packet::Key;

use super::*;
use crate::proto::meeting::{Meeting, Standing, Via};
use crate::proto::message::Side;
use crate::proto::relay::Limits;

/// Connections of a relay, with a minimal thread for its datagrams.
struct Ground {
    core: Arc<Mutex<RelayCore>>,
    streams: Arc<Streams>,
    address: SocketAddr,
    clock: Instant,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ground {
    fn new(bounds: Bounds) -> Self {
        let (core, clock) =
            (Arc::new(Mutex::new(RelayCore::new(Limits::default()).unwrap())), Instant::now());
        let local = (Ipv4Addr::LOCALHOST, 0).into();
        let (sender, listener) = loop {
            let sender = Sender::unconnected(local, &Options::default()).unwrap();
            if let Ok(listener) = std::net::TcpListener::bind(sender.local_addr().unwrap()) {
                break (sender, listener);
            }
        };
        let (address, socket) = (sender.local_addr().unwrap(), sender.try_clone_socket().unwrap());
        let streams = Arc::new(Streams::start(listener, core.clone(), sender, clock, bounds).unwrap());
        let is_over = Arc::new(AtomicBool::new(false));
        let own = (core.clone(), streams.clone(), is_over.clone());
        let thread = std::thread::spawn(move || {
            let mut datagram = [0; 2_048];
            while !is_over.load(Ordering::Relaxed) {
                let _ = grebe_datagram::wait_readable(&socket, Duration::from_millis(20));
                while let Ok((length, from)) = socket.recv_from(&mut datagram) {
                    let (bytes, now_us) = (&datagram[..length], clock.elapsed().as_micros() as u64);
                    let (mut core, mut answers) = (lock(&core), Answers::new());
                    match <&MessageBuf>::try_from(bytes) {
                        Ok(message) if Message::is_of_relay(message) => {
                            core.on_message(now_us, from, message, &mut answers);
                        }
                        _ => {
                            if let Some((to, _)) = core.route(now_us, from, length, length) {
                                assert!(is_connection(to), "the other end is one");
                                streams.give(to, bytes, length);
                            }
                        }
                    }
                    for (to, message) in answers {
                        if is_connection(to) {
                            streams.give(to, &message, message.len());
                        } else {
                            socket.send_to(&message, to).unwrap();
                        }
                    }
                    streams.wake();
                }
            }
        });
        let (core, streams, is_over) = own;
        Self { core, streams, address, clock, is_over, thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Joins an end over TCP.
    fn join(&self, key: &Key, side: Side) -> (TcpStream, Meeting) {
        let mut stream = self.connect();
        let own = stream.local_addr().unwrap();
        let mut meeting = Meeting::new(key, side, Via::Relay, own, vec![own], &[self.address]).unwrap();
        while meeting.standing() == Standing::Unheard {
            while let Some((_, message)) = meeting.poll(self.now_us()) {
                send(&mut stream, &message);
            }
            let answer = receive(&mut stream).expect("an answer");
            meeting.take(self.now_us(), self.address, &answer);
        }
        (stream, meeting)
    }

    fn now_us(&self) -> u64 {
        self.clock.elapsed().as_micros() as u64
    }

    fn wait_for(&self, what: &str, is_so: impl Fn((u64, u64, u64)) -> bool) {
        let began = Instant::now();
        while !is_so(self.streams.counts()) {
            assert!(began.elapsed() < Duration::from_secs(60), "{what}: {:?}", self.streams.counts());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn send(stream: &mut TcpStream, datagram: &[u8]) {
    stream.write_all(&(datagram.len() as u16).to_be_bytes()).unwrap();
    stream.write_all(datagram).unwrap();
}

/// `None`: the connection was closed.
fn receive(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut datagram = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut datagram).ok()?;
    Some(datagram)
}

/// Receives the next datagram that is not the relay's own.
fn receive_passed(stream: &mut TcpStream) -> Vec<u8> {
    loop {
        let datagram = receive(stream).expect("it is open");
        if !Message::may_be(&datagram) {
            return datagram;
        }
    }
}

#[test]
fn two_ends_over_tcp_reach_each_other_with_every_datagram_as_it_was() {
    let ground = Ground::new(Bounds::default());
    let key = Key::random().unwrap();
    let (mut one, _) = ground.join(&key, Side::Waits);
    let (mut other, meeting) = ground.join(&key, Side::Asks);
    assert_eq!(meeting.standing(), Standing::Together);
    for length in [1, 399, 400, 401, 1_400, 65_535] {
        let datagram: Vec<u8> = (0..length).map(|at| 0x40 | (at % 64) as u8).collect();
        send(&mut one, &datagram);
        assert!(receive_passed(&mut other) == datagram, "{length}");
        send(&mut other, &datagram);
        assert!(receive_passed(&mut one) == datagram, "{length}");
    }
    assert_eq!(ground.streams.counts(), (2, 0, 0));
    drop(one);
    ground.wait_for("one is left", |(connections, ..)| connections == 1);
    assert_eq!(lock(&ground.core).figures().relaying, 0, "its place is free at once");
}

#[test]
fn an_end_over_tcp_reaches_one_over_udp() {
    let ground = Ground::new(Bounds::default());
    let key = Key::random().unwrap();
    let (mut by_tcp, _) = ground.join(&key, Side::Waits);
    let by_udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    by_udp.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let own = by_udp.local_addr().unwrap();
    let mut meeting = Meeting::new(&key, Side::Asks, Via::Relay, own, vec![own], &[ground.address]).unwrap();
    let mut datagram = [0; 65_536];
    while meeting.standing() != Standing::Together {
        while let Some((to, message)) = meeting.poll(ground.now_us()) {
            by_udp.send_to(&message, to).unwrap();
        }
        let (length, from) = by_udp.recv_from(&mut datagram).unwrap();
        meeting.take(ground.now_us(), from, &datagram[..length]);
    }
    by_udp.send_to(b"\x40 by udp", ground.address).unwrap();
    assert_eq!(receive_passed(&mut by_tcp), b"\x40 by udp");
    send(&mut by_tcp, b"\x40 by tcp");
    loop {
        let (length, _) = by_udp.recv_from(&mut datagram).unwrap();
        if !Message::may_be(&datagram[..length]) {
            assert_eq!(&datagram[..length], b"\x40 by tcp");
            return;
        }
    }
}

#[test]
fn connections_without_a_ticket_are_ignored() {
    let bounds = Bounds { strange_for: Duration::from_millis(500), ..Bounds::default() };
    let ground = Ground::new(bounds);
    // HTTP, an unknown datagram, an empty one.
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0, 3, 0x40, 1, 2], &[0, 0]] {
        let mut stream = ground.connect();
        let mut rest = garbage.to_vec();
        rest.resize(70_000, 7);
        let _ = stream.write_all(&rest);
        assert_eq!(receive(&mut stream), None);
    }
    // Half a length prefix, then nothing.
    let mut slow = ground.connect();
    slow.write_all(&[1]).unwrap();
    assert_eq!(receive(&mut slow), None);
    ground.wait_for("all are closed", |(connections, closed, _)| (connections, closed) == (0, 4));
}

#[test]
fn strangers_give_way_to_who_comes_and_ends_stay() {
    let ground = Ground::new(Bounds { connections: 4, of_host: 4, ..Bounds::default() });
    let key = Key::random().unwrap();
    let (mut one, _) = ground.join(&key, Side::Waits);
    let mut strangers: Vec<_> = (0..12).map(|_| ground.connect()).collect();
    let (mut other, _) = ground.join(&key, Side::Asks);
    strangers.extend((0..12).map(|_| ground.connect()));
    ground.wait_for("most are closed", |(connections, closed, _)| (connections, closed) == (4, 22));
    send(&mut one, b"\x40 still here");
    assert_eq!(receive_passed(&mut other), b"\x40 still here");
}

#[test]
fn an_end_that_does_not_read_loses_its_own_datagrams_and_then_its_place() {
    let bounds = Bounds { stuck_for: Duration::from_millis(500), ..Bounds::default() };
    let ground = Ground::new(bounds);
    let key = Key::random().unwrap();
    let (_stuck, _) = ground.join(&key, Side::Waits);
    let (mut other, _) = ground.join(&key, Side::Asks);
    let datagram = vec![0x40; 60_000];
    let began = Instant::now();
    while ground.streams.counts().2 == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is dropped");
        send(&mut other, &datagram);
    }
    for outbox in lock(&ground.streams.shared.outboxes).values() {
        assert!(lock(outbox).bytes.len() <= ground.streams.shared.bounds.outbox_bytes);
    }
    ground.wait_for("it is closed", |(connections, closed, _)| (connections, closed) == (1, 1));
}
