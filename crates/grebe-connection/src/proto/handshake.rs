//! Handshake: one packet each way, `Noise_NNpsk0_25519_ChaChaPoly_SHA256`, with the ticket's key as the
//! pre-shared key.
//!
//! ```text
//!  initiator                                             responder
//!  INIT   version, connection, psk, e; 1200 bytes ------------->  proves the key, or is not answered
//!         <------- 89 bytes: e, ee, the responder's connection   REPLY
//!                 and greeting, which begins the application's talk
//!  32 copies of INIT, if wanted ----------------------------->    measures their spacing
//!         <----------------------------------------------------   sealed: the measurement
//!  first sealed packet -------------------------------------->   proves the address, and spends the ticket
//! ```
//!
//! A peer without the key gets no answer and leaves no state. A replayed INIT gets the same reply again, a
//! thirteenth of its length. It leads no further, because the attacker does not know the private half of `e`.

use std::net::SocketAddr;

use grebe_packet::Key;
use snow::{Builder, HandshakeState};

use crate::error::{Error, Result};
use crate::proto::packet_protection::{Opener, Sealer, Secret};
use crate::proto::train::HandshakeTrain;
use crate::proto::wire::{Frame, HEADER_BYTES, Header, ReceivedPackets, TAG_BYTES};

/// Length of the first packet. The reply is far shorter, so an attacker cannot use it for amplification.
pub const INIT_BYTES: usize = 1_200;

/// Maximum length of a greeting.
pub(crate) const GREETING_BYTES_MAX: usize = 31;

/// Length of the reply: a fixed one, because the kernel may coalesce two of them, and because it then hides
/// the length of the greeting.
pub(crate) const REPLY_BYTES: usize = 1 + 4 + 32 + REPLY_PLAIN_BYTES + 16;

/// The responder's connection, and length and bytes of its greeting.
const REPLY_PLAIN_BYTES: usize = 4 + 1 + GREETING_BYTES_MAX;

/// A session after both ends have proven the key.
pub struct Session {
    /// First bytes of the responder's application.
    pub(crate) greeting: Vec<u8>,
    sealer: Sealer,
    opener: Opener,
    second: Option<Box<Session>>,
}

/// The side that holds a ticket.
pub struct Initiator {
    state: HandshakeState,
    connection: u32,
    datagram: [u8; INIT_BYTES],
    /// The reply that established the session.
    reply: Option<[u8; REPLY_BYTES]>,
}

/// The side that made the ticket. Its state is bounded whatever arrives.
pub struct Responder {
    key: Key,
    pending: Vec<Pending>,
}

struct Pending {
    init: [u8; INIT_USED_BYTES],
    reply: [u8; REPLY_BYTES],
    connection: u32,
    session: Session,
    /// Address of the first packet, its train, and the number of reports of that.
    from: Option<SocketAddr>,
    train: HandshakeTrain,
    reports: u64,
}

impl Session {
    /// Makes a session from the result of the handshake: connection and secret of the send direction, then of
    /// the receive direction.
    fn new(sends: (u32, Secret), receives: (u32, Secret), greeting: Vec<u8>) -> Result<Self> {
        let second = Self {
            greeting: Vec::new(),
            sealer: Sealer::new(sends.0 ^ SECOND_CONNECTION, sends.1.second())?,
            opener: Opener::new(receives.0 ^ SECOND_CONNECTION, receives.1.second())?,
            second: None,
        };
        Ok(Self {
            greeting,
            sealer: Sealer::new(sends.0, sends.1)?,
            opener: Opener::new(receives.0, receives.1)?,
            second: Some(Box::new(second)),
        })
    }

    /// Second session of the same handshake, once. It has its own keys and packet numbers, so that each end
    /// of a connection sends on one session and receives on the other.
    pub fn take_second(&mut self) -> Option<Session> {
        self.second.take().map(|second| *second)
    }

