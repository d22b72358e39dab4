//! An end's side: asks at the relay, learns the other end's candidates, and schedules the attempts.
//!
//! ```text
//!  the end that waits               relay                 the end that asks
//!  JOIN ---------------------------->|
//!       <-----------------CHALLENGE--|                      both do this
//!  JOIN with cookie, candidates ---->|
//!       <--------------------JOINED--|<---- JOIN with cookie, candidates
//!       <--- JOINED, the other's ----|---- JOINED, the other's --->
//!  KNOCK, paced, to each candidate ~~> opens the return path   each candidate <~~ the session's first packet
//!       <~~~~~~~~~~~~~~~~~~ first packet of the session: the first route to answer is used ~~~~~~~~~~~~~~~
//! ```
//!
//! The relayed route is an address like the others, the relay's own. The relay forwards datagrams from one end to the
//! other. Direct routes get a head start.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use grebe_packet::{Cookie, Key};

use crate::error::{Error, Result};
use crate::proto::candidates::{Candidate, candidates, decode, encode};
use crate::proto::keys::MeetingKeys;
use crate::proto::message::{Join, MESSAGE_BYTES, Message, MessageBuf, Refusal, SIGNATURE_BYTES, Side};

/// Allowed routes of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Via {
    /// A direct route if possible, otherwise the relayed one.
    #[default]
    Any,
    /// Only direct routes.
    Direct,
    /// Only the relayed route. The other end does not learn this one's addresses.
    Relay,
}

/// An end's standing at the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The relay has not answered yet.
    Unheard,
    /// The other end is absent.
    Alone,
    /// Both ends are present.
    Together,
    /// The relay refuses this end.
    Refused(Refusal),
}

/// Network elements on a direct route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// None known: public addresses.
    Nothing,
    /// A private network that contains both ends.
    PrivateNetwork,
    /// This end's NAT.
    OwnNat,
    /// The other end's NAT.
    TheirNat,
    /// Both ends' NATs.
    BothNats,
}

/// An end's side of a meeting. All times are microseconds of one clock.
///
/// The owner of the socket calls [`poll`](Self::poll) until there is nothing to send, and
/// [`take`](Self::take) with received data that is not the session's.
pub struct Meeting {
    keys: MeetingKeys,
    side: Side,
    via: Via,
    /// Addresses of the relay in the socket's family; one of them is in use.
    relays: Vec<SocketAddr>,
    at: usize,
    is_v6: bool,
    own: Vec<SocketAddr>,
    end: u64,
    number: u64,
    cookie: Option<Cookie>,
    observed: Option<SocketAddr>,
    /// This end's candidates, and their sealed form. Unchanged candidates keep their bytes, so that nobody
    /// takes them for news.
    plain: Vec<u8>,
    sealed: Vec<u8>,
    standing: Standing,
    theirs: Vec<Candidate>,
    their_sealed: Vec<u8>,
    /// Number of unanswered questions, and time of the first one.
    unanswered: u32,
    unanswered_since_us: u64,
    next_join_us: u64,
    joined_us: u64,
    /// End of the head start of direct routes.
    relayed_from_us: Option<u64>,
    is_settled: bool,
    knocks: Knocks,
    /// Sources of knocks that are not answered yet.
    heard: VecDeque<SocketAddr>,
}

/// Knocks of the waiting end at the other's candidates.
#[derive(Default)]
struct Knocks {
    round: usize,
    next_us: u64,
    /// Next candidate in this round.
    at: usize,
    /// Remaining knocks until the budget grows again.
    budget: u32,
    grown_us: u64,
}

impl Meeting {
    /// `own` are the addresses behind `local`, `relays` those of the relay.
    ///
    /// # Errors
    /// [`Error::Keys`] if keys cannot be made.
    pub fn new(
        key: &Key,
        side: Side,
        via: Via,
        local: SocketAddr,
        own: Vec<SocketAddr>,
        relays: &[SocketAddr],
    ) -> Result<Self> {
        let random = |error: getrandom::Error| Error::Keys { what: error.to_string() };
        let mut meeting = Self {
            keys: MeetingKeys::new(key)?,
            side,
            via,
            relays: Vec::new(),
            at: 0,
            is_v6: local.is_ipv6(),
            own: if via == Via::Relay { Vec::new() } else { own },
            end: getrandom::u64().map_err(random)?,
            number: getrandom::u64().map_err(random)? >> 1,
            cookie: None,
            observed: None,
            plain: Vec::new(),
            sealed: Vec::new(),
            standing: Standing::Unheard,
            theirs: Vec::new(),
            their_sealed: Vec::new(),
            unanswered: 0,
            unanswered_since_us: 0,
            next_join_us: 0,
            joined_us: 0,
            relayed_from_us: None,
            is_settled: false,
            knocks: Knocks { budget: KNOCKS_MAX, ..Knocks::default() },
            heard: VecDeque::new(),
        };
        meeting.relays = relays.iter().filter_map(|relay| meeting.as_sent(*relay)).collect();
        Ok(meeting)
    }

