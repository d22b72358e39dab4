//! The sending half of a transfer, without sockets, threads or a clock of its own.
//!
//! Here is what a sender knows; `transmit` chooses the next packet from it, `feedback` changes it by what the receiver reports. The
//! controller in `congestion` answers how fast to send and how much may be in flight.

mod datagram_sizes;
mod feedback;
mod open_ended;
mod trains;
mod transmit;

use std::collections::VecDeque;
use std::ops::Range;

use self::datagram_sizes::DatagramSizes;
use self::open_ended::Writing;
use self::trains::Trains;
use crate::error::{Error, Result};
use crate::proto::congestion::{Controller, Mode};
use crate::proto::ranges::RangeSet;
use crate::proto::sent_packets::{Item, SentPackets};
use crate::proto::wire::{HeldRanges, INITIAL_WINDOW_BYTES, SILENCE_US_MAX, Stamp, Verdict};

/// How a sender behaves. Every field has a default that is right for a path of which nothing is known.
#[derive(Debug, Clone)]
pub struct SenderOptions {
    /// How much of a shared path to take.
    pub mode: Mode,
    /// Bits per second on the wire, at most; `None`: what the path gives.
    pub limit_bits_per_s: Option<f64>,
    /// The round trip of the handshake, if there was one.
    pub rtt_us: Option<u64>,
    /// Bytes of UDP payload that every path carries.
    pub datagram_bytes: usize,
    /// Larger datagrams to try, in bytes of UDP payload, ascending. At most four are tried.
    pub probe_datagram_bytes: Vec<usize>,
    /// Senders that start together probe the path at different times if their seeds differ.
    pub seed: u64,
    /// For how long the receiver may be silent.
    pub silence_us_max: u64,
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
    /// As much is in flight as the round trip allows.
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
pub struct SendProgress {
    /// Bytes of the file that the receiver confirmed.
    pub confirmed_bytes: u64,
    /// The confirmed rate on the wire, in bits per second.
    pub rate_bits_per_s: f64,
    /// The smoothed round trip.
    pub rtt_us: u64,
    /// The queueing delay last seen.
    pub queue_us: u64,
    /// Packets that were lost, of those sent so far: 0 to 1.
    pub loss: f64,
    /// What keeps it from being faster now.
    pub limit: Limit,
}

/// What a sender has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendCounters {
    /// Packets sent.
    pub packets: u64,
    /// Their bytes with UDP and IP headers.
    pub wire_bytes: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Packets that were declared lost and arrived after all.
    pub late: u64,
    /// Packets that carried bytes sent before.
    pub repeats: u64,
    /// Probe timeouts: nothing was heard for so long that a packet was sent to ask.
    pub probes: u64,
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
            silence_us_max: SILENCE_US_MAX,
        }
    }
}

/// One packet to send now.
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
    /// The caller has read the stream up to here.
    available: u64,
    /// Everything below was sent once, or is confirmed.
    pub(crate) fresh: u64,
    /// The receiver takes nothing at or above this offset.
    window_end: u64,
    /// Bytes of the stream that the receiver reported to have.
    received_bytes: u64,
    pub(crate) sizes: DatagramSizes,
    in_flight: SentPackets,
    /// The number of the packet that was declared lost last.
    last_lost: Option<u64>,
    /// What the receiver is known to have.
    pub(crate) confirmed: RangeSet,
    /// Ranges that it said to hold, and that were news.
    held_ranges: usize,
    /// Lost bytes, to be sent again.
    repairs: RangeSet,
    /// Repairs that are sent again while nothing else is to be sent, and how often.
    copies: VecDeque<(Range<u64>, u8)>,
    offers_due: u8,
    /// When the last offer left.
    offered_us: u64,
    /// The receiver is known to have the offer, or needs none.
    is_offered: bool,
    closes_due: u8,
    pub(crate) controller: Controller,
    trains: Trains,
    /// When the pace allows the next packet.
    next_us: u64,
    highest_confirmed: Option<u64>,
    /// When the newest confirmed packet was sent.
    newest_confirmed_us: u64,
    /// The round ends when this packet number is confirmed.
    round_end: u64,
    round_since_us: u64,
    /// A packet is lost when one that left so much later was confirmed.
    reorder_us: u64,
    /// When something was confirmed last, or left while nothing was in flight.
    confirmed_us: u64,
    /// When something was confirmed, or a probe was sent after a timeout.
    progress_us: u64,
    timeouts_in_a_row: u32,
    tail_probe_us: u64,
    tail_probes: u32,
    last_limit: Limit,
    /// The next packet waits for its time alone.
    waits_for_pace: bool,
    /// This end came too late to send in time: packets that left between these times tell how it sends, not what the path brings.
    own_stall_us: Option<(u64, u64)>,
    /// What the schedule lost by that and makes good, little by little.
    owed_us: f64,
    started: bool,
    verdict: Option<Verdict>,
    /// A byte stream carries the packets: it loses none, and holds the caller back.
    is_stream: bool,
    /// Of the stream of a connection, whose end comes later.
    writing: Option<Writing>,
    options: SenderOptions,
    pub(crate) counters: SendCounters,
}

