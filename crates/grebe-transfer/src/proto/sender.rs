//! The sending half of a transfer, without sockets, threads or a clock of its own.

mod choose;
mod progress;
mod report;
mod trains;

use std::collections::VecDeque;
use std::ops::Range;

use self::choose::TAIL_PROBES_MAX;
pub use self::progress::{Limit, Progress, SenderCounters, SenderOptions};
use self::trains::Trains;
pub(crate) use self::trains::{FIRST_PACKETS, TrainHeard};
use crate::proto::congestion::{Controller, PhaseCost};
use crate::proto::flight::{Flight, Item};
use crate::proto::ranges::RangeSet;
use crate::proto::wire::{self, HeldRanges, OVERHEAD_BYTES, Stamp, UDP_IP_BYTES, Verdict};

/// What is to be sent now, as one packet of its own number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// The packet's number: each is used once.
    pub number: u64,
    /// What it carries.
    pub item: Item,
    /// What the frame begins with.
    pub stamp: Stamp,
}

/// Decides which bytes go out when. The caller brings the bytes, the clock and the socket.
///
/// Time is microseconds since any moment of the caller's choice, and never goes back.
#[derive(Debug)]
pub struct Sender {
    total_bytes: u64,
    available: u64,
    fresh: u64,
    window_end: u64,
    received_bytes: u64,
    /// Lengths of datagrams that the path was seen to carry, ascending.
    carried: Vec<usize>,
    datagram_bytes_least: usize,
    /// Questions since a datagram longer than the least one was confirmed.
    questions: u32,
    probe_sizes: VecDeque<usize>,
    flight: Flight,
    confirmed: RangeSet,
    repairs: RangeSet,
    copies: VecDeque<(Range<u64>, u8)>,
    offers_due: u8,
    closes_due: u8,
    rate: Controller,
    trains: Trains,
    next_us: u64,
    highest_confirmed: Option<u64>,
    newest_confirmed_us: u64,
    round_end: u64,
    round_since_us: u64,
    reorder_us: u64,
    heard_us: u64,
    progress_us: u64,
    probes_unheard: u32,
    tail_probe_us: u64,
    tail_probes: u32,
    last_limit: Limit,
    started: bool,
    verdict: Option<Verdict>,
    counters: SenderCounters,
}

impl Sender {
    /// A sender of `total_bytes`, none of which is read yet: [`make_available`](Self::make_available).
    pub fn new(total_bytes: u64, options: SenderOptions) -> Self {
        let limit = options.limit_bits_per_s.map(|bits| bits / 8.0);
        let datagram_bytes = options.datagram_bytes.max(OVERHEAD_BYTES + 1);
        Self {
            total_bytes,
            available: 0,
            fresh: 0,
            window_end: INITIAL_WINDOW_BYTES,
            received_bytes: 0,
            carried: vec![datagram_bytes],
            datagram_bytes_least: datagram_bytes,
            questions: 0,
            probe_sizes: options
                .probe_datagram_bytes
                .iter()
                .copied()
                .filter(|size| *size > datagram_bytes)
                .take(4)
                .flat_map(|size| [size, size])
                .collect(),
            flight: Flight::default(),
            confirmed: RangeSet::default(),
            repairs: RangeSet::default(),
            copies: VecDeque::with_capacity(64),
            offers_due: 1,
            closes_due: 0,
            rate: Controller::new(options.mode, limit, options.rtt_us, options.seed),
            trains: Trains::new(),
            next_us: 0,
            highest_confirmed: None,
            newest_confirmed_us: 0,
            round_end: 0,
            round_since_us: 0,
            reorder_us: options.rtt_us.map_or(REORDER_US_MIN, |rtt_us| (rtt_us / 16).max(REORDER_US_MIN)),
            heard_us: 0,
            progress_us: 0,
            probes_unheard: 0,
            tail_probe_us: 0,
            tail_probes: 0,
            last_limit: Limit::Start,
            started: false,
            verdict: None,
            counters: SenderCounters::default(),
        }
    }

    /// Says that the stream is readable up to `end`, but for what the receiver holds.
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

    /// All below was sent once, or is confirmed.
    pub fn fresh_from(&self) -> u64 {
        self.fresh
    }

    /// Whether all that was read is sent, and there is more.
    pub fn is_waiting_for_source(&self) -> bool {
        self.fresh >= self.available && self.available < self.total_bytes && self.verdict.is_none()
    }

    /// What the receiver is known to have.
    pub fn confirmed(&self) -> &RangeSet {
        &self.confirmed
    }