    /// Returns the next due message and its destination.
    pub fn poll(&mut self, now_us: u64) -> Option<(SocketAddr, MessageBuf)> {
        if now_us >= self.next_join_us && !self.relays.is_empty() {
            return self.join(now_us, false);
        }
        self.knock(now_us)
    }

    /// Takes received data that is not the session's. Only messages of the relay and the other end change
    /// anything. Returns the length of the messages at the front, because the kernel may coalesce further
    /// datagrams after them.
    pub fn take(&mut self, now_us: u64, from: SocketAddr, bytes: &[u8]) -> usize {
        let messages = bytes.chunks_exact(MESSAGE_BYTES).take_while(|bytes| Message::may_be(bytes));
        let mut taken = 0;
        for bytes in messages {
            taken += bytes.len();
            if let Ok(message) = Message::decode(bytes) {
                self.take_message(now_us, from, message);
            }
        }
        taken
    }

    /// Direct addresses of the other end, best first.
    pub fn direct(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        let is_wanted = self.via != Via::Relay;
        self.theirs.iter().filter(move |_| is_wanted).filter_map(|candidate| self.as_sent(candidate.address))
    }

    /// Address of the other end through the relay, after the head start of direct routes.
    pub fn relayed(&self, now_us: u64) -> Option<SocketAddr> {
        self.relayed_from_us.filter(|from_us| now_us >= *from_us).and_then(|_| self.relay())
    }

    /// Relay address for forwarded data; `None` if only direct routes are allowed.
    pub fn relay(&self) -> Option<SocketAddr> {
        self.relays.get(self.at).copied().filter(|_| self.via != Via::Direct)
    }

    /// Relay address in use for questions, whatever routes are allowed.
    pub fn in_use(&self) -> Option<SocketAddr> {
        self.relays.get(self.at).copied()
    }

    /// Whether packets from this address may be the other end's.
    pub fn is_wanted(&self, from: SocketAddr) -> bool {
        match self.via {
            Via::Any => true,
            Via::Relay => self.relays.contains(&from),
            Via::Direct => !self.relays.contains(&from),
        }
    }

    /// Source of a knock by a ticket holder, once per knock. A NAT may have chosen this address, so no list
    /// has it.
    pub fn next_knock(&mut self) -> Option<SocketAddr> {
        self.heard.pop_front()
    }

    /// Microseconds without an answer of the relay.
    pub fn unanswered_us(&self, now_us: u64) -> u64 {
        if self.unanswered == 0 { 0 } else { now_us.saturating_sub(self.unanswered_since_us) }
    }

    /// Adds another address of the relay, such as a stand-in over TCP, and asks it at once.
    pub fn add_relay(&mut self, now_us: u64, relay: SocketAddr) {
        let Some(relay) = self.as_sent(relay) else { return };
        self.at = self.relays.len();
        self.relays.push(relay);
        (self.cookie, self.unanswered, self.next_join_us) = (None, 0, now_us);
    }

    /// Standing of this end at the relay.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// Notes that the ends have found each other. From now on, this only keeps the place at the relay as a
    /// fallback.
    pub fn settle(&mut self) {
        (self.is_settled, self.knocks.round) = (true, usize::MAX);
        self.heard.clear();
    }

    /// Notes a long silence of the other end: the relay may have been restarted, or its route may have
    /// changed.
    pub fn on_silence(&mut self, now_us: u64) {
        self.next_join_us = self.next_join_us.min((self.joined_us + HURRY_US).max(now_us));
    }

    /// Returns the last message, which frees the place at the relay.
    pub fn leave(&mut self, now_us: u64) -> Option<(SocketAddr, MessageBuf)> {
        self.cookie?;
        self.join(now_us, true)
    }