    /// Whether a packet claims to belong to this session, without proof.
    pub(crate) fn is_addressed(&self, datagram: &[u8]) -> bool {
        self.opener.number(datagram, 0).is_ok()
    }

    /// Encrypts one packet in place: `datagram` has [`HEADER_BYTES`](crate::proto::wire::HEADER_BYTES) for
    /// the header, the frame, and [`TAG_BYTES`](crate::proto::wire::TAG_BYTES) for the tag. Numbers must
    /// ascend; none may be used twice.
    ///
    /// # Errors
    /// [`Error::Malformed`] if the datagram is too short; [`Error::Keys`] if no key can be made.
    pub fn seal(&mut self, number: u64, datagram: &mut [u8]) -> Result<()> {
        self.sealer.seal(number, datagram)
    }

    /// Decrypts one packet in place and returns its number and frame. `received` is the replay window.
    ///
    /// # Errors
    /// [`Error::Malformed`]; [`Error::NotAuthentic`] for a replay, for a packet that the peer did not seal
    /// for this session, and for one that was changed in transit.
    pub fn open<'a>(
        &mut self,
        received: &ReceivedPackets,
        datagram: &'a mut [u8],
    ) -> Result<(u64, &'a [u8])> {
        let expected = received.highest().map_or(0, |highest| highest + 1);
        let number = self.opener.number(datagram, expected)?;
        if !received.would_accept(number) {
            return Err(Error::NotAuthentic);
        }
        Ok((number, self.opener.open(number, datagram)?))
    }
}

impl Initiator {
    /// Begins a session.
    ///
    /// # Errors
    /// [`Error::Keys`] if the system has no random numbers.
    pub fn new(key: &Key) -> Result<Self> {
        let connection = random_u32()?;
        let mut datagram = [0; INIT_BYTES];
        datagram[0] = KIND_INIT;
        datagram[1] = VERSION;
        datagram[2..6].copy_from_slice(&connection.to_be_bytes());
        let (head, rest) = datagram.split_at_mut(INIT_HEAD_BYTES);
        let mut state = builder(key, head)?.build_initiator().map_err(keys)?;
        state.write_message(&[], rest).map_err(keys)?;
        Ok(Self { state, connection, datagram, reply: None })
    }

    /// The first packet. Send it unchanged until a reply arrives.
    pub fn datagram(&self) -> &[u8] {
        &self.datagram
    }

    /// The first packet at this place in a train, from 1.
    pub(crate) fn in_train(&self, place: u8) -> [u8; INIT_BYTES] {
        let mut datagram = self.datagram;
        datagram[INIT_BYTES - 1] = place;
        datagram
    }

    /// Reads a reply. Any other packet changes nothing: wait for the next one.
    ///
    /// # Errors
    /// [`Error::Malformed`] or [`Error::NotAuthentic`] for anything but the reply to this packet.
    pub fn on_reply(&mut self, datagram: &[u8]) -> Result<Session> {
        let message = datagram
            .strip_prefix(&[KIND_REPLY])
            .and_then(|rest| rest.strip_prefix(&self.connection.to_be_bytes()))
            .filter(|_| datagram.len() == REPLY_BYTES)
            .ok_or(Error::Malformed { what: "not a reply to this handshake" })?;
        let mut plain = [0; REPLY_PLAIN_BYTES];
        // A failed message leaves the state unchanged.
        self.state.read_message(message, &mut plain).map_err(|_| Error::NotAuthentic)?;
        self.reply = datagram.try_into().ok();
        let (peer, greeting) = plain.split_at(4);
        let peer = u32::from_be_bytes([peer[0], peer[1], peer[2], peer[3]]);
        let greeting = &greeting[1..][..usize::from(greeting[0]).min(GREETING_BYTES_MAX)];
        let (sends, receives) = self.state.dangerously_get_raw_split();
        Session::new((peer, Secret(sends)), (self.connection, Secret(receives)), greeting.to_vec())
    }

