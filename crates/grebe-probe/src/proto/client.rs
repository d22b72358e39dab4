//! State of a client, before and within its session.

use grebe_clock::Echo;
use grebe_packet::ReplayWindow;

use crate::proto::handler::{Arrival, Outbox, PacketHandler};
use crate::proto::packet::{Body, EndReason, Packet, Response};
use crate::proto::signing::Keys;
use crate::proto::tracker::Tracker;
use crate::proto::train::UDP_IP_BYTES;

/// A client's state within its session.
pub(crate) struct ClientCore {
    pub(crate) session: u64,
    pub(crate) keys: Keys,
    window: ReplayWindow<REPLAY_WORDS>,
    next_number: u64,
    /// Answered pings that were not taken yet.
    pub(crate) echoes: Vec<Echo>,
    /// Newest response, with the id of its request.
    pub(crate) response: Option<(u32, Response)>,
    pub(crate) tracker: Option<Tracker>,
    drops_before: Option<u64>,
    pub(crate) kernel_drops: Option<u64>,
    pub(crate) longest_size: u16,
    pub(crate) ended: Option<EndReason>,
    pub(crate) heard_ns: u64,
    /// Received bytes of IP packets.
    pub(crate) bytes: u64,
    /// Interval between pings; 0: no pings.
    pub(crate) ping_interval_ns: u64,
    pinged_ns: u64,
    pub(crate) pings: u32,
    pub(crate) is_cancelled: bool,
}

impl ClientCore {
    pub(crate) fn new(session: u64, keys: Keys, now_ns: u64) -> Self {
        Self {
            session,
            keys,
            window: ReplayWindow::default(),
            next_number: 0,
            echoes: Vec::new(),
            response: None,
            tracker: None,
            drops_before: None,
            kernel_drops: None,
            longest_size: 0,
            ended: None,
            heard_ns: now_ns,
            bytes: 0,
            ping_interval_ns: 0,
            pinged_ns: 0,
            pings: 0,
            is_cancelled: false,
        }
    }

    /// Makes a packet of this session, with the next number.
    pub(crate) fn packet(&mut self, body: Body) -> Packet {
        self.next_number += 1;
        Packet { session: self.session, number: self.next_number, body }
    }

    /// Starts tracking the next train.
    pub(crate) fn expect(&mut self, tracker: Tracker) {
        self.drops_before = self.kernel_drops;
        self.tracker = Some(tracker);
    }

    /// Datagrams of the train that this host's kernel dropped.
    pub(crate) fn train_drops(&self) -> Option<u64> {
        self.kernel_drops.map(|drops| drops.saturating_sub(self.drops_before.unwrap_or(0)))
    }
}

impl PacketHandler for ClientCore {
    fn arrived(&mut self, arrival: Arrival<'_>, _: &mut Outbox) {
        self.kernel_drops = arrival.kernel_drops;
        if Packet::claimed_session(arrival.bytes) != Some(self.session) {
            return;
        }
        let Some(packet) = Packet::decode(arrival.bytes, &self.keys.server) else { return };
        self.bytes += (arrival.bytes.len() + UDP_IP_BYTES) as u64;
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
                self.longest_size = self.longest_size.max(arrival.bytes.len() as u16);
                return;
            }
            body if self.window.accept(packet.number) => body,
            _ => return,
        };
        self.heard_ns = arrival.now_ns;
        match body {
            Body::Pong { sent_ns, arrived_ns, replied_ns } if self.echoes.len() < ECHOES_MAX => {
                let returned_ns = arrival.arrived_ns;
                self.echoes.push(Echo { sent_ns, received_ns: arrived_ns, replied_ns, returned_ns });
            }
            Body::Response { id, response } => self.response = Some((id, response)),
            Body::Bye { reason } => self.ended = Some(reason),
            _ => {}
        }
    }

    fn tick(&mut self, now_ns: u64, out: &mut Outbox) {
        if self.ping_interval_ns > 0 && now_ns.saturating_sub(self.pinged_ns) >= self.ping_interval_ns {
            self.pinged_ns = now_ns;
            self.pings += 1;
            let packet = self.packet(Body::Ping { sent_ns: now_ns });
            out.push(None, &packet, &self.keys.client);
        }
    }

    fn should_stop(&self) -> bool {
        self.ended.is_some() || self.is_cancelled
    }
}

/// Waits for the server's reply to a hello or a start.
pub(crate) struct Opening {
    pub(crate) keys: Keys,
    pub(crate) nonce: [u8; 16],
    pub(crate) reply: Option<Body>,
}

impl PacketHandler for Opening {
    fn arrived(&mut self, arrival: Arrival<'_>, _: &mut Outbox) {
        let Some(packet) = Packet::decode(arrival.bytes, &self.keys.server) else { return };
        let is_ours = match &packet.body {
            Body::Challenge { nonce, .. } | Body::Wait { nonce, .. } => *nonce == self.nonce,
            Body::Welcome(welcome) => welcome.nonce == self.nonce,
            Body::Bye { .. } => true,
            _ => false,
        };
        // A late challenge must not replace a welcome.
        let is_news = !matches!(packet.body, Body::Challenge { .. }) || self.reply.is_none();
        if is_ours && is_news {
            self.reply = Some(packet.body);
        }
    }

    fn tick(&mut self, _: u64, _: &mut Outbox) {}

    fn should_stop(&self) -> bool {
        false
    }
}

const ECHOES_MAX: usize = 1 << 16;
const REPLAY_WORDS: usize = 64;
