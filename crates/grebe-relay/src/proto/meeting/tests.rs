//! Two ends and a relay in virtual time, with NATs of each kind between.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use grebe_testing::Rng;

use super::*;
use crate::proto::candidates::{Candidate, encode};
use crate::proto::relay::{Limits, Outbox, RelayCore};

/// Mapping and filtering of a NAT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nat {
    None,
    /// Accepts everything for a mapped port.
    FullCone,
    /// Accepts only packets from an address and port that it has sent to.
    Restricted,
    /// Like `Restricted`, with another port for each destination.
    Symmetric,
}

struct Host {
    nat: Nat,
    own: SocketAddr,
    public: Ipv4Addr,
    /// External port by destination.
    ways: HashMap<SocketAddr, u16>,
    next_port: u16,
}

impl Host {
    fn new(nat: Nat, number: u8) -> Self {
        let public = Ipv4Addr::new(203, 0, 113, number);
        let own = match nat {
            Nat::None => SocketAddr::from((public, 4_000)),
            _ => SocketAddr::from(([10, 0, number, 2], 4_000)),
        };
        Self { nat, own, public, ways: HashMap::new(), next_port: 10_000 }
    }

    /// External source address of a datagram to `to`.
    fn out(&mut self, to: SocketAddr) -> SocketAddr {
        let port = match self.nat {
            Nat::None => return self.own,
            Nat::FullCone | Nat::Restricted => 4_000,
            Nat::Symmetric => *self.ways.get(&to).unwrap_or(&self.next_port),
        };
        if self.ways.insert(to, port).is_none() {
            self.next_port += 7;
        }
        (self.public, port).into()
    }

    fn lets_in(&self, from: SocketAddr, to: SocketAddr) -> bool {
        match self.nat {
            Nat::None => to == self.own,
            Nat::FullCone => to == SocketAddr::from((self.public, 4_000)) && !self.ways.is_empty(),
            Nat::Restricted | Nat::Symmetric => {
                to.ip() == IpAddr::from(self.public) && self.ways.get(&from) == Some(&to.port())
            }
        }
    }
}

/// Stand-in for the first packet of a session and its reply.
const QUESTION: &[u8] = &[1; 1_200];
const REPLY: &[u8] = &[2; 57];

struct Network {
    now_us: u64,
    relay: RelayCore,
    hosts: [Host; 2],
    meetings: [Meeting; 2],
    /// Arrival time, source, destination, bytes.
    under_way: Vec<(u64, SocketAddr, SocketAddr, Vec<u8>)>,
    loss: f64,
    random: Rng,
    /// Route that the asking end has taken, and the time.
    taken: Option<(SocketAddr, u64)>,
}

const RELAY: &str = "198.51.100.1:4737";
const DELAY_US: u64 = 20_000;
const TICK_US: u64 = 5_000;

impl Network {
    fn new(nats: [Nat; 2], vias: [Via; 2], loss: f64, seed: u64) -> Self {
        let hosts = [Host::new(nats[0], 1), Host::new(nats[1], 2)];
        let key = Key::from_bytes([3; 32]);
        let relays = [RELAY.parse().unwrap()];
        let meeting = |side, at: usize| {
            Meeting::new(&key, side, vias[at], hosts[at].own, vec![hosts[at].own], &relays).unwrap()
        };
        let meetings = [meeting(Side::Waits, 0), meeting(Side::Asks, 1)];
        let relay = RelayCore::new(Limits::default()).unwrap();
        let random = Rng::with_seed(seed);
        Self { now_us: 0, relay, hosts, meetings, under_way: Vec::new(), loss, random, taken: None }
    }

    fn send(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        if self.random.f64() >= self.loss {
            self.under_way.push((self.now_us + DELAY_US, from, to, bytes.to_vec()));
        }
    }

    fn send_from(&mut self, at: usize, to: SocketAddr, bytes: &[u8]) {
        let from = self.hosts[at].out(to);
        self.send(from, to, bytes);
    }

