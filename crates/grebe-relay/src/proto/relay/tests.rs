use grebe_packet::{Cookie, Key};
use proptest::prelude::*;

use super::*;
use crate::proto::keys::MeetingKeys;
use crate::proto::message::{MESSAGE_BYTES, SIGNATURE_BYTES, Side};

/// An end that may send anything.
struct End {
    keys: MeetingKeys,
    address: SocketAddr,
    side: Side,
    end: u64,
    number: u64,
    cookie: Cookie,
    sealed: Vec<u8>,
}

impl End {
    fn new(ticket: u8, side: Side, address: &str) -> Self {
        let keys = MeetingKeys::new(&Key::from_bytes([ticket; 32])).unwrap();
        let end = u64::from(ticket) * 2 + u64::from(side == Side::Asks);
        let sealed = format!("where {address} is").into_bytes();
        let address = address.parse().unwrap();
        Self { keys, address, side, end, number: 0, cookie: Cookie::default(), sealed }
    }

    fn question(&mut self, is_leaving: bool) -> MessageBuf {
        self.number += 1;
        let join = Join {
            side: self.side,
            is_leaving,
            meeting: self.keys.meeting,
            end: self.end,
            number: self.number,
            cookie: self.cookie,
            signature: [0; SIGNATURE_BYTES],
            sealed: &self.sealed,
        };
        let mut message = Message::Join(join).encode();
        self.keys.sign(&mut message);
        message
    }

    /// Asks until the relay accepts it. Returns the relay's last messages.
    fn join(&mut self, relay: &mut RelayCore, now_us: u64) -> Outbox {
        let mut out = ask(relay, now_us, self.address, &self.question(false));
        if let [(to, challenge)] = &out[..]
            && let Ok(Message::Challenge { cookie, observed, .. }) = Message::decode(challenge)
        {
            assert_eq!((*to, observed), (self.address, self.address));
            self.cookie = cookie;
            out = ask(relay, now_us, self.address, &self.question(false));
        }
        out
    }
}

fn ask(relay: &mut RelayCore, now_us: u64, from: SocketAddr, message: &MessageBuf) -> Outbox {
    let mut out = Outbox::new();
    relay.on_message(now_us, from, message, &mut out);
    assert!(out.len() <= 2, "an answer, and word to the other end");
    out
}

fn relay() -> RelayCore {
    RelayCore::new(Limits::default()).unwrap()
}

fn refusal(out: &Outbox) -> Option<Refusal> {
    match Message::decode(&out.first()?.1) {
        Ok(Message::Refused { reason, .. }) => Some(reason),
        _ => None,
    }
}

