//! The sending half of a stream, without sockets, threads or a clock of its own.
//!
//! Here is what a sender knows; `transmit` chooses the next packet from it, `feedback` changes it by what the receiver reports. The
//! controller in `congestion` answers how fast to send and how much may be in flight.

mod datagram_sizes;
mod feedback;
mod trains;
mod transmit;
mod writing;

use std::collections::VecDeque;
use std::ops::Range;

use self::datagram_sizes::DatagramSizes;
use self::trains::Trains;
use self::writing::Writing;
use crate::proto::congestion::{Controller, Mode};
use crate::proto::ranges::RangeSet;
use crate::proto::sent_packets::{Item, SentPackets};
use crate::proto::wire::{INITIAL_WINDOW_BYTES, SILENCE_US_MAX, STREAM_BYTES_MAX, Stamp, Verdict};

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
pub(crate) struct SendProgress {
    /// Bytes of the stream that the receiver confirmed.
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
    /// [`STREAM_BYTES_MAX`] until it is known.
    total_bytes: u64,
    /// The stream is written up to here.
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
    /// Lost bytes, to be sent again.
    repairs: RangeSet,
    /// Repairs that are sent again while nothing else is to be sent, and how often.
    copies: VecDeque<(Range<u64>, u8)>,
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
    writing: Writing,
    options: SenderOptions,
    pub(crate) counters: SendCounters,
}

impl Sender {
    /// A sender of a stream of which nothing is written yet: [`extend`](Self::extend), then [`finish`](Self::finish).
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
            writing: Writing::default(),
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
            self.trains = self.trains.anew();
        }
    }

    /// Takes the receiver's verdict. The sender then has [`Item::Close`](crate::proto::sent_packets::Item::Close) to send, and
    /// is done.
    pub fn on_outcome(&mut self, verdict: Verdict) {
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

    /// The receiver has everything, as was said elsewhere, and hears no more.
    pub(crate) fn leave(&mut self, closes: u8) {
        self.on_outcome(Verdict::Whole);
        self.closes_due = closes;
    }

    /// How the transfer ended, once it has.
    pub fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// Whether everything is done, including the last packet.
    pub fn is_done(&self) -> bool {
        self.verdict.is_some() && self.closes_due == 0
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

/// What a stream carries costs less the longer it is; longer ones would hold up a report.
const STREAM_PACKET_BYTES: usize = 16 << 10;

/// Packets that tell the receiver that the session is over: one of them may be lost.
const CLOSES: u8 = 3;

const REORDER_US_MIN: u64 = 1_000;

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