impl Sender {
    /// A sender of `total_bytes`, none of which is read yet: [`make_available`](Self::make_available).
    pub fn new(total_bytes: u64, options: SenderOptions) -> Self {
        Self {
            total_bytes,
            available: 0,
            fresh: 0,
            window_end: INITIAL_WINDOW_BYTES,
            received_bytes: 0,
            sizes: DatagramSizes::new(options.datagram_bytes, &options.probe_datagram_bytes),
            in_flight: SentPackets::default(),
            last_lost: None,
            confirmed: RangeSet::default(),
            held_ranges: 0,
            repairs: RangeSet::default(),
            copies: VecDeque::with_capacity(64),
            offers_due: 1,
            offered_us: 0,
            is_offered: false,
            closes_due: 0,
            controller: options.controller(options.rtt_us),
            trains: Trains::new(),
            next_us: 0,
            highest_confirmed: None,
            newest_confirmed_us: 0,
            round_end: 0,
            round_since_us: 0,
            reorder_us: options.rtt_us.map_or(REORDER_US_MIN, |rtt_us| (rtt_us / 16).max(REORDER_US_MIN)),
            confirmed_us: 0,
            progress_us: 0,
            timeouts_in_a_row: 0,
            tail_probe_us: 0,
            tail_probes: 0,
            last_limit: Limit::Start,
            waits_for_pace: false,
            own_stall_us: None,
            owed_us: 0.0,
            started: false,
            verdict: None,
            is_stream: false,
            writing: None,
            counters: SendCounters::default(),
            options,
        }
    }

    /// From now on a byte stream carries the packets, or datagrams do: the path is another one. With a stream the pace is the limit that was
    /// set, and the caller asks for packets only while the stream takes them.
    pub(crate) fn use_stream(&mut self, now_us: u64, is_stream: bool) {
        self.is_stream = is_stream;
        self.sizes = if is_stream {
            DatagramSizes::new(STREAM_PACKET_BYTES, &[])
        } else {
            DatagramSizes::new(self.options.datagram_bytes, &self.options.probe_datagram_bytes)
        };
        self.confirmed_us = now_us;
        if self.started {
            self.controller = self.options.controller(None);
            self.controller.start(now_us);
            self.trains = self.trains.anew(self.writing.is_some());
        }
    }

    /// Says that the stream is readable up to `end`, except for what the receiver holds.
    pub fn make_available(&mut self, end: u64) {
        self.available = self.available.max(end.min(self.total_bytes));
    }

    /// Takes what the receiver has from an earlier session, or from elsewhere: it is not sent. Says whether any of it is news.
    ///
    /// # Errors
    /// [`Error::Protocol`] where these are more ranges in all than a receiver tells.
    pub fn on_held(&mut self, held: &HeldRanges<'_>) -> Result<bool> {
        self.is_offered = true;
        let told = self.held_ranges;
        for range in held.iter() {
            let range = range.start..range.end.min(self.total_bytes);
            self.repairs.remove(range.clone());
            self.held_ranges += usize::from(self.confirmed.insert(range) > 0);
            if self.held_ranges > HELD_RANGES_MAX {
                return Err(Error::Protocol {
                    what: "it claims to hold more separate ranges than any receiver tells",
                });
            }
        }
        self.skip_confirmed();
        Ok(self.held_ranges > told)
    }

    /// Takes the receiver's word that it has no offer yet. What was under way for less than a round trip may still come.
    pub fn on_ready(&mut self, now_us: u64) {
        let wait_us = self.controller.smoothed_rtt_us().max(OFFER_AGAIN_US_MIN);
        if !self.is_offered && now_us >= self.offered_us + wait_us {
            self.offers_due = 1;
        }
    }

