//! Chooses the next packet, and when it leaves.

use std::ops::Range;

use super::{Limit, Sender, TIMEOUT_US_MAX, Transmit, WAIT_US_MIN};
use crate::proto::congestion::{ATTEMPTS, Phase, RATE_SPAN_US_MAX, RATE_SPAN_US_MIN};
use crate::proto::sent_packets::Item;
use crate::proto::train::FIRST_PACKETS;
use crate::proto::wire::{IN_FLIGHT_BYTES_MAX, OVERHEAD_BYTES, Stamp, UDP_IP_BYTES, encode_rtt};

impl Sender {
    /// Returns the next packet due at `now_us`. `None`: call again at [`next_time_us`](Self::next_time_us),
    /// or after a report.
    pub fn poll_transmit(&mut self, now_us: u64) -> Option<Transmit> {
        if !self.started {
            self.started = true;
            (self.progress_us, self.next_us) = (now_us, now_us);
            self.controller.start(now_us);
        }
        let (item, is_repeat) = self.choose(now_us)?;
        let wire_bytes = (datagram_bytes_of(item) + UDP_IP_BYTES) as u32;
        self.pay(now_us, wire_bytes);
        if self.in_flight.packets() == 0 {
            (self.progress_us, self.confirmed_us) = (now_us, now_us);
        }
        let number = self.in_flight.push(now_us, item, wire_bytes, self.controller.pace_class());
        self.counters.packets += 1;
        self.counters.wire_bytes += u64::from(wire_bytes);
        self.counters.repeats += u64::from(is_repeat);
        let rtt_us = self.controller.smoothed_rtt_us();
        let rtt_code = if rtt_us == 0 { 0 } else { encode_rtt(rtt_us) };
        let train = if self.is_stream { 0 } else { self.trains.mark(now_us, number, wire_bytes) };
        Some(Transmit { number, item, stamp: Stamp { rtt_code, sent_us: now_us as u32, train } })
    }

    /// Latest time to call [`poll_transmit`](Self::poll_transmit) again if no report arrives before.
    pub fn next_time_us(&self, now_us: u64) -> u64 {
        if !self.started || self.closes_due > 0 {
            return now_us;
        }
        if self.verdict.is_some() {
            return u64::MAX;
        }
        let mut next_us = self.timeout_at_us();
        if self.has_room() {
            if self.has_work() {
                next_us = next_us.min(self.next_us.max(self.short_us()));
            } else if let Some(probe_us) = self.tail_probe_at_us() {
                next_us = next_us.min(probe_us.max(self.next_us));
            }
        }
        next_us.max(now_us)
    }

    /// Chooses the content, and tells whether it is a retransmission.
    fn choose(&mut self, now_us: u64) -> Option<(Item, bool)> {
        if self.closes_due > 0 {
            self.closes_due -= 1;
            return Some((Item::Close, false));
        }
        if self.verdict.is_some() {
            return None;
        }
        if now_us >= self.timeout_at_us() {
            return Some(self.probe_after_timeout(now_us));
        }
        if now_us < self.next_us {
            return None;
        }
        if !self.has_room() {
            self.waits_for_pace = false;
            self.last_limit = match self.controller.phase() {
                Phase::Train => Limit::Start,
                _ if self.controller.is_over_ceiling() => Limit::Queue,
                _ => Limit::InFlight,
            };
            return None;
        }
        let chosen = self.choose_work(now_us);
        if let Some(chosen) = chosen {
            self.last_limit = match self.controller.phase() {
                _ if self.is_stream && self.options.limit_bits_per_s.is_none() => Limit::Path,
                _ if self.controller.is_limited() => Limit::Bandwidth,
                Phase::Train | Phase::Ramp if !self.is_stream => Limit::Start,
                _ if self.controller.is_over_ceiling() => Limit::Queue,
                _ => Limit::Path,
            };
            return Some(chosen);
        }
        self.choose_tail_probe(now_us)
    }

