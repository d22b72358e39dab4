//! Simulated connection: two ends with an application each, and a path between them.

use grebe_connection::internals::{
    Arrived, Broken, ConnectionEnd, Frame, HEADER_BYTES, Item, ReceiveBuffer, SendBuffer, SenderOptions,
    TAG_BYTES,
};
use grebe_connection::{SendCounters, Verdict};

use crate::Events;
use crate::path::{Path, Pipe, Stalls};

/// Behaviour of an application at its end of a connection.
#[derive(Debug, Clone, Default)]
pub struct Application {
    /// Amounts of bytes to write at these times, ascending, as far as there is room. It finishes with the
    /// last of them.
    pub writes: Vec<(u64, u64)>,
    /// Read rate in bytes per second; `None`: everything at once.
    pub reads_bytes_per_s: Option<f64>,
    /// Pause of reading between these times.
    pub pauses_us: Option<(u64, u64)>,
    /// Time of giving up.
    pub stops_us: Option<u64>,
    /// Time at which its host vanishes.
    pub dies_us: Option<u64>,
    /// Stalls of its end: packets keep their arrival time but are processed later.
    pub stalls: Option<Stalls>,
    /// Options of its sender.
    pub options: SenderOptions,
}

/// Result of a connection at one of its ends.
#[derive(Debug, Clone, Default)]
pub struct ConnectionReport {
    /// Bytes read by its application.
    pub read_bytes: u64,
    /// Time at which the application had read everything from the other end.
    pub ended_us: Option<u64>,
    /// Time at which it knew that the other end has everything.
    pub delivered_us: Option<u64>,
    /// Time at which nothing was left to do.
    pub over_us: Option<u64>,
    /// Reason for an earlier end.
    pub broken: Option<Broken>,
    /// Whether a byte arrived at a wrong place, which must never happen.
    pub corrupt: bool,
    /// Maximum bytes waiting for the application, in order or not.
    pub waiting_bytes_max: u64,
    /// Maximum memory of both halves in addition.
    pub memory_bytes_max: usize,
    /// Counters of its sender.
    pub counters: SendCounters,
    /// Packets sent about the other end's stream.
    pub replies: u64,
}

/// Runs a connection until both ends are over or the time is up. The path's forward direction leads from the
/// first end to the second, which learns the first one's address from its first packet.
pub fn simulate_connection(
    path: &Path,
    applications: &[Application; 2],
    seed: u64,
    until_us: u64,
) -> [ConnectionReport; 2] {
    let mut ends = [End::new(&applications[0], 0, true), End::new(&applications[1], 1, false)];
    let mut pipes = [Pipe::new(path.forward.clone(), seed), Pipe::new(path.back.clone(), seed ^ 0xb0b0)];
    let (mut events, mut now_us, mut changes) = (Events::<Packet>::default(), 0, 0);
    loop {
        let ends_us = ends.iter().filter_map(|end| end.next_time_us(now_us)).min();
        let Some(ends_us) = ends_us else { break };
        now_us = events.next_time_us().map_or(ends_us, |due_us| due_us.min(ends_us)).max(now_us);
        if now_us > until_us {
            break;
        }
        while let Some((_, forward, back)) =
            path.changes.get(changes).filter(|(from_us, ..)| *from_us <= now_us)
        {
            (pipes[0].link, pipes[1].link) = (forward.clone(), back.clone());
            changes += 1;
        }
        while let Some(mut packet) = events.pop_due(now_us) {
            packet.arrived_us.get_or_insert(now_us);
            let taken_us = ends[packet.to].awake_us(now_us);
            if taken_us > now_us {
                events.push(taken_us, packet);
            } else {
                ends[packet.to].take(now_us, &packet);
            }
        }
        for (from, pipe) in pipes.iter_mut().enumerate() {
            if ends[from].awake_us(now_us) > now_us {
                continue;
            }
            ends[from].work(now_us);
            while let Some(packet) = ends[from].poll(now_us) {
                pipe.send(now_us, packet.datagram_bytes, |due_us| events.push(due_us, packet.clone()));
            }
        }
    }
    ends.map(End::into_report)
}

/// Packet in transit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    to: usize,
    /// Whether it is about its recipient's own stream.
    is_reply: bool,
    number: u64,
    datagram_bytes: usize,
    frame: Vec<u8>,
    /// Arrival time by the clock of the receiving system.
    arrived_us: Option<u64>,
}

