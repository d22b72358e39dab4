//! Transfers over an emulated path in virtual time: the same seed gives the same run, to the byte.
//!
//! ```
//! use grebe_transfer::sim::{Flow, Link, Path, simulate};
//!
//! let link = Link { rate_bits_per_s: 100e6, delay_us: 125_000, loss: 0.01, ..Link::default() };
//! let path = Path::symmetric(link);
//! let end = simulate(&path, &[Flow::of(5_000_000)], 1, 60_000_000);
//! assert!(end[0].is_whole());
//! ```

mod pipe;
mod tcp;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use self::pipe::Pipe;
use self::tcp::Tcp;
pub use self::tcp::{Congestion, Neighbour, NeighbourEnd};
use crate::proto::wire::{Frame, Offer, Verdict};
use crate::{Arrived, Item, PhaseCost, RangeSet, Receiver, Sender, SenderCounters, SenderOptions};

/// One direction of a path: a bottleneck with a queue, then a delay.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Bits a second; 0: no limit.
    pub rate_bits_per_s: f64,
    /// Propagation delay of this direction.
    pub delay_us: u64,
    /// Each packet is late by up to this much, evenly distributed: packets overtake each other.
    pub jitter_us: u64,
    /// Bytes that the bottleneck's queue holds.
    pub queue_bytes: u64,
    /// The share of packets that is lost, 0 to 1.
    pub loss: f64,
    /// Losses come in runs of so many packets, with the same share.
    pub burst: u32,
    /// The share of packets that comes twice.
    pub duplicates: f64,
    /// Datagrams longer than this are lost, in bytes of UDP payload.
    pub datagram_bytes_max: usize,
}

/// Both directions of a path, and how they change.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path {
    /// From the sender to the receiver.
    pub forward: Link,
    /// From the receiver to the sender.
    pub back: Link,
    /// From these times on, in ascending order, the path is another.
    pub changes: Vec<(u64, Link, Link)>,
}

/// One transfer over the path.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Bytes of its file.
    pub total_bytes: u64,
    /// When it starts.
    pub start_us: u64,
    /// How its sender behaves.
    pub options: SenderOptions,
    /// How far its receiver lets it run ahead.
    pub window_bytes: u64,
}

/// How a transfer went.
#[derive(Debug, Clone)]
pub struct FlowEnd {
    /// When the receiver had every byte.
    pub whole_us: Option<u64>,
    /// When the sender knew.
    pub done_us: Option<u64>,
    /// What the sender was told.
    pub verdict: Option<Verdict>,
    /// What the sender did.
    pub counters: SenderCounters,
    /// What each phase cost.
    pub costs: [PhaseCost; 5],
    /// The most memory that both halves held.
    pub memory_bytes_max: usize,
    /// Payload bytes that were in place, every tenth of a second.
    pub received_by_tenth: Vec<u64>,
    /// The queueing delay of the bottleneck that this flow's packets met, the greatest in every tenth of a second.
    pub queue_us_by_tenth: Vec<u64>,
    /// A byte in a wrong place, which must never be.
    pub corrupt: bool,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            rate_bits_per_s: 0.0,
            delay_us: 0,
            jitter_us: 0,
            queue_bytes: 1 << 20,
            loss: 0.0,
            burst: 1,
            duplicates: 0.0,
            datagram_bytes_max: 1_472,
        }
    }
}

impl Path {
    /// The same link both ways, with the loss on the forward one only.
    pub fn symmetric(link: Link) -> Self {
        Self { back: Link { loss: 0.0, ..link.clone() }, forward: link, changes: Vec::new() }
    }
}

impl Flow {
    /// A flow of `total_bytes` that starts at once.
    pub fn of(total_bytes: u64) -> Self {
        Self { total_bytes, start_us: 0, options: SenderOptions::default(), window_bytes: 64 << 20 }
    }
}

impl FlowEnd {
    /// Whether every byte came, in its place, and the sender knows.
    pub fn is_whole(&self) -> bool {
        self.whole_us.is_some() && self.verdict == Some(Verdict::Whole) && !self.corrupt
    }
}

/// Runs all flows over one path until they are done or the time is over.
pub fn simulate(path: &Path, flows: &[Flow], seed: u64, until_us: u64) -> Vec<FlowEnd> {
    simulate_beside(path, flows, &[], seed, until_us).0
}

/// Runs all flows beside TCP flows on the same path until the flows are done or the time is over.
pub fn simulate_beside(
    path: &Path,
    flows: &[Flow],
    neighbours: &[Neighbour],
    seed: u64,
    until_us: u64,
) -> (Vec<FlowEnd>, Vec<NeighbourEnd>) {
    let mut world = World::new(path, flows, neighbours, seed);
    while let Some(now_us) = world.next_time_us().filter(|now_us| *now_us <= until_us) {
        world.step(now_us);
    }
    world.ends(until_us)
}

struct World<'a> {
    path: &'a Path,
    changed: usize,
    now_us: u64,
    forward: Pipe,
    back: Pipe,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    ends: Vec<Ends>,
    neighbours: Vec<Tcp>,
    pattern: Vec<u8>,
}

