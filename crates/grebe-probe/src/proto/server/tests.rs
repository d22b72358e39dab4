//! Tests a server against strangers, eavesdroppers and impatient clients.

use std::net::SocketAddr;
use std::time::Duration;

use grebe_packet::Key;
use proptest::prelude::*;

use crate::proto::handler::{Arrival, Outbox, PacketHandler};
use crate::proto::limits::Bounds;
use crate::proto::packet::{Body, EndReason, PACKET_MAX, Packet, Request, Response, TcpRequest, Welcome};
use crate::proto::server::session::SendTask;
use crate::proto::server::{ServerCore, ServerFacts};
use crate::proto::signing::{Keys, Signer};
use crate::proto::train::Train;

/// A server in virtual time, with all packets to and from it.
struct Bench {
    core: ServerCore,
    key: Key,
    now_ns: u64,
    out: Outbox,
    wire: Vec<(SocketAddr, Vec<u8>)>,
}

impl Bench {
    fn new(clients: u32) -> Self {
        let duration_max = Some(Duration::from_secs(20));
        let bytes_max = Some(10_000_000);
        Self::bound(
            clients,
            Bounds { rate_max_bps: Some(1e9), bytes_max, duration_max, allow_fast_public: false },
        )
    }

    fn bound(clients: u32, bounds: Bounds) -> Self {
        let key = Key::from_bytes([9; 32]);
        let core = ServerCore::new(key.clone(), bounds, ServerFacts::default(), clients).unwrap();
        Self { core, key, now_ns: 1_000_000_000, out: Outbox::default(), wire: Vec::new() }
    }

    /// Delivers a datagram. Returns the answers in wire format.
    fn hear(&mut self, from: SocketAddr, bytes: &[u8]) -> Vec<(SocketAddr, Vec<u8>)> {
        self.now_ns += 1_000;
        let arrival =
            Arrival { from, bytes, arrived_ns: self.now_ns, now_ns: self.now_ns, kernel_drops: Some(0) };
        self.core.arrived(arrival, &mut self.out);
        let answers: Vec<_> = self.out.packets().map(|(to, bytes)| (to.unwrap(), bytes.to_vec())).collect();
        self.out.clear();
        self.wire.push((from, bytes.to_vec()));
        self.wire.extend(answers.clone());
        answers
    }

    fn say(&mut self, from: SocketAddr, signer: &Signer, session: u64, number: u64, body: Body) -> Vec<Body> {
        let mut buffer = [0; PACKET_MAX];
        let len = Packet { session, number, body }.encode(signer, 0, &mut buffer);
        let keys = Keys::before_session(&self.key);
        let told = self.hear(from, &buffer[..len]);
        told.iter().filter_map(|(_, bytes)| Packet::decode(bytes, &keys.server)).map(|it| it.body).collect()
    }

    fn start(&mut self, from: SocketAddr, nonce: [u8; 16], number: u64) -> Vec<Body> {
        let signer = Keys::before_session(&self.key).client;
        let said = self.say(from, &signer, 0, number, Body::Hello { nonce });
        let [Body::Challenge { cookie, .. }] = said[..] else { panic!("{said:?}") };
        self.say(from, &signer, 0, number + 1, Body::Start { nonce, cookie })
    }

    fn begin(&mut self, from: SocketAddr, nonce: [u8; 16]) -> Client {
        let said = self.start(from, nonce, 1);
        let [Body::Welcome(welcome)] = said[..] else { panic!("{said:?}") };
        Client { from, keys: Keys::of_session(&self.key, &nonce, &welcome.server_nonce), welcome, number: 0 }
    }

    fn ask(&mut self, client: &mut Client, body: Body) -> Vec<Body> {
        client.number += 1;
        let mut buffer = [0; PACKET_MAX];
        let packet = Packet { session: client.welcome.session, number: client.number, body };
        let len = packet.encode(&client.keys.client, 0, &mut buffer);
        let told = self.hear(client.from, &buffer[..len]);
        told.iter()
            .filter_map(|(_, bytes)| Packet::decode(bytes, &client.keys.server))
            .map(|it| it.body)
            .collect()
    }

    fn pass(&mut self, time: Duration) {
        self.now_ns += time.as_nanos() as u64;
        self.core.tick(self.now_ns, &mut self.out);
    }
}

struct Client {
    from: SocketAddr,
    keys: Keys,
    welcome: Welcome,
    number: u64,
}

fn address(last: u8) -> SocketAddr {
    ([10, 0, 0, last], 5_000).into()
}

const TRAIN: Train = Train { id: 1, count: 4, size: 100, interval_ns: 1_000_000 };