/// Destination of a message, and the other end's candidates in it.
fn told(message: &(SocketAddr, MessageBuf)) -> (SocketAddr, Option<Vec<u8>>) {
    match Message::decode(&message.1) {
        Ok(Message::Joined { other, .. }) => (message.0, other.map(<[u8]>::to_vec)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_ends_learn_of_each_other_and_packets_are_forwarded() {
    let mut relay = relay();
    let (mut a, mut b) =
        (End::new(1, Side::Waits, "192.0.2.1:1000"), End::new(1, Side::Asks, "[2001:db8::2]:2000"));
    let alone = a.join(&mut relay, 0);
    assert_eq!(alone.len(), 1);
    assert_eq!(told(&alone[0]), (a.address, None));
    assert_eq!(relay.route(1, a.address, 1_200, 1_200), None, "there is nobody");
    let both = b.join(&mut relay, 2);
    assert_eq!(told(&both[0]), (b.address, Some(a.sealed.clone())));
    assert_eq!(told(&both[1]), (a.address, Some(b.sealed.clone())), "who waits hears of it at once");
    // And again, until it has shown that it knows.
    assert_eq!(b.join(&mut relay, 3).len(), 2);
    assert_eq!(told(&a.join(&mut relay, 4)[0]), (a.address, Some(b.sealed.clone())));
    assert_eq!(b.join(&mut relay, 5).len(), 1);
    assert_eq!(relay.route(6, a.address, 60_000, 1_200), Some((b.address, 60_000)));
    assert_eq!(relay.route(7, b.address, 57, 57), Some((a.address, 57)));
    let figures = relay.figures();
    assert_eq!((figures.sessions, figures.relaying), (1, 1));
    assert_eq!(
        (figures.relayed_datagrams, figures.relayed_bytes, figures.dropped_while_alone),
        (51, 60_057, 1)
    );
    // An end's candidates have changed, because a NAT gave it another port.
    b.sealed = b"elsewhere".to_vec();
    assert_eq!(told(&b.join(&mut relay, 8)[1]), (a.address, Some(b.sealed.clone())));
    let leave = b.question(true);
    assert_eq!(ask(&mut relay, 9, b.address, &leave), []);
    assert_eq!(relay.route(10, b.address, 57, 57), None);
    assert_eq!(relay.figures().relaying, 0);
}

#[test]
fn without_a_proof_of_the_address_there_is_no_state_and_no_longer_answer() {
    let mut relay = relay();
    let mut end = End::new(1, Side::Asks, "192.0.2.1:1000");
    let question = end.question(false);
    let out = ask(&mut relay, 0, end.address, &question);
    assert_eq!(out.len(), 1);
    let (to, answer) = &out[0];
    assert_eq!((*to, answer.len()), (end.address, question.len()));
    assert_eq!(relay.figures().sessions, 0);
    // Another end's cookie is not a proof.
    end.join(&mut relay, 1);
    let stolen = end.question(false);
    let thief = "198.51.100.7:1000".parse().unwrap();
    let out = ask(&mut relay, 2, thief, &stolen);
    assert!(matches!(Message::decode(&out[0].1), Ok(Message::Challenge { .. })));
    assert_eq!(relay.figures().sessions, 1);
    assert_eq!(relay.route(3, thief, 100, 100), None);
}

#[test]
fn without_the_ticket_nobody_joins_and_nothing_is_answered() {
    let mut relay = relay();
    let mut end = End::new(1, Side::Asks, "192.0.2.1:1000");
    end.join(&mut relay, 0);
    let (before, question) = (relay.figures(), end.question(false));
    for at in (2..MESSAGE_BYTES).step_by(7) {
        let mut changed = question;
        changed[at] ^= 1;
        let out = ask(&mut relay, 1_000_000 * at as u64 / 10, end.address, &changed);
        let is_challenge = out
            .first()
            .is_some_and(|(_, answer)| matches!(Message::decode(answer), Ok(Message::Challenge { .. })));
        assert!(out.is_empty() || is_challenge, "byte {at}");
    }
    let after = relay.figures();
    assert_eq!((after.sessions, after.relaying), (before.sessions, before.relaying));
    assert!(after.forged > 10 && after.malformed > 5, "{after:?}");
}

#[test]
fn replayed_messages_change_nothing() {
    let mut relay = relay();
    let (mut a, mut b) =
        (End::new(1, Side::Waits, "192.0.2.1:1000"), End::new(1, Side::Asks, "192.0.2.2:2000"));
    a.join(&mut relay, 0);
    b.join(&mut relay, 0);
    let (old, leave) = (b.question(false), b.question(true));
    b.join(&mut relay, 1);
    for message in [old, leave] {
        assert_eq!(ask(&mut relay, 2, b.address, &message), []);
    }
    assert_eq!(relay.figures().replayed, 2);
    assert_eq!(relay.route(3, b.address, 57, 57), Some((a.address, 57)));
}

#[test]
fn a_repeated_message_of_a_departed_end_holds_a_place_for_a_minute() {
    let mut relay = relay();
    let mut end = End::new(1, Side::Waits, "192.0.2.1:1000");
    end.join(&mut relay, 0);
    let (old, leave) = (end.question(false), end.question(true));
    ask(&mut relay, 1, end.address, &old);
    ask(&mut relay, 2, end.address, &leave);
    assert_eq!(relay.figures().sessions, 0);
    ask(&mut relay, 3, end.address, &old);
    assert_eq!(relay.figures().sessions, 1);
    let idle_us = relay.limits.idle_us;
    relay.tick(3 + idle_us);
    assert_eq!(relay.figures().sessions, 0);
    // Its cookie is too old by then.
    ask(&mut relay, 3 + 2 * idle_us, end.address, &old);
    assert_eq!(relay.figures().sessions, 0);
}

#[test]
fn the_first_sender_keeps_its_place_until_it_is_silent() {
    let mut relay = relay();
    let (mut a, mut b) =
        (End::new(1, Side::Waits, "192.0.2.1:1000"), End::new(1, Side::Asks, "192.0.2.2:2000"));
    let mut second = End { end: 99, ..End::new(1, Side::Asks, "192.0.2.3:3000") };
    a.join(&mut relay, 0);
    b.join(&mut relay, 0);
    assert_eq!(refusal(&second.join(&mut relay, 1)), Some(Refusal::Taken));
    assert_eq!(relay.route(2, a.address, 57, 57), Some((b.address, 57)));
    // The same end may move to another address.
    b.address = "192.0.2.2:2001".parse().unwrap();
    b.join(&mut relay, 3);
    assert_eq!(relay.route(4, a.address, 57, 57), Some((b.address, 57)));
    assert_eq!(relay.route(5, "192.0.2.2:2000".parse().unwrap(), 57, 57), None, "not from where it was");
    assert_eq!(refusal(&second.join(&mut relay, 3 + TAKEN_US)), None);
    assert_eq!(relay.route(6 + TAKEN_US, a.address, 57, 57), Some((second.address, 57)));
}

#[test]
fn everything_has_a_bound() {
    let limits = Limits { sessions: 3, sessions_per_host: 2, idle_us: 30_000_000, ..Limits::default() };
    let mut relay = RelayCore::new(limits).unwrap();
    for ticket in 0..2 {
        let mut end = End::new(ticket, Side::Waits, &format!("[2001:db8::{ticket}]:9"));
        assert_eq!(refusal(&end.join(&mut relay, 0)), None);
    }
    let mut third = End::new(7, Side::Waits, "[2001:db8::ffff]:9");
    assert_eq!(
        refusal(&third.join(&mut relay, 0)),
        Some(Refusal::TooMany),
        "one network of 64 bits is one host"
    );
    let mut elsewhere = End::new(7, Side::Waits, "[2001:db8:0:1::1]:9");
    assert_eq!(refusal(&elsewhere.join(&mut relay, 0)), None);
    let mut fourth = End::new(8, Side::Waits, "192.0.2.9:9");
    assert_eq!(refusal(&fourth.join(&mut relay, 0)), Some(Refusal::Full));
    assert_eq!(relay.figures().refused, 2);
    // A silent end loses its place.
    relay.tick(limits.idle_us);
    assert_eq!((relay.figures().sessions, relay.figures().idle_ends), (0, 3));
    assert!(relay.sessions_of_host.is_empty());
    assert_eq!(refusal(&fourth.join(&mut relay, limits.idle_us)), None);
}

#[test]
fn a_session_gets_its_rate_and_whole_datagrams() {
    let limits = Limits { session_bits_per_s: 80e6, ..Limits::default() };
    let mut relay = RelayCore::new(limits).unwrap();
    let (mut a, mut b) =
        (End::new(1, Side::Waits, "192.0.2.1:1000"), End::new(1, Side::Asks, "192.0.2.2:2000"));
    a.join(&mut relay, 0);
    b.join(&mut relay, 0);
    let mut passed = 0;
    for now_us in (0..4_000_000).step_by(500) {
        if let Some((_, bytes)) = relay.route(now_us, a.address, 45 * 1_400, 1_400) {
            assert_eq!(bytes % 1_400, 0);
            passed += bytes;
        }
    }
    let most = 4 * 10_000_000 + 2_500_000;
    assert!((most * 98 / 100..=most).contains(&passed), "{passed} of {most}");
    let figures = relay.figures();
    assert_eq!(figures.relayed_bytes, passed as u64);
    assert_eq!(figures.relayed_datagrams + figures.dropped_over_rate, 45 * 8_000);
}

#[test]
fn a_host_that_asks_too_often_is_ignored_and_members_are_served() {
    let mut relay = relay();
    let mut inside = End::new(1, Side::Waits, "192.0.2.1:1000");
    inside.join(&mut relay, 0);
    let mut loud = End::new(2, Side::Waits, "192.0.2.66:1000");
    for _ in 0..1_000 {
        loud.join(&mut relay, 0);
        loud.sealed.push(b'x');
        loud.sealed.truncate(200);
    }
    assert!(relay.figures().over_question_rate > 900);
    assert_eq!(inside.join(&mut relay, 1).len(), 1);
    let flood = 3 * u64::from(CHALLENGES_PER_S);
    let mut answered = 0;
    for number in 0..flood {
        let from = SocketAddr::from(([10, (number >> 16) as u8, (number >> 8) as u8, number as u8], 7));
        let mut out = Outbox::new();
        let mut stranger = inside_question(&inside);
        stranger[3] = number as u8;
        relay.on_message(2, from, &stranger, &mut out);
        answered += out.len() as u64;
    }
    assert!(answered <= u64::from(CHALLENGES_PER_S), "{answered}");
    assert_eq!((relay.figures().sessions, relay.meetings.count().0), (2, 2));
}

/// A question without a cookie.
fn inside_question(end: &End) -> MessageBuf {
    let mut copy = End { cookie: Cookie::default(), ..End::new(1, Side::Waits, "192.0.2.1:1000") };
    copy.number = end.number;
    copy.question(false)
}

#[derive(Debug, Clone)]
enum Step {
    Join { ticket: u8, asks: bool, host: u8 },
    Leave { ticket: u8, asks: bool, host: u8 },
    Data { host: u8, bytes: usize },
    Garbage { host: u8, bytes: Vec<u8> },
    Wait { us: u64 },
}

fn any_step() -> impl Strategy<Value = Step> {
    let garbage = prop::collection::vec(any::<u8>(), MESSAGE_BYTES);
    prop_oneof![
        4 => (0..4_u8, any::<bool>(), 0..6_u8).prop_map(|(ticket, asks, host)| Step::Join { ticket, asks, host }),
        1 => (0..4_u8, any::<bool>(), 0..6_u8).prop_map(|(ticket, asks, host)| Step::Leave { ticket, asks, host }),
        3 => (0..6_u8, 1..65_000_usize).prop_map(|(host, bytes)| Step::Data { host, bytes }),
        1 => (0..6_u8, garbage).prop_map(|(host, bytes)| Step::Garbage { host, bytes }),
        1 => (0..40_000_000_u64).prop_map(|us| Step::Wait { us }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// After any steps the tables agree: each end has one place, sessions stay within the limit, and data
    /// goes only to the other end of the same ticket.
    #[test]
    fn the_tables_agree_after_any_messages(steps in prop::collection::vec(any_step(), 1..120)) {
        let limits = Limits { sessions: 3, sessions_per_host: 2, ..Limits::default() };
        let mut relay = RelayCore::new(limits).unwrap();
        let address = |host: u8| SocketAddr::from(([192, 0, 2, host], 1_000));
        let mut ends: Vec<End> = Vec::new();
        for host in 0..6_u8 {
            for ticket in 0..4 {
                for side in [Side::Waits, Side::Asks] {
                    let end = u64::from(host) << 8 | u64::from(ticket);
                    ends.push(End { end, ..End::new(ticket, side, &address(host).to_string()) });
                }
            }
        }
        let at = |host: u8, ticket: u8, asks: bool| {
            usize::from(host) * 8 + usize::from(ticket) * 2 + usize::from(asks)
        };
        let mut now_us = 0;
        for step in steps {
            now_us += 1_000;
            match step {
                Step::Join { ticket, asks, host } => {
                    ends[at(host, ticket, asks)].join(&mut relay, now_us);
                }
                Step::Leave { ticket, asks, host } => {
                    let question = ends[at(host, ticket, asks)].question(true);
                    ask(&mut relay, now_us, address(host), &question);
                }
                Step::Data { host, bytes } => {
                    if let Some((to, _)) = relay.route(now_us, address(host), bytes, 1_200) {
                        let place = relay.meetings.place_of(address(host)).unwrap();
                        let other = relay.meetings.place_of(to).unwrap();
                        prop_assert_eq!(place.slot, other.slot);
                        prop_assert_ne!(place.side, other.side);
                    }
                }
                Step::Garbage { host, bytes } => {
                    let message: MessageBuf = bytes.try_into().unwrap();
                    prop_assert!(ask(&mut relay, now_us, address(host), &message).len() <= 1);
                }
                Step::Wait { us } => now_us += us,
            }
            relay.tick(now_us);
            let figures = relay.figures();
            prop_assert!(figures.sessions <= 3);
            let counted: usize = relay.sessions_of_host.values().sum();
            let places: Vec<_> = (0..6).filter_map(|host| relay.meetings.place_of(address(host))).collect();
            prop_assert_eq!(counted, places.len(), "each end is counted at its host");
            for (index, place) in places.iter().enumerate() {
                prop_assert!(!places[..index].contains(place), "one end in a place");
                prop_assert!(relay.meetings.member(*place).is_some());
            }
        }
    }
}