    /// Ends the transfer: the receiver is told, a few times.
    pub fn cancel(&mut self) {
        if self.verdict.is_none() {
            self.verdict = Some(Verdict::Cancelled);
            self.closes_due = CLOSES;
        }
    }

    /// The next packet that is due at `now_us`; `None`: come back at [`next_time_us`](Self::next_time_us), or with a report.
    pub fn poll_transmit(&mut self, now_us: u64) -> Option<Transmit> {
        if !self.started {
            self.started = true;
            (self.heard_us, self.progress_us, self.next_us) = (now_us, now_us, now_us);
            self.rate.start(now_us);
        }
        let (item, repeat) = self.choose(now_us)?;
        let wire_bytes = (self.datagram_bytes_of(item) + UDP_IP_BYTES) as u32;
        self.pay(now_us, wire_bytes);
        if self.flight.packets() == 0 {
            self.progress_us = now_us;
        }
        let number = self.flight.push(now_us, item, wire_bytes);
        self.counters.packets += 1;
        self.counters.wire_bytes += u64::from(wire_bytes);
        self.counters.repeats += u64::from(repeat);
        let rtt_us = self.rate.smoothed_rtt_us();
        let rtt_code = if rtt_us == 0 { 0 } else { wire::encode_rtt(rtt_us) };
        let train = self.trains.mark(now_us, number, wire_bytes);
        Some(Transmit { number, item, stamp: Stamp { rtt_code, sent_us: now_us as u32, train } })
    }

    /// When [`poll_transmit`](Self::poll_transmit) is to be asked again at the latest, if no report comes before.
    pub fn next_time_us(&self, now_us: u64) -> u64 {
        if !self.started {
            return now_us;
        }
        let probe_us = self.probe_time_us();
        if self.closes_due > 0 {
            return now_us;
        }
        if self.verdict.is_some() {
            return u64::MAX;
        }
        let mut next_us = probe_us;
        if !self.has_room() {
            return next_us.max(now_us);
        }
        if self.has_work() {
            next_us = next_us.min(self.next_us);
        } else if self.is_tail() && self.flight.packets() > 0 && self.tail_probes < TAIL_PROBES_MAX {
            next_us = next_us.min(self.tail_probe_us.max(self.next_us));
        }
        next_us.max(now_us)
    }

    /// Takes the receiver's last word. The sender then has [`Item::Close`] to send, and is done.
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

    /// How the transfer ended, once it has.
    pub fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// Bytes of the file.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Whether everything is done, the last packet included.
    pub fn is_done(&self) -> bool {
        self.verdict.is_some() && self.closes_due == 0
    }

    /// For how long nothing was heard from the receiver.
    pub fn silence_us(&self, now_us: u64) -> u64 {
        if self.started { now_us.saturating_sub(self.heard_us) } else { 0 }
    }

    /// The lowest byte that may have to be read again.
    pub fn needed_from(&self) -> u64 {
        self.confirmed.prefix_end()
    }

    /// Where the transfer stands.
    pub fn progress(&self) -> Progress {
        let packets = self.counters.packets.max(1);
        Progress {
            confirmed_bytes: self.received_bytes,
            rate_bits_per_s: self.rate.bandwidth() * 8.0,
            rtt_us: self.rate.smoothed_rtt_us(),
            queue_us: self.rate.queue_us(),
            loss: self.counters.lost.saturating_sub(self.counters.late) as f64 / packets as f64,
            limit: self.last_limit,
        }
    }

    /// What each phase has cost until `now_us`, in the order in which a transfer goes through them.
    pub fn phase_costs(&self, now_us: u64) -> [PhaseCost; 5] {
        self.rate.costs(now_us)
    }

    /// What this sender has done so far.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }

    /// Bytes of UDP payload a datagram has now: it grows when a probe of the path succeeds.
    pub fn datagram_bytes(&self) -> usize {
        self.carried.last().copied().unwrap_or(self.datagram_bytes_least)
    }

    /// Bytes of memory that this half holds, which what is under way bounds.
    pub fn memory_bytes(&self) -> usize {
        self.flight.memory_bytes()
            + self.confirmed.memory_bytes()
            + self.repairs.memory_bytes()
            + self.copies.capacity() * size_of::<(Range<u64>, u8)>()
    }
}

/// What may be sent before the receiver has said how much it takes.
pub(crate) const INITIAL_WINDOW_BYTES: u64 = 1 << 20;

const CLOSES: u8 = 3;
const REORDER_US_MIN: u64 = 1_000;
