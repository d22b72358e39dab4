//! TCP flows on the emulated path: send times and amounts, without content.

mod models;

use std::collections::VecDeque;

use self::models::{Ack, Bbr, Cubic};
use grebe_connection::internals::UDP_IP_BYTES;

/// The congestion control of a TCP flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    /// CUBIC (RFC 9438): grows until packets are lost, and fills the queue.
    Cubic,
    /// BBR, version 1: paces at the delivery rate that it measures, with at most two bandwidth-delay products in flight.
    Bbr,
}

/// Endless TCP flow from the sender's side to the receiver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpFlow {
    /// Its congestion control.
    pub congestion: Congestion,
    /// Start time.
    pub start_us: u64,
}

/// Result of a TCP flow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TcpReport {
    /// Packets sent.
    pub packets: u64,
    /// Packets lost.
    pub lost: u64,
    /// Bytes on the wire that arrived, every tenth of a second.
    pub delivered_by_tenth: Vec<u64>,
}

/// Sending half of a TCP flow. The receiving half acknowledges each packet.
#[derive(Debug)]
pub(super) struct Tcp {
    start_us: u64,
    model: Model,
    next_number: u64,
    unsettled: VecDeque<Sent>,
    in_flight: u64,
    delivered: u64,
    delivered_us: u64,
    /// Departure of the last packet that arrived.
    delivered_at_us: u64,
    heard_us: u64,
    min_rtt_us: u64,
    min_rtt_since_us: u64,
    next_us: u64,
    /// Remaining packets of the present burst.
    burst_left: u64,
    report: TcpReport,
}

#[derive(Debug)]
enum Model {
    Cubic(Cubic),
    Bbr(Bbr),
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    number: u64,
    at_us: u64,
    delivered: u64,
    delivered_us: u64,
    delivered_at_us: u64,
    /// It left while BBR drained the queue, so its delivery rate says nothing about the path.
    paused: bool,
    acked: bool,
}

impl Tcp {
    pub(super) fn new(flow: &TcpFlow) -> Self {
        Self {
            start_us: flow.start_us,
            model: match flow.congestion {
                Congestion::Cubic => Model::Cubic(Cubic::new()),
                Congestion::Bbr => Model::Bbr(Bbr::new((flow.start_us / 1_000) as usize)),
            },
            next_number: 0,
            unsettled: VecDeque::new(),
            in_flight: 0,
            delivered: 0,
            delivered_us: 0,
            delivered_at_us: 0,
            heard_us: flow.start_us,
            min_rtt_us: u64::MAX,
            min_rtt_since_us: 0,
            next_us: flow.start_us,
            burst_left: 0,
            report: TcpReport::default(),
        }
    }

    pub(super) fn into_report(self) -> TcpReport {
        self.report
    }

    /// Number of a packet that leaves now.
    pub(super) fn poll_transmit(&mut self, now_us: u64) -> Option<u64> {
        if now_us < self.start_us {
            return None;
        }
        self.end_silence(now_us);
        if !self.has_room() || self.burst_left == 0 && now_us < self.next_us {
            return None;
        }
        if self.burst_left == 0 {
            self.start_burst(now_us);
        }
        self.burst_left -= 1;
        if self.in_flight == 0 {
            (self.delivered_us, self.delivered_at_us, self.heard_us) = (now_us, now_us, now_us);
        }
        let number = self.next_number;
        self.next_number += 1;
        self.in_flight += 1;
        self.report.packets += 1;
        let Self { delivered, delivered_us, delivered_at_us, .. } = *self;
        let paused = matches!(&self.model, Model::Bbr(bbr) if bbr.drain_until_us.is_some());
        let sent =
            Sent { number, at_us: now_us, delivered, delivered_us, delivered_at_us, paused, acked: false };
        self.unsettled.push_back(sent);
        Some(number)
    }

    /// After the retransmission timeout, everything in flight counts as lost.
    fn end_silence(&mut self, now_us: u64) {
        if self.in_flight == 0 || now_us < self.heard_us + self.silence_us() {
            return;
        }
        self.report.lost += self.in_flight;
        self.unsettled.clear();
        self.in_flight = 0;
        self.heard_us = now_us;
        if let Model::Cubic(cubic) = &mut self.model {
            cubic.on_silence();
        }
    }

    fn start_burst(&mut self, now_us: u64) {
        let (burst, packets_per_s) = match &self.model {
            Model::Cubic(_) => (1, f64::INFINITY),
            Model::Bbr(bbr) => (bbr.burst(), bbr.packets_per_s()),
        };
        let takes_us = (burst as f64 * 1e6 / packets_per_s) as u64;
        self.next_us = self.next_us.max(now_us.saturating_sub(1_000)) + takes_us;
        self.burst_left = burst;
    }

