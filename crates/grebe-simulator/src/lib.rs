//! Connections and one-way streams over an emulated path in virtual time: the same seed gives the same run, to the byte.
//!
//! ```
//! use grebe_simulator::{Flow, Link, Path, simulate};
//!
//! let link = Link { rate_bits_per_s: 100e6, delay_us: 125_000, loss: 0.01, ..Link::default() };
//! let path = Path::symmetric(link);
//! let reports = simulate(&path, &[Flow::of(5_000_000)], 1, 60_000_000);
//! assert!(reports[0].is_whole());
//! ```
#![forbid(unsafe_code)]

mod connection;
mod flow;
mod path;
mod tcp;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use grebe_connection::internals::{HEADER_BYTES, TAG_BYTES};

pub use self::connection::{Application, ConnectionReport, simulate_connection};
use self::flow::{Event, FlowEnds};
pub use self::flow::{Flow, FlowReport};
use self::path::Pipe;
pub use self::path::{Link, Path, Policer, Stalls};
use self::tcp::Tcp;
pub use self::tcp::{Congestion, TcpFlow, TcpReport};

/// Runs all flows over one path until they are done or the time is up.
pub fn simulate(path: &Path, flows: &[Flow], seed: u64, until_us: u64) -> Vec<FlowReport> {
    simulate_beside(path, flows, &[], seed, until_us).0
}

/// Runs all flows beside TCP flows on the same path, until the flows are done or the time is up.
pub fn simulate_beside(
    path: &Path,
    flows: &[Flow],
    tcp_flows: &[TcpFlow],
    seed: u64,
    until_us: u64,
) -> (Vec<FlowReport>, Vec<TcpReport>) {
    let mut simulation = Simulation::new(path, flows, tcp_flows, seed);
    while let Some(now_us) = simulation.next_time_us().filter(|now_us| *now_us <= until_us) {
        simulation.step(now_us);
    }
    let reports = simulation.flows.into_iter().map(|ends| ends.into_report(until_us)).collect();
    (reports, simulation.tcp_flows.into_iter().map(Tcp::into_report).collect())
}

struct Simulation<'a> {
    path: &'a Path,
    /// Number of changes of the path so far.
    changes: usize,
    now_us: u64,
    forward: Pipe,
    back: Pipe,
    events: Events<Event>,
    flows: Vec<FlowEnds>,
    tcp_flows: Vec<Tcp>,
    pattern: Vec<u8>,
}

impl<'a> Simulation<'a> {
    fn new(path: &'a Path, flows: &[Flow], tcp_flows: &[TcpFlow], seed: u64) -> Self {
        Self {
            path,
            changes: 0,
            now_us: 0,
            forward: Pipe::new(path.forward.clone(), seed),
            back: Pipe::new(path.back.clone(), seed ^ 0xb0b0),
            events: Events::default(),
            flows: flows.iter().map(FlowEnds::new).collect(),
            tcp_flows: tcp_flows.iter().map(Tcp::new).collect(),
            pattern: flow::pattern(),
        }
    }

    fn next_time_us(&self) -> Option<u64> {
        let flows_us = self.flows.iter().filter_map(|ends| ends.next_time_us(self.now_us)).min();
        if flows_us.is_none() && !self.flows.is_empty() {
            return None; // TCP flows alone are not of interest.
        }
        let tcp_us = self.tcp_flows.iter().map(|tcp| tcp.next_time_us(self.now_us)).min();
        [self.events.next_time_us(), flows_us, tcp_us].into_iter().flatten().min()
    }

    fn step(&mut self, now_us: u64) {
        self.now_us = now_us;
        while let Some((_, forward, back)) =
            self.path.changes.get(self.changes).filter(|(from_us, ..)| *from_us <= now_us)
        {
            (self.forward.link, self.back.link) = (forward.clone(), back.clone());
            self.changes += 1;
        }
        while let Some(event) = self.events.pop_due(now_us) {
            match event.flow.checked_sub(self.flows.len()) {
                None => self.flows[event.flow].take(now_us, &event, &self.pattern),
                Some(index) => self.take_tcp(now_us, index, &event),
            }
        }
        for flow in 0..self.flows.len() {
            self.poll(now_us, flow);
        }
        for index in 0..self.tcp_flows.len() {
            self.poll_tcp(now_us, index);
        }
    }

    fn poll(&mut self, now_us: u64, flow: usize) {
        let Self { flows, forward, back, events, pattern, .. } = self;
        let ends = &mut flows[flow];
        if now_us < ends.start_us {
            return;
        }
        while let Some((number, datagram_bytes, bytes)) = ends.poll_sender(now_us, pattern) {
            ends.note_queue(now_us, forward.queue_us(now_us));
            forward.send(now_us, datagram_bytes, |due_us| {
                let bytes = bytes.clone();
                events.push(due_us, Event { flow, to_receiver: true, number, datagram_bytes, bytes });
            });
        }
        while let Some((number, bytes)) = ends.poll_receiver(now_us) {
            back.send(now_us, bytes.len() + HEADER_BYTES + TAG_BYTES, |due_us| {
                let (datagram_bytes, bytes) = (bytes.len(), bytes.clone());
                events.push(due_us, Event { flow, to_receiver: false, number, datagram_bytes, bytes });
            });
        }
        ends.note_memory();
    }

    fn poll_tcp(&mut self, now_us: u64, index: usize) {
        let flow = self.flows.len() + index;
        let Self { tcp_flows, forward, events, .. } = self;
        while let Some(number) = tcp_flows[index].poll_transmit(now_us) {
            forward.send(now_us, tcp::PACKET_BYTES, |due_us| {
                events.push(due_us, tcp_event(flow, true, number));
            });
        }
    }

    fn take_tcp(&mut self, now_us: u64, index: usize, event: &Event) {
        if !event.to_receiver {
            return self.tcp_flows[index].on_ack(now_us, event.number);
        }
        let Self { back, events, .. } = self;
        back.send(now_us, tcp::ACK_BYTES, |due_us| {
            events.push(due_us, tcp_event(event.flow, false, event.number));
        });
    }
}

fn tcp_event(flow: usize, to_receiver: bool, number: u64) -> Event {
    Event { flow, to_receiver, number, datagram_bytes: 0, bytes: Vec::new() }
}

/// Event queue. Packets with equal arrival times keep their sending order.
#[derive(Debug)]
struct Events<E> {
    heap: BinaryHeap<Reverse<(u64, u64, E)>>,
    sequence: u64,
}

impl<E: Ord> Default for Events<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0 }
    }
}

impl<E: Ord> Events<E> {
    fn push(&mut self, due_us: u64, event: E) {
        self.sequence += 1;
        self.heap.push(Reverse((due_us, self.sequence, event)));
    }

    fn next_time_us(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((due_us, ..))| *due_us)
    }

    /// Next packet that has arrived by `now_us`.
    fn pop_due(&mut self, now_us: u64) -> Option<E> {
        self.next_time_us().filter(|due_us| *due_us <= now_us)?;
        self.heap.pop().map(|Reverse((_, _, event))| event)
    }
}
