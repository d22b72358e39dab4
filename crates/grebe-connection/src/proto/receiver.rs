//! Receiving half of a stream, without sockets, threads or a clock of its own.

mod peak_rate;
mod reading;

use std::ops::Range;

use self::peak_rate::PeakRate;
use crate::proto::ranges::RangeSet;
use crate::proto::train::{FIRST_PACKETS, TrainDispersion};
use crate::proto::wire::{
    Feedback, Frame, INITIAL_WINDOW_BYTES, REPORT_INTERVAL_US_MAX, ReceivedPackets, RunBytes,
    STREAM_BYTES_MAX, Stamp, UDP_IP_BYTES, Verdict, WINDOW_BYTES_MAX, decode_rtt, report_interval_us,
};

/// Meaning of a packet to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived<'a> {
    /// Nothing to do.
    Nothing,
    /// Payload to store, at least part of it new.
    Data {
        /// Offset in the stream.
        offset: u64,
        /// The payload.
        payload: &'a [u8],
    },
}

/// Takes packets, tracks gaps and reports them. The caller keeps the bytes.
///
/// Time is microseconds since any moment of the caller's choice, and never goes back.
#[derive(Debug, Default)]
pub struct Receiver {
    packets: ReceivedPackets,
    /// Received bytes of the stream.
    pub received: RangeSet,
    /// [`STREAM_BYTES_MAX`] while unknown.
    total_bytes: u64,
    verdict: Option<Verdict>,
    closed: bool,
    window_bytes: u64,
    window_end: u64,
    /// Bytes that arrived and are not stored yet. The window holds the sender back by as much.
    pub(crate) backlog_bytes: u64,
    delivered_bytes: u64,
    /// The sender's round trip, once known.
    pub(crate) rtt_us: Option<u64>,
    pub(crate) heard_us: u64,
    /// Time of the last new bytes or, on a connection, of the last sign of life.
    pub(crate) news_us: u64,
    highest_us: u64,
    first_us: u64,
    /// Number and arrival time of the first packet of a train.
    first_train: Option<(u64, u64)>,
    train: TrainDispersion,
    delay_us: Option<u32>,
    /// Lowest packet number that arrived in each of the last report intervals, newest first.
    lowest_new: [u64; INTERVALS],
    gaps_new: u64,
    reports_due: usize,
    next_report_us: u64,
    outcomes_due: u32,
    next_outcome_us: u64,
    is_leaving: bool,
    peak_rate: PeakRate,
}

impl Receiver {
    /// Makes a receiver. The sender may run ahead of the first missing byte by `window_bytes`, plus twice the
    /// bytes that arrive in a round trip.
    pub fn new(window_bytes: u64) -> Self {
        Self {
            window_bytes: window_bytes.max(INITIAL_WINDOW_BYTES),
            total_bytes: STREAM_BYTES_MAX,
            window_end: window_bytes.max(INITIAL_WINDOW_BYTES),
            lowest_new: [u64::MAX; INTERVALS],
            ..Self::default()
        }
    }

    /// Packet numbers received so far, for [`Session::open`](crate::proto::handshake::Session::open).
    pub fn packets(&self) -> &ReceivedPackets {
        &self.packets
    }