    /// Whether this is a copy of the reply that established the session. Each copy of the first packet gets
    /// the same reply, possibly by another route.
    pub(crate) fn is_reply_again(&self, datagram: &[u8]) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply == datagram)
    }
}

impl Responder {
    /// Waits for an initiator that has `key`.
    pub fn new(key: Key) -> Self {
        Self { key, pending: Vec::with_capacity(PENDING_MAX) }
    }

    /// Returns the reply to a first packet, with the `greeting` for a new initiator, which is cut to
    /// [`GREETING_BYTES_MAX`].
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::NotAuthentic`]: send no answer, so that nobody learns of the
    /// listener.
    pub fn on_init(
        &mut self,
        datagram: &[u8],
        greeting: impl FnOnce() -> Vec<u8>,
    ) -> Result<[u8; REPLY_BYTES]> {
        let init = datagram
            .first_chunk::<INIT_USED_BYTES>()
            .filter(|init| init[0] == KIND_INIT && datagram.len() == INIT_BYTES)
            .ok_or(Error::Malformed { what: "not the first packet of a handshake" })?;
        if init[1] != VERSION {
            return Err(Error::Malformed { what: "a handshake of another version" });
        }
        if let Some(pending) = self.pending.iter().find(|pending| pending.init == *init) {
            return Ok(pending.reply);
        }
        let (head, message) = init.split_at(INIT_HEAD_BYTES);
        let mut state = builder(&self.key, head)?.build_responder().map_err(keys)?;
        state.read_message(message, &mut []).map_err(|_| Error::NotAuthentic)?;
        let connection = random_u32()?;
        let mut reply = [0; REPLY_BYTES];
        reply[0] = KIND_REPLY;
        reply[1..5].copy_from_slice(&init[2..6]);
        let mut greeting = greeting();
        greeting.truncate(GREETING_BYTES_MAX);
        let mut plain = [0; REPLY_PLAIN_BYTES];
        plain[..4].copy_from_slice(&connection.to_be_bytes());
        plain[4] = greeting.len() as u8;
        plain[5..][..greeting.len()].copy_from_slice(&greeting);
        state.write_message(&plain, &mut reply[5..]).map_err(keys)?;
        let (receives, sends) = state.dangerously_get_raw_split();
        let peer = u32::from_be_bytes([init[2], init[3], init[4], init[5]]);
        let session = Session::new((peer, Secret(sends)), (connection, Secret(receives)), greeting)?;
        if self.pending.len() == PENDING_MAX {
            self.pending.remove(0);
        }
        let (from, train) = (None, HandshakeTrain::default());
        self.pending.push(Pending { init: *init, reply, connection, session, from, train, reports: 0 });
        Ok(reply)
    }

    /// Notes the arrival of a first packet that [`on_init`](Self::on_init) has answered.
    pub(crate) fn note_arrival(&mut self, now_us: u64, from: SocketAddr, datagram: &[u8]) {
        let pending = self.pending.iter_mut().find(|pending| datagram.starts_with(&pending.init));
        if let Some(pending) = pending
            && *pending.from.get_or_insert(from) == from
        {
            pending.train.take(now_us, place_in_train(datagram), datagram.len());
        }
    }

    /// Next report of a handshake's train, and its address. It grants the window.
    pub(crate) fn report_train(&mut self, now_us: u64, window_end: u64) -> Option<(SocketAddr, Vec<u8>)> {
        self.pending.iter_mut().filter(|pending| pending.reports < TRAIN_REPORTS).find_map(|pending| {
            let (from, train) = (pending.from?, pending.train.measured(now_us)?);
            let mut frame = [0; 32];
            let length = Frame::HandshakeTrain { window_end, train }.encode(&mut frame)?;
            let mut report = [&[0; HEADER_BYTES][..], &frame[..length], &[0; TAG_BYTES]].concat();
            pending.session.seal(pending.reports, &mut report).ok()?;
            pending.reports += 1;
            Some((from, report))
        })
    }

    /// Reads a sealed packet. The first authentic one proves its sender's address, uses up the ticket and
    /// establishes the session. Returns the session with the packet's number and frame.
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::NotAuthentic`] for anything else.
    pub fn on_sealed<'a>(&mut self, datagram: &'a mut [u8]) -> Result<(Session, u64, &'a [u8])> {
        let connection = Header::decode(datagram)?.connection;
        let at = self.pending.iter().position(|pending| pending.connection == connection);
        let at = at.ok_or(Error::NotAuthentic)?;
        let opener = &mut self.pending[at].session.opener;
        let number = opener.number(datagram, 0)?;
        let plain = opener.open(number, datagram)?;
        let session = self.pending.swap_remove(at).session;
        Ok((session, number, plain))
    }

    /// Answer to a holder of the key who comes after the ticket was used. It is the reply to a handshake, or
    /// `frame`, sealed, to a packet that proves an address. `None` for everybody else.
    pub(crate) fn refuse(&mut self, datagram: &mut [u8], frame: &[u8]) -> Option<Vec<u8>> {
        if let Ok(reply) = self.on_init(datagram, Vec::new) {
            return Some(reply.to_vec());
        }
        let (mut session, ..) = self.on_sealed(datagram).ok()?;
        let mut answer = [&[0; HEADER_BYTES][..], frame, &[0; TAG_BYTES]].concat();
        session.seal(TRAIN_REPORTS, &mut answer).ok()?;
        Some(answer)
    }
}