#[test]
fn replayed_packets_get_no_answer() {
    let mut bench = Bench::new(1);
    let mut client = bench.begin(address(1), [1; 16]);
    bench.ask(&mut client, Body::Ping { sent_ns: 1 });
    bench.ask(&mut client, Body::Request { id: 1, request: Request::SendTrain(TRAIN) });
    bench.core.session().unwrap().take_task().unwrap();
    bench.core.session().unwrap().train_sent(1, 4);
    for seq in 0..3 {
        let number = 1 << 32 | u64::from(seq);
        let packet = Packet {
            session: client.welcome.session,
            number,
            body: Body::Data { train: TRAIN, seq, sent_ns: 0 },
        };
        let mut buffer = [0; PACKET_MAX];
        let len = packet.encode(&client.keys.client, TRAIN.size.into(), &mut buffer);
        let mut datagram = buffer[..len].to_vec();
        datagram.resize(TRAIN.size.into(), 0);
        assert_eq!(bench.hear(address(1), &datagram), []);
    }
    let before = bench.ask(&mut client, Body::Request { id: 2, request: Request::Summary { train: 1 } });
    for (_, bytes) in bench.wire.clone() {
        for from in [address(1), address(2), ([10, 0, 0, 1], 5_001).into()] {
            assert_eq!(bench.hear(from, &bytes), [], "{:?} from {from}", &bytes[..5]);
        }
    }
    assert!(bench.core.session().unwrap().take_task().is_none(), "no train is sent twice");
    let after = bench.ask(&mut client, Body::Request { id: 3, request: Request::Summary { train: 1 } });
    let received = |said: &[Body]| match said {
        [Body::Response { response: Response::Summary(summary), .. }] => (summary.received, summary.lost),
        said => panic!("{said:?}"),
    };
    assert_eq!((received(&before), received(&after)), ((3, 1), (3, 1)));
}

#[test]
fn a_spoofed_address_gets_less_than_was_sent_in_its_name() {
    let mut bench = Bench::new(1);
    let signer = Keys::before_session(&bench.key).client;
    let mut buffer = [0; PACKET_MAX];
    let hello = Packet { session: 0, number: 1, body: Body::Hello { nonce: [1; 16] } };
    let len = hello.encode(&signer, 0, &mut buffer);
    let answers = bench.hear(address(66), &buffer[..len]);
    let back: usize = answers.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(back <= len, "{back} bytes for {len}");
    // The cookie is valid only for that address, and a spoofer does not even see it.
    let said = bench.start(address(1), [2; 16], 1);
    assert!(matches!(said[..], [Body::Welcome(_)]));
    let Packet { body: Body::Challenge { nonce, cookie }, .. } =
        Packet::decode(&answers[0].1, &Keys::before_session(&bench.key).server).unwrap()
    else {
        panic!()
    };
    assert_eq!(bench.say(address(3), &signer, 0, 5, Body::Start { nonce, cookie }), []);
    bench.now_ns += 120_000_000_000;
    assert_eq!(bench.say(address(66), &signer, 0, 6, Body::Start { nonce, cookie }), [], "cookies grow old");
}

#[test]
fn a_session_listens_to_its_own_address_and_key() {
    let mut bench = Bench::new(1);
    let client = bench.begin(address(1), [1; 16]);
    let ping = Body::Ping { sent_ns: 1 };
    let (session, outer) = (client.welcome.session, Keys::before_session(&bench.key));
    assert_eq!(
        bench.say(address(1), &outer.client, session, 7, ping),
        [],
        "the ticket's key is not the session's"
    );
    let mut elsewhere = Client { from: address(2), ..client };
    assert_eq!(bench.ask(&mut elsewhere, ping), []);
    let mut back = Client { from: address(1), ..elsewhere };
    assert_eq!(bench.ask(&mut back, ping).len(), 1);
}

#[test]
fn clients_wait_for_their_turn_and_a_ticket_is_used_up() {
    let mut bench = Bench::new(2);
    let mut first = bench.begin(address(1), [1; 16]);
    let second = bench.start(address(2), [2; 16], 1);
    assert!(matches!(second[..], [Body::Wait { position: 1, .. }]), "{second:?}");
    let third = bench.start(address(3), [3; 16], 1);
    assert!(matches!(third[..], [Body::Bye { reason: EndReason::Busy }]), "{third:?}");
    bench.ask(&mut first, Body::Bye { reason: EndReason::Done });
    assert_eq!((bench.core.client(), bench.core.is_done()), (None, false));
    let second = bench.start(address(2), [2; 16], 3);
    assert!(matches!(second[..], [Body::Welcome(_)]), "{second:?}");
    let signer = Keys::before_session(&bench.key).client;
    assert_eq!(bench.say(address(1), &signer, 0, 99, Body::Hello { nonce: [1; 16] }), [], "it had its turn");
    bench.pass(Duration::from_secs(11));
    assert!(
        bench.core.is_done() && bench.core.served == 2,
        "silence ends a session, and the last one the server"
    );
}