    /// Takes an authentic packet of `datagram_bytes` of UDP payload.
    pub fn on_packet<'a>(
        &mut self,
        now_us: u64,
        number: u64,
        datagram_bytes: usize,
        frame: &Frame<'a>,
    ) -> Arrived<'a> {
        self.heard_us = now_us;
        let stamp = match frame {
            Frame::Data { stamp, .. } | Frame::Last { stamp, .. } | Frame::Probe { stamp, .. } => *stamp,
            Frame::Close => {
                self.closed = true;
                return Arrived::Nothing;
            }
            Frame::Feedback(_) | Frame::Outcome(_) | Frame::HandshakeTrain { .. } => return Arrived::Nothing,
        };
        let wire_bytes = (datagram_bytes + UDP_IP_BYTES) as u64;
        if let Frame::Data { offset, payload, .. } | Frame::Last { offset, payload, .. } = *frame
            && self.received.len() >= HOLES_MAX
            && !self
                .received
                .touches(&(offset.saturating_sub(1)..offset.saturating_add(payload.len() as u64 + 1)))
        {
            // No honest path makes this many gaps, so this packet counts as lost.
            return Arrived::Nothing;
        }
        if !self.note_arrival(now_us, number, wire_bytes, stamp) {
            return Arrived::Nothing;
        }
        if self.verdict.is_some() {
            // The sender missed the outcome.
            self.outcomes_due = self.outcomes_due.max(1);
            self.next_outcome_us = self.next_outcome_us.min(now_us);
        }
        match *frame {
            Frame::Data { offset, payload, .. } => self.take_data(now_us, offset, payload),
            Frame::Last { offset, payload, .. } if self.is_end(offset + payload.len() as u64) => {
                self.take_data(now_us, offset, payload)
            }
            Frame::Probe { .. } => {
                self.news_us = now_us;
                Arrived::Nothing
            }
            _ => Arrived::Nothing,
        }
    }

    /// Writes the report due at `now_us` into `out` and returns its length. `None`: none is due.
    pub fn poll_report(&mut self, now_us: u64, out: &mut [u8]) -> Option<usize> {
        if self.outcomes_due > 0 && now_us >= self.next_outcome_us {
            self.outcomes_due -= 1;
            let interval_us = if self.is_leaving { 0 } else { self.interval_us().max(10_000) };
            self.next_outcome_us = now_us + interval_us;
            return Frame::Outcome(self.verdict?).encode(out);
        }
        if self.reports_due == 0 || now_us < self.next_report_us {
            return None;
        }
        let highest = self.packets.highest()?;
        self.peak_rate.on_report(now_us, self.delivered_bytes);
        self.window_end = self.window_end.max(self.window_end_now());
        let floor = self.report_floor(highest);
        let head = Feedback {
            highest,
            age_us: now_us.saturating_sub(self.highest_us).min(u64::from(u32::MAX)) as u32,
            at_us: now_us,
            delivered_bytes: self.delivered_bytes,
            received_bytes: self.received.covered(),
            window_end: self.window_end,
            delay_us: self.delay_us.take(),
            train: self.train.reported_at(now_us, highest),
            runs: RunBytes::NONE,
        };
        self.lowest_new.rotate_right(1);
        self.lowest_new[0] = u64::MAX;
        self.reports_due -= 1;
        self.gaps_new = 0;
        self.next_report_us = now_us + self.interval_us();
        head.encode_with(&self.packets, floor, out)
    }

    /// Latest time to call [`poll_report`](Self::poll_report) again if no packet arrives before.
    pub fn next_time_us(&self) -> u64 {
        let report_us = if self.reports_due > 0 { self.next_report_us } else { u64::MAX };
        let outcome_us = if self.outcomes_due > 0 { self.next_outcome_us } else { u64::MAX };
        report_us.min(outcome_us)
    }

    /// Whether every byte has arrived. Then verify and call [`conclude`](Self::conclude).
    pub fn is_complete(&self) -> bool {
        self.total_bytes == self.received.covered()
    }

    /// Notes that the sender was heard in the handshake.
    pub fn heard(&mut self, now_us: u64) {
        (self.heard_us, self.news_us) = (now_us, now_us);
    }

    /// Forces a report without news, because the sender may have lost its route to this end.
    pub(crate) fn report_anyway(&mut self, now_us: u64) {
        if self.packets.highest().is_some() && self.verdict.is_none() {
            (self.reports_due, self.next_report_us) = (self.reports_due.max(1), now_us);
        }
    }

    /// Ends the transfer. Sends the outcome until the sender confirms it.
    pub fn conclude(&mut self, now_us: u64, verdict: Verdict) {
        if self.verdict.is_none() {
            self.verdict = Some(verdict);
            (self.outcomes_due, self.next_outcome_us) = (OUTCOMES, now_us);
            self.reports_due = 0;
        }
    }

    /// Sends the outcome `outcomes` times at once, then stops.
    pub(crate) fn leave(&mut self, outcomes: u8) {
        (self.outcomes_due, self.next_outcome_us, self.is_leaving) = (outcomes.into(), 0, true);
    }

    /// Whether no outcome is due for now.
    pub(crate) fn has_said_outcome(&self) -> bool {
        self.outcomes_due == 0
    }

    /// Whether the sender has confirmed that it knows the outcome.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Outcome of the transfer, once it has ended.
    pub fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// Whether the sender knows the verdict, or has been silent long enough to count as gone.
    pub fn is_over(&self, now_us: u64) -> bool {
        let linger_us = 4 * self.rtt_us.unwrap_or(0) + LINGER_US;
        self.closed || self.verdict.is_some() && now_us.saturating_sub(self.heard_us) > linger_us
    }

    /// Bytes of memory that this half holds.
    pub fn memory_bytes(&self) -> usize {
        self.received.memory_bytes() + (ReceivedPackets::PACKETS / 8) as usize
    }

    /// Records the arrival of a packet for the reports; `false` for a duplicate.
    fn note_arrival(&mut self, now_us: u64, number: u64, wire_bytes: u64, stamp: Stamp) -> bool {
        let highest = self.packets.highest();
        if !self.packets.accept(number) {
            return false;
        }
        match highest {
            None => self.first_us = now_us,
            Some(highest) if number > highest + 1 => self.gaps_new += 1,
            Some(_) => {}
        }
        if highest.is_none_or(|highest| number > highest) {
            self.highest_us = now_us;
        }
        if stamp.train > 0 && self.first_train.is_none() {
            self.first_train = Some((number, now_us));
        }
        let train_is_over = stamp.train == 0 && self.train.end_with(number);
        self.train.take(stamp.train, number, now_us, wire_bytes);
        self.delivered_bytes += wire_bytes;
        self.rtt_us = decode_rtt(stamp.rtt_code).or(self.rtt_us);
        let delay_us = (now_us as u32).wrapping_sub(stamp.sent_us);
        // The clocks differ by an unknown constant and the difference may wrap, so this compares by
        // serial-number arithmetic.
        self.delay_us = Some(match self.delay_us {
            Some(least) if least.wrapping_sub(delay_us).cast_signed() < 0 => least,
            _ => delay_us,
        });
        self.lowest_new[0] = self.lowest_new[0].min(number);
        self.schedule_report(now_us);
        if train_is_over {
            // The sender waits for this measurement.
            self.next_report_us = now_us;
        }
        true
    }

    /// Lowest packet number that a report covers.
    fn report_floor(&self, highest: u64) -> u64 {
        let lowest =
            |intervals: usize| self.lowest_new[..intervals].iter().copied().min().unwrap_or(u64::MAX);
        let deep = lowest(INTERVALS).max(highest.saturating_sub(DEEP_PACKETS));
        lowest(REPEATS).min(deep).min(highest)
    }

    fn schedule_report(&mut self, now_us: u64) {
        if self.reports_due == 0 {
            self.next_report_us = now_us + self.interval_us();
        }
        self.reports_due = REPEATS;
        let (first, first_us) = self.first_train.unwrap_or((0, self.first_us));
        let is_train = self.first_train.is_some();
        if is_train
            && self.packets.highest().is_none_or(|highest| highest < first.saturating_add(FIRST_PACKETS))
            && self.train.packets() < FIRST_PACKETS
        {
            // The first packets arrive together, so their report waits until they stop arriving.
            self.next_report_us =
                (now_us + TRAIN_QUIET_US).min(first_us + REPORT_INTERVAL_US_MAX).max(now_us);
        }
        if self.gaps_new >= GAPS_PER_REPORT {
            self.next_report_us = now_us;
        }
    }

    fn take_data<'a>(&mut self, now_us: u64, offset: u64, payload: &'a [u8]) -> Arrived<'a> {
        let range: Range<u64> = offset..offset.saturating_add(payload.len() as u64);
        if payload.is_empty() || range.end > self.total_bytes || range.end > self.window_end {
            return Arrived::Nothing;
        }
        if self.received.insert(range) == 0 {
            return Arrived::Nothing;
        }
        self.news_us = now_us;
        Arrived::Data { offset, payload }
    }

    /// Window end if it were reported now.
    fn window_end_now(&self) -> u64 {
        let span_us = self.highest_us.saturating_sub(self.first_us).max(1_000_000);
        let rate = self.delivered_bytes as f64 / span_us as f64;
        let rate = rate.max(self.peak_rate.greatest);
        let bdp = (rate * self.rtt_us.unwrap_or(0) as f64) as u64;
        let ahead = self.window_bytes.saturating_add(2 * bdp).min(WINDOW_BYTES_MAX);
        self.received.prefix_end() + ahead.saturating_sub(self.backlog_bytes)
    }

    fn interval_us(&self) -> u64 {
        self.rtt_us.map_or(REPORT_INTERVAL_US_MAX, report_interval_us)
    }
}

