//! Simulated stream: its content, both ends, and the result.

use grebe_connection::internals::{
    Arrived, FIRST_PACKETS, Frame, HANDSHAKE_TRAIN_AFTER_US, HEADER_BYTES, HandshakeTrain, INIT_BYTES, Item,
    RangeSet, Receiver, Sender, SenderOptions, TAG_BYTES, Transmit,
};
use grebe_connection::{Phase, PhaseCost, SendCounters, Verdict};

/// One stream over the path.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Length of the stream.
    pub total_bytes: u64,
    /// Start time.
    pub start_us: u64,
    /// Options of its sender.
    pub options: SenderOptions,
    /// Receive window.
    pub window_bytes: u64,
    /// Begins with a handshake, which measures the round trip and sends a train.
    pub has_handshake: bool,
}

/// Result of a stream.
#[derive(Debug, Clone, Default)]
pub struct FlowReport {
    /// Time at which the receiver had every byte.
    pub whole_us: Option<u64>,
    /// Time at which the sender knew it.
    pub done_us: Option<u64>,
    /// Verdict that reached the sender.
    pub verdict: Option<Verdict>,
    /// Counters of the sender.
    pub counters: SendCounters,
    /// Cost of each phase.
    pub costs: [PhaseCost; Phase::COUNT],
    /// Maximum memory of both halves.
    pub memory_bytes_max: usize,
    /// Payload bytes in place, every tenth of a second.
    pub received_by_tenth: Vec<u64>,
    /// Maximum queue delay of this flow's packets at the bottleneck, in every tenth of a second.
    pub queue_us_by_tenth: Vec<u64>,
    /// Whether a byte arrived at a wrong place, which must never happen.
    pub corrupt: bool,
}

impl Flow {
    /// Makes a flow of `total_bytes` that starts at once.
    pub fn of(total_bytes: u64) -> Self {
        Self {
            total_bytes,
            start_us: 0,
            options: SenderOptions::default(),
            window_bytes: 64 << 20,
            has_handshake: false,
        }
    }
}

impl FlowReport {
    /// Whether every byte arrived at its place, and the sender knows it.
    pub fn is_whole(&self) -> bool {
        self.whole_us.is_some() && self.verdict == Some(Verdict::Whole) && !self.corrupt
    }
}

/// Packet that arrives at one end of a flow.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    /// Index of the flow: transfers first, then TCP flows.
    pub(super) flow: usize,
    pub(super) to_receiver: bool,
    pub(super) number: u64,
    pub(super) datagram_bytes: usize,
    /// Frame; empty for TCP.
    pub(super) bytes: Vec<u8>,
}

/// Sender and receiver, with a patterned content that reveals misplaced bytes.
pub(super) struct FlowEnds {
    pub(super) start_us: u64,
    total_bytes: u64,
    options: SenderOptions,
    /// Until the sender knows the receiver.
    handshake: Option<Handshake>,
    sender: Sender,
    receiver: Receiver,
    /// Number of the receiver's next packet.
    back_number: u64,
    stored: RangeSet,
    report: FlowReport,
}

impl FlowEnds {
    pub(super) fn new(flow: &Flow) -> Self {
        Self {
            start_us: flow.start_us,
            total_bytes: flow.total_bytes,
            options: flow.options.clone(),
            handshake: flow.has_handshake.then(|| Handshake::new(flow)),
            sender: writer(flow.start_us, flow.total_bytes, flow.options.clone()),
            receiver: Receiver::new(flow.window_bytes),
            back_number: 0,
            stored: RangeSet::default(),
            report: FlowReport::default(),
        }
    }

    /// Time of the next action at either end; `None` once the transfer is over.
    pub(super) fn next_time_us(&self, now_us: u64) -> Option<u64> {
        if self.report.done_us.is_some() {
            return None;
        }
        if now_us < self.start_us {
            return Some(self.start_us);
        }
        let sender_us = match &self.handshake {
            Some(handshake) if !handshake.is_answered => handshake.next_us,
            _ => self.sender.next_time_us(now_us),
        };
        let report_us = self.handshake.as_ref().map_or(u64::MAX, |it| it.report_us);
        Some(sender_us.min(self.receiver.next_time_us()).min(report_us).max(now_us + 1))
    }