    pub(super) fn next_time_us(&self, now_us: u64) -> u64 {
        let silent_us = if self.in_flight > 0 { self.heard_us + self.silence_us() } else { u64::MAX };
        let next_us = if !self.has_room() {
            u64::MAX
        } else if self.burst_left > 0 {
            now_us
        } else {
            self.next_us
        };
        next_us.min(silent_us).max(self.start_us).max(now_us + 1)
    }

    /// Retransmission timeout.
    fn silence_us(&self) -> u64 {
        if self.min_rtt_us == u64::MAX { SILENCE_US } else { SILENCE_US_MIN + 3 * self.min_rtt_us }
    }

    fn has_room(&self) -> bool {
        let (window, burst) = match &self.model {
            Model::Cubic(cubic) => (cubic.window, 1),
            Model::Bbr(bbr) => (bbr.window(), bbr.burst()),
        };
        // A burst waits until there is room for all of it.
        let wants = if self.burst_left > 0 || self.in_flight == 0 { 1 } else { burst.min(window as u64 / 2) };
        self.in_flight + wants <= window as u64
    }

    /// Takes the acknowledgement of this packet.
    pub(super) fn on_ack(&mut self, now_us: u64, number: u64) {
        self.heard_us = now_us;
        let Some(first) = self.unsettled.front().map(|sent| sent.number) else { return };
        let Some(sent) = number.checked_sub(first).and_then(|at| self.unsettled.get_mut(at as usize)) else {
            return;
        };
        if std::mem::replace(&mut sent.acked, true) {
            return;
        }
        let sent = *sent;
        self.in_flight -= 1;
        self.delivered += 1;
        let rtt_us = now_us - sent.at_us;
        self.take_rtt(now_us, rtt_us);
        // Like the kernel: the longer of the times between arrivals and between departures, because packets
        // from a queue arrive faster than they were sent.
        let took_us = (now_us - sent.delivered_us).max(sent.at_us - sent.delivered_at_us).max(1);
        let packets_per_s = (self.delivered - sent.delivered) as f64 * 1e6 / took_us as f64;
        (self.delivered_us, self.delivered_at_us) = (now_us, sent.at_us);
        let lost = self.declare_lost(number);
        self.note_delivered(now_us);
        let ack = Ack {
            now_us,
            rtt_us,
            min_rtt_us: self.min_rtt_us,
            packets_per_s,
            paused: sent.paused,
            lost,
            number,
            next_number: self.next_number,
            in_flight: self.in_flight,
        };
        match &mut self.model {
            Model::Cubic(cubic) => cubic.on_ack(&ack),
            Model::Bbr(bbr) => bbr.on_ack(&ack),
        }
    }

    fn take_rtt(&mut self, now_us: u64, rtt_us: u64) {
        let expired = now_us > self.min_rtt_since_us + MIN_RTT_SPAN_US;
        if rtt_us > self.min_rtt_us && !expired {
            return;
        }
        if let (true, Model::Bbr(bbr)) = (expired && self.min_rtt_us != u64::MAX, &mut self.model) {
            bbr.drain_until_us = Some(now_us + BBR_DRAIN_US + self.min_rtt_us);
        }
        (self.min_rtt_us, self.min_rtt_since_us) = (rtt_us, now_us);
    }

    /// Drops the packets settled by the arrival of `number`. Returns the number of lost packets.
    fn declare_lost(&mut self, number: u64) -> u64 {
        let mut lost = 0;
        while let Some(oldest) = self.unsettled.front()
            && (oldest.acked || oldest.number + DUPLICATES < number)
        {
            lost += u64::from(!oldest.acked);
            self.unsettled.pop_front();
        }
        self.in_flight -= lost;
        self.report.lost += lost;
        lost
    }

    fn note_delivered(&mut self, now_us: u64) {
        let tenth = (now_us / 100_000) as usize;
        let delivered = &mut self.report.delivered_by_tenth;
        delivered.resize(tenth + 1, delivered.last().copied().unwrap_or(0));
        delivered[tenth] = self.delivered * (PACKET_BYTES + UDP_IP_BYTES) as u64;
    }
}

/// UDP payload with as many bytes on the wire as a full TCP segment.
pub(super) const PACKET_BYTES: usize = 1_472;

/// The same for an acknowledgement.
pub(super) const ACK_BYTES: usize = 24;

/// Reordering threshold: a packet is lost when one sent this many packets later arrived.
const DUPLICATES: u64 = 3;

/// Retransmission timeout before the first round trip, and its minimum afterwards.
const SILENCE_US: u64 = 1_000_000;
const SILENCE_US_MIN: u64 = 200_000;
const MIN_RTT_SPAN_US: u64 = 10_000_000;
/// Time that BBR drains the queue to measure its round trip.
const BBR_DRAIN_US: u64 = 200_000;