    /// Network elements on the direct route to `peer`, as far as known.
    pub fn through(&self, peer: SocketAddr) -> Through {
        let peer = canonical(peer);
        if is_private(peer.ip()) {
            return Through::PrivateNetwork;
        }
        if peer.is_ipv6() {
            return Through::Nothing;
        }
        let is_ours =
            self.observed.is_some_and(|observed| !self.own.iter().any(|own| own.ip() == observed.ip()));
        let is_named = |candidate: &Candidate| candidate.address == peer && !candidate.is_observed;
        let is_theirs = !self.theirs.is_empty() && !self.theirs.iter().any(is_named);
        match (is_ours, is_theirs) {
            (true, true) => Through::BothNats,
            (true, false) => Through::OwnNat,
            (false, true) => Through::TheirNat,
            (false, false) => Through::Nothing,
        }
    }

    fn take_message(&mut self, now_us: u64, from: SocketAddr, message: Message<'_>) {
        if let Message::Knock { seal } = message {
            let is_awaited = self.side == Side::Asks && self.via != Via::Relay && !self.is_settled;
            if is_awaited && self.heard.len() < KNOCKS_HEARD_MAX && self.keys.is_knock(seal) {
                self.heard.push_back(from);
            }
            return;
        }
        let Some(at) = self.relays.iter().position(|relay| *relay == from) else { return };
        // The number proves that the sender has seen a question. Off-path attackers have not.
        let is_answer = |number: u64| number <= self.number && self.number - number < ANSWERS_LATE_MAX;
        if at != self.at {
            // A late address is better than a silent one.
            let is_late = match message {
                Message::Challenge { number, .. } | Message::Joined { number, .. } => is_answer(number),
                _ => false,
            };
            if !is_late || self.unanswered == 0 {
                return;
            }
            (self.at, self.cookie) = (at, None);
        }
        match message {
            Message::Challenge { number, observed, cookie } if is_answer(number) => {
                (self.cookie, self.observed, self.unanswered) = (Some(cookie), Some(observed), 0);
                self.next_join_us = now_us;
            }
            Message::Joined { number, observed, other } if is_answer(number) => {
                let is_asked = self.unanswered > 0;
                self.unanswered = 0;
                self.on_joined(now_us, other);
                // An unsolicited message means that the other end has arrived. The relay must learn that this
                // end knows, and the other end must learn a new address.
                let is_news = !is_asked || self.observed != Some(observed);
                let wait_us = match (is_news, self.standing) {
                    (true, _) => ANSWER_US,
                    _ if self.is_settled || self.side == Side::Waits => KEEP_US,
                    (_, Standing::Together) => HEARD_US,
                    _ => ALONE_US,
                };
                self.observed = Some(observed);
                self.next_join_us = now_us.max(self.joined_us + wait_us);
            }
            Message::Refused { number, reason } if is_answer(number) => {
                (self.standing, self.unanswered) = (Standing::Refused(reason), 0);
                self.next_join_us = now_us + REFUSED_US;
            }
            _ => {}
        }
    }

    fn on_joined(&mut self, now_us: u64, other: Option<&[u8]>) {
        let Some(sealed) = other else {
            self.standing = Standing::Alone;
            return;
        };
        self.standing = Standing::Together;
        if self.their_sealed != sealed {
            // Data that does not decrypt comes from the relay or an attacker on the path to it.
            let side = if self.side == Side::Asks { Side::Waits } else { Side::Asks };
            let Ok(theirs) = self.keys.open(side, sealed).and_then(|plain| decode(&plain)) else { return };
            (self.theirs, self.their_sealed) = (theirs, sealed.to_vec());
            if !self.is_settled {
                (self.knocks.round, self.knocks.at, self.knocks.next_us) = (0, 0, now_us);
            }
        }
        if self.relayed_from_us.is_none() {
            let has_direct = self.direct().next().is_some();
            let round_trip_us = now_us.saturating_sub(self.joined_us);
            let head_start_us = (HEAD_START_US + 4 * round_trip_us).min(HEAD_START_US_MAX);
            self.relayed_from_us = Some(now_us + if has_direct { head_start_us } else { 0 });
        }
    }