const KIND_INIT: u8 = 1;
const KIND_REPLY: u8 = 2;
const VERSION: u8 = 4;
/// Difference between the connection identifiers of the two sessions.
const SECOND_CONNECTION: u32 = 1;
const INIT_HEAD_BYTES: usize = 1 + 1 + 4;
const INIT_USED_BYTES: usize = INIT_HEAD_BYTES + 32 + 16;
const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";

/// Maximum handshakes by holders of the key that have not sent a sealed packet yet. A second one is a
/// restart.
const PENDING_MAX: usize = 4;

/// Reports of a handshake's train, in case some get lost. Their numbers are the session's first ones.
pub(crate) const TRAIN_REPORTS: u64 = 3;

/// Place of a first packet in its train, from 1; 0: before it. Not authenticated, as it only tells a rate.
pub(crate) fn place_in_train(init: &[u8]) -> u8 {
    init.last().copied().unwrap_or(0)
}

/// The handshake authenticates the head of the first packet.
fn builder<'a>(key: &'a Key, head: &'a [u8]) -> Result<Builder<'a>> {
    let params = PATTERN.parse().map_err(keys)?;
    Builder::new(params).psk(0, key.as_bytes()).and_then(|builder| builder.prologue(head)).map_err(keys)
}

fn keys(error: snow::Error) -> Error {
    Error::Keys { what: error.to_string() }
}

