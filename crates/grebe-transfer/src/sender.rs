//! The sending half of a transfer, without sockets, threads or a clock of its own.

use std::collections::VecDeque;
use std::ops::Range;

use crate::flight::{Fate, Flight, Item, Sent};
use crate::ranges::RangeSet;
use crate::rate::{Controller, Mode, Phase, PhaseCost, RATE_SPAN_US_MIN, Sample};
use crate::wire::{self, Feedback, HeldRanges, OVERHEAD_BYTES, Stamp, UDP_IP_BYTES, Verdict};

/// How a sender behaves. Every field has a default that is right for a path of which nothing is known.
#[derive(Debug, Clone)]
pub struct SenderOptions {
    /// How much of a shared path to take.
    pub mode: Mode,
    /// Bits a second on the wire, at most; `None`: what the path gives.
    pub limit_bits_per_s: Option<f64>,
    /// The round trip of the handshake, if there was one.
    pub rtt_us: Option<u64>,
    /// Bytes of UDP payload that every path carries.
    pub datagram_bytes: usize,
    /// Larger datagrams to try, in bytes of UDP payload, ascending. At most four are tried.
    pub probe_datagram_bytes: Vec<usize>,
    /// Sets flows apart that start together.
    pub seed: u64,
}

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

/// What keeps a transfer from being faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Nothing yet: the rate is still growing.
    Start,
    /// The path delivers no more.
    Path,
    /// A queue has built up on the path.
    Queue,
    /// As much is under way as may be.
    InFlight,
    /// The receiver takes no more.
    Receiver,
    /// The file is not read as fast.
    Source,
    /// The limit that was set.
    Bandwidth,
}

/// Where a transfer stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Bytes of the file that the receiver confirmed.
    pub confirmed_bytes: u64,
    /// The confirmed rate on the wire, in bits a second.
    pub rate_bits_per_s: f64,
    /// The smoothed round trip.
    pub rtt_us: u64,
    /// The queueing delay last seen.
    pub queue_us: u64,
    /// Packets that were lost, of those sent so far: 0 to 1.
    pub loss: f64,
    /// What binds now.
    pub limit: Limit,
}

