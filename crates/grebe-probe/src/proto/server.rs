//! Decisions of a server, without sockets: admission, order of clients, and answers.
//!
//! ```text
//!  Hello ----> Challenge       no state except the hellos seen; no longer than the hello
//!  Start ----> Wait | Welcome  the cookie proves the address; from here on answers may be longer than requests
//!  Request, Ping, Data ...     signed with the session's own key, from the proven address only
//! ```
//!
//! A packet that is unsigned, replayed or from another address changes nothing and gets no answer.

pub(crate) mod session;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use grebe_packet::{CookieMaker, Key};

use self::session::ServerSession;
use crate::error::Result;
use crate::proto::handler::{Arrival, Outbox, PacketHandler};
use crate::proto::limits::Bounds;
use crate::proto::packet::{Body, EndReason, Packet, Welcome};
use crate::proto::signing::{self, Keys};

/// Facts about the server for its clients.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ServerFacts {
    pub(crate) epoch_ns: u64,
    pub(crate) buffer_bytes: u64,
    pub(crate) buffer_asked_bytes: u64,
}

/// The state of a server.
pub(crate) struct ServerCore {
    key: Key,
    opening_keys: Keys,
    cookies: CookieMaker,
    bounds: Bounds,
    facts: ServerFacts,
    /// Clients with a valid hello, by their nonce.
    clients: HashMap<[u8; 16], ClientRecord>,
    queue: VecDeque<QueuedClient>,
    session: Option<ServerSession>,
    clients_left: u32,
    pub(crate) served: u32,
}

#[derive(Debug, Default)]
struct ClientRecord {
    newest_number: Option<u64>,
    is_served: bool,
}

struct QueuedClient {
    nonce: [u8; 16],
    heard_ns: u64,
}

impl ServerCore {
    pub(crate) fn new(key: Key, bounds: Bounds, facts: ServerFacts, clients: u32) -> Result<Self> {
        Ok(Self {
            opening_keys: Keys::before_session(&key),
            cookies: CookieMaker::new()?,
            key,
            bounds,
            facts,
            clients: HashMap::new(),
            queue: VecDeque::new(),
            session: None,
            clients_left: clients,
            served: 0,
        })
    }

    /// Whether the ticket is used up.
    pub(crate) fn is_done(&self) -> bool {
        self.clients_left == 0 && self.session.is_none()
    }

    /// Present client.
    pub(crate) fn client(&self) -> Option<SocketAddr> {
        self.session.as_ref().map(|session| session.peer)
    }

    /// Present session.
    pub(crate) fn session(&mut self) -> Option<&mut ServerSession> {
        self.session.as_mut()
    }

    /// Answers a packet from before a session.
    fn opening(&mut self, arrival: &Arrival<'_>, out: &mut Outbox) {
        let Some(packet) = Packet::decode(arrival.bytes, &self.opening_keys.client) else { return };
        let reply = |body| Packet { session: 0, number: packet.number, body };
        match packet.body {
            Body::Hello { nonce } if self.is_news(&nonce, packet.number) => {
                let cookie = self.cookies.make(arrival.now_ns / 1_000, arrival.from, &nonce);
                out.push(
                    Some(arrival.from),
                    &reply(Body::Challenge { nonce, cookie }),
                    &self.opening_keys.server,
                );
            }
            Body::Start { nonce, cookie } => {
                let now_us = arrival.now_ns / 1_000;
                let is_proven = self.cookies.accepts(now_us, arrival.from, &nonce, &cookie);
                if !is_proven || !self.is_news(&nonce, packet.number) {
                    return;
                }
                let body = self.admit(nonce, arrival);
                out.push(Some(arrival.from), &reply(body), &self.opening_keys.server);
            }
            _ => {}
        }
    }

