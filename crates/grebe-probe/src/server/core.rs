//! What a server does, as a machine without sockets: who may speak, who is next, what is answered.
//!
//! ```text
//!  Hello ----> Challenge       no state but which hellos were seen; no longer than the hello
//!  Start ----> Wait | Welcome  the cookie proves the address; from here on answers may be longer than questions
//!  Ask, Ping, Data ...         signed with the session's own key, from the proven address only
//! ```
//!
//! What is not signed, was seen before, or comes from elsewhere, changes nothing and is not answered.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use crate::endpoint::{Arrival, Outbox, Peer};
use crate::key::{self, Key, Keys, Signer};
use crate::packet::{Answer, Ask, Body, Cookie, Flow, Packet, SIZES_MAX, Stream, Welcome, Why};
use crate::replay::Window;
use crate::tracker::{Summary, Tracker};
use crate::train::Train;
use crate::{Bounds, Limits, Result};

/// What a server can do beside answering.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Job {
    Send(Train),
    Sizes([u16; SIZES_MAX]),
}

/// What a client is told about the server.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Facts {
    pub epoch_ns: u64,
    pub buffer_bytes: u64,
    pub buffer_asked_bytes: u64,
}

/// The state of a server.
pub(crate) struct Core {
    key: Key,
    outer: Keys,
    secret: Signer,
    bounds: Bounds,
    facts: Facts,
    /// Those who said hello with the key, and the number of their newest packet.
    guests: HashMap<[u8; 16], Guest>,
    queue: VecDeque<Waiting>,
    active: Option<Session>,
    clients_left: u32,
    pub served: u32,
}

#[derive(Debug, Default)]
struct Guest {
    newest: Option<u64>,
    done: bool,
}

struct Waiting {
    nonce: [u8; 16],
    heard_ns: u64,
}

struct Session {
    id: u64,
    peer: SocketAddr,
    keys: Keys,
    limits: Limits,
    welcome: Welcome,
    window: Window,
    next_number: u64,
    began_ns: u64,
    heard_ns: u64,
    bytes: u64,
    tracker: Option<Tracker>,
    drops_before: Option<u64>,
    newest_train: u32,
    answered: Option<(u32, Answer)>,
    job: Option<Job>,
    sending: Option<(u32, u32, bool)>,
    size_seen: u16,
    stream: Option<(u32, Option<Flow>)>,
}

impl Core {
    pub fn new(key: Key, bounds: Bounds, facts: Facts, clients: u32) -> Result<Self> {
        Ok(Self {
            outer: key.outer(),
            secret: Signer::random()?,
            key,
            bounds,
            facts,
            guests: HashMap::new(),
            queue: VecDeque::new(),
            active: None,
            clients_left: clients,
            served: 0,
        })
    }

    /// Whether the key is used up.
    pub fn is_done(&self) -> bool {
        self.clients_left == 0 && self.active.is_none()
    }

    /// Who is served.
    pub fn client(&self) -> Option<SocketAddr> {
        self.active.as_ref().map(|session| session.peer)
    }

    /// What is to be done now, for whom, in which session, signed by what.
    pub fn take_job(&mut self) -> Option<(Job, SocketAddr, u64, Signer)> {
        let session = self.active.as_mut()?;
        let job = session.job.take()?;
        Some((job, session.peer, session.id, session.keys.server.clone()))
    }

    /// A train was sent so far.
    pub fn train_sent(&mut self, train: u32, count: u32, done: bool) {
        if let Some(session) = &mut self.active
            && session.sending.is_some_and(|(id, ..)| id == train)
        {
            session.sending = Some((train, count, done));
        }
    }