/// Both ends of one flow.
struct Ends {
    start_us: u64,
    sender: Sender,
    receiver: Receiver,
    back_number: u64,
    stored: RangeSet,
    end: FlowEnd,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    /// Those of the neighbours come after ours.
    flow: usize,
    to_receiver: bool,
    number: u64,
    datagram_bytes: usize,
    bytes: Vec<u8>,
}

impl<'a> World<'a> {
    fn new(path: &'a Path, flows: &[Flow], neighbours: &[Neighbour], seed: u64) -> Self {
        let pattern = (0..PATTERN_BYTES as u64 + 65_536)
            .map(|index| (index % PATTERN_BYTES as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0])
            .collect();
        Self {
            path,
            changed: 0,
            now_us: 0,
            forward: Pipe::new(path.forward.clone(), seed),
            back: Pipe::new(path.back.clone(), seed ^ 0xb0b0),
            events: BinaryHeap::new(),
            sequence: 0,
            ends: flows.iter().map(Ends::new).collect(),
            neighbours: neighbours.iter().map(Tcp::new).collect(),
            pattern,
        }
    }

    fn next_time_us(&self) -> Option<u64> {
        let event_us = self.events.peek().map(|Reverse(next)| next.0);
        let own_us = self.ends.iter().filter_map(|ends| ends.next_time_us(self.now_us)).min();
        if own_us.is_none() && !self.ends.is_empty() {
            return None; // Neighbours alone are of no interest.
        }
        let their_us = self.neighbours.iter().map(|tcp| tcp.next_time_us(self.now_us)).min();
        let own_us = own_us.into_iter().chain(their_us).min();
        match (event_us, own_us) {
            (Some(event_us), Some(own_us)) => Some(event_us.min(own_us)),
            (event_us, own_us) => event_us.or(own_us),
        }
    }

    fn step(&mut self, now_us: u64) {
        self.now_us = now_us;
        while let Some((_, forward, back)) =
            self.path.changes.get(self.changed).filter(|(from_us, ..)| *from_us <= now_us)
        {
            (self.forward.link, self.back.link) = (forward.clone(), back.clone());
            self.changed += 1;
        }
        while let Some(Reverse((due_us, ..))) = self.events.peek()
            && *due_us <= now_us
        {
            if let Some(Reverse((_, _, event))) = self.events.pop() {
                match event.flow.checked_sub(self.ends.len()) {
                    None => self.ends[event.flow].take(now_us, &event, &self.pattern),
                    Some(neighbour) => self.take_tcp(now_us, neighbour, &event),
                }
            }
        }
        for flow in 0..self.ends.len() {
            self.poll(now_us, flow);
        }
        for neighbour in 0..self.neighbours.len() {
            self.poll_tcp(now_us, neighbour);
        }
    }

    fn poll_tcp(&mut self, now_us: u64, neighbour: usize) {
        let flow = self.ends.len() + neighbour;
        let Self { neighbours, forward, events, sequence, .. } = self;
        while let Some(number) = neighbours[neighbour].poll_transmit(now_us) {
            forward.send(now_us, tcp::PACKET_BYTES, |due_us| {
                *sequence += 1;
                let event = Event { flow, to_receiver: true, number, datagram_bytes: 0, bytes: Vec::new() };
                events.push(Reverse((due_us, *sequence, event)));
            });
        }
    }

    fn take_tcp(&mut self, now_us: u64, neighbour: usize, event: &Event) {
        let Self { neighbours, back, events, sequence, .. } = self;
        if !event.to_receiver {
            neighbours[neighbour].on_ack(now_us, event.number);
            return;
        }
        let Event { flow, number, .. } = *event;
        back.send(now_us, tcp::ACK_BYTES, |due_us| {
            *sequence += 1;
            let event = Event { flow, to_receiver: false, number, datagram_bytes: 0, bytes: Vec::new() };
            events.push(Reverse((due_us, *sequence, event)));
        });
    }

    fn poll(&mut self, now_us: u64, flow: usize) {
        let Self { ends, forward, back, events, sequence, pattern, .. } = self;
        let ends = &mut ends[flow];
        if now_us < ends.start_us {
            return;
        }
        while let Some(transmit) = ends.sender.poll_transmit(now_us) {
            let mut bytes = vec![0; 65_536];
            let length = encode(&transmit.item, transmit.stamp, ends.end_bytes(), pattern, &mut bytes);
            bytes.truncate(length);
            let datagram_bytes = match transmit.item {
                Item::Probe { datagram_bytes } => datagram_bytes as usize,
                _ => length + crate::proto::wire::HEADER_BYTES + crate::proto::wire::TAG_BYTES,
            };
            let tenth = (now_us / 100_000) as usize;
            let queue = &mut ends.end.queue_us_by_tenth;
            queue.resize(queue.len().max(tenth + 1), 0);
            queue[tenth] = queue[tenth].max(forward.free_us.saturating_sub(now_us));
            forward.send(now_us, datagram_bytes, |due_us| {
                *sequence += 1;
                let event = Event {
                    flow,
                    to_receiver: true,
                    number: transmit.number,
                    datagram_bytes,
                    bytes: bytes.clone(),
                };
                events.push(Reverse((due_us, *sequence, event)));
            });
        }
        let mut report = [0; 1_150];
        while let Some(length) = ends.receiver.poll_report(now_us, &mut report) {
            let number = ends.back_number;
            ends.back_number += 1;
            back.send(
                now_us,
                length + crate::proto::wire::HEADER_BYTES + crate::proto::wire::TAG_BYTES,
                |due_us| {
                    *sequence += 1;
                    let event = Event {
                        flow,
                        to_receiver: false,
                        number,
                        datagram_bytes: length,
                        bytes: report[..length].to_vec(),
                    };
                    events.push(Reverse((due_us, *sequence, event)));
                },
            );
        }
        let memory_bytes = ends.sender.memory_bytes() + ends.receiver.memory_bytes();
        ends.end.memory_bytes_max = ends.end.memory_bytes_max.max(memory_bytes);
    }