    fn choose_work(&mut self, now_us: u64) -> Option<(Item, bool)> {
        if self.greets() {
            return Some((Item::Ping, false));
        }
        if self.is_time_to_probe_sizes()
            && let Some(size) = self.sizes.take_probe()
        {
            return Some((Item::Probe { datagram_bytes: size as u32 }, false));
        }
        while let Some(range) = self.repairs.pop_first(self.payload_bytes()) {
            if self.confirmed.contains(&range) {
                continue;
            }
            // At the end of the stream, a lost retransmission costs a round trip and the path is idle, so
            // copies are free.
            if self.is_all_sent() && self.copies.len() < COPIES_MAX {
                self.copies.push_back((range.clone(), copies_for(self.controller.base_loss())));
            }
            return Some((data(range), true));
        }
        if let Some(range) = self.next_fresh()
            && now_us >= self.short_us()
        {
            self.fresh = range.end;
            self.skip_confirmed();
            self.note_fresh(now_us);
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
        self.waits_for_pace = false;
        if self.fresh < self.total_bytes {
            self.last_limit = if self.fresh >= self.window_end { Limit::Receiver } else { Limit::Source };
        }
        None
    }

    /// Tail loss probe: resends the newest packet now and then, so that its loss shows at once.
    fn choose_tail_probe(&mut self, now_us: u64) -> Option<(Item, bool)> {
        self.tail_probe_at_us().filter(|probe_us| now_us >= *probe_us)?;
        let item = self.unconfirmed_tail()?;
        self.tail_probes += 1;
        self.tail_probe_us = now_us + (self.controller.smoothed_rtt_us() / 8).max(WAIT_US_MIN);
        Some((item, true))
    }

    /// Time of the next tail loss probe.
    fn tail_probe_at_us(&self) -> Option<u64> {
        let is_due = !self.is_stream && self.is_tail() && self.tail_probes < u32::from(ATTEMPTS);
        (is_due && self.unconfirmed_tail().is_some()).then_some(self.tail_probe_us)
    }

    /// Newest data in flight, unless another copy of it has arrived. A probe of confirmed data would be
    /// confirmed too and allow the next one, without end.
    fn unconfirmed_tail(&self) -> Option<Item> {
        let item = self.in_flight.newest_data()?.item;
        let range = item.data()?;
        (!self.confirmed.contains(&range)).then(|| self.cut(item))
    }

    /// Sends one packet after a timeout, whatever the window, to learn the reason.
    fn probe_after_timeout(&mut self, now_us: u64) -> (Item, bool) {
        self.timeouts_in_a_row += 1;
        self.progress_us = now_us;
        self.counters.probes += 1;
        self.sizes.on_timeout(self.in_flight.oldest().map(|sent| sent.wire_bytes));
        if let Some(sent) = self.in_flight.oldest()
            && sent.item.data().is_some_and(|range| !self.confirmed.contains(&range))
            && !self.is_stream
        {
            return (self.cut(sent.item), true);
        }
        (Item::Ping, true)
    }

    /// Cuts the item to the present datagram length.
    fn cut(&self, item: Item) -> Item {
        match item {
            Item::Data { offset, len } => Item::Data { offset, len: len.min(self.payload_bytes() as u32) },
            item => item,
        }
    }

    fn has_work(&self) -> bool {
        !self.repairs.is_empty()
            || !self.copies.is_empty()
            || self.greets()
            || self.sizes.has_probe() && self.is_time_to_probe_sizes()
            || self.next_fresh().is_some()
    }

    /// Time at which a short packet of new bytes may leave, if there is nothing else to send.
    fn short_us(&self) -> u64 {
        let is_short = self.repairs.is_empty() && self.copies.is_empty();
        let fresh =
            self.next_fresh().filter(|range| is_short && range.end - range.start < self.payload_bytes());
        fresh.map_or(0, |range| self.short_packet_us(range.end))
    }

    /// Whether to try longer datagrams, which happens within the first train.
    fn is_time_to_probe_sizes(&self) -> bool {
        self.in_flight.next_number() >= FIRST_PACKETS / 2 && !self.trains.is_waiting()
    }

    /// Next new bytes. A packet may be short at the end of the available data, but not at the end of the
    /// receiver's window.
    fn next_fresh(&self) -> Option<Range<u64>> {
        let held = self.confirmed.start_after(self.fresh).unwrap_or(u64::MAX);
        let end = self.available.min(held).min(self.window_end).min(self.fresh + self.payload_bytes());
        let whole = end == self.available.min(held) || end.saturating_sub(self.fresh) == self.payload_bytes();
        (whole && self.fresh < end).then_some(self.fresh..end)
    }

    /// Whether one more packet may be in flight.
    fn has_room(&self) -> bool {
        if self.is_stream {
            return self.in_flight.bytes() < IN_FLIGHT_BYTES_MAX;
        }
        if self.controller.phase() == Phase::Train {
            let is_open = !self.trains.is_waiting() || self.in_flight.packets() < FIRST_PACKETS as usize;
            return self.trains.left() > 0 && is_open;
        }
        self.in_flight.bytes() < self.controller.in_flight_cap_bytes().min(IN_FLIGHT_BYTES_MAX)
    }

    /// End of the probe timeout (RFC 9002, section 6.2).
    fn timeout_at_us(&self) -> u64 {
        if let Some(idle_us) = self.idle_us() {
            return self.progress_us + idle_us;
        }
        let waits = self.controller.probe_timeout_us() << self.timeouts_in_a_row.min(4);
        let waits_max = TIMEOUT_US_MAX.max(self.controller.probe_timeout_us());
        self.progress_us + waits.min(waits_max)
    }

    /// Notes that the present packet is far too late: this process was suspended or overloaded.
    fn on_own_stall(&mut self, now_us: u64, lost_us: u64) {
        let measured_us = self.controller.smoothed_rtt_us().clamp(RATE_SPAN_US_MIN, RATE_SPAN_US_MAX);
        let from_us = self.own_stall_us.map_or(now_us, |(from_us, _)| from_us);
        self.own_stall_us = Some((from_us, now_us + measured_us));
        self.owed_us = (self.owed_us + lost_us as f64).min(self.controller.queue_ceiling_us() as f64);
    }

    /// Advances the schedule by the packet's time at the present pace. The schedule lags the clock by a few
    /// milliseconds at most, to make good a late wake-up but not idle time.
    fn pay(&mut self, now_us: u64, wire_bytes: u32) {
        let pace = if self.is_stream {
            self.options.limit_bits_per_s.map(|bits| bits / 8.0)
        } else if self.trains.left() > 0 {
            self.controller.train_pace()
        } else {
            self.controller.pace()
        };
        let was_due = std::mem::replace(&mut self.waits_for_pace, pace.is_some()) && !self.is_stream;
        if let Some(pace) = pace {
            let mut cost_us = f64::from(wire_bytes) * 1e6 / pace;
            let lag_us = LAG_US_MAX.max(cost_us as u64);
            let from_us = self.next_us.max(now_us.saturating_sub(lag_us));
            if was_due && from_us > self.next_us {
                self.on_own_stall(now_us, from_us - self.next_us);
            }
            let repaid_us = self.owed_us.min(REPAID_SHARE * cost_us);
            (self.owed_us, cost_us) = (self.owed_us - repaid_us, cost_us - repaid_us);
            // Whole microseconds are too coarse at high rates, so rounding is dithered by the packet count.
            let fraction = (self.counters.packets % 64) as f64 / 64.0;
            self.next_us = from_us + (cost_us + fraction) as u64;
        }
    }
}

/// Copies after which at most [`MISSING_SHARE_MAX`] of the retransmissions are still missing.
fn copies_for(loss: f64) -> u8 {
    (MISSING_SHARE_MAX.ln() / loss.max(MISSING_SHARE_MAX).ln()).ceil().max(2.0) as u8 - 1
}

/// Each one that is missing costs a round trip at the end of a stream.
const MISSING_SHARE_MAX: f64 = 0.001;

const COPIES_MAX: usize = 4_096;
const LAG_US_MAX: u64 = 4_000;

/// Repayment of a stall is as gentle as the probing gain: 1.25 times the pace.
const REPAID_SHARE: f64 = 0.2;

fn datagram_bytes_of(item: Item) -> usize {
    match item {
        Item::Data { len, .. } => OVERHEAD_BYTES + len as usize,
        Item::Probe { datagram_bytes } => datagram_bytes as usize,
        Item::Close | Item::Ping => OVERHEAD_BYTES + 64,
    }
}

fn data(range: Range<u64>) -> Item {
    // A packet's payload is below 64 KiB.
    Item::Data { offset: range.start, len: (range.end - range.start) as u32 }
}