    /// The TCP stream that these first bytes of a connection ask for, and its highest rate. Each is granted once.
    pub fn open_stream(&mut self, from: IpAddr, bytes: &[u8], now_ns: u64) -> Option<(Stream, f64)> {
        let session = self.active.as_mut()?;
        let Packet { session: id, body: Body::Stream(stream), .. } =
            Packet::decode(bytes, &session.keys.client)?
        else {
            return None;
        };
        if id != session.id
            || from != session.peer.ip()
            || session.stream.is_some_and(|(last, _)| last >= stream.id)
        {
            return None;
        }
        session.heard_ns = now_ns;
        let bytes_max = stream.bytes_max.min(session.limits.bytes_max.saturating_sub(session.bytes));
        let duration_ns = stream.duration_ns.min(STREAM_NS_MAX);
        session.stream = Some((stream.id, None));
        Some((Stream { bytes_max, duration_ns, ..stream }, session.limits.rate_max_bps))
    }

    /// A TCP stream is over; `moved` bytes went either way.
    pub fn stream_done(&mut self, id: u32, moved: u64, flow: Option<Flow>, now_ns: u64) {
        if let Some(session) = &mut self.active
            && session.stream.is_some_and(|(last, _)| last == id)
        {
            session.stream = Some((id, flow));
            session.bytes += moved;
            session.heard_ns = now_ns;
        }
    }

    /// Packets that go before a session.
    fn opening(&mut self, arrival: &Arrival<'_>, out: &mut Outbox) {
        let Some(packet) = Packet::decode(arrival.bytes, &self.outer.client) else { return };
        let reply = |body| Packet { session: 0, number: packet.number, body };
        match packet.body {
            Body::Hello { nonce } if self.is_news(&nonce, packet.number) => {
                let made_ns = arrival.now_ns;
                let cookie = Cookie { made_ns, tag: self.proof(arrival.from, &nonce, made_ns) };
                out.push(Some(arrival.from), &reply(Body::Challenge { nonce, cookie }), &self.outer.server);
            }
            Body::Start { nonce, cookie } => {
                let age_ns = arrival.now_ns.saturating_sub(cookie.made_ns);
                let is_proven = cookie.made_ns <= arrival.now_ns
                    && age_ns < COOKIE_NS
                    && self.proof(arrival.from, &nonce, cookie.made_ns) == cookie.tag;
                if !is_proven || !self.is_news(&nonce, packet.number) {
                    return;
                }
                let body = self.admit(nonce, arrival);
                out.push(Some(arrival.from), &reply(body), &self.outer.server);
            }
            _ => {}
        }
    }

    /// Whether a packet of this guest is newer than any before.
    fn is_news(&mut self, nonce: &[u8; 16], number: u64) -> bool {
        if !self.guests.contains_key(nonce) && self.guests.len() >= GUESTS_MAX {
            return false;
        }
        let guest = self.guests.entry(*nonce).or_default();
        if guest.done || guest.newest.is_some_and(|newest| number <= newest) {
            return false;
        }
        guest.newest = Some(number);
        true
    }