    /// Next packet of the sender: number, datagram length, frame.
    pub(super) fn poll_sender(&mut self, now_us: u64, pattern: &[u8]) -> Option<(u64, usize, Vec<u8>)> {
        if let Some(handshake) = self.handshake.as_mut().filter(|handshake| !handshake.is_answered) {
            return handshake.poll_first(now_us);
        }
        let transmit = self.sender.poll_transmit(now_us)?;
        let payload_bytes = transmit.item.data().map_or(0, |range| range.end - range.start);
        let mut bytes = vec![0; payload_bytes as usize + HEAD_BYTES_MAX];
        let is_last = transmit.item.data().is_some_and(|range| self.sender.is_last(range.end));
        let length = encode(&transmit, is_last, pattern, &mut bytes);
        bytes.truncate(length);
        let datagram_bytes = match transmit.item {
            Item::Probe { datagram_bytes } => datagram_bytes as usize,
            _ => length + HEADER_BYTES + TAG_BYTES,
        };
        Some((transmit.number, datagram_bytes, bytes))
    }

    /// Next packet of the receiver: number and frame.
    pub(super) fn poll_receiver(&mut self, now_us: u64) -> Option<(u64, Vec<u8>)> {
        if let Some(answer) = self.handshake.as_mut().and_then(|handshake| handshake.poll_answer(now_us)) {
            return Some((0, answer));
        }
        let mut frame = [0; 1_150];
        let length = self.receiver.poll_report(now_us, &mut frame)?;
        self.back_number += 1;
        Some((self.back_number - 1, frame[..length].to_vec()))
    }

    pub(super) fn note_queue(&mut self, now_us: u64, queue_us: u64) {
        let tenth = (now_us / 100_000) as usize;
        let queue = &mut self.report.queue_us_by_tenth;
        queue.resize(queue.len().max(tenth + 1), 0);
        queue[tenth] = queue[tenth].max(queue_us);
    }

    pub(super) fn note_memory(&mut self) {
        let memory_bytes = self.sender.memory_bytes() + self.receiver.memory_bytes();
        self.report.memory_bytes_max = self.report.memory_bytes_max.max(memory_bytes);
    }

    /// Delivers a packet to one of the ends.
    pub(super) fn take(&mut self, now_us: u64, event: &Event, pattern: &[u8]) {
        if let (Some(handshake), [INIT | REPLY, place]) = (&mut self.handshake, &event.bytes[..]) {
            if event.to_receiver {
                handshake.take_first(now_us, *place);
            } else if !std::mem::replace(&mut handshake.is_answered, true) {
                let rtt_us = Some(now_us - self.start_us);
                self.sender =
                    writer(now_us, self.total_bytes, SenderOptions { rtt_us, ..self.options.clone() });
            }
            return;
        }
        match Frame::decode(&event.bytes) {
            Err(_) => self.report.corrupt = true,
            Ok(frame) if event.to_receiver => self.take_at_receiver(now_us, event, &frame, pattern),
            Ok(frame) => self.take_at_sender(now_us, &frame),
        }
    }

    fn take_at_sender(&mut self, now_us: u64, frame: &Frame<'_>) {
        match frame {
            Frame::Feedback(report) => self.sender.on_feedback(now_us, report),
            Frame::Outcome(verdict) => self.sender.on_outcome(*verdict),
            Frame::HandshakeTrain { window_end, train } => {
                self.sender.on_handshake_train(now_us, *window_end, *train);
            }
            _ => self.report.corrupt = true,
        }
        if self.sender.verdict().is_some() && self.report.done_us.is_none() {
            self.report.done_us = Some(now_us);
        }
    }

    fn take_at_receiver(&mut self, now_us: u64, event: &Event, frame: &Frame<'_>, pattern: &[u8]) {
        if let Arrived::Data { offset, payload } =
            self.receiver.on_packet(now_us, event.number, event.datagram_bytes, frame)
        {
            let from = (offset % PATTERN_BYTES) as usize;
            self.report.corrupt |= payload != &pattern[from..from + payload.len()];
            self.stored.insert(offset..offset + payload.len() as u64);
            let tenth = (now_us / 100_000) as usize;
            let received = &mut self.report.received_by_tenth;
            let last = received.last().copied().unwrap_or(0);
            received.resize(received.len().max(tenth + 1), last);
            received[tenth] = self.stored.covered();
        }
        if self.receiver.is_complete() && self.report.whole_us.is_none() {
            self.report.whole_us = Some(now_us);
            self.report.corrupt |= self.stored.prefix_end() != self.total_bytes + 1;
            self.receiver.conclude(now_us, Verdict::Whole);
        }
    }