    /// Takes the receiver's verdict. The sender then has [`Item::Close`](crate::proto::sent_packets::Item::Close) to send, and
    /// is done.
    pub fn on_outcome(&mut self, verdict: Verdict) {
        if self.verdict.is_none() {
            self.verdict = Some(verdict);
            self.closes_due = CLOSES;
            if matches!(verdict, Verdict::Whole | Verdict::Partial) {
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

    /// Whether all that was read is sent, and there is more to read.
    pub(crate) fn is_waiting_for_source(&self) -> bool {
        self.fresh >= self.available && self.available < self.total_bytes && self.verdict.is_none()
    }

    /// How the transfer ended, once it has.
    pub fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// Whether everything is done, including the last packet.
    pub fn is_done(&self) -> bool {
        self.verdict.is_some() && self.closes_due == 0
    }

    /// Whether the receiver has confirmed nothing for so long that it is gone.
    pub fn is_peer_gone(&self, now_us: u64) -> bool {
        self.unconfirmed_us(now_us) > self.options.silence_us_max
    }

    /// For how long nothing was confirmed of what is in flight: no packet comes there, or no report comes back.
    pub(crate) fn unconfirmed_us(&self, now_us: u64) -> u64 {
        let waits = self.in_flight.packets() > 0 && self.verdict.is_none();
        if waits { now_us.saturating_sub(self.confirmed_us) } else { 0 }
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

    /// Bytes of memory that this half holds; the bytes in flight bound it.
    pub fn memory_bytes(&self) -> usize {
        self.in_flight.memory_bytes()
            + self.confirmed.memory_bytes()
            + self.repairs.memory_bytes()
            + self.copies.capacity() * size_of::<(Range<u64>, u8)>()
    }

    /// Payload bytes of the next data packet.
    fn payload_bytes(&self) -> u64 {
        self.sizes.payload_bytes(self.controller.pace().unwrap_or(0.0))
    }

    /// Whether everything was sent and nothing is known to be lost.
    fn is_tail(&self) -> bool {
        self.is_all_sent() && self.repairs.is_empty() && self.copies.is_empty()
    }

    /// Whether everything that there is was sent once.
    fn is_all_sent(&self) -> bool {
        let end = if self.writing.is_some() { self.available } else { self.total_bytes };
        self.fresh == end
    }

    fn skip_confirmed(&mut self) {
        while let Some(end) = self.confirmed.end_of(self.fresh) {
            self.fresh = end;
        }
    }
}

impl SenderOptions {
    fn controller(&self, rtt_us: Option<u64>) -> Controller {
        let limit_bytes_per_s = self.limit_bits_per_s.map(|bits| bits / 8.0);
        Controller::new(self.mode, limit_bytes_per_s, rtt_us, self.seed)
    }
}

/// What a stream carries costs less the longer it is; longer ones would hold up a report.
const STREAM_PACKET_BYTES: usize = 16 << 10;

/// A receiver tells what it holds twice, each time with one packet of a few hundred ranges. Each range costs memory, and time to put in place.
const HELD_RANGES_MAX: usize = 4_096;

/// Where the round trip is shorter or not known, the offer is repeated no sooner.
const OFFER_AGAIN_US_MIN: u64 = 100_000;

/// Packets that tell the receiver that the session is over: one of them may be lost.
const CLOSES: u8 = 3;

const REORDER_US_MIN: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_given_everything_at_once_and_nothing_twice() {
        let options = SenderOptions { rtt_us: Some(100_000), ..SenderOptions::default() };
        let mut sender = Sender::new(900_000, options);
        sender.make_available(900_000);
        sender.use_stream(0, true);
        let mut sent = RangeSet::default();
        while let Some(transmit) = sender.poll_transmit(0) {
            assert_eq!(transmit.stamp.train, 0, "a stream has no trains");
            if let Some(range) = transmit.item.data() {
                assert_eq!(sent.insert(range.clone()), range.end - range.start, "sent twice");
            }
        }
        assert_eq!(sent.covered(), 900_000, "TCP holds back, and not the sender");
        assert_eq!(sender.sizes.longest(), STREAM_PACKET_BYTES);
        sender.use_stream(1, false);
        assert_eq!(sender.sizes.longest(), 1_200, "another path");
    }

    #[test]
    fn who_stops_after_the_end_has_not_stopped_anything() {
        let mut sender = Sender::new(1_000, SenderOptions::default());
        sender.on_outcome(Verdict::Whole);
        sender.cancel();
        assert_eq!(sender.verdict(), Some(Verdict::Whole));
    }

    #[test]
    fn a_limit_holds_for_a_stream_too() {
        let options = SenderOptions { limit_bits_per_s: Some(8e6), ..SenderOptions::default() };
        let mut sender = Sender::new(900_000, options);
        sender.make_available(900_000);
        sender.use_stream(0, true);
        let mut bytes = 0;
        for now_us in (0..500_000).step_by(1_000) {
            while let Some(transmit) = sender.poll_transmit(now_us) {
                bytes += transmit.item.data().map_or(0, |range| range.end - range.start);
            }
        }
        assert!((450_000..550_000).contains(&bytes), "{bytes} bytes in half a second of 1 MB/s");
    }
}