struct End<'a> {
    application: &'a Application,
    number: usize,
    /// Whether it knows the other end's address.
    is_started: bool,
    core: ConnectionEnd,
    sent: SendBuffer,
    received: ReceiveBuffer,
    /// Bytes that the application wants to have written by now.
    wanted_bytes: u64,
    writes: usize,
    /// Ordered bytes that are not read yet.
    unread_bytes: u64,
    read_at_us: u64,
    may_read_bytes: f64,
    reply_number: u64,
    report: ConnectionReport,
}

impl<'a> End<'a> {
    fn new(application: &'a Application, number: usize, is_started: bool) -> Self {
        Self {
            application,
            number,
            is_started,
            core: ConnectionEnd::new(0, WINDOW_BYTES, application.options.clone()),
            sent: SendBuffer::default(),
            received: ReceiveBuffer::default(),
            wanted_bytes: 0,
            writes: 0,
            unread_bytes: 0,
            read_at_us: 0,
            may_read_bytes: 0.0,
            reply_number: 0,
            report: ConnectionReport::default(),
        }
    }

    fn is_dead(&self, now_us: u64) -> bool {
        self.report.over_us.is_some() || self.application.dies_us.is_some_and(|dies_us| now_us >= dies_us)
    }

    /// Actual time of an action that is due at this time.
    fn awake_us(&self, at_us: u64) -> u64 {
        self.application.stalls.map_or(at_us, |stalls| stalls.let_through_us(at_us))
    }

    fn next_time_us(&self, now_us: u64) -> Option<u64> {
        if self.is_dead(now_us) {
            // Received data can still be read.
            let is_read = self.report.ended_us.is_some() || !self.has_all() && self.unread_bytes == 0;
            return (self.report.over_us.is_some() && !is_read).then_some(now_us + 1_000);
        }
        let core_us = if self.is_started { self.core.next_time_us(now_us) } else { u64::MAX };
        let write_us = self.application.writes.get(self.writes).map_or(u64::MAX, |(at_us, _)| *at_us);
        // For a slow reader, and for an end that waits for confirmation.
        let look_us = now_us + if self.unread_bytes > 0 { 1_000 } else { 10_000 };
        Some(self.awake_us(core_us.min(write_us).min(look_us).max(now_us + 1)))
    }

    /// Runs the application.
    fn work(&mut self, now_us: u64) {
        if self.is_dead(now_us) || !self.is_started {
            if self.report.over_us.is_some() {
                self.read(now_us);
            }
            return;
        }
        if self.application.stops_us.is_some_and(|stops_us| now_us >= stops_us) {
            self.core.stop(now_us);
        }
        while let Some((_, bytes)) =
            self.application.writes.get(self.writes).filter(|(at_us, _)| *at_us <= now_us)
        {
            self.wanted_bytes += bytes;
            self.writes += 1;
        }
        let confirmed = self.core.sender.confirmed.prefix_end();
        while self.sent.release(confirmed).is_some() {}
        let room = (confirmed + SEND_BUFFER_BYTES).saturating_sub(self.sent.end());
        let bytes = room.min(self.wanted_bytes - self.sent.end());
        if bytes > 0 {
            let from = self.sent.end();
            self.sent.push((from..from + bytes).map(|at| byte(at, self.number)).collect());
            self.core.sender.extend(now_us, self.sent.end(), self.sent.end());
        }
        if self.writes == self.application.writes.len() && self.sent.end() == self.wanted_bytes {
            self.core.sender.finish();
        }
        self.read(now_us);
        self.core.receiver.set_backlog(now_us, self.unread_bytes);
        if self.core.is_delivered() {
            self.report.delivered_us.get_or_insert(now_us);
        }
    }

    fn read(&mut self, now_us: u64) {
        let passed_us = now_us - std::mem::replace(&mut self.read_at_us, now_us);
        if self.application.pauses_us.is_some_and(|(from_us, to_us)| (from_us..to_us).contains(&now_us)) {
            return;
        }
        let bytes = match self.application.reads_bytes_per_s {
            None => self.unread_bytes,
            Some(rate) => {
                self.may_read_bytes = (self.may_read_bytes + rate * passed_us as f64 / 1e6).min(100_000.0);
                (self.may_read_bytes as u64).min(self.unread_bytes)
            }
        };
        self.may_read_bytes -= (bytes as f64).min(self.may_read_bytes);
        self.unread_bytes -= bytes;
        self.report.read_bytes += bytes;
        if self.has_all() && self.unread_bytes == 0 {
            self.report.ended_us.get_or_insert(now_us);
        }
    }