/// What a sender has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SenderCounters {
    /// Packets sent.
    pub packets: u64,
    /// Their bytes with UDP and IP headers.
    pub wire_bytes: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Packets that were declared lost and came after all.
    pub late: u64,
    /// Packets that carried bytes sent before.
    pub repeats: u64,
    /// Times nothing was heard and a packet was sent to ask.
    pub probes: u64,
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
        Some(Transmit { number, item, stamp: Stamp { rtt_code, sent_us: now_us as u32 } })
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

    /// Takes a report of the receiver.
    pub fn on_feedback(&mut self, now_us: u64, report: &Feedback<'_>) {
        if report.highest >= self.flight.next_number() {
            return; // It names what was never sent.
        }
        self.heard_us = now_us;
        self.window_end = self.window_end.max(report.window_end);
        self.received_bytes = self.received_bytes.max(report.received_bytes).min(self.total_bytes);
        let app_limited = matches!(self.last_limit, Limit::Source | Limit::Receiver | Limit::InFlight)
            || self.rate.is_limited()
            || self.is_tail();
        let rtt_us = self.rtt_of(now_us, report);
        let in_flight_bytes = self.flight.bytes();
        let acked_packets = self.take_arrivals(report);
        let lost_packets = self.declare_losses();
        if acked_packets > 0 {
            (self.progress_us, self.probes_unheard) = (now_us, 0);
            self.tail_probes = 0;
        }
        // Where the round trip is shorter than what a rate can be measured over, that is a round.
        let round_ended = self.highest_confirmed.is_some_and(|highest| highest >= self.round_end)
            && now_us >= self.round_since_us + RATE_SPAN_US_MIN;
        if round_ended {
            (self.round_end, self.round_since_us) = (self.flight.next_number(), now_us);
        }
        self.rate.on_report(&Sample {
            now_us,
            rtt_us,
            delay_us: report.delay_us,
            receiver_us: report.at_us,
            delivered_bytes: report.delivered_bytes,
            train: report.train,
            acked_packets,
            lost_packets,
            in_flight_bytes,
            round_ended,
            app_limited,
        });
        self.flight.forget(now_us.saturating_sub(2 * self.rate.smoothed_rtt_us() + 2 * self.reorder_us));
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

    /// What each phase has cost until `now_us`, in the order of [`Phase`].
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

    /// What goes out now, and whether its bytes were sent before.
    fn choose(&mut self, now_us: u64) -> Option<(Item, bool)> {
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
        if number >= TRAIN_PACKETS / 2
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

    fn has_work(&self) -> bool {
        self.offers_due > 0
            || !self.repairs.is_empty()
            || !self.copies.is_empty()
            || !self.probe_sizes.is_empty() && self.flight.next_number() >= TRAIN_PACKETS / 2
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

    fn skip_confirmed(&mut self) {
        while let Some(end) = self.confirmed.end_of(self.fresh) {
            self.fresh = end;
        }
    }

    /// Payload of the next packet. Datagrams far longer than an Ethernet's, as a loopback interface has, save time only where
    /// one is sent in less than a burst's.
    fn payload_bytes(&self) -> u64 {
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

    fn has_room(&self) -> bool {
        if self.rate.phase() == Phase::Train {
            return self.flight.next_number() < TRAIN_PACKETS;
        }
        self.flight.bytes() < self.rate.in_flight_cap_bytes()
    }

    fn is_tail(&self) -> bool {
        self.fresh == self.total_bytes && self.repairs.is_empty() && self.copies.is_empty()
    }

    fn probe_time_us(&self) -> u64 {
        let waits = self.rate.probe_timeout_us() << self.probes_unheard.min(4);
        let waits_max = PROBE_EVERY_US_MAX.max(self.rate.probe_timeout_us());
        self.progress_us + waits.min(waits_max)
    }

    /// Moves the schedule on by what a packet costs. It lags behind by a few milliseconds at most, so that a late wake-up is
    /// made good and an idle time is not.
    fn pay(&mut self, now_us: u64, wire_bytes: u32) {
        if let Some(pace) = self.rate.pace() {
            let lag_us = LAG_US_MAX.max((f64::from(wire_bytes) * 1e6 / pace) as u64);
            let cost_us = f64::from(wire_bytes) * 1e6 / pace;
            let from_us = self.next_us.max(now_us.saturating_sub(lag_us));
            // Whole microseconds are too coarse at high rates: what is left over is drawn evenly by the packet's number.
            let fraction = (self.counters.packets % 64) as f64 / 64.0;
            self.next_us = from_us + (cost_us + fraction) as u64;
        }
    }

    fn datagram_bytes_of(&self, item: Item) -> usize {
        match item {
            Item::Data { len, .. } => OVERHEAD_BYTES + len as usize,
            Item::Probe { datagram_bytes } => datagram_bytes as usize,
            Item::Offer | Item::Close => OVERHEAD_BYTES + 64,
        }
    }

    fn rtt_of(&self, now_us: u64, report: &Feedback<'_>) -> Option<u64> {
        let sent = self.flight.get(report.highest).filter(|sent| sent.fate != Fate::Arrived)?;
        Some(now_us.saturating_sub(sent.at_us).saturating_sub(u64::from(report.age_us)).max(1))
    }

    fn take_arrivals(&mut self, report: &Feedback<'_>) -> u64 {
        let mut packets = 0;
        let floor = self.flight.next_number().saturating_sub(crate::arrivals::WINDOW_PACKETS);
        for (low, high) in report.runs.iter() {
            if high < floor {
                break;
            }
            for number in low.max(floor)..=high {
                if let Some((sent, fate)) = self.flight.arrived(number) {
                    packets += 1;
                    self.newest_confirmed_us = self.newest_confirmed_us.max(sent.at_us);
                    self.take_arrival(&sent, fate);
                }
            }
        }
        self.highest_confirmed = self.highest_confirmed.max(Some(report.highest));
        packets
    }

    fn take_arrival(&mut self, sent: &Sent, fate: Fate) {
        if let Some(range) = sent.item.data() {
            self.confirmed.insert(range.clone());
            self.repairs.remove(range);
        }
        if sent.wire_bytes as usize > self.datagram_bytes_least + UDP_IP_BYTES {
            self.questions = 0;
        }
        if let Item::Probe { datagram_bytes } = sent.item
            && let Err(place) = self.carried.binary_search(&(datagram_bytes as usize))
        {
            self.carried.insert(place, datagram_bytes as usize);
        }
        if fate == Fate::Lost {
            // It was not lost, it was late: wait longer from now on.
            self.counters.late += 1;
            let late_us = self.newest_confirmed_us.saturating_sub(sent.at_us);
            let limit_us = self.rate.smoothed_rtt_us().max(20_000);
            self.reorder_us = self.reorder_us.max(late_us + late_us / 4).min(limit_us);
        }
    }

    fn declare_losses(&mut self) -> u64 {
        let Some(highest) = self.highest_confirmed else { return 0 };
        let before_us = self.newest_confirmed_us.saturating_sub(self.reorder_us);
        let mut lost_packets = 0;
        let Self { flight, repairs, confirmed, offers_due, .. } = self;
        flight.judge(highest, before_us, |sent| {
            match sent.item {
                Item::Data { .. } => {
                    if let Some(range) = sent.item.data() {
                        confirmed.missing(range, |part| {
                            repairs.insert(part);
                        });
                    }
                }
                Item::Offer => {}
                // A datagram that is too long for the path is no sign of a full one.
                Item::Probe { .. } | Item::Close => return,
            }
            lost_packets += 1;
        });
        // Any report says that the offer came.
        *offers_due = 0;
        self.counters.lost += lost_packets;
        lost_packets
    }
}

impl Default for SenderOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Fair,
            limit_bits_per_s: None,
            rtt_us: None,
            datagram_bytes: 1_200,
            probe_datagram_bytes: vec![1_400, 1_472],
            seed: 1,
        }
    }
}

/// What may be sent before the receiver has said how much it takes.
pub(crate) const INITIAL_WINDOW_BYTES: u64 = 1 << 20;

/// Packets sent at once in the beginning. Their spacing at the receiver tells the path's rate.
pub(crate) const TRAIN_PACKETS: u64 = 32;

/// Questions without an answer to a long datagram, until datagrams are short again.
const QUESTIONS_MAX: u32 = 3;

/// Longer datagrams than these are sent only where the rate makes them short in time.
const PLAIN_DATAGRAM_BYTES: usize = 1_500;

/// What leaves at once lasts no longer than this on the path.
const BURST_US_MAX: u64 = 500;

const TAIL_PROBES_MAX: u32 = 16;
const COPIES_MAX: usize = 4_096;
const CLOSES: u8 = 3;
const REORDER_US_MIN: u64 = 1_000;
const LAG_US_MAX: u64 = 4_000;
const PROBE_EVERY_US_MAX: u64 = 500_000;

fn data(range: Range<u64>) -> Item {
    // A packet's payload is below 64 KiB.
    Item::Data { offset: range.start, len: (range.end - range.start) as u32 }
}