    /// Runs until the asking end has found a route, or for this time.
    fn run(&mut self, for_us: u64) {
        let until_us = self.now_us + for_us;
        let mut next_ask_us = 0;
        while self.now_us < until_us && self.taken.is_none() {
            for at in 0..2 {
                while let Some((to, message)) = self.meetings[at].poll(self.now_us) {
                    self.send_from(at, to, &message);
                }
            }
            if self.now_us >= next_ask_us {
                next_ask_us = self.now_us + 100_000;
                let ways: Vec<_> =
                    self.meetings[1].direct().chain(self.meetings[1].relayed(self.now_us)).collect();
                ways.into_iter().for_each(|to| self.send_from(1, to, QUESTION));
            }
            while let Some(to) = self.meetings[1].next_knock() {
                self.send_from(1, to, QUESTION);
            }
            self.now_us += TICK_US;
            self.deliver();
            self.relay.tick(self.now_us);
        }
    }

    fn deliver(&mut self) {
        let now_us = self.now_us;
        let (come, rest): (Vec<_>, Vec<_>) =
            self.under_way.drain(..).partition(|(at_us, ..)| *at_us <= now_us);
        self.under_way = rest;
        for (_, from, to, bytes) in come {
            if to == RELAY.parse().unwrap() {
                self.at_relay(from, &bytes);
            } else if let Some(at) = (0..2).find(|at| self.hosts[*at].lets_in(from, to)) {
                self.at_end(at, from, &bytes);
            }
        }
    }

    fn at_relay(&mut self, from: SocketAddr, bytes: &[u8]) {
        let relay = RELAY.parse().unwrap();
        if Message::is_of_relay(bytes) {
            let mut out = Outbox::new();
            self.relay.on_message(self.now_us, from, bytes.try_into().unwrap(), &mut out);
            out.into_iter().for_each(|(to, answer)| self.send(relay, to, &answer));
        } else if let Some((to, _)) = self.relay.route(self.now_us, from, bytes.len(), bytes.len()) {
            self.send(relay, to, bytes);
        }
    }

    fn at_end(&mut self, at: usize, from: SocketAddr, bytes: &[u8]) {
        if bytes == QUESTION && at == 0 {
            if self.meetings[0].is_wanted(from) {
                self.send_from(0, from, REPLY);
            }
        } else if bytes == REPLY && at == 1 {
            self.taken.get_or_insert((from, self.now_us));
        } else {
            self.meetings[at].take(self.now_us, from, bytes);
        }
    }
}

fn is_relayed(network: &Network) -> bool {
    let (way, _) = network.taken.unwrap_or_else(|| panic!("no way after {} us", network.now_us));
    way == RELAY.parse().unwrap()
}

const ANY: [Via; 2] = [Via::Any, Via::Any];

#[test]
fn each_pair_of_nats_that_can_connects_directly_and_the_rest_by_the_relay() {
    use Nat::{FullCone, None, Restricted, Symmetric};
    let all = [None, FullCone, Restricted, Symmetric];
    for waits in all {
        for asks in all {
            for loss in [0.0, 0.1] {
                let mut network = Network::new([waits, asks], ANY, loss, 7);
                network.run(10_000_000);
                // Nobody knows a symmetric NAT's port for the other end in advance, and a restricted NAT
                // accepts only known ports.
                let is_hopeless =
                    matches!((waits, asks), (Symmetric, Symmetric | Restricted) | (Restricted, Symmetric));
                let relayed = is_relayed(&network);
                assert!(relayed || !is_hopeless, "{waits:?} {asks:?} cannot be direct");
                assert!(!relayed || is_hopeless || loss > 0.0, "{waits:?} {asks:?} can be direct");
                let (way, after_us) = network.taken.unwrap();
                assert!(after_us < if loss > 0.0 { 4_000_000 } else { 1_000_000 }, "{after_us}");
                // If messages of the relay are lost, an end knows less.
                if !relayed && loss == 0.0 {
                    let expected = match (waits, asks) {
                        (None, None) => Through::Nothing,
                        (None, _) => Through::OwnNat,
                        (_, None) => Through::TheirNat,
                        _ => Through::BothNats,
                    };
                    assert_eq!(network.meetings[1].through(way), expected, "{waits:?} {asks:?}");
                }
            }
        }
    }
}

#[test]
fn a_direct_way_is_taken_in_four_round_trips_and_less() {
    let mut network = Network::new([Nat::Restricted, Nat::Restricted], ANY, 0.0, 1);
    network.run(10_000_000);
    let (_, after_us) = network.taken.unwrap();
    assert!(after_us <= 4 * 2 * DELAY_US, "{after_us}");
}