    /// Whether a packet of this client is newer than any before.
    fn is_news(&mut self, nonce: &[u8; 16], number: u64) -> bool {
        if !self.clients.contains_key(nonce) && self.clients.len() >= CLIENTS_MAX {
            return false;
        }
        let client = self.clients.entry(*nonce).or_default();
        if client.is_served || client.newest_number.is_some_and(|newest| number <= newest) {
            return false;
        }
        client.newest_number = Some(number);
        true
    }

    /// Begins the session of a proven client, or returns the number of clients ahead.
    fn admit(&mut self, nonce: [u8; 16], arrival: &Arrival<'_>) -> Body {
        if let Some(session) = self.session.as_ref().filter(|session| session.welcome.nonce == nonce) {
            return Body::Welcome(session.welcome);
        }
        let queued = self.queue.iter().position(|queued| queued.nonce == nonce);
        let position = queued.unwrap_or(self.queue.len());
        let ahead = position as u32 + u32::from(self.session.is_some());
        if position as u32 >= self.clients_left || (queued.is_none() && self.queue.len() >= QUEUE_MAX) {
            return Body::Bye { reason: EndReason::Busy };
        }
        if ahead > 0 {
            match queued {
                Some(position) => self.queue[position].heard_ns = arrival.now_ns,
                None => self.queue.push_back(QueuedClient { nonce, heard_ns: arrival.now_ns }),
            }
            return Body::Wait { nonce, position: ahead as u16 };
        }
        if queued.is_some() {
            self.queue.remove(position);
        }
        match signing::random() {
            Ok(server_nonce) => Body::Welcome(self.begin(nonce, server_nonce, arrival)),
            Err(_) => Body::Bye { reason: EndReason::Busy },
        }
    }

    fn begin(&mut self, nonce: [u8; 16], server_nonce: [u8; 16], arrival: &Arrival<'_>) -> Welcome {
        let limits = self.bounds.for_client(arrival.from.ip());
        let [a, b, c, d, e, f, g, h, ..] = server_nonce;
        let welcome = Welcome {
            nonce,
            server_nonce,
            // 0 stands for packets before a session.
            session: u64::from_be_bytes([a, b, c, d, e, f, g, h]) | 1,
            epoch_ns: self.facts.epoch_ns,
            rate_max_bps: limits.rate_max_bps,
            bytes_max: limits.bytes_max,
            duration_max_ns: limits.duration_max.as_nanos() as u64,
            buffer_bytes: self.facts.buffer_bytes,
            buffer_asked_bytes: self.facts.buffer_asked_bytes,
        };
        self.clients_left -= 1;
        let keys = Keys::of_session(&self.key, &nonce, &server_nonce);
        self.session = Some(ServerSession::new(welcome, keys, limits, arrival));
        welcome
    }

    fn end(&mut self) {
        if let Some(session) = self.session.take() {
            if let Some(client) = self.clients.get_mut(&session.welcome.nonce) {
                client.is_served = true;
            }
            self.served += 1;
        }
    }
}

impl PacketHandler for ServerCore {
    fn arrived(&mut self, arrival: Arrival<'_>, out: &mut Outbox) {
        match Packet::claimed_session(arrival.bytes) {
            Some(0) => self.opening(&arrival, out),
            Some(id) => {
                let Some(session) = self.session.as_mut() else { return };
                if session.welcome.session == id
                    && session.peer == arrival.from
                    && session.arrived(&arrival, out)
                {
                    self.end();
                }
            }
            None => {}
        }
    }

    fn tick(&mut self, now_ns: u64, _: &mut Outbox) {
        self.queue.retain(|client| now_ns.saturating_sub(client.heard_ns) < QUEUE_SILENCE_NS);
        if self.session.as_ref().is_some_and(|session| session.is_over(now_ns)) {
            self.end();
        }
    }

    fn should_stop(&self) -> bool {
        self.session.is_none()
    }
}

const CLIENTS_MAX: usize = 1_024;
const QUEUE_MAX: usize = 16;
const QUEUE_SILENCE_NS: u64 = 5_000_000_000;
