//! What a sender knows: which bytes were sent, which of them the receiver has, and when the next packet is due.

use std::collections::VecDeque;
use std::ops::Range;

use super::datagram_sizes::DatagramSizes;
use super::progress::{Limit, SendCounters, SendProgress, SenderOptions};
use super::trains::Trains;
use crate::proto::congestion::{Controller, PhaseCost};
use crate::proto::ranges::RangeSet;
use crate::proto::sent_packets::SentPackets;
use crate::proto::verdict::{SILENCE_US_MAX, Verdict};
use crate::proto::wire::{HeldRanges, INITIAL_WINDOW_BYTES};

/// Decides which bytes go out when. The caller brings the bytes, the clock and the socket.
///
/// Time is microseconds since any moment of the caller's choice, and never goes back.
#[derive(Debug)]
pub struct Sender {
    pub(super) total_bytes: u64,
    /// The caller has read the stream up to here.
    pub(super) available: u64,
    /// Everything below was sent once, or is confirmed.
    pub(super) fresh: u64,
    /// The receiver takes nothing at or above this offset.
    pub(super) window_end: u64,
    /// Bytes of the stream that the receiver reported to have.
    pub(super) received_bytes: u64,
    pub(super) sizes: DatagramSizes,
    pub(super) in_flight: SentPackets,
    pub(super) confirmed: RangeSet,
    /// Lost bytes, to be sent again.
    pub(super) repairs: RangeSet,
    /// Repairs that are sent again while nothing else is to be sent, and how often.
    pub(super) copies: VecDeque<(Range<u64>, u8)>,
    pub(super) offers_due: u8,
    pub(super) closes_due: u8,
    pub(super) controller: Controller,
    pub(super) trains: Trains,
    /// When the pace allows the next packet.
    pub(super) next_us: u64,
    pub(super) highest_confirmed: Option<u64>,
    /// When the newest confirmed packet was sent.
    pub(super) newest_confirmed_us: u64,
    /// The round ends when this packet number is confirmed.
    pub(super) round_end: u64,
    pub(super) round_since_us: u64,
    /// A packet is lost when one that left so much later was confirmed.
    pub(super) reorder_us: u64,
    pub(super) heard_us: u64,
    /// When something was confirmed, or a probe was sent after a timeout.
    pub(super) progress_us: u64,
    pub(super) timeouts_in_a_row: u32,
    pub(super) tail_probe_us: u64,
    pub(super) tail_probes: u32,
    pub(super) last_limit: Limit,
    pub(super) started: bool,
    pub(super) verdict: Option<Verdict>,
    pub(super) counters: SendCounters,
}

impl Sender {
    /// A sender of `total_bytes`, none of which is read yet: [`make_available`](Self::make_available).
    pub fn new(total_bytes: u64, options: SenderOptions) -> Self {
        let limit = options.limit_bits_per_s.map(|bits| bits / 8.0);
        Self {
            total_bytes,
            available: 0,
            fresh: 0,
            window_end: INITIAL_WINDOW_BYTES,
            received_bytes: 0,
            sizes: DatagramSizes::new(options.datagram_bytes, &options.probe_datagram_bytes),
            in_flight: SentPackets::default(),
            confirmed: RangeSet::default(),
            repairs: RangeSet::default(),
            copies: VecDeque::with_capacity(64),
            offers_due: 1,
            closes_due: 0,
            controller: Controller::new(options.mode, limit, options.rtt_us, options.seed),
            trains: Trains::new(),
            next_us: 0,
            highest_confirmed: None,
            newest_confirmed_us: 0,
            round_end: 0,
            round_since_us: 0,
            reorder_us: options.rtt_us.map_or(REORDER_US_MIN, |rtt_us| (rtt_us / 16).max(REORDER_US_MIN)),
            heard_us: 0,
            progress_us: 0,
            timeouts_in_a_row: 0,
            tail_probe_us: 0,
            tail_probes: 0,
            last_limit: Limit::Start,
            started: false,
            verdict: None,
            counters: SendCounters::default(),
        }
    }

    /// Says that the stream is readable up to `end`, except for what the receiver holds.
    pub fn make_available(&mut self, end: u64) {
        self.available = self.available.max(end.min(self.total_bytes));
    }