    fn ends(self, until_us: u64) -> (Vec<FlowEnd>, Vec<NeighbourEnd>) {
        let finish = |ends: Ends| FlowEnd {
            verdict: ends.sender.verdict(),
            counters: ends.sender.counters(),
            costs: ends.sender.phase_costs(ends.end.done_us.unwrap_or(until_us)),
            ..ends.end
        };
        let neighbours = self.neighbours.into_iter().map(|tcp| tcp.end).collect();
        (self.ends.into_iter().map(finish).collect(), neighbours)
    }
}

impl Ends {
    fn new(flow: &Flow) -> Self {
        let mut sender = Sender::new(flow.total_bytes, flow.options.clone());
        sender.make_available(flow.total_bytes);
        Self {
            start_us: flow.start_us,
            sender,
            receiver: Receiver::new(flow.window_bytes),
            back_number: 0,
            stored: RangeSet::default(),
            end: FlowEnd {
                whole_us: None,
                done_us: None,
                verdict: None,
                counters: SenderCounters::default(),
                costs: [PhaseCost::default(); 5],
                memory_bytes_max: 0,
                received_by_tenth: Vec::new(),
                queue_us_by_tenth: Vec::new(),
                corrupt: false,
            },
        }
    }

    fn end_bytes(&self) -> u64 {
        self.sender.total_bytes()
    }

    fn next_time_us(&self, now_us: u64) -> Option<u64> {
        if self.end.done_us.is_some() {
            return None;
        }
        if now_us < self.start_us {
            return Some(self.start_us);
        }
        let next_us = self.sender.next_time_us(now_us).min(self.receiver.next_time_us());
        Some(next_us.max(now_us + 1))
    }

    fn take(&mut self, now_us: u64, event: &Event, pattern: &[u8]) {
        let Ok(frame) = Frame::decode(&event.bytes) else {
            self.end.corrupt = true;
            return;
        };
        if !event.to_receiver {
            match frame {
                Frame::Feedback(report) => self.sender.on_feedback(now_us, &report),
                Frame::Outcome(verdict) => self.sender.on_outcome(now_us, verdict),
                _ => self.end.corrupt = true,
            }
            if self.sender.verdict().is_some() && self.end.done_us.is_none() {
                self.end.done_us = Some(now_us);
            }
            return;
        }
        if let Arrived::Data { offset, payload } =
            self.receiver.on_packet(now_us, event.number, event.datagram_bytes, &frame)
        {
            let from = (offset % PATTERN_BYTES as u64) as usize;
            self.end.corrupt |= payload != &pattern[from..from + payload.len()];
            self.stored.insert(offset..offset + payload.len() as u64);
            let tenth = (now_us / 100_000) as usize;
            let received = &mut self.end.received_by_tenth;
            let last = received.last().copied().unwrap_or(0);
            received.resize(received.len().max(tenth + 1), last);
            received[tenth] = self.stored.covered();
        }
        if self.receiver.is_complete() && self.end.whole_us.is_none() {
            self.end.whole_us = Some(now_us);
            self.end.corrupt |= self.stored.prefix_end() != self.end_bytes();
            self.receiver.conclude(now_us, Verdict::Whole);
        }
    }
}

fn encode(
    item: &Item,
    stamp: crate::proto::wire::Stamp,
    total_bytes: u64,
    pattern: &[u8],
    out: &mut [u8],
) -> usize {
    let frame = match *item {
        Item::Data { offset, len } => {
            let from = (offset % PATTERN_BYTES as u64) as usize;
            Frame::Data { stamp, offset, payload: &pattern[from..from + len as usize] }
        }
        Item::Offer => Frame::Offer { stamp, offer: Offer { total_bytes, index_bytes: 0, content: [0; 32] } },
        Item::Probe { .. } => Frame::Probe { stamp, padding: 8 },
        Item::Close => Frame::Close,
    };
    frame.encode(out).unwrap_or(0)
}

/// A prime, so that no packet's length divides it.
const PATTERN_BYTES: usize = 65_521;