    fn join(&mut self, now_us: u64, is_leaving: bool) -> Option<(SocketAddr, MessageBuf)> {
        if self.unanswered > 0 && self.unanswered.is_multiple_of(ASKED_EACH) && self.relays.len() > 1 {
            // Another address of the relay may work where this one fails. It needs its own cookie.
            self.at = (self.at + 1) % self.relays.len();
            self.cookie = None;
        }
        let to = *self.relays.get(self.at)?;
        self.number += 1;
        if self.unanswered == 0 {
            self.unanswered_since_us = now_us;
        }
        self.unanswered += 1;
        self.joined_us = now_us;
        let tries = JOIN_AGAIN_US.len().min(self.unanswered as usize);
        self.next_join_us = now_us + JOIN_AGAIN_US[tries - 1];
        let observed = self.observed.filter(|_| self.via != Via::Relay);
        let plain = encode(&candidates(&self.own, observed));
        if self.sealed.is_empty() || self.plain != plain {
            // Without random numbers nothing can be sealed, and only the relayed route remains.
            (self.sealed, self.plain) = (self.keys.seal(self.side, &plain).unwrap_or_default(), plain);
        }
        let join = Join {
            side: self.side,
            is_leaving,
            meeting: self.keys.meeting,
            end: self.end,
            number: self.number,
            cookie: self.cookie.unwrap_or_default(),
            signature: [0; SIGNATURE_BYTES],
            sealed: &self.sealed,
        };
        let mut message = Message::Join(join).encode();
        self.keys.sign(&mut message);
        Some((to, message))
    }

    fn is_knocking(&self) -> bool {
        self.side == Side::Waits
            && self.via != Via::Relay
            && self.knocks.round < KNOCK_AFTER_US.len()
            && !self.theirs.is_empty()
    }

    fn knock(&mut self, now_us: u64) -> Option<(SocketAddr, MessageBuf)> {
        let knocks = &mut self.knocks;
        let grown =
            (now_us.saturating_sub(knocks.grown_us) / KNOCK_EACH_US).min(u64::from(KNOCKS_MAX)) as u32;
        if grown > 0 {
            (knocks.budget, knocks.grown_us) = ((knocks.budget + grown).min(KNOCKS_MAX), now_us);
        }
        loop {
            if !self.is_knocking() || now_us < self.knocks.next_us || self.knocks.budget == 0 {
                return None;
            }
            let Some(candidate) = self.theirs.get(self.knocks.at).copied() else {
                let wait_us = KNOCK_AFTER_US[self.knocks.round];
                (self.knocks.round, self.knocks.at) = (self.knocks.round + 1, 0);
                self.knocks.next_us = now_us + wait_us;
                continue;
            };
            self.knocks.at += 1;
            let Some(to) = self.as_sent(candidate.address) else { continue };
            let seal = self.keys.knock().ok()?;
            self.knocks.budget -= 1;
            return Some((to, Message::Knock { seal: &seal }.encode()));
        }
    }

    /// Address in this socket's family; `None` if the socket cannot reach its family.
    pub fn as_sent(&self, address: SocketAddr) -> Option<SocketAddr> {
        match canonical(address) {
            SocketAddr::V4(v4) if self.is_v6 => {
                Some(SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()))
            }
            SocketAddr::V6(_) if !self.is_v6 => None,
            address => Some(address),
        }
    }
}

/// Canonical address: IPv4 as such, even if a dual-stack socket wrote it as IPv6.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_private() || ip.is_loopback() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

/// Delays between unanswered questions.
const JOIN_AGAIN_US: [u64; 6] = [100_000, 250_000, 250_000, 500_000, 1_000_000, 2_000_000];

/// Unanswered questions before the next address of the relay gets its turn.
const ASKED_EACH: u32 = 2;

/// Question interval of the ticket holder while it is alone, and until the session begins.
const ALONE_US: u64 = 1_000_000;
const HEARD_US: u64 = 300_000;

/// Minimum interval of questions in response to messages.
const ANSWER_US: u64 = 50_000;

/// NATs forget a mapping after 30 s or more of silence (RFC 4787 asks for two minutes, which some ignore).
const KEEP_US: u64 = 15_000_000;
const REFUSED_US: u64 = 5_000_000;
const HURRY_US: u64 = 1_000_000;

/// Head start of direct routes beyond their round trips: two more tries of each end.
const HEAD_START_US: u64 = 400_000;
const HEAD_START_US_MAX: u64 = 3_000_000;

/// Delays between rounds of knocks.
const KNOCK_AFTER_US: [u64; 8] =
    [50_000, 100_000, 200_000, 400_000, 800_000, 1_000_000, 1_000_000, 1_000_000];

/// Knock budget and its refill interval. A bound, because any ticket holder chooses the destinations.
const KNOCKS_MAX: u32 = 100;
const KNOCK_EACH_US: u64 = 100_000;

/// Maximum unanswered knocks.
const KNOCKS_HEARD_MAX: usize = 16;

/// Number of earlier questions whose late answers still count.
const ANSWERS_LATE_MAX: u64 = 16;

#[cfg(test)]
mod tests;