    /// Lets a proven client begin, or says how many are before it.
    fn admit(&mut self, nonce: [u8; 16], arrival: &Arrival<'_>) -> Body {
        if let Some(session) = self.active.as_ref().filter(|session| session.welcome.nonce == nonce) {
            return Body::Welcome(session.welcome);
        }
        let queued = self.queue.iter().position(|waiting| waiting.nonce == nonce);
        let position = queued.unwrap_or(self.queue.len());
        let ahead = position as u32 + u32::from(self.active.is_some());
        if position as u32 >= self.clients_left || (queued.is_none() && self.queue.len() >= QUEUE_MAX) {
            return Body::Bye { why: Why::Busy };
        }
        if ahead > 0 {
            match queued {
                Some(position) => self.queue[position].heard_ns = arrival.now_ns,
                None => self.queue.push_back(Waiting { nonce, heard_ns: arrival.now_ns }),
            }
            return Body::Wait { nonce, position: ahead as u16 };
        }
        let Ok(server_nonce) = key::random::<16>() else { return Body::Bye { why: Why::Busy } };
        if queued.is_some() {
            self.queue.remove(position);
        }
        let limits = self.bounds.for_guest(arrival.from.ip());
        let mut id = [0; 8];
        id.copy_from_slice(&server_nonce[..8]);
        let welcome = Welcome {
            nonce,
            server_nonce,
            session: u64::from_le_bytes(id) | 1,
            epoch_ns: self.facts.epoch_ns,
            rate_max_bps: limits.rate_max_bps,
            bytes_max: limits.bytes_max,
            duration_max_ns: limits.duration_max.as_nanos() as u64,
            buffer_bytes: self.facts.buffer_bytes,
            buffer_asked_bytes: self.facts.buffer_asked_bytes,
        };
        self.clients_left -= 1;
        self.active = Some(Session {
            id: welcome.session,
            peer: arrival.from,
            keys: self.key.session(&nonce, &server_nonce),
            limits,
            welcome,
            window: Window::new(),
            next_number: 0,
            began_ns: arrival.now_ns,
            heard_ns: arrival.now_ns,
            bytes: 0,
            tracker: None,
            drops_before: arrival.kernel_drops,
            newest_train: 0,
            answered: None,
            job: None,
            sending: None,
            size_seen: 0,
            stream: None,
        });
        Body::Welcome(welcome)
    }

    fn proof(&self, from: SocketAddr, nonce: &[u8; 16], made_ns: u64) -> [u8; key::TAG_BYTES] {
        let ip = match from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        };
        self.secret.tag(&[&ip, &from.port().to_le_bytes(), nonce, &made_ns.to_le_bytes()])
    }

    fn end(&mut self) {
        if let Some(session) = self.active.take() {
            if let Some(guest) = self.guests.get_mut(&session.welcome.nonce) {
                guest.done = true;
            }
            self.served += 1;
        }
    }
}

impl Peer for Core {
    fn arrived(&mut self, arrival: Arrival<'_>, out: &mut Outbox) {
        match Packet::claimed_session(arrival.bytes) {
            Some(0) => self.opening(&arrival, out),
            Some(id) => {
                let Some(session) = self.active.as_mut() else { return };
                if session.id == id && session.peer == arrival.from && session.arrived(&arrival, out) {
                    self.end();
                }
            }
            None => {}
        }
    }

    fn tick(&mut self, now_ns: u64, _: &mut Outbox) {
        self.queue.retain(|waiting| now_ns.saturating_sub(waiting.heard_ns) < QUEUE_SILENCE_NS);
        let over = self.active.as_ref().is_some_and(|session| {
            now_ns.saturating_sub(session.heard_ns) > SILENCE_NS
                || now_ns.saturating_sub(session.began_ns) > session.limits.duration_max.as_nanos() as u64
        });
        if over {
            self.end();
        }
    }

    fn stops(&self) -> bool {
        self.active.is_none()
    }
}

impl Session {
    /// Whether that was the end of the session.
    fn arrived(&mut self, arrival: &Arrival<'_>, out: &mut Outbox) -> bool {
        let Some(packet) = Packet::decode(arrival.bytes, &self.keys.client) else { return false };
        let body = match packet.body {
            // A copy of a datagram is counted as one, whoever made it: it is what the path did.
            Body::Data { train, seq, sent_ns } => {
                self.heard_ns = arrival.now_ns;
                self.data(train, seq, sent_ns, arrival);
                if self.bytes <= self.limits.bytes_max {
                    return false;
                }
                self.reply(Body::Bye { why: Why::Limit }, out);
                return true;
            }
            // The longest that came: to hear it again changes nothing.
            Body::Size => {
                self.size_seen = self.size_seen.max(arrival.bytes.len() as u16);
                return false;
            }
            body if self.window.accept(packet.number) => body,
            _ => return false,
        };
        self.heard_ns = arrival.now_ns;
        match body {
            Body::Ping { sent_ns } => {
                let answered_ns = arrival.now_ns;
                self.reply(Body::Pong { sent_ns, arrived_ns: arrival.arrived_ns, answered_ns }, out);
            }
            Body::Ask { id, ask } => {
                let answer = match self.answered {
                    // Asked again: the answer was lost. What depends on the time is looked up anew.
                    Some((last, answer @ (Answer::Accepted | Answer::Refused))) if last == id => answer,
                    _ => self.answer(&ask, arrival.kernel_drops),
                };
                self.answered = Some((id, answer));
                self.reply(Body::Answer { id, answer }, out);
            }
            Body::Bye { .. } => return true,
            _ => {}
        }
        false
    }

