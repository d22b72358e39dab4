//! Decisions of a relay: membership and forwarding.
//!
//! ```text
//!  JOIN, no cookie ----> CHALLENGE             no state; as long as the question
//!  JOIN with cookie ---> JOINED | REFUSED      the address is proven, and that the end has the ticket
//!  anything else ------> the other end         from an address of a meeting of two; else it is dropped and counted
//! ```

mod bucket;
mod figures;
mod meetings;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use grebe_packet::CookieMaker;

use self::bucket::{Bucket, HostBuckets};
pub use self::figures::Figures;
use self::meetings::{Meetings, Member, Place};
use crate::error::Result;
use crate::proto::keys::is_signed;
use crate::proto::meeting::canonical;
use crate::proto::message::{Join, Message, MessageBuf, Refusal};

/// Limits of a relay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Maximum sessions, at 2 KB of memory each.
    pub sessions: usize,
    /// Maximum sessions per host. An IPv6 network of 64 bits counts as one host.
    pub sessions_per_host: usize,
    /// Maximum forwarded bits per second for one session, both directions together.
    pub session_bits_per_s: f64,
    /// Maximum forwarded bits per second in total.
    pub bits_per_s: f64,
    /// Microseconds of silence after which an end is forgotten.
    pub idle_us: u64,
}

/// A relay without sockets. All times are microseconds of one clock.
pub struct RelayCore {
    limits: Limits,
    cookies: CookieMaker,
    meetings: Meetings,
    sessions_of_host: HashMap<IpAddr, usize>,
    total: Bucket,
    challenges: Bucket,
    checks: Bucket,
    questions_of_host: HostBuckets,
    next_look_us: u64,
    figures: Figures,
}

/// Answers of a relay, with their destinations.
pub type Outbox = Vec<(SocketAddr, MessageBuf)>;

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 1_000,
            sessions_per_host: 50,
            session_bits_per_s: 1e9,
            bits_per_s: 10e9,
            idle_us: 60_000_000,
        }
    }
}

impl RelayCore {
    /// # Errors
    /// [`Error::Keys`](crate::Error::Keys) if the system has no random numbers.
    pub fn new(limits: Limits) -> Result<Self> {
        Ok(Self {
            limits,
            cookies: CookieMaker::new()?,
            meetings: Meetings::new(limits.sessions),
            sessions_of_host: HashMap::new(),
            total: Bucket::of_bits(limits.bits_per_s),
            challenges: Bucket::of_messages(CHALLENGES_PER_S),
            checks: Bucket::of_messages(CHECKS_PER_S),
            questions_of_host: HostBuckets::new(QUESTIONS_OF_HOST_PER_S)?,
            next_look_us: 0,
            figures: Figures::default(),
        })
    }

    /// Destination of `len` bytes from `from` in datagrams of `segment_bytes`, and the number of bytes to
    /// forward.
    #[inline]
    pub fn route(
        &mut self,
        now_us: u64,
        from: SocketAddr,
        len: usize,
        segment_bytes: usize,
    ) -> Option<(SocketAddr, usize)> {
        let datagrams = |bytes: usize| bytes.div_ceil(segment_bytes.max(1)) as u64;
        let Some(place) = self.meetings.place_of(from) else {
            self.figures.dropped_of_strangers += datagrams(len);
            return None;
        };
        let meeting = self.meetings.meeting(place);
        let Some(to) = meeting.heard(now_us, place) else {
            self.figures.dropped_while_alone += datagrams(len);
            return None;
        };
        let room = meeting.bucket.room(now_us).min(self.total.room(now_us));
        // Only complete datagrams.
        let passed =
            if len as u64 <= room { len } else { room as usize / segment_bytes.max(1) * segment_bytes };
        meeting.bucket.take(passed as u64);
        self.total.take(passed as u64);
        self.figures.dropped_over_rate += datagrams(len) - datagrams(passed);
        self.figures.relayed_datagrams += datagrams(passed);
        self.figures.relayed_bytes += passed as u64;
        (passed > 0).then_some((to, passed))
    }

    /// Answers a message for the relay. A message without proof of address and ticket, or a replay, changes
    /// nothing.
    pub fn on_message(&mut self, now_us: u64, from: SocketAddr, message: &MessageBuf, out: &mut Outbox) {
        let Ok(Message::Join(join)) = Message::decode(message) else {
            self.figures.malformed += 1;
            return;
        };
        self.figures.questions += 1;
        let observed = canonical(from);
        if !self.cookies.accepts(now_us, from, &[], &join.cookie) {
            if self.challenges.take_one(now_us) {
                let cookie = self.cookies.make(now_us, from, &[]);
                let challenge = Message::Challenge { number: join.number, observed, cookie };
                self.figures.challenges += 1;
                out.push((from, challenge.encode()));
            } else {
                self.figures.over_question_rate += 1;
            }
            return;
        }
        // Checking a signature costs as much as forwarding a thousand datagrams.
        let is_member = self.meetings.place_of(from).is_some();
        let is_allowed = self.questions_of_host.take_one(now_us, host(observed))
            && (is_member || self.checks.take_one(now_us));
        if !is_allowed {
            self.figures.over_question_rate += 1;
            return;
        }
        if !is_signed(message, &join.meeting, &join.signature) {
            self.figures.forged += 1;
            return;
        }
        self.on_join(now_us, from, &join, out);
    }

