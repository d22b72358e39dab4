//! Sending half of a stream, without sockets, threads or a clock of its own.
//!
//! This module holds the state. `transmit` chooses the next packet from it, and `feedback` updates it from
//! the receiver's reports. The controller in `congestion` sets the pace and the cap of bytes in flight.

mod datagram_sizes;
mod feedback;
mod trains;
mod transmit;
mod writing;

use std::collections::VecDeque;
use std::ops::Range;

use self::datagram_sizes::DatagramSizes;
use self::trains::Trains;
use crate::proto::congestion::{ATTEMPTS, Controller, Mode, Phase, PhaseCost};
use crate::proto::ranges::RangeSet;
use crate::proto::sent_packets::{Item, SentPackets};
use crate::proto::wire::{INITIAL_WINDOW_BYTES, SILENCE_US_MAX, STREAM_BYTES_MAX, Stamp, Verdict};

/// Options of a sender. The defaults suit an unknown path.
#[derive(Debug, Clone)]
pub struct SenderOptions {
    /// Share of a shared path to take.
    pub mode: Mode,
    /// Maximum bits per second on the wire. `None`: no limit.
    pub limit_bits_per_s: Option<f64>,
    /// Round trip of the handshake, if any.
    pub rtt_us: Option<u64>,
    /// Bytes of UDP payload that every path carries.
    pub datagram_bytes: usize,
    /// Larger datagrams to try, in bytes of UDP payload, ascending.
    pub probe_datagram_bytes: Vec<usize>,
    /// Seed. Senders that start together with different seeds probe the path at different times.
    pub seed: u64,
    /// Maximum silence of the receiver.
    pub silence_us_max: u64,
}

/// Bottleneck of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// None yet: the rate is still growing.
    Start,
    /// The path delivers no faster.
    Path,
    /// A queue has built up on the path.
    Queue,
    /// The bytes in flight fill the round trip.
    InFlight,
    /// The receiver accepts no more.
    Receiver,
    /// The application writes no faster.
    Source,
    /// The configured limit.
    Bandwidth,
}

/// Progress of a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SendProgress {
    /// Bytes of the stream that the receiver has confirmed.
    pub confirmed_bytes: u64,
    /// Confirmed rate on the wire, in bits per second.
    pub rate_bits_per_s: f64,
    /// Smoothed round trip.
    pub rtt_us: u64,
    /// Latest queue delay.
    pub queue_us: u64,
    /// Share of sent packets that were lost: 0 to 1.
    pub loss: f64,
    /// Present bottleneck.
    pub limit: Limit,
}

/// Counters of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendCounters {
    /// Packets sent.
    pub packets: u64,
    /// Bytes on the wire, with UDP and IP headers.
    pub wire_bytes: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Packets that were declared lost and arrived after all.
    pub late: u64,
    /// Packets that carried retransmitted bytes.
    pub repeats: u64,
    /// Probe timeouts: a long silence made the sender send a packet to ask for a report.
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
    /// Packet number, used once.
    pub number: u64,
    /// Content.
    pub item: Item,
    /// Head of the frame.
    pub stamp: Stamp,
}

/// Decides which bytes leave when. The caller brings the bytes, the clock and the socket.
///
/// Time is microseconds since any moment of the caller's choice, and never goes back.
#[derive(Debug)]
pub struct Sender {
    /// [`STREAM_BYTES_MAX`] while unknown.
    total_bytes: u64,
    /// End of the written part of the stream.
    available: u64,
    /// All bytes below were sent once, or are confirmed.
    pub(crate) fresh: u64,
    /// The receiver accepts nothing at or above this offset.
    window_end: u64,
    /// Bytes of the stream that the receiver reports to have.
    received_bytes: u64,
    pub(crate) sizes: DatagramSizes,
    in_flight: SentPackets,
    /// Number of the last packet that was declared lost.
    last_lost: Option<u64>,
    /// Bytes that the receiver is known to have.
    pub confirmed: RangeSet,
    /// Lost bytes to retransmit.
    repairs: RangeSet,
    /// Retransmissions to repeat while the sender is idle, and the number of repeats.
    copies: VecDeque<(Range<u64>, u8)>,
    closes_due: u8,
    pub(crate) controller: Controller,
    trains: Trains,
    /// Time at which the pace allows the next packet.
    next_us: u64,
    highest_confirmed: Option<u64>,
    /// Send time of the newest confirmed packet.
    newest_confirmed_us: u64,
    /// Packet number whose confirmation ends the round.
    round_end: u64,
    round_since_us: u64,
    /// Reordering window: a packet is lost once a packet sent this much later was confirmed.
    reorder_us: u64,
    /// Time of the last confirmation, or of a packet that left while nothing was in flight.
    confirmed_us: u64,
    /// Time of the last confirmation or of the last probe after a timeout.
    progress_us: u64,
    timeouts_in_a_row: u32,
    tail_probe_us: u64,
    tail_probes: u32,
    last_limit: Limit,
    /// The next packet waits only for the pace.
    waits_for_pace: bool,
    /// Stall of this host: packets sent between these times measure the host, not the path.
    own_stall_us: Option<(u64, u64)>,
    /// Schedule debt of that stall, repaid gradually.
    owed_us: f64,
    started: bool,
    verdict: Option<Verdict>,
    /// A byte stream carries the packets. It loses none, and blocks the caller when full.
    is_stream: bool,
    writing: Writing,
    options: SenderOptions,
    /// Counters so far.
    pub counters: SendCounters,
}

/// Written end of a stream that is sent as it is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Writing {
    /// The writer wants all bytes below to leave now.
    flushed: u64,
    /// Time since which new bytes wait.
    pending_us: u64,
}