    fn data(&mut self, train: Train, seq: u32, sent_ns: u64, arrival: &Arrival<'_>) {
        if arrival.bytes.len() != usize::from(train.size) {
            return;
        }
        self.bytes += u64::from(train.size) + 28;
        if train.id > self.newest_train {
            self.newest_train = train.id;
            self.drops_before = arrival.kernel_drops;
            self.tracker = Some(Tracker::new(train));
        }
        if let Some(tracker) = self.tracker.as_mut().filter(|tracker| *tracker.train() == train) {
            tracker.arrived(seq, sent_ns, arrival.arrived_ns);
        }
    }

    fn answer(&mut self, ask: &Ask, drops: Option<u64>) -> Answer {
        let limits = self.limits;
        match *ask {
            Ask::Send(train) => {
                let is_burst = train.interval_ns == 0 && train.count <= BURST_MAX;
                let is_busy = self.sending.is_some_and(|(.., done)| !done) || self.job.is_some();
                if is_busy
                    || !(is_burst || train.rate_bps() <= limits.rate_max_bps * 1.02)
                    || train.bytes() > limits.bytes_max.saturating_sub(self.bytes)
                {
                    return Answer::Refused;
                }
                self.bytes += train.bytes();
                self.sending = Some((train.id, 0, false));
                self.job = Some(Job::Send(train));
                Answer::Accepted
            }
            Ask::Sent { train } => match self.sending {
                Some((id, sent, done)) if id == train => Answer::Sent { sent, done },
                _ => Answer::Nothing,
            },
            Ask::Summary { train } => match &self.tracker {
                Some(tracker) if tracker.train().id == train => {
                    let drops = drops.map(|drops| drops - self.drops_before.unwrap_or(0).min(drops));
                    Answer::Summary(tracker.summary(drops))
                }
                _ => Answer::Nothing,
            },
            Ask::Sizes(sizes) => {
                let bytes = sizes.iter().map(|&size| u64::from(size) * 3).sum::<u64>();
                if self.job.is_some() || bytes > limits.bytes_max.saturating_sub(self.bytes) {
                    return Answer::Refused;
                }
                self.bytes += bytes;
                self.job = Some(Job::Sizes(sizes));
                Answer::Accepted
            }
            Ask::SizeSeen => Answer::SizeSeen { bytes: self.size_seen },
            Ask::Stream { id } => match self.stream {
                Some((last, Some(flow))) if last == id => Answer::Stream(flow),
                _ => Answer::Nothing,
            },
        }
    }

    fn reply(&mut self, body: Body, out: &mut Outbox) {
        let packet = Packet { session: self.id, number: self.next_number, body };
        self.next_number += 1;
        out.push(Some(self.peer), &packet, &self.keys.server);
    }
}

/// What arrived of a train of which nothing arrived.
pub(crate) fn nothing_of(train: &Train) -> Summary {
    Tracker::new(*train).summary(None)
}

const GUESTS_MAX: usize = 1_024;
const QUEUE_MAX: usize = 16;
const COOKIE_NS: u64 = 60_000_000_000;
const QUEUE_SILENCE_NS: u64 = 5_000_000_000;
const SILENCE_NS: u64 = 10_000_000_000;
const STREAM_NS_MAX: u64 = 60_000_000_000;
const BURST_MAX: u32 = 256;
