//! What goes out next, and when.

use std::ops::Range;

use super::{FIRST_PACKETS, Limit, Sender};
use crate::proto::congestion::Phase;
use crate::proto::flight::Item;
use crate::proto::wire::{OVERHEAD_BYTES, UDP_IP_BYTES};

impl Sender {
    /// What goes out now, and whether its bytes were sent before.
    pub(super) fn choose(&mut self, now_us: u64) -> Option<(Item, bool)> {
        if self.closes_due > 0 {
            self.closes_due -= 1;
            return Some((Item::Close, false));
        }
        if self.verdict.is_some() {
            return None;
        }
        if now_us >= self.probe_time_us() {
            return Some(self.ask(now_us));
        }
        if now_us < self.next_us {
            return None;
        }
        if !self.has_room() {
            self.last_limit = match self.rate.phase() {
                Phase::Train => Limit::Start,
                _ if self.rate.is_over_ceiling() => Limit::Queue,
                _ => Limit::InFlight,
            };
            return None;
        }
        let chosen = self.choose_work();
        if let Some(chosen) = chosen {
            self.last_limit = match self.rate.phase() {
                Phase::Train | Phase::Ramp => Limit::Start,
                _ if self.rate.is_limited() => Limit::Bandwidth,
                _ if self.rate.is_over_ceiling() => Limit::Queue,
                _ => Limit::Path,
            };
            return Some(chosen);
        }
        self.choose_tail_probe(now_us)
    }

    fn choose_work(&mut self) -> Option<(Item, bool)> {
        // The offer goes out thrice within the first packets: without it, the receiver can place nothing.
        let number = self.flight.next_number();
        if self.offers_due > 0 || (self.rate.phase() == Phase::Train && (number == 6 || number == 12)) {
            self.offers_due = self.offers_due.saturating_sub(1);
            return Some((Item::Offer, number > 0));
        }
        if number >= FIRST_PACKETS / 2
            && let Some(size) = self.probe_sizes.pop_front()
        {
            return Some((Item::Probe { datagram_bytes: size as u32 }, false));
        }
        while let Some(range) = self.repairs.pop_first(self.payload_bytes()) {
            if self.confirmed.contains(&range) {
                continue;
            }
            // In the tail a lost repair costs a round trip of an idle path: copies cost nothing.
            if self.fresh == self.total_bytes && self.copies.len() < COPIES_MAX {
                self.copies.push_back((range.clone(), if self.rate.base_loss() > 0.03 { 2 } else { 1 }));
            }
            return Some((data(range), true));
        }
        if let Some(range) = self.next_fresh() {
            self.fresh = range.end;
            self.skip_confirmed();
            return Some((data(range), false));
        }
        while let Some((range, left)) = self.copies.pop_front() {
            if self.confirmed.contains(&range) {
                continue;
            }
            if left > 1 {
                self.copies.push_back((range.clone(), left - 1));
            }
            return Some((data(range), true));
        }
        if self.fresh < self.total_bytes {
            self.last_limit = if self.fresh >= self.window_end { Limit::Receiver } else { Limit::Source };
        }
        None
    }

    /// All was sent: what went out last is sent again now and then, so that its loss shows at once.
    fn choose_tail_probe(&mut self, now_us: u64) -> Option<(Item, bool)> {
        if !self.is_tail() || self.tail_probes >= TAIL_PROBES_MAX || now_us < self.tail_probe_us {
            return None;
        }
        let item = match self.flight.newest_data() {
            Some(sent) => self.cut(sent.item),
            None if self.flight.packets() == 0 => return None,
            None => Item::Offer,
        };
        self.tail_probes += 1;
        self.tail_probe_us = now_us + (self.rate.smoothed_rtt_us() / 8).max(2_000);
        Some((item, true))
    }

    /// Nothing was heard for too long: one packet, whatever the window says, to learn why.
    fn ask(&mut self, now_us: u64) -> (Item, bool) {
        self.probes_unheard += 1;
        self.progress_us = now_us;
        self.counters.probes += 1;
        let least_bytes = self.datagram_bytes_least + UDP_IP_BYTES;
        let unheard = self.flight.oldest().is_some_and(|sent| sent.wire_bytes as usize > least_bytes);
        self.questions += u32::from(unheard);
        if self.questions >= QUESTIONS_MAX {
            // The route may be another one now, that carries less.
            self.carried.truncate(1);
        }
        if let Some(sent) = self.flight.oldest()
            && matches!(sent.item, Item::Data { .. })
            && self.highest_confirmed.is_some()
        {
            return (self.cut(sent.item), true);
        }
        (Item::Offer, true)
    }

