//! Which lengths of datagrams the path carries: longer ones are probed at the start, and given up when they vanish.

use std::collections::VecDeque;

use crate::proto::sent_packets::Item;
use crate::proto::wire::{OVERHEAD_BYTES, UDP_IP_BYTES};

/// Lengths are bytes of UDP payload.
#[derive(Debug)]
pub(crate) struct DatagramSizes {
    /// Lengths that the path was seen to carry, ascending; the first is the least one, which every path carries.
    carried: Vec<usize>,
    least: usize,
    to_probe: VecDeque<usize>,
    /// Timeouts since a datagram longer than the least one was confirmed.
    timeouts: u32,
}

impl DatagramSizes {
    /// `probes` are longer lengths to try, ascending; each is tried twice.
    pub(super) fn new(least: usize, probes: &[usize]) -> Self {
        let least = least.max(OVERHEAD_BYTES + 1);
        let longer = probes.iter().copied().filter(|size| *size > least).take(PROBES_MAX);
        Self {
            carried: vec![least],
            least,
            to_probe: longer.flat_map(|size| [size, size]).collect(),
            timeouts: 0,
        }
    }

    /// The longest that the path carries.
    pub(crate) fn longest(&self) -> usize {
        self.carried.last().copied().unwrap_or(self.least)
    }

    /// Payload of the next data packet at this pace in bytes per second. Datagrams far longer than an Ethernet's, as a loopback
    /// interface has, save time only where sending one takes less than a burst may last.
    pub(super) fn payload_bytes(&self, pace: f64) -> u64 {
        let burst_bytes = pace * BURST_US_MAX as f64 / 1e6;
        let fits = |bytes: usize| bytes <= PLAIN_DATAGRAM_BYTES || bytes as f64 <= burst_bytes;
        let bytes = self.carried.iter().rev().copied().find(|bytes| fits(*bytes)).unwrap_or(self.least);
        (bytes - OVERHEAD_BYTES) as u64
    }

    pub(super) fn has_probe(&self) -> bool {
        !self.to_probe.is_empty()
    }

    /// The next length to probe.
    pub(super) fn take_probe(&mut self) -> Option<usize> {
        self.to_probe.pop_front()
    }

    /// The receiver confirmed a packet.
    pub(super) fn on_ack(&mut self, item: Item, wire_bytes: u32) {
        if wire_bytes as usize > self.least + UDP_IP_BYTES {
            self.timeouts = 0;
        }
        if let Item::Probe { datagram_bytes } = item
            && let Err(place) = self.carried.binary_search(&(datagram_bytes as usize))
        {
            self.carried.insert(place, datagram_bytes as usize);
        }
    }

    /// Nothing was heard for a probe timeout while a packet of this length was the oldest in flight.
    pub(super) fn on_timeout(&mut self, oldest_wire_bytes: Option<u32>) {
        let is_long = oldest_wire_bytes.is_some_and(|bytes| bytes as usize > self.least + UDP_IP_BYTES);
        self.timeouts += u32::from(is_long);
        if self.timeouts >= TIMEOUTS_MAX {
            // The route may have changed to one that carries less.
            self.carried.truncate(1);
        }
    }
}

const PROBES_MAX: usize = 4;

/// Timeouts with a long datagram unconfirmed, until datagrams are short again.
const TIMEOUTS_MAX: u32 = 3;

/// Longer datagrams than these are sent only where the rate makes them short in time.
const PLAIN_DATAGRAM_BYTES: usize = 1_500;

/// A burst that leaves at once takes no longer than this on the path.
const BURST_US_MAX: u64 = 500;
