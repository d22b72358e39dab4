//! What a client knows, as a machine without sockets.

use crate::endpoint::{Arrival, Outbox, Peer};
use crate::key::Keys;
use crate::packet::{Answer, Body, Packet, Why};
use crate::replay::Window;
use crate::tracker::Tracker;

/// One question for the time, answered: when it was sent and its answer arrived by our clock, and what the server's said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Echo {
    pub sent_ns: u64,
    pub there_ns: u64,
    pub answered_ns: u64,
    pub back_ns: u64,
}

impl Echo {
    /// The round trip, without the time that the server took.
    pub fn rtt_ns(&self) -> u64 {
        let held = self.answered_ns.saturating_sub(self.there_ns);
        self.back_ns.saturating_sub(self.sent_ns).saturating_sub(held)
    }

    /// The server's clock less ours, if both ways take the same time.
    pub fn offset_ns(&self) -> f64 {
        let there = self.there_ns as f64 - self.sent_ns as f64;
        let back = self.back_ns as f64 - self.answered_ns as f64;
        (there - back) / 2.0
    }
}

/// The state of a client within a session.
pub(crate) struct Core {
    pub session: u64,
    pub keys: Keys,
    window: Window,
    next_number: u64,
    /// The answers to pings, since they were last taken.
    pub echoes: Vec<Echo>,
    pub answer: Option<(u32, Answer)>,
    pub tracker: Option<Tracker>,
    drops_before: Option<u64>,
    pub kernel_drops: Option<u64>,
    pub size_seen: u16,
    pub ended: Option<Why>,
    pub heard_ns: u64,
    /// Bytes of IP packets that came.
    pub bytes: u64,
    /// Pings go out this often, 0: not at all.
    pub ping_every_ns: u64,
    pinged_ns: u64,
    pub pings: u32,
    pub interrupted: bool,
}

impl Core {
    pub fn new(session: u64, keys: Keys, now_ns: u64) -> Self {
        Self {
            session,
            keys,
            window: Window::new(),
            next_number: 0,
            echoes: Vec::new(),
            answer: None,
            tracker: None,
            drops_before: None,
            kernel_drops: None,
            size_seen: 0,
            ended: None,
            heard_ns: now_ns,
            bytes: 0,
            ping_every_ns: 0,
            pinged_ns: 0,
            pings: 0,
            interrupted: false,
        }
    }

    /// A packet of this session.
    pub fn packet(&mut self, body: Body) -> Packet {
        self.next_number += 1;
        Packet { session: self.session, number: self.next_number, body }
    }

    /// Expects a train.
    pub fn expect(&mut self, tracker: Tracker) {
        self.drops_before = self.kernel_drops;
        self.tracker = Some(tracker);
    }

    /// Datagrams of the train that the own kernel had no room for.
    pub fn train_drops(&self) -> Option<u64> {
        self.kernel_drops.map(|drops| drops.saturating_sub(self.drops_before.unwrap_or(0)))
    }
}

impl Peer for Core {
    fn arrived(&mut self, arrival: Arrival<'_>, _: &mut Outbox) {
        self.kernel_drops = arrival.kernel_drops;
        if Packet::claimed_session(arrival.bytes) != Some(self.session) {
            return;
        }
        let Some(packet) = Packet::decode(arrival.bytes, &self.keys.server) else { return };
        self.bytes += (arrival.bytes.len() + 28) as u64;
        let body = match packet.body {
            Body::Data { train, seq, sent_ns } => {
                self.heard_ns = arrival.now_ns;
                let tracker = self.tracker.as_mut().filter(|tracker| *tracker.train() == train);
                if let Some(tracker) = tracker.filter(|_| arrival.bytes.len() == usize::from(train.size)) {
                    tracker.arrived(seq, sent_ns, arrival.arrived_ns);
                }
                return;
            }
            Body::Size => {
                self.size_seen = self.size_seen.max(arrival.bytes.len() as u16);
                return;
            }
            body if self.window.accept(packet.number) => body,
            _ => return,
        };
        self.heard_ns = arrival.now_ns;
        match body {
            Body::Pong { sent_ns, arrived_ns, answered_ns } if self.echoes.len() < ECHOES_MAX => {
                let back_ns = arrival.arrived_ns;
                self.echoes.push(Echo { sent_ns, there_ns: arrived_ns, answered_ns, back_ns });
            }
            Body::Answer { id, answer } => self.answer = Some((id, answer)),
            Body::Bye { why } => self.ended = Some(why),
            _ => {}
        }
    }

    fn tick(&mut self, now_ns: u64, out: &mut Outbox) {
        if self.ping_every_ns > 0 && now_ns.saturating_sub(self.pinged_ns) >= self.ping_every_ns {
            self.pinged_ns = now_ns;
            self.pings += 1;
            let packet = self.packet(Body::Ping { sent_ns: now_ns });
            out.push(None, &packet, &self.keys.client);
        }
    }

    fn stops(&self) -> bool {
        self.ended.is_some() || self.interrupted
    }
}

const ECHOES_MAX: usize = 1 << 16;