fn random_u32() -> Result<u32> {
    getrandom::u32().map_err(|error| Error::Keys { what: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(session: &mut Session, number: u64, frame: &[u8]) -> Vec<u8> {
        let mut datagram = [&[0; HEADER_BYTES][..], frame, &[0; TAG_BYTES]].concat();
        session.seal(number, &mut datagram).unwrap();
        datagram
    }

    #[test]
    fn both_ends_get_the_same_keys_and_the_ticket_is_spent_once() {
        let key = Key::random().unwrap();
        let mut initiator = Initiator::new(&key).unwrap();
        let mut responder = Responder::new(key);
        let reply = responder.on_init(initiator.datagram(), Vec::new).unwrap();
        let mut ours = initiator.on_reply(&reply).unwrap();
        let mut first = sealed(&mut ours, 0, b"hello");
        let mut replayed = first.clone();
        let (mut theirs, number, frame) = responder.on_sealed(&mut first).unwrap();
        assert_eq!((number, frame), (0, &b"hello"[..]));
        assert!(responder.on_sealed(&mut replayed).is_err(), "a session is handed out once");
        let mut back = sealed(&mut theirs, 7, b"and back");
        let opened = ours.open(&ReceivedPackets::default(), &mut back).unwrap();
        assert_eq!(opened, (7, &b"and back"[..]));
    }

    #[test]
    fn the_second_session_is_another_one() {
        let key = Key::random().unwrap();
        let mut initiator = Initiator::new(&key).unwrap();
        let mut responder = Responder::new(key);
        let reply = responder.on_init(initiator.datagram(), Vec::new).unwrap();
        let mut ours = initiator.on_reply(&reply).unwrap();
        let (mut theirs, ..) = responder.on_sealed(&mut sealed(&mut ours, 0, b"hello")).unwrap();
        let (mut our_second, mut their_second) = (ours.take_second().unwrap(), theirs.take_second().unwrap());
        assert!(ours.take_second().is_none() && our_second.take_second().is_none(), "there are two");
        let none = ReceivedPackets::default();
        let mut there = sealed(&mut our_second, 1, b"there");
        assert!(their_second.is_addressed(&there) && !theirs.is_addressed(&there));
        assert!(theirs.open(&none, &mut there.clone()).is_err());
        // The connection identifier is authenticated but not encrypted. A changed one does not make the
        // packet the other session's.
        let mut moved = there.clone();
        moved[4] ^= 1;
        assert!(theirs.is_addressed(&moved));
        assert!(theirs.open(&none, &mut moved).is_err());
        assert_eq!(their_second.open(&none, &mut there).unwrap(), (1, &b"there"[..]));
        let mut back = sealed(&mut their_second, 1, b"back");
        assert!(ours.open(&none, &mut back.clone()).is_err());
        assert_eq!(our_second.open(&none, &mut back).unwrap(), (1, &b"back"[..]));
    }

    #[test]
    fn a_train_is_reported_to_its_address_before_anything_else() {
        let key = Key::random().unwrap();
        let mut initiator = Initiator::new(&key).unwrap();
        let mut responder = Responder::new(key);
        let [from, elsewhere] = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 7)));
        let mut reply = [0; REPLY_BYTES];
        for place in 0..=32 {
            let init = initiator.in_train(place);
            reply = responder.on_init(&init, Vec::new).unwrap();
            let now_us = if place == 0 { 0 } else { 10_000 + 100 * u64::from(place) };
            [from, elsewhere].iter().for_each(|at| responder.note_arrival(now_us, *at, &init));
        }
        let mut ours = initiator.on_reply(&reply).unwrap();
        for number in 0..TRAIN_REPORTS {
            let (to, mut report) = responder.report_train(20_000, 5).unwrap();
            let (opened, frame) = ours.open(&ReceivedPackets::default(), &mut report).unwrap();
            let Ok(Frame::HandshakeTrain { window_end: 5, train }) = Frame::decode(frame) else { panic!() };
            assert_eq!((to, opened, train.span_us), (from, number, 3_100));
        }
        assert!(responder.report_train(20_000, 5).is_none());
        let mut proof = sealed(&mut ours, 0, b"hello");
        let mut refusal = responder.refuse(&mut proof, b"no").unwrap();
        let (number, _) = ours.open(&ReceivedPackets::default(), &mut refusal).unwrap();
        assert_eq!(number, TRAIN_REPORTS, "none is used twice");
    }

    #[test]
    fn without_the_key_there_is_no_answer() {
        let mut responder = Responder::new(Key::random().unwrap());
        let stranger = Initiator::new(&Key::random().unwrap()).unwrap();
        assert!(matches!(responder.on_init(stranger.datagram(), Vec::new), Err(Error::NotAuthentic)));
        assert!(responder.pending.is_empty(), "nor any state");
    }

    #[test]
    fn a_replayed_first_packet_brings_the_same_reply_and_no_more_state() {
        let key = Key::random().unwrap();
        let initiator = Initiator::new(&key).unwrap();
        let mut responder = Responder::new(key.clone());
        let reply = responder.on_init(initiator.datagram(), Vec::new).unwrap();
        assert_eq!(responder.on_init(initiator.datagram(), Vec::new).unwrap(), reply);
        assert_eq!(responder.pending.len(), 1);
        for _ in 0..20 {
            responder.on_init(Initiator::new(&key).unwrap().datagram(), Vec::new).unwrap();
        }
        assert_eq!(responder.pending.len(), PENDING_MAX);
        assert!(reply.len() * 13 < INIT_BYTES, "an answer is a thirteenth of its question");
    }

    #[test]
    fn the_ticket_opens_nothing_that_was_recorded() {
        let key = Key::random().unwrap();
        let mut initiator = Initiator::new(&key).unwrap();
        let mut responder = Responder::new(key.clone());
        let reply = responder.on_init(initiator.datagram(), Vec::new).unwrap();
        let mut ours = initiator.on_reply(&reply).unwrap();
        let recorded = sealed(&mut ours, 0, b"hello");
        // The attacker has the ticket, and both packets of the handshake.
        let mut late = Responder::new(key.clone());
        let other = late.on_init(initiator.datagram(), Vec::new).unwrap();
        assert_ne!(reply, other, "its part is new");
        for connection in [recorded[1..5].try_into().unwrap(), late.pending[0].connection.to_be_bytes()] {
            let mut forged = recorded.clone();
            forged[1..5].copy_from_slice(&connection);
            assert!(late.on_sealed(&mut forged).is_err());
        }
        assert!(Initiator::new(&key).unwrap().on_reply(&reply).is_err());
        assert!(responder.on_sealed(&mut recorded.clone()).is_ok(), "the true one opens it");
    }

    #[test]
    fn a_first_packet_that_is_short_or_changed_is_not_answered() {
        let key = Key::random().unwrap();
        let initiator = Initiator::new(&key).unwrap();
        let mut responder = Responder::new(key.clone());
        assert!(responder.on_init(&initiator.datagram()[..INIT_USED_BYTES], Vec::new).is_err());
        for at in 0..INIT_USED_BYTES {
            let mut changed = initiator.datagram().to_vec();
            changed[at] ^= 1;
            assert!(responder.on_init(&changed, Vec::new).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_forged_reply_does_not_end_the_handshake() {
        let key = Key::random().unwrap();
        let mut initiator = Initiator::new(&key).unwrap();
        let mut responder = Responder::new(key);
        let reply = responder.on_init(initiator.datagram(), Vec::new).unwrap();
        for at in 0..reply.len() {
            let mut forged = reply;
            forged[at] ^= 1;
            assert!(initiator.on_reply(&forged).is_err(), "byte {at}");
        }
        assert!(!initiator.is_reply_again(&reply));
        assert!(initiator.on_reply(&reply).is_ok(), "the true one still counts");
        assert!(initiator.is_reply_again(&reply) && !initiator.is_reply_again(&reply[1..]));
    }

    #[test]
    fn the_greeting_arrives_with_the_reply_and_only_its_receiver_reads_it() {
        let key = Key::random().unwrap();
        for bytes in [0, 1, GREETING_BYTES_MAX, GREETING_BYTES_MAX + 9] {
            let greeting = vec![b'g'; bytes];
            let heard = &greeting[..bytes.min(GREETING_BYTES_MAX)];
            let mut initiator = Initiator::new(&key).unwrap();
            let mut responder = Responder::new(key.clone());
            let reply = responder.on_init(initiator.datagram(), || greeting.clone()).unwrap();
            assert!(!reply.windows(4).any(|it| it == b"gggg"), "sealed");
            let again = responder.on_init(initiator.datagram(), || unreachable!("the reply is kept"));
            assert_eq!(again.unwrap(), reply);
            let mut ours = initiator.on_reply(&reply).unwrap();
            let (theirs, ..) = responder.on_sealed(&mut sealed(&mut ours, 0, b"hello")).unwrap();
            assert_eq!((&ours.greeting[..], &theirs.greeting[..]), (heard, heard), "both know it");
        }
    }
}