    /// Whether a ticket holder is present at this address.
    pub fn is_member(&self, address: SocketAddr) -> bool {
        self.meetings.place_of(address).is_some()
    }

    /// Notes that the connection with this address is closed.
    pub fn gone(&mut self, address: SocketAddr) {
        if let Some(place) = self.meetings.place_of(address) {
            self.remove(place);
        }
    }

    /// Forgets silent ends. Call this several times per second.
    pub fn tick(&mut self, now_us: u64) {
        if now_us < self.next_look_us {
            return;
        }
        self.next_look_us = now_us + LOOK_EVERY_US;
        let (hosts, idle_us) = (&mut self.sessions_of_host, self.limits.idle_us);
        let forgotten = self.meetings.forget_silent(now_us, idle_us, |address| leave_host(hosts, address));
        self.figures.idle_ends += forgotten;
    }

    /// Totals and present state.
    pub fn figures(&self) -> Figures {
        let (sessions, relaying) = self.meetings.count();
        Figures { sessions, relaying, ..self.figures }
    }

    fn on_join(&mut self, now_us: u64, from: SocketAddr, join: &Join<'_>, out: &mut Outbox) {
        let slot = self.meetings.slot_of(&join.meeting);
        let there = slot.and_then(|slot| self.meetings.member(Place { slot, side: join.side }));
        let is_same_end = there.is_some_and(|there| there.end == join.end);
        if is_same_end && there.is_some_and(|there| there.number >= join.number) {
            self.figures.replayed += 1;
            return;
        }
        if join.is_leaving {
            if let (Some(slot), true) = (slot, is_same_end) {
                self.remove(Place { slot, side: join.side });
            }
            return;
        }
        let refusal = match there {
            Some(there) if !is_same_end && now_us < there.heard_us + TAKEN_US => Some(Refusal::Taken),
            None if slot.is_none() && self.meetings.is_full() => Some(Refusal::Full),
            _ => None,
        };
        let is_new_host = there.is_none_or(|there| host(there.address) != host(from));
        let of_host = self.sessions_of_host.get(&host(from)).copied().unwrap_or(0);
        let is_one_too_many = is_new_host && of_host >= self.limits.sessions_per_host;
        if let Some(reason) = refusal.or(is_one_too_many.then_some(Refusal::TooMany)) {
            self.figures.refused += 1;
            out.push((from, Message::Refused { number: join.number, reason }.encode()));
            return;
        }
        // An address has one place: its end may have a new ticket, or be the other side now.
        if let Some(elsewhere) = self.meetings.place_of(from)
            && Some(elsewhere) != slot.map(|slot| Place { slot, side: join.side })
        {
            self.remove(elsewhere);
        }
        let bits_per_s = self.limits.session_bits_per_s;
        let place = self.meetings.slot_for(&join.meeting, || Bucket::of_bits(bits_per_s));
        let Some(slot) = place else { return };
        let place = Place { slot, side: join.side };
        let before = self.meetings.put(place, Member::new(now_us, from, join));
        if let Some(before) = before {
            leave_host(&mut self.sessions_of_host, before);
        }
        *self.sessions_of_host.entry(host(from)).or_default() += 1;
        self.answer(place, join, out);
    }

    /// Tells the end its standing, and the other end of it unless that has shown that it knows.
    fn answer(&mut self, place: Place, join: &Join<'_>, out: &mut Outbox) {
        let Some((own, other)) = self.meetings.meeting(place).both(place.side) else { return };
        let said = Message::Joined {
            number: join.number,
            observed: canonical(own.address),
            other: other.as_ref().map(|other| other.sealed()),
        };
        out.push((own.address, said.encode()));
        own.knows = other.as_ref().map(|other| (other.end, other.said));
        if let Some(other) = other
            && other.knows != Some((own.end, own.said))
        {
            let told = Message::Joined {
                number: other.number,
                observed: canonical(other.address),
                other: Some(own.sealed()),
            };
            out.push((other.address, told.encode()));
        }
    }

    fn remove(&mut self, place: Place) {
        if let Some(address) = self.meetings.remove(place) {
            leave_host(&mut self.sessions_of_host, address);
        }
    }
}

fn leave_host(sessions_of_host: &mut HashMap<IpAddr, usize>, address: SocketAddr) {
    let host = host(address);
    if let Some(sessions) = sessions_of_host.get_mut(&host) {
        *sessions -= 1;
        if *sessions == 0 {
            sessions_of_host.remove(&host);
        }
    }
}

/// Unit that counts as one host.
fn host(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            [a, b, c, d, 0, 0, 0, 0].into()
        }
        ip => ip,
    }
}

/// Maximum answers to unproven addresses: 64 Mbit/s.
const CHALLENGES_PER_S: u32 = 20_000;

/// Maximum signature checks for new ends: some 60 us each, so a quarter of a core.
const CHECKS_PER_S: u32 = 4_000;

/// An end asks four times in its first second.
const QUESTIONS_OF_HOST_PER_S: u32 = 50;

/// Time for which nobody else can take the place of an end that was heard.
const TAKEN_US: u64 = 10_000_000;

const LOOK_EVERY_US: u64 = 1_000_000;

#[cfg(test)]
mod tests;
