//! A sender of a connection's stream: nobody knows how long the stream will be until its writer has finished.

use super::Sender;
use crate::proto::train::FIRST_PACKETS;
use crate::proto::wire::STREAM_BYTES_MAX;

/// The end of a stream that is written as it is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Writing {
    /// The writer wants everything below to leave now.
    flushed: u64,
    /// Since when bytes wait that were never sent.
    pending_us: u64,
}

impl Sender {
    /// Says that the stream is written up to `written`, and that its writer wants what lies below `flushed` to leave now.
    pub fn extend(&mut self, now_us: u64, written: u64, flushed: u64) {
        if self.is_finished() || written >= STREAM_BYTES_MAX {
            return;
        }
        let writing = &mut self.writing;
        if self.fresh >= self.available {
            writing.pending_us = now_us;
        }
        writing.flushed = writing.flushed.max(flushed);
        self.available = self.available.max(written);
        // A few bytes tell nothing of the path: the train begins when there is enough for all of it.
        if self.available.saturating_sub(self.fresh) >= FIRST_PACKETS * self.payload_bytes() {
            self.trains.begin();
        }
    }

    /// Says that what is written is all: one byte follows, which stands for the end.
    pub fn finish(&mut self) {
        if !self.is_finished() {
            self.available += 1;
            self.total_bytes = self.available;
            // The end is known to be there as soon as one packet can ask for it.
            self.tail_probe_us = 0;
        }
    }

    /// Whether all is written.
    pub(crate) fn is_finished(&self) -> bool {
        self.total_bytes != STREAM_BYTES_MAX
    }

    /// Whether the bytes up to `end` are the last ones.
    pub fn is_last(&self, end: u64) -> bool {
        self.is_finished() && end == self.total_bytes
    }

    /// The bytes that were never sent are `fresh..end`, too few for a packet: when they leave nevertheless. A writer may be about to write
    /// more, so that only what it flushed, and the first packet after a pause, leave at once.
    pub(super) fn short_packet_us(&self, end: u64) -> u64 {
        let waits = !self.is_finished() && end > self.writing.flushed && self.in_flight.packets() > 0;
        if waits { self.writing.pending_us + SHORT_PACKET_WAIT_US } else { 0 }
    }

    /// Packets that are there to be sent as a train.
    pub(super) fn train_packets_max(&self) -> u64 {
        (self.available.saturating_sub(self.fresh) + self.repairs.covered()) / self.payload_bytes()
    }

    /// Bytes up to `fresh` have left at `now_us`.
    pub(super) fn note_fresh(&mut self, now_us: u64) {
        let probe_us = now_us + (self.controller.smoothed_rtt_us() / 8).max(TAIL_PROBE_US_MIN);
        if self.total_bytes == STREAM_BYTES_MAX {
            self.writing.pending_us = now_us;
            // The writer may only pause.
            self.tail_probe_us = probe_us;
        }
    }

    /// How long a sender waits that has nothing in flight, until it shows that it is there; `None`: as long as for a report.
    pub(super) fn idle_us(&self) -> Option<u64> {
        let is_idle = self.in_flight.packets() == 0;
        is_idle.then_some(if self.fresh < self.available { WINDOW_PROBE_US } else { KEEP_ALIVE_US })
    }

    /// Two packets show where this end is, before there is anything to send.
    pub(super) fn greets(&self) -> bool {
        self.in_flight.next_number() < GREETINGS && self.fresh >= self.available
    }

    /// How often the newest packet is sent again while nothing follows it.
    pub(super) fn tail_probes_max(&self) -> u32 {
        if self.is_finished() { TAIL_PROBES_MAX } else { PAUSE_PROBES_MAX }
    }

    /// Whether the writer is what holds the sender back.
    pub(super) fn is_sparse(&self) -> bool {
        self.last_limit == super::Limit::Source
    }
}

/// How long a packet that is not full waits for more to be written. An application that writes in pieces writes the next one much sooner.
const SHORT_PACKET_WAIT_US: u64 = 1_000;

/// One of them may be lost: then the peer would hear nothing for a probe timeout.
const GREETINGS: u64 = 2;

/// Far below what NATs wait before they forget a flow (RFC 4787: 2 minutes; some take 30 s) and below the silence after which another way
/// is looked for, so that several may be lost.
const KEEP_ALIVE_US: u64 = 1_000_000;

/// How often a receiver that takes no more is asked whether it does: its own report of that may have been lost.
const WINDOW_PROBE_US: u64 = 200_000;

const TAIL_PROBE_US_MIN: u64 = 2_000;

const TAIL_PROBES_MAX: u32 = 16;