#[test]
fn relay_only_ends_show_no_address_and_get_no_direct_attempt() {
    for vias in [[Via::Relay, Via::Any], [Via::Any, Via::Relay]] {
        let mut network = Network::new([Nat::None, Nat::None], vias, 0.0, 1);
        network.run(10_000_000);
        assert!(is_relayed(&network));
        let hidden = usize::from(vias[1] == Via::Relay);
        assert!(network.meetings[1 - hidden].theirs.is_empty(), "nothing of it is known");
        let head_start_us = network.taken.unwrap().1;
        assert!(head_start_us < HEAD_START_US, "there is nothing to wait for");
    }
    let mut network = Network::new([Nat::Symmetric, Nat::Symmetric], [Via::Any, Via::Direct], 0.0, 1);
    network.run(10_000_000);
    assert_eq!(network.taken, None, "the relay is not a direct route");
}

#[test]
fn a_relay_that_was_started_again_is_joined_again() {
    let mut network = Network::new([Nat::Symmetric, Nat::Symmetric], ANY, 0.0, 1);
    network.run(10_000_000);
    assert!(is_relayed(&network));
    network.meetings.iter_mut().for_each(Meeting::settle);
    network.relay = RelayCore::new(Limits::default()).unwrap();
    for _ in 0..20 {
        network.taken = None;
        let now_us = network.now_us;
        network.meetings.iter_mut().for_each(|meeting| meeting.on_silence(now_us));
        network.run(100_000);
    }
    assert_eq!(network.relay.figures().relaying, 1);
}

#[test]
fn an_end_without_a_peer_stays_joined_and_says_so() {
    let mut network = Network::new([Nat::Restricted, Nat::Restricted], ANY, 0.0, 1);
    let relay: SocketAddr = RELAY.parse().unwrap();
    assert_eq!(network.meetings[0].standing(), Standing::Unheard);
    // The other end is absent, so only this one sends.
    for _ in 0..60_000 {
        while let Some((to, message)) = network.meetings[0].poll(network.now_us) {
            network.send_from(0, to, &message);
        }
        network.now_us += TICK_US;
        network.deliver();
        network.relay.tick(network.now_us);
    }
    assert_eq!(network.meetings[0].standing(), Standing::Alone);
    let figures = network.relay.figures();
    assert_eq!(figures.sessions, 1);
    assert!(figures.questions < 40, "{} in five minutes", figures.questions);
    assert_eq!(network.meetings[0].relay(), Some(relay));
}

#[test]
fn messages_of_strangers_change_nothing() {
    let mut network = Network::new([Nat::None, Nat::None], ANY, 0.0, 1);
    network.run(10_000_000);
    let (relay, other): (SocketAddr, SocketAddr) = (RELAY.parse().unwrap(), "192.0.2.66:7".parse().unwrap());
    let asks = &mut network.meetings[1];
    let number = asks.number;
    let standing = asks.standing();
    let refused = |number| Message::Refused { number, reason: Refusal::Full }.encode();
    asks.take(0, other, &refused(number));
    asks.take(0, relay, &refused(number + 1));
    asks.take(0, relay, &refused(number - ANSWERS_LATE_MAX));
    let observed = "192.0.2.1:1".parse().unwrap();
    let forged = Message::Joined { number, observed, other: Some(&[7; 60]) }.encode();
    let theirs = asks.theirs.clone();
    asks.take(0, relay, &forged);
    assert_eq!(
        (asks.standing(), &asks.theirs),
        (standing, &theirs),
        "what does not open is not the other end's"
    );
    asks.take(0, other, &Message::Knock { seal: &[7; 28] }.encode());
    assert_eq!(asks.next_knock(), None);
    asks.take(0, relay, &refused(number));
    assert_eq!(asks.standing(), Standing::Refused(Refusal::Full));
}