#[test]
fn the_limits_are_those_of_the_address_that_a_client_comes_from() {
    let fast = |session: u64| Train { id: session as u32, count: 100_000, size: 1_472, interval_ns: 2_000 };
    let mut bench = Bench::bound(2, Bounds { bytes_max: Some(8_000_000_000), ..Bounds::default() });
    for (number, from, rate_max_bps, response) in
        [(1, "10.0.0.7:5", 40e9, Response::Accepted), (2, "203.0.113.9:5", 1e9, Response::Refused)]
    {
        let mut client = bench.begin(from.parse().unwrap(), [number; 16]);
        assert_eq!(client.welcome.rate_max_bps, rate_max_bps, "{from}");
        let said = bench.ask(&mut client, Body::Request { id: 1, request: Request::SendTrain(fast(1)) });
        assert!(
            matches!(said[..], [Body::Response { response: said, .. }] if said == response),
            "{said:?} to {from}"
        );
        bench.ask(&mut client, Body::Bye { reason: EndReason::Done });
    }
}

#[test]
fn the_servers_limits_hold_for_any_request() {
    let mut bench = Bench::new(1);
    let mut client = bench.begin(address(1), [1; 16]);
    for refused in [
        Train { interval_ns: 1_000, size: 1_472, ..TRAIN },
        Train { interval_ns: 0, count: 100_000, ..TRAIN },
        Train { count: 200_000, ..TRAIN },
    ] {
        let said = bench.ask(
            &mut client,
            Body::Request { id: refused.interval_ns as u32, request: Request::SendTrain(refused) },
        );
        assert!(
            matches!(said[..], [Body::Response { response: Response::Refused, .. }]),
            "{refused:?}: {said:?}"
        );
    }
    let ask = Body::Request { id: 5, request: Request::SendTrain(TRAIN) };
    assert!(matches!(bench.ask(&mut client, ask)[..], [Body::Response { response: Response::Accepted, .. }]));
    // A repeated request gets the same train.
    assert!(matches!(bench.ask(&mut client, ask)[..], [Body::Response { response: Response::Accepted, .. }]));
    assert!(
        matches!(bench.core.session().unwrap().take_task(), Some((SendTask::Train(TRAIN), _)))
            && bench.core.session().unwrap().take_task().is_none()
    );
    bench.pass(Duration::from_secs(5));
    bench.ask(&mut client, Body::Ping { sent_ns: 0 });
    bench.pass(Duration::from_secs(9));
    bench.ask(&mut client, Body::Ping { sent_ns: 0 });
    assert!(!bench.core.is_done());
    bench.pass(Duration::from_secs(7));
    assert!(bench.core.is_done(), "a probe ends after its time, however much it says");
}

#[test]
fn a_stream_is_granted_once_and_to_the_session_only() {
    let mut bench = Bench::new(1);
    let client = bench.begin(address(1), [1; 16]);
    let request =
        TcpRequest { id: 1, is_down: true, write_bytes: 1, duration_ns: u64::MAX, bytes_max: u64::MAX };
    let packet = Packet { session: client.welcome.session, number: 1, body: Body::OpenTcp(request) };
    let mut buffer = [0; PACKET_MAX];
    let len = packet.encode(&client.keys.client, 0, &mut buffer);
    let now = bench.now_ns;
    assert_eq!(bench.core.session().unwrap().open_tcp(address(2).ip(), &buffer[..len], now), None);
    let granted = bench.core.session().unwrap().open_tcp(address(1).ip(), &buffer[..len], now).unwrap();
    let (granted, rate_max_bps) = granted;
    assert_eq!(rate_max_bps, 1e9);
    assert!(granted.bytes_max <= 10_000_000 && granted.duration_ns <= 60_000_000_000);
    assert_eq!(bench.core.session().unwrap().open_tcp(address(1).ip(), &buffer[..len], now), None);
}

proptest! {
    #[test]
    fn garbage_is_not_answered(bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0_u8..20, is_session in any::<bool>()) {
        let mut bench = Bench::new(1);
        let client = bench.begin(address(1), [1; 16]);
        let mut bytes = bytes;
        let session = if is_session { client.welcome.session } else { 0 };
        for (place, value) in bytes.iter_mut().zip(b"GPB2".iter().chain(&[kind, 0, 0, 0]).chain(&session.to_le_bytes())) {
            *place = *value;
        }
        prop_assert_eq!(bench.hear(address(1), &bytes), []);
        prop_assert_eq!(bench.core.session().unwrap().open_tcp(address(1).ip(), &bytes, 0), None);
        prop_assert_eq!(bench.core.client(), Some(address(1)));
    }
}