    /// Whether the other application's last byte has arrived.
    fn has_all(&self) -> bool {
        self.core.receiver.verdict() == Some(Verdict::Whole)
    }

    /// Next packet to the other end.
    fn poll(&mut self, now_us: u64) -> Option<Packet> {
        if self.is_dead(now_us) || !self.is_started {
            return None;
        }
        let to = 1 - self.number;
        let mut frame = vec![0; FRAME_BYTES_MAX];
        if let Some(length) = self.core.poll_reply(now_us, &mut frame[..REPLY_BYTES_MAX]) {
            frame.truncate(length);
            self.reply_number += 1;
            let datagram_bytes = length + HEADER_BYTES + TAG_BYTES;
            return Some(Packet {
                to,
                is_reply: true,
                number: self.reply_number - 1,
                datagram_bytes,
                frame,
                arrived_us: None,
            });
        }
        let Some(transmit) = self.core.poll_transmit(now_us) else {
            let memory_bytes = self.core.sender.memory_bytes() + self.core.receiver.memory_bytes();
            self.report.memory_bytes_max = self.report.memory_bytes_max.max(memory_bytes);
            if self.core.is_over(now_us) {
                self.report.over_us = Some(now_us);
            }
            return None;
        };
        let stamp = transmit.stamp;
        let mut payload = Vec::new();
        let written = match transmit.item {
            Item::Data { offset, len } => {
                payload.resize(len as usize, 0);
                self.sent.fill(offset, &mut payload);
                if self.core.sender.is_last(offset + u64::from(len)) {
                    Frame::Last { stamp, offset, payload: &payload }
                } else {
                    Frame::Data { stamp, offset, payload: &payload }
                }
            }
            Item::Probe { .. } | Item::Ping => Frame::Probe { stamp, padding: 8 },
            Item::Close => Frame::Close,
        }
        .encode(&mut frame);
        frame.truncate(written.unwrap_or(0));
        let datagram_bytes = match transmit.item {
            Item::Probe { datagram_bytes } => datagram_bytes as usize,
            _ => frame.len() + HEADER_BYTES + TAG_BYTES,
        };
        Some(Packet { to, is_reply: false, number: transmit.number, datagram_bytes, frame, arrived_us: None })
    }

    fn take(&mut self, now_us: u64, packet: &Packet) {
        if self.is_dead(now_us) {
            return;
        }
        self.is_started = true;
        let Ok(frame) = Frame::decode(&packet.frame) else {
            self.report.corrupt = true;
            return;
        };
        if packet.is_reply {
            return self.core.on_reply(now_us, &frame);
        }
        let arrived_us = packet.arrived_us.unwrap_or(now_us);
        let arrived = self.core.on_packet(arrived_us, packet.number, packet.datagram_bytes, &frame);
        if let Arrived::Data { offset, payload } = arrived {
            self.received.put(offset, payload);
        }
        let Self { core, received, report, unread_bytes, .. } = self;
        let mut at = received.passed();
        received.pass(core.received_in_order(), |chunk| {
            report.corrupt |=
                chunk.bytes().iter().zip(at..).any(|(came, at)| *came != byte(at, packet.to ^ 1));
            at += chunk.bytes().len() as u64;
            *unread_bytes += chunk.bytes().len() as u64;
        });
        let waiting_bytes = self.core.receiver.received.covered() - self.report.read_bytes;
        self.report.waiting_bytes_max = self.report.waiting_bytes_max.max(waiting_bytes);
    }

    fn into_report(self) -> ConnectionReport {
        ConnectionReport {
            broken: self.core.broken(),
            counters: self.core.sender.counters,
            replies: self.reply_number,
            ..self.report
        }
    }
}

/// Byte written by an end at this offset.
fn byte(at: u64, number: usize) -> u8 {
    ((at + number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

const WINDOW_BYTES: u64 = 4 << 20;
const SEND_BUFFER_BYTES: u64 = 16 << 20;
const FRAME_BYTES_MAX: usize = 1_500;
const REPLY_BYTES_MAX: usize = 1_150;