impl Sender {
    /// Makes a sender of an empty stream. Continue with [`extend`](Self::extend), then
    /// [`finish`](Self::finish).
    pub fn new(options: SenderOptions) -> Self {
        Self {
            total_bytes: STREAM_BYTES_MAX,
            available: 0,
            fresh: 0,
            window_end: INITIAL_WINDOW_BYTES,
            received_bytes: 0,
            sizes: DatagramSizes::new(options.datagram_bytes, &options.probe_datagram_bytes),
            in_flight: SentPackets::default(),
            last_lost: None,
            confirmed: RangeSet::default(),
            repairs: RangeSet::default(),
            copies: VecDeque::with_capacity(64),
            closes_due: 0,
            controller: options.controller(options.rtt_us),
            trains: Trains::new(),
            next_us: 0,
            highest_confirmed: None,
            newest_confirmed_us: 0,
            round_end: 0,
            round_since_us: 0,
            reorder_us: options.rtt_us.map_or(WAIT_US_MIN, |rtt_us| (rtt_us / 16).max(WAIT_US_MIN)),
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
            writing: Writing::default(),
            counters: SendCounters::default(),
            options,
        }
    }

    /// Switches between a byte stream and datagrams as carrier; the path is a new one. On a stream the pace
    /// is the configured limit, and the caller polls packets only while the stream accepts them.
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
            self.trains = self.trains.anew();
        }
    }

    /// Takes the receiver's verdict. The sender then sends
    /// [`Item::Close`](crate::proto::sent_packets::Item::Close) and is done.
    pub fn on_outcome(&mut self, verdict: Verdict) {
        if self.verdict.is_none() {
            self.verdict = Some(verdict);
            self.closes_due = ATTEMPTS;
            if verdict == Verdict::Whole {
                self.received_bytes = self.total_bytes;
            }
        }
    }

    /// Ends the transfer and tells the receiver a few times.
    pub(crate) fn cancel(&mut self) {
        if self.verdict.is_none() {
            self.verdict = Some(Verdict::Cancelled);
            self.closes_due = ATTEMPTS;
        }
    }

    /// Ends the stream: the receiver has everything, as its own stream said, and hears no more.
    pub(crate) fn leave(&mut self, closes: u8) {
        self.on_outcome(Verdict::Whole);
        self.closes_due = closes;
    }

    /// Outcome of the transfer, once it has ended.
    pub fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// Whether everything is done, including the last packet.
    pub fn is_done(&self) -> bool {
        self.verdict.is_some() && self.closes_due == 0
    }

    /// Time without any confirmation of the bytes in flight: either direction may have failed.
    pub(crate) fn unconfirmed_us(&self, now_us: u64) -> u64 {
        let waits = self.in_flight.packets() > 0 && self.verdict.is_none();
        if waits { now_us.saturating_sub(self.confirmed_us) } else { 0 }
    }

    /// Returns the progress of the transfer.
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

    /// Cost of each phase of the controller.
    pub fn costs(&self, now_us: u64) -> [PhaseCost; Phase::COUNT] {
        self.controller.costs(now_us)
    }

    /// Bytes of memory that this half holds, bounded by the bytes in flight.
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

    /// Whether everything was sent and no loss is known.
    fn is_tail(&self) -> bool {
        self.is_all_sent() && self.repairs.is_empty() && self.copies.is_empty()
    }

    /// Whether all available bytes were sent once.
    fn is_all_sent(&self) -> bool {
        self.fresh == self.available
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

/// On a byte stream, longer packets cost less per byte. Beyond this length they would delay reports.
const STREAM_PACKET_BYTES: usize = 16 << 10;

/// Maximum time until the sender requests a report, and interval of probes to a full receiver.
const TIMEOUT_US_MAX: u64 = 500_000;

/// Shortest wait worth a timer: for later packets to overtake one, for a full packet, for a tail.
const WAIT_US_MIN: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_given_everything_at_once_and_nothing_twice() {
        let options = SenderOptions { rtt_us: Some(100_000), ..SenderOptions::default() };
        let mut sender = Sender::new(options);
        sender.extend(0, 900_000, 900_000);
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
        let mut sender = Sender::new(SenderOptions::default());
        sender.on_outcome(Verdict::Whole);
        sender.cancel();
        assert_eq!(sender.verdict(), Some(Verdict::Whole));
    }

    #[test]
    fn a_report_of_what_was_never_sent_changes_nothing() {
        let mut sender = Sender::new(SenderOptions::default());
        sender.extend(0, 900_000, 900_000);
        let mut sent = 0;
        while sender.poll_transmit(0).is_some() {
            sent += 1;
        }
        let report = |highest| crate::proto::wire::Feedback {
            highest,
            age_us: 0,
            at_us: 1,
            delivered_bytes: 900_000,
            received_bytes: 900_000,
            window_end: u64::MAX,
            delay_us: None,
            train: None,
            runs: crate::proto::wire::RunBytes::NONE,
        };
        let (window_end, received) = (sender.window_end, sender.received_bytes);
        sender.on_feedback(1_000, &report(sent));
        assert_eq!((sender.window_end, sender.received_bytes), (window_end, received));
        sender.on_feedback(1_000, &report(sent - 1));
        assert_eq!(sender.received_bytes, 900_000, "the last one was sent");
        assert_eq!(sender.window_end, crate::proto::wire::SENT_AHEAD_BYTES_MAX, "not as far as was said");
    }

    #[test]
    fn a_limit_holds_for_a_stream_too() {
        let options = SenderOptions { limit_bits_per_s: Some(8e6), ..SenderOptions::default() };
        let mut sender = Sender::new(options);
        sender.extend(0, 900_000, 900_000);
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