/// In a pause the path is idle, but other transfers may use it.
const PAUSE_PROBES_MAX: u32 = 3;

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::proto::sender::SenderOptions;
    use crate::proto::sent_packets::Item;
    use crate::proto::wire::{Feedback, ReceivedPackets, RunBytes};

    const RTT_US: u64 = 100_000;

    fn sender() -> Sender {
        let options = SenderOptions {
            rtt_us: Some(RTT_US),
            probe_datagram_bytes: Vec::new(),
            ..SenderOptions::default()
        };
        Sender::new(options)
    }

    /// What leaves now: ranges of the stream, and how many other packets.
    fn sent(sender: &mut Sender, now_us: u64) -> (Vec<Range<u64>>, usize) {
        let (mut ranges, mut others) = (Vec::new(), 0);
        while let Some(transmit) = sender.poll_transmit(now_us) {
            match transmit.item.data() {
                Some(range) => ranges.push(range),
                None => others += 1,
            }
        }
        (ranges, others)
    }

    /// Everything up to this number came.
    fn confirm(sender: &mut Sender, now_us: u64, highest: u64) {
        let mut received = ReceivedPackets::default();
        (0..=highest).for_each(|number| {
            received.accept(number);
        });
        let report = Feedback {
            highest,
            age_us: 0,
            at_us: now_us,
            delivered_bytes: 0,
            received_bytes: 0,
            window_end: 1 << 20,
            delay_us: Some(0),
            train: None,
            runs: RunBytes::NONE,
        };
        let mut bytes = [0; 200];
        let length = report.encode_with(&received, 0, &mut bytes).unwrap();
        let crate::proto::wire::Frame::Feedback(report) =
            crate::proto::wire::Frame::decode(&bytes[..length]).unwrap()
        else {
            panic!()
        };
        sender.on_feedback(now_us, &report);
    }

    #[test]
    fn who_has_nothing_to_say_shows_that_he_is_there() {
        let mut sender = sender();
        assert_eq!(sent(&mut sender, 0), (vec![], 2));
        confirm(&mut sender, RTT_US, 1);
        let mut pings = 0;
        for now_us in (RTT_US..RTT_US + 10_000_000).step_by(1_000) {
            let highest = sender.counters.packets - 1;
            let (ranges, others) = sent(&mut sender, now_us);
            assert!(ranges.is_empty());
            pings += others;
            if others > 0 {
                confirm(&mut sender, now_us, highest + others as u64);
            }
        }
        assert!((9..=10).contains(&pings), "{pings} in ten seconds");
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn what_was_flushed_leaves_at_once_and_the_rest_waits_for_more() {
        let mut sender = sender();
        sender.extend(0, 10, 0);
        assert_eq!(sent(&mut sender, 0).0, [0..10], "nothing is in flight");
        sender.extend(10, 20, 0);
        assert_eq!(sent(&mut sender, 10).0, []);
        assert_eq!(sender.next_time_us(10), 10 + SHORT_PACKET_WAIT_US);
        sender.extend(20, 30, 30);
        assert_eq!(sent(&mut sender, 20).0, [10..30], "flushed");
        sender.extend(30, 40, 30);
        assert_eq!(sent(&mut sender, 1_000).0, []);
        assert_eq!(sent(&mut sender, 30 + SHORT_PACKET_WAIT_US).0, [30..40], "nobody flushes");
    }

    #[test]
    fn the_end_is_a_byte_more_and_leaves_with_the_last_ones() {
        let mut sender = sender();
        sender.extend(0, 10, 0);
        sender.finish();
        sender.extend(0, 20, 20);
        let (ranges, _) = sent(&mut sender, 0);
        assert_eq!(ranges[0], 0..11);
        assert!(sender.is_last(11) && !sender.is_last(10));
    }

    #[test]
    fn a_few_bytes_are_no_train() {
        let mut sender = sender();
        for number in 0..20 {
            sender.extend(number, (number + 1) * 100, (number + 1) * 100);
            while let Some(transmit) = sender.poll_transmit(number) {
                assert_eq!(transmit.stamp.train, 0);
            }
        }
        assert_eq!(sender.trains.left(), FIRST_PACKETS);
        sender.extend(21, 100_000, 100_000);
        let mut marked = 0;
        while let Some(transmit) = sender.poll_transmit(21) {
            marked += u64::from(transmit.stamp.train == 1);
        }
        assert_eq!(marked, FIRST_PACKETS, "then nothing leaves until it is measured");
    }

    #[test]
    fn a_pause_of_the_writer_is_not_the_end() {
        let mut sender = sender();
        sender.extend(0, 100, 100);
        let mut repeats = 0;
        for now_us in (0..RTT_US).step_by(1_000) {
            let (ranges, _) = sent(&mut sender, now_us);
            repeats += ranges.len();
        }
        assert_eq!(repeats, 1 + PAUSE_PROBES_MAX as usize);
        assert!(!sender.is_done() && !sender.is_finished());
        assert!(matches!(sender.in_flight.newest_data().unwrap().item, Item::Data { offset: 0, len: 100 }));
    }
}