#[test]
fn the_holder_of_a_ticket_causes_few_knocks_at_any_address() {
    let own = "192.0.2.7:4000".parse().unwrap();
    let key = Key::from_bytes([1; 32]);
    let mut meeting =
        Meeting::new(&key, Side::Waits, Via::Any, own, Vec::new(), &[RELAY.parse().unwrap()]).unwrap();
    let mut knocked = vec![0; 30];
    for now_us in (0..30_000_000).step_by(10_000) {
        // The other end names other addresses each time, more than are taken.
        let address = |number| SocketAddr::from(([203, 0, 113, number], (now_us / 10_000) as u16 + 1));
        let named: Vec<_> =
            (0..200).map(|number| Candidate { address: address(number), is_observed: false }).collect();
        meeting.theirs = decode(&encode(&named)).unwrap();
        assert_eq!(meeting.theirs.len(), 12);
        (meeting.knocks.round, meeting.knocks.at, meeting.knocks.next_us) = (0, 0, now_us);
        while let Some((to, _)) = meeting.knock(now_us) {
            assert!(to.ip() != RELAY.parse::<SocketAddr>().unwrap().ip());
            knocked[now_us as usize / 1_000_000] += 1;
        }
    }
    assert!((100..=110).contains(&knocked[0]) && knocked[1..].iter().all(|each| *each <= 11), "{knocked:?}");
}

#[test]
fn the_next_address_of_the_relay_is_tried_if_the_first_is_silent() {
    let relays: Vec<SocketAddr> = vec!["198.51.100.9:1".parse().unwrap(), "[2001:db8::9]:1".parse().unwrap()];
    let own = "[::]:4000".parse().unwrap();
    let key = Key::from_bytes([1; 32]);
    let mut meeting = Meeting::new(&key, Side::Waits, Via::Any, own, Vec::new(), &relays).unwrap();
    let mut asked = Vec::new();
    for now_us in (0..3_000_000).step_by(10_000) {
        while let Some((to, _)) = meeting.poll(now_us) {
            asked.push(canonical(to));
        }
    }
    assert!(asked.starts_with(&[relays[0], relays[0], relays[1], relays[1]]), "{asked:?}");
    let own = "0.0.0.0:4000".parse().unwrap();
    let v4 = Meeting::new(&key, Side::Waits, Via::Any, own, Vec::new(), &relays).unwrap();
    assert_eq!(v4.relays, [relays[0]], "a socket of one family asks at that one");
}

#[test]
fn a_late_answer_of_the_relay_is_used() {
    let (own, udp): (SocketAddr, SocketAddr) =
        ("192.168.1.7:4000".parse().unwrap(), "203.0.113.5:4737".parse().unwrap());
    let tcp: SocketAddr = "127.0.0.1:999".parse().unwrap();
    let key = Key::random().unwrap();
    let mut meeting = Meeting::new(&key, Side::Waits, Via::Any, own, Vec::new(), &[udp]).unwrap();
    let question = |meeting: &mut Meeting, now_us: u64| {
        let (to, message) = meeting.poll(now_us)?;
        let Ok(Message::Join(join)) = Message::decode(&message) else { panic!("it asks") };
        Some((to, join.number, join.cookie))
    };
    assert_eq!(meeting.unanswered_us(0), 0);
    let (to, first, _) = question(&mut meeting, 0).unwrap();
    assert_eq!((to, meeting.unanswered_us(1_000_000)), (udp, 1_000_000));
    // A new address of the relay is tried at once, then both in turn.
    meeting.add_relay(1_000_000, tcp);
    let (to, by_tcp, _) = question(&mut meeting, 1_000_000).unwrap();
    assert_eq!((to, meeting.in_use()), (tcp, Some(tcp)));
    let asked: Vec<_> = (1..60)
        .filter_map(|tick| question(&mut meeting, 1_000_000 + tick * 50_000))
        .map(|asked| asked.0)
        .collect();
    assert!(asked.starts_with(&[tcp, udp, udp, tcp]), "{asked:?}");
    let answer = |number| {
        let cookie = Cookie { made_us: number, tag: [7; 16] };
        Message::Challenge { number, observed: own, cookie }.encode()
    };
    for (at, number) in [(tcp, by_tcp), (udp, first)] {
        meeting.add_relay(4_000_000, if at == tcp { udp } else { tcp });
        question(&mut meeting, 4_000_000).unwrap();
        // An answer of somebody else, or to an unknown question, changes nothing.
        meeting.take(4_000_000, "198.51.100.1:1".parse().unwrap(), &answer(number));
        meeting.take(4_000_000, at, &answer(u64::MAX));
        assert_ne!(meeting.in_use(), Some(at));
        meeting.take(4_000_000, at, &answer(number));
        let (to, _, cookie) = question(&mut meeting, 4_000_000).unwrap();
        assert_eq!((to, cookie.made_us), (at, number));
    }
}