    /// Takes what the receiver has from an earlier session: it is not sent again.
    pub fn on_held(&mut self, now_us: u64, held: &HeldRanges<'_>) {
        self.heard_us = now_us;
        for range in held.iter() {
            let range = range.start..range.end.min(self.total_bytes);
            self.repairs.remove(range.clone());
            self.confirmed.insert(range);
        }
        self.skip_confirmed();
    }

    /// Takes the receiver's verdict. The sender then has [`Item::Close`](crate::proto::sent_packets::Item::Close) to send, and
    /// is done.
    pub fn on_outcome(&mut self, now_us: u64, verdict: Verdict) {
        self.heard_us = now_us;
        if self.verdict.is_none() {
            self.verdict = Some(verdict);
            self.closes_due = CLOSES;
            if verdict == Verdict::Whole {
                self.received_bytes = self.total_bytes;
            }
        }
    }

    /// Ends the transfer: the receiver is told, a few times.
    pub(crate) fn cancel(&mut self) {
        if self.verdict.is_none() {
            self.verdict = Some(Verdict::Cancelled);
            self.closes_due = CLOSES;
        }
    }

    /// Everything below was sent once, or is confirmed.
    pub(crate) fn fresh_from(&self) -> u64 {
        self.fresh
    }

    /// Whether all that was read is sent, and there is more to read.
    pub(crate) fn is_waiting_for_source(&self) -> bool {
        self.fresh >= self.available && self.available < self.total_bytes && self.verdict.is_none()
    }

    /// What the receiver is known to have.
    pub(crate) fn confirmed(&self) -> &RangeSet {
        &self.confirmed
    }

    /// The lowest byte that may have to be read again.
    pub(crate) fn needed_from(&self) -> u64 {
        self.confirmed.prefix_end()
    }

    /// How the transfer ended, once it has.
    pub fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// Whether everything is done, including the last packet.
    pub fn is_done(&self) -> bool {
        self.verdict.is_some() && self.closes_due == 0
    }

    /// Whether the receiver has been silent for so long that it is gone.
    pub fn is_peer_gone(&self, now_us: u64) -> bool {
        self.started && now_us.saturating_sub(self.heard_us) > SILENCE_US_MAX
    }

    /// Where the transfer stands.
    pub(crate) fn progress(&self) -> SendProgress {
        let packets = self.counters.packets.max(1);
        SendProgress {
            confirmed_bytes: self.received_bytes,
            rate_bits_per_s: self.controller.bandwidth() * 8.0,
            rtt_us: self.controller.smoothed_rtt_us(),
            queue_us: self.controller.queue_us(),
            loss: self.counters.lost.saturating_sub(self.counters.late) as f64 / packets as f64,
            limit: self.last_limit,
        }
    }

    /// What each phase has cost until `now_us`, in the order in which a transfer goes through them.
    pub(crate) fn phase_costs(&self, now_us: u64) -> [PhaseCost; 5] {
        self.controller.costs(now_us)
    }

    /// What this sender has done so far.
    pub(crate) fn counters(&self) -> SendCounters {
        self.counters
    }

    /// Bytes of UDP payload of the longest datagrams now.
    pub(crate) fn datagram_bytes(&self) -> usize {
        self.sizes.longest()
    }

    /// Bytes of memory that this half holds; the bytes in flight bound it.
    pub fn memory_bytes(&self) -> usize {
        self.in_flight.memory_bytes()
            + self.confirmed.memory_bytes()
            + self.repairs.memory_bytes()
            + self.copies.capacity() * size_of::<(Range<u64>, u8)>()
    }

    /// Payload bytes of the next data packet.
    pub(super) fn payload_bytes(&self) -> u64 {
        self.sizes.payload_bytes(self.controller.pace().unwrap_or(0.0))
    }

    /// Whether everything was sent and nothing is known to be lost.
    pub(super) fn is_tail(&self) -> bool {
        self.fresh == self.total_bytes && self.repairs.is_empty() && self.copies.is_empty()
    }

    pub(super) fn skip_confirmed(&mut self) {
        while let Some(end) = self.confirmed.end_of(self.fresh) {
            self.fresh = end;
        }
    }
}

/// Packets that tell the receiver that the session is over: one of them may be lost.
const CLOSES: u8 = 3;

const REORDER_US_MIN: u64 = 1_000;
