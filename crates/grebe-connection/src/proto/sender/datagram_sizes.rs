//! Datagram lengths of the path: longer ones are probed at the start and now and then, and given up when they
//! vanish.

use std::collections::VecDeque;

use crate::proto::congestion::{ATTEMPTS, PATH_WINDOW_US};
use crate::proto::sent_packets::Item;
use crate::proto::wire::{OVERHEAD_BYTES, UDP_IP_BYTES};

/// Lengths are bytes of UDP payload.
#[derive(Debug)]
pub(crate) struct DatagramSizes {
    /// Lengths that the path has carried, ascending. The first is the minimum that every path carries.
    carried: Vec<usize>,
    least: usize,
    /// Lengths to try, ascending.
    longer: Vec<usize>,
    to_probe: VecDeque<usize>,
    /// Time of the next attempt at unproven lengths, and the interval after it.
    again_us: u64,
    again_after_us: u64,
    /// Timeouts since the last confirmation of a datagram above the minimum length.
    timeouts: u32,
}

impl DatagramSizes {
    /// `probes` are longer lengths to try, ascending. Each is tried twice.
    pub(super) fn new(least: usize, probes: &[usize]) -> Self {
        let least = least.max(OVERHEAD_BYTES + 1);
        let longer: Vec<usize> = probes.iter().copied().filter(|size| *size > least).collect();
        Self {
            carried: vec![least],
            least,
            to_probe: twice(&longer).collect(),
            longer,
            again_us: 0,
            again_after_us: PATH_WINDOW_US,
            timeouts: 0,
        }
    }

    /// The longest length that the path carries.
    pub(crate) fn longest(&self) -> usize {
        self.carried.last().copied().unwrap_or(self.least)
    }

    /// Payload of the next data packet at this pace in bytes per second. Datagrams far above Ethernet's size,
    /// as on a loopback interface, pay off only if sending one takes less than the maximum burst.
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

    /// Notes a confirmed packet.
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

    /// Notes that the path works at `now_us`. After a while it may carry more than before.
    pub(super) fn look_again(&mut self, now_us: u64) {
        if self.again_us == 0 {
            self.again_us = now_us + self.again_after_us;
        }
        if now_us >= self.again_us && self.to_probe.is_empty() {
            let longest = self.longest();
            self.to_probe.extend(twice(&self.longer).filter(|size| *size > longest));
            self.again_after_us = (2 * self.again_after_us).min(AGAIN_AFTER_US_MAX);
            self.again_us = now_us + self.again_after_us;
        }
    }

    /// Notes a probe timeout while the oldest packet in flight had this length.
    pub(super) fn on_timeout(&mut self, oldest_wire_bytes: Option<u32>) {
        let is_long = oldest_wire_bytes.is_some_and(|bytes| bytes as usize > self.least + UDP_IP_BYTES);
        self.timeouts += u32::from(is_long);
        if self.timeouts >= u32::from(ATTEMPTS) && self.carried.len() > 1 {
            // The new route may carry less, or the path may be briefly dead.
            self.carried.truncate(1);
            (self.again_us, self.again_after_us) = (0, PATH_WINDOW_US);
        }
    }
}

/// Lists each length twice, because one probe may be lost.
fn twice(sizes: &[usize]) -> impl Iterator<Item = usize> {
    sizes.iter().flat_map(|size| [*size, *size])
}

/// Maximum interval between attempts at unproven lengths: the timer of RFC 8899, section 5.1.1.
const AGAIN_AFTER_US_MAX: u64 = 600_000_000;

/// Longer datagrams than this are used only if the rate makes them short in time.
const PLAIN_DATAGRAM_BYTES: usize = 1_500;

/// Maximum duration of an unpaced burst on the path.
const BURST_US_MAX: u64 = 500;

#[cfg(test)]
mod tests {
    use super::*;

    fn probes(sizes: &mut DatagramSizes) -> Vec<usize> {
        std::iter::from_fn(|| sizes.take_probe()).collect()
    }

    #[test]
    fn what_was_not_carried_is_tried_again_ever_more_rarely() {
        let mut sizes = DatagramSizes::new(1_200, &[1_400, 1_472]);
        assert_eq!(probes(&mut sizes), [1_400, 1_400, 1_472, 1_472]);
        sizes.on_ack(Item::Probe { datagram_bytes: 1_400 }, 1_428);
        let tries: Vec<u64> = (0..600)
            .filter(|second| {
                sizes.look_again(second * 1_000_000 + 1);
                let probes = probes(&mut sizes);
                assert!(probes.is_empty() || probes == [1_472, 1_472], "{probes:?}");
                !probes.is_empty()
            })
            .collect();
        assert_eq!(tries, [10, 30, 70, 150, 310]);
    }

    #[test]
    fn a_path_that_went_dark_is_asked_soon() {
        let mut sizes = DatagramSizes::new(1_200, &[1_472]);
        probes(&mut sizes);
        sizes.on_ack(Item::Probe { datagram_bytes: 1_472 }, 1_500);
        sizes.look_again(1);
        sizes.look_again(600_000_000);
        assert_eq!(probes(&mut sizes), [0; 0], "nothing longer is to be had");
        (0..ATTEMPTS).for_each(|_| sizes.on_timeout(Some(1_500)));
        assert_eq!(sizes.longest(), 1_200);
        sizes.look_again(700_000_000);
        sizes.look_again(709_000_000);
        assert_eq!(probes(&mut sizes), [0; 0]);
        sizes.look_again(710_000_000);
        assert_eq!(probes(&mut sizes), [1_472, 1_472]);
    }
}