/// Time that a concluded receiver waits for the sender's confirmation, in addition to four round trips.
const LINGER_US: u64 = 1_000_000;

/// Minimum number of reports that repeat each arrival.
const REPEATS: usize = 4;

/// Number of reports that repeat each arrival while packets are few: as many as may get lost in a row.
const INTERVALS: usize = 12;
const DEEP_PACKETS: u64 = 4_096;

const TRAIN_QUIET_US: u64 = 5_000;

/// Maximum gaps between received bytes, at 16 bytes of memory each.
const HOLES_MAX: usize = 1 << 18;

/// A report of 1200 bytes holds some 400 gaps; four intervals go into one.
const GAPS_PER_REPORT: u64 = 90;

/// Number of unsolicited outcomes.
const OUTCOMES: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_sender_claims_the_window_has_a_bound() {
        let mut receiver = Receiver::new(48 << 20);
        let mut stamp = Stamp { rtt_code: 255, sent_us: 0, train: 0 };
        let (mut report, mut window_end) = ([0; 1_200], 0);
        for number in 1..60_000 {
            stamp.sent_us = number as u32;
            let now_us = number * 20;
            let frame = Frame::Data { stamp, offset: window_end.max(3_000) - 1_500, payload: &[0; 1_400] };
            receiver.on_packet(now_us, number, 1_472, &frame);
            if let Some(length) = receiver.poll_report(now_us + 30_000, &mut report)
                && let Frame::Feedback(report) = Frame::decode(&report[..length]).unwrap()
            {
                window_end = report.window_end;
            }
        }
        assert!(window_end > 200 << 20, "{window_end}: it is a fast path");
        assert!(window_end <= WINDOW_BYTES_MAX, "{window_end}");
    }

    #[test]
    fn a_sender_that_leaves_holes_everywhere_makes_only_so_many() {
        let mut receiver = Receiver::new(48 << 20);
        let stamp = Stamp { rtt_code: 0, sent_us: 0, train: 0 };
        for number in 1..=HOLES_MAX as u64 + 1_000 {
            receiver.on_packet(number, number, 40, &Frame::Data { stamp, offset: number * 2, payload: &[1] });
        }
        assert_eq!(receiver.received.len(), HOLES_MAX);
        assert!(receiver.memory_bytes() < 10 << 20, "{}", receiver.memory_bytes());
        let frame = Frame::Data { stamp, offset: 3, payload: &[1] };
        let filled = receiver.on_packet(1 << 20, 1 << 20, 40, &frame);
        assert!(matches!(filled, Arrived::Data { .. }), "a hole can be filled: {filled:?}");
    }
}
