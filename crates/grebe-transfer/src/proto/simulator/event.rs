//! Packets under way in the simulation, in the order of their arrival.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A packet that arrives at one end of a flow.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    /// Which flow: transfers first, then TCP flows.
    pub(super) flow: usize,
    pub(super) to_receiver: bool,
    pub(super) number: u64,
    pub(super) datagram_bytes: usize,
    /// The frame; empty for TCP.
    pub(super) bytes: Vec<u8>,
}

/// Packets that arrive at the same time do so in the order in which they were sent.
#[derive(Debug, Default)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
}

impl Events {
    pub(super) fn push(&mut self, due_us: u64, event: Event) {
        self.sequence += 1;
        self.heap.push(Reverse((due_us, self.sequence, event)));
    }

    pub(super) fn next_time_us(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((due_us, ..))| *due_us)
    }

    /// The next packet that has arrived by `now_us`.
    pub(super) fn pop_due(&mut self, now_us: u64) -> Option<Event> {
        self.next_time_us().filter(|due_us| *due_us <= now_us)?;
        self.heap.pop().map(|Reverse((_, _, event))| event)
    }
}