    /// The item, no longer than a datagram is now.
    fn cut(&self, item: Item) -> Item {
        match item {
            Item::Data { offset, len } => Item::Data { offset, len: len.min(self.payload_bytes() as u32) },
            item => item,
        }
    }

    pub(super) fn has_work(&self) -> bool {
        self.offers_due > 0
            || !self.repairs.is_empty()
            || !self.copies.is_empty()
            || !self.probe_sizes.is_empty() && self.flight.next_number() >= FIRST_PACKETS / 2
            || self.next_fresh().is_some()
    }

    /// The next bytes that were never sent. A short packet in the middle is for a source that has no more for now, and not for
    /// a window that just moved.
    fn next_fresh(&self) -> Option<Range<u64>> {
        let held = self.confirmed.start_after(self.fresh).unwrap_or(u64::MAX);
        let end = self.available.min(held).min(self.window_end).min(self.fresh + self.payload_bytes());
        let whole = end == self.available.min(held) || end.saturating_sub(self.fresh) == self.payload_bytes();
        (whole && self.fresh < end).then_some(self.fresh..end)
    }

    pub(super) fn skip_confirmed(&mut self) {
        while let Some(end) = self.confirmed.end_of(self.fresh) {
            self.fresh = end;
        }
    }

    /// Payload of the next packet. Datagrams far longer than an Ethernet's, as a loopback interface has, save time only where
    /// one is sent in less than a burst's.
    pub(super) fn payload_bytes(&self) -> u64 {
        let burst_bytes = self.rate.pace().unwrap_or(0.0) * BURST_US_MAX as f64 / 1e6;
        let fits = |bytes: usize| bytes <= PLAIN_DATAGRAM_BYTES || bytes as f64 <= burst_bytes;
        let bytes = self
            .carried
            .iter()
            .rev()
            .copied()
            .find(|bytes| fits(*bytes))
            .unwrap_or(self.datagram_bytes_least);
        (bytes - OVERHEAD_BYTES) as u64
    }

    pub(super) fn has_room(&self) -> bool {
        if self.rate.phase() == Phase::Train {
            return self.trains.left() > 0;
        }
        self.flight.bytes() < self.rate.in_flight_cap_bytes()
    }

    pub(super) fn is_tail(&self) -> bool {
        self.fresh == self.total_bytes && self.repairs.is_empty() && self.copies.is_empty()
    }

    pub(super) fn probe_time_us(&self) -> u64 {
        let waits = self.rate.probe_timeout_us() << self.probes_unheard.min(4);
        let waits_max = PROBE_EVERY_US_MAX.max(self.rate.probe_timeout_us());
        self.progress_us + waits.min(waits_max)
    }

    /// Moves the schedule on by what a packet costs. It lags behind by a few milliseconds at most, so that a late wake-up is
    /// made good and an idle time is not.
    pub(super) fn pay(&mut self, now_us: u64, wire_bytes: u32) {
        let pace = if self.trains.left() > 0 { self.rate.train_pace() } else { self.rate.pace() };
        if let Some(pace) = pace {
            let lag_us = LAG_US_MAX.max((f64::from(wire_bytes) * 1e6 / pace) as u64);
            let cost_us = f64::from(wire_bytes) * 1e6 / pace;
            let from_us = self.next_us.max(now_us.saturating_sub(lag_us));
            // Whole microseconds are too coarse at high rates: what is left over is drawn evenly by the packet's number.
            let fraction = (self.counters.packets % 64) as f64 / 64.0;
            self.next_us = from_us + (cost_us + fraction) as u64;
        }
    }

    pub(super) fn datagram_bytes_of(&self, item: Item) -> usize {
        match item {
            Item::Data { len, .. } => OVERHEAD_BYTES + len as usize,
            Item::Probe { datagram_bytes } => datagram_bytes as usize,
            Item::Offer | Item::Close => OVERHEAD_BYTES + 64,
        }
    }
}

/// Questions without an answer to a long datagram, until datagrams are short again.
const QUESTIONS_MAX: u32 = 3;

/// Longer datagrams than these are sent only where the rate makes them short in time.
const PLAIN_DATAGRAM_BYTES: usize = 1_500;

/// What leaves at once lasts no longer than this on the path.
const BURST_US_MAX: u64 = 500;

pub(super) const TAIL_PROBES_MAX: u32 = 16;
const COPIES_MAX: usize = 4_096;
const LAG_US_MAX: u64 = 4_000;
const PROBE_EVERY_US_MAX: u64 = 500_000;

fn data(range: Range<u64>) -> Item {
    // A packet's payload is below 64 KiB.
    Item::Data { offset: range.start, len: (range.end - range.start) as u32 }
}