    pub(super) fn into_report(self, until_us: u64) -> FlowReport {
        FlowReport {
            verdict: self.sender.verdict(),
            counters: self.sender.counters,
            costs: self.sender.costs(self.report.done_us.unwrap_or(until_us)),
            ..self.report
        }
    }
}

/// Sender that has everything to send.
fn writer(now_us: u64, total_bytes: u64, options: SenderOptions) -> Sender {
    let mut sender = Sender::new(options);
    sender.extend(now_us, total_bytes, total_bytes);
    sender.finish();
    sender
}

/// Packets before the session, at both ends.
struct Handshake {
    /// Time of the next first packet, and its place: 0, those of the train, then more for single ones.
    next_us: u64,
    place: u8,
    is_answered: bool,
    window_bytes: u64,
    /// At the receiver: due answers, the train, and the time of its next report.
    answers: u32,
    train: HandshakeTrain,
    report_us: u64,
    reports: u32,
}

impl Handshake {
    fn new(flow: &Flow) -> Self {
        Self {
            next_us: flow.start_us,
            place: 0,
            is_answered: false,
            window_bytes: flow.window_bytes,
            answers: 0,
            train: HandshakeTrain::default(),
            report_us: u64::MAX,
            reports: 0,
        }
    }

    /// Next packet of the sender: one, a train, then one from time to time.
    fn poll_first(&mut self, now_us: u64) -> Option<(u64, usize, Vec<u8>)> {
        if now_us < self.next_us {
            return None;
        }
        let place = self.place;
        (self.place, self.next_us) = match u64::from(place) {
            0 => (1, now_us + HANDSHAKE_TRAIN_AFTER_US),
            1..FIRST_PACKETS => (place + 1, now_us),
            _ => (place.saturating_add(1), now_us + ASKED_AGAIN_US),
        };
        let place = if u64::from(place) > FIRST_PACKETS { 0 } else { place };
        Some((0, INIT_BYTES, vec![INIT, place]))
    }

    fn take_first(&mut self, now_us: u64, place: u8) {
        self.train.take(now_us, place, INIT_BYTES);
        self.answers += u32::from(place.is_multiple_of(8));
        self.report_us = now_us;
    }

    fn poll_answer(&mut self, now_us: u64) -> Option<Vec<u8>> {
        if self.answers > 0 {
            self.answers -= 1;
            return Some(vec![REPLY, 0]);
        }
        if now_us < self.report_us || self.reports == 3 {
            self.report_us = if self.reports == 3 { u64::MAX } else { self.report_us };
            return None;
        }
        self.report_us = now_us + 10_000;
        let train = self.train.measured(now_us)?;
        self.reports += 1;
        let mut frame = vec![0; HEAD_BYTES_MAX];
        let length = Frame::HandshakeTrain { window_end: self.window_bytes, train }.encode(&mut frame)?;
        frame.truncate(length);
        Some(frame)
    }
}

/// First bytes of the packets of a handshake. They are not frames.
const INIT: u8 = 1;
const REPLY: u8 = 2;
const ASKED_AGAIN_US: u64 = 250_000;

/// Content of every transfer, long enough for a payload from anywhere in the first period.
pub(super) fn pattern() -> Vec<u8> {
    let byte = |index: u64| (index % PATTERN_BYTES).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0];
    (0..PATTERN_BYTES + 65_536).map(byte).collect()
}

fn encode(transmit: &Transmit, is_last: bool, pattern: &[u8], out: &mut [u8]) -> usize {
    let stamp = transmit.stamp;
    let frame = match transmit.item {
        Item::Data { offset, len } => {
            let from = (offset % PATTERN_BYTES) as usize;
            let payload = &pattern[from..from + len as usize];
            if is_last {
                Frame::Last { stamp, offset, payload }
            } else {
                Frame::Data { stamp, offset, payload }
            }
        }
        Item::Probe { .. } | Item::Ping => Frame::Probe { stamp, padding: 8 },
        Item::Close => Frame::Close,
    };
    frame.encode(out).unwrap_or(0)
}

/// Maximum overhead of a sender's frame beyond its payload.
const HEAD_BYTES_MAX: usize = 128;

/// Period of the pattern: a prime, so that no packet length divides it.
const PATTERN_BYTES: u64 = 65_521;
