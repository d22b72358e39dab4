//! Sender of a connection's stream, whose length is unknown until the writer finishes.

use super::{Sender, TIMEOUT_US_MAX, WAIT_US_MIN};
use crate::proto::congestion::ATTEMPTS;
use crate::proto::train::FIRST_PACKETS;
use crate::proto::wire::STREAM_BYTES_MAX;

impl Sender {
    /// Sets the written length, and the offset below which the writer wants bytes to leave now.
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
        // A few bytes measure nothing: the train begins once there is enough data for all of it.
        if self.available.saturating_sub(self.fresh) >= FIRST_PACKETS * self.payload_bytes() {
            self.trains.begin();
        }
        self.order_train(now_us);
    }

    /// Marks the stream as complete. One more byte follows, which stands for the end.
    pub fn finish(&mut self) {
        if !self.is_finished() {
            self.available += 1;
            self.total_bytes = self.available;
            // Lets a probe ask for the end as soon as it was sent.
            self.tail_probe_us = 0;
        }
    }

    /// Whether the writer has finished.
    pub(crate) fn is_finished(&self) -> bool {
        self.total_bytes != STREAM_BYTES_MAX
    }

    /// Whether the bytes up to `end` are the last ones.
    pub fn is_last(&self, end: u64) -> bool {
        self.is_finished() && end == self.total_bytes
    }

    /// Time at which the new bytes `fresh..end`, too few for a full packet, leave anyway. The writer may add
    /// more soon. So only flushed bytes, and the first packet after a pause, leave at once.
    pub(super) fn short_packet_us(&self, end: u64) -> u64 {
        let waits = !self.is_finished() && end > self.writing.flushed && self.in_flight.packets() > 0;
        if waits { self.writing.pending_us + WAIT_US_MIN } else { 0 }
    }

    /// Packets available for a train.
    pub(super) fn train_packets_max(&self) -> u64 {
        (self.available.saturating_sub(self.fresh) + self.repairs.covered()) / self.payload_bytes()
    }

    /// Notes that bytes up to `fresh` were sent at `now_us`.
    pub(super) fn note_fresh(&mut self, now_us: u64) {
        let probe_us = now_us + (self.controller.smoothed_rtt_us() / 8).max(WAIT_US_MIN);
        if self.total_bytes == STREAM_BYTES_MAX {
            self.writing.pending_us = now_us;
            // The writer may only be pausing.
            self.tail_probe_us = probe_us;
        }
    }

    /// Idle time with nothing in flight until a sign of life; `None`: the report timeout.
    pub(super) fn idle_us(&self) -> Option<u64> {
        let is_idle = self.in_flight.packets() == 0;
        is_idle.then_some(if self.fresh < self.available { TIMEOUT_US_MAX } else { KEEP_ALIVE_US })
    }

    /// Whether to send greeting packets, which show this end's address before it has data.
    pub(super) fn greets(&self) -> bool {
        self.in_flight.next_number() < u64::from(ATTEMPTS) && self.fresh >= self.available
    }

    /// Whether the writer limits the rate.
    pub(super) fn is_sparse(&self) -> bool {
        self.last_limit == super::Limit::Source
    }
}

/// Far below the timeout of NAT mappings (RFC 4787: 2 minutes; some take 30 s). Also far below the silence
/// after which an end looks for another route, so that several may be lost.
const KEEP_ALIVE_US: u64 = 1_000_000;

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

    /// Packets that leave now: ranges of the stream, and the number of other packets.
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

    /// Confirms all packets up to this number.
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
        assert_eq!(sent(&mut sender, 0), (vec![], ATTEMPTS as usize));
        confirm(&mut sender, RTT_US, u64::from(ATTEMPTS) - 1);
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
        assert_eq!(sender.next_time_us(10), 10 + WAIT_US_MIN);
        sender.extend(20, 30, 30);
        assert_eq!(sent(&mut sender, 20).0, [10..30], "flushed");
        sender.extend(30, 40, 30);
        assert_eq!(sent(&mut sender, 1_000).0, []);
        assert_eq!(sent(&mut sender, 30 + WAIT_US_MIN).0, [30..40], "nobody flushes");
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
        assert_eq!(repeats, 1 + ATTEMPTS as usize);
        assert!(!sender.is_done() && !sender.is_finished());
        assert!(matches!(sender.in_flight.newest_data().unwrap().item, Item::Data { offset: 0, len: 100 }));
    }
    /// A probe whose data has arrived must not bring the next one: the other end would hear the same bytes
    /// for ever, no sign of life among them, and leave the route.
    #[test]
    fn a_confirmed_tail_is_not_probed() {
        let mut sender = sender();
        sender.extend(0, 100, 100);
        let (mut under_way, mut repeats, mut pings) = (Vec::new(), 0, 0);
        for now_us in (0..10_000_000).step_by(1_000) {
            let before = sender.counters.packets;
            let (ranges, others) = sent(&mut sender, now_us);
            repeats += ranges.len();
            pings += others;
            if sender.counters.packets > before {
                under_way.push((now_us + RTT_US, sender.counters.packets - 1));
            }
            while let Some((_, highest)) = under_way.first().copied().filter(|(at_us, _)| *at_us <= now_us) {
                under_way.remove(0);
                confirm(&mut sender, now_us, highest);
            }
        }
        assert_eq!(repeats, 1 + ATTEMPTS as usize);
        assert!(pings >= 8, "{pings} in ten seconds");
    }
}
