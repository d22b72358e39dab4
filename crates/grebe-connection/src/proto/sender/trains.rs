//! Packet trains: packets sent faster than the known rate of the path. Their dispersion at the receiver
//! measures the capacity.

use crate::proto::congestion::RATE_SPAN_US_MIN;
use crate::proto::train::{FIRST_PACKETS, TrainReport};
use crate::proto::wire::{Feedback, TRAIN_MARKS};

/// The train being sent or measured. There is at most one.
#[derive(Debug, Default)]
pub(super) struct Trains {
    /// Distinguishes this train from the one before.
    mark: u8,
    left: u64,
    /// Not enough data for a train yet.
    is_waiting: bool,
    /// First train. Nothing else is sent until it is measured.
    is_first: bool,
    /// Numbers of the first and the last packet.
    first: u64,
    last: u64,
    wire_bytes: u64,
    since_us: u64,
    until_us: u64,
    /// Arrival of the first report about packets after the train.
    passed_us: Option<u64>,
    measured: bool,
    /// Lateness of a packet relative to others.
    jitter_us: u64,
}

impl Trains {
    /// Waits for the first train; see [`begin`](Self::begin).
    pub(super) fn new() -> Self {
        Self {
            mark: 1,
            left: FIRST_PACKETS,
            is_first: true,
            is_waiting: true,
            first: u64::MAX,
            ..Self::default()
        }
    }

    /// First train on another path. It needs a new mark, because the receiver would merge two trains with the
    /// same one.
    pub(super) fn anew(&self) -> Self {
        Self { mark: self.mark % TRAIN_MARKS + 1, ..Self::new() }
    }

    /// Whether the first train has not begun.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Begins the first train with the next packet.
    pub(super) fn begin(&mut self) {
        self.is_waiting = false;
    }

    /// Ends the first train, sent or not: another one has measured the path.
    pub(super) fn skip_first(&mut self) {
        (self.left, self.is_waiting, self.is_first, self.measured) = (0, false, false, true);
    }

    /// Packets of the train still to be sent.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Begins the next train.
    pub(super) fn order(&mut self, packets: u64) {
        let mark = self.mark % TRAIN_MARKS + 1;
        let jitter_us = self.jitter_us;
        *self = Self { mark, left: packets, first: u64::MAX, jitter_us, ..Self::default() };
    }

    /// Mark of the packet that leaves now under this number; 0: outside of a train.
    pub(super) fn mark(&mut self, now_us: u64, number: u64, wire_bytes: u32) -> u8 {
        if self.left == 0 || self.is_waiting {
            return 0;
        }
        self.left -= 1;
        if self.first >= number {
            (self.first, self.since_us) = (number, now_us);
        }
        (self.last, self.until_us) = (number, now_us);
        self.wire_bytes += u64::from(wire_bytes);
        self.mark
    }

    /// Whether a report arrived, but no packet of the first train.
    pub(super) fn is_lost(&self, report: &Feedback<'_>) -> bool {
        report.train.is_none() && !self.measured && self.left == 0
    }

    /// Returns the measurement of the current train, once, when a report brings it.
    pub(super) fn on_report(&mut self, now_us: u64, report: &Feedback<'_>) -> Option<TrainReport> {
        let train = report.train.filter(|train| train.mark == self.mark && !self.measured)?;
        self.jitter_us = self.jitter_us.max(u64::from(train.jitter_us));
        // A packet after the train ends it, except for packets delayed by jitter. No packet follows the first
        // train: its report waits until its packets stop arriving.
        let is_first = self.is_first;
        if self.left > 0 || report.highest < self.last && !is_first {
            return None;
        }
        let passed_us = *self.passed_us.get_or_insert(now_us);
        let came = u64::from(train.bytes);
        // The bytes of the first packet do not count.
        let is_whole = came + self.wire_bytes / (self.last - self.first + 1) >= self.wire_bytes;
        let late_us = match (is_first, came < self.wire_bytes / 2) {
            (true, true) => RATE_SPAN_US_MIN,
            (true, false) => 0,
            (false, _) if is_whole => 0,
            (false, _) => LATE_JITTERS * self.jitter_us,
        };
        if now_us < passed_us + late_us {
            return None;
        }
        self.measured = true;
        let sent_span_us = self.until_us - self.since_us;
        Some(TrainReport { train, sent_span_us, sent_bytes: self.wire_bytes })
    }
}

/// Multiples of the jitter to wait for the rest of a train. The jitter of the first train is half too low if
/// its last packets are missing.
const LATE_JITTERS: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::wire::{RunBytes, Train};

    fn report(highest: u64, train: Option<Train>) -> Feedback<'static> {
        Feedback {
            highest,
            age_us: 0,
            at_us: 0,
            delivered_bytes: 0,
            received_bytes: 0,
            window_end: 0,
            delay_us: None,
            train,
            runs: RunBytes::NONE,
        }
    }

    fn train(mark: u8, packets: u32, jitter_us: u32) -> Option<Train> {
        Some(Train { mark, span_us: 3_000, bytes: packets * 1_000, jitter_us })
    }

    fn sent(mut trains: Trains, first: u64) -> Trains {
        trains.begin();
        for number in first..first + trains.left() {
            assert!(trains.mark(number * 10, number, 1_000) > 0);
        }
        assert_eq!(trains.mark(0, 9_999, 1_000), 0, "the train is over");
        trains
    }

    #[test]
    fn the_first_train_is_heard_at_once_where_most_of_it_came() {
        let mut trains = sent(Trains::new(), 0);
        assert!(
            trains
                .on_report(50_000, &report(30, train(1, 31, 0)))
                .is_some_and(|heard| heard.sent_span_us == 310 && heard.sent_bytes == 32_000)
        );
        assert!(trains.on_report(51_000, &report(31, train(1, 32, 0))).is_none(), "once");
        let mut trains = sent(Trains::new(), 0);
        assert!(trains.on_report(50_000, &report(9, train(1, 8, 0))).is_none(), "more may come");
        assert!(trains.on_report(70_000, &report(9, train(1, 8, 0))).is_some(), "no more came");
    }

    #[test]
    fn another_train_is_heard_when_all_of_it_may_have_come() {
        let mut trains = sent(Trains::new(), 0);
        assert!(trains.on_report(50_000, &report(31, train(1, 32, 4_000))).is_some());
        trains.order(100);
        let mut trains = sent(trains, 40);
        assert!(trains.on_report(60_000, &report(150, train(1, 32, 0))).is_none(), "the one before");
        assert!(
            trains.on_report(60_000, &report(138, train(2, 99, 0))).is_none(),
            "its last packet is missing"
        );
        assert!(trains.on_report(61_000, &report(139, train(2, 98, 0))).is_none(), "late ones may come");
        assert!(trains.on_report(68_000, &report(150, train(2, 98, 0))).is_none());
        let (mut whole, report) = (trains, report(150, train(2, 99, 0)));
        assert!(
            whole.on_report(62_000, &report).is_some(),
            "all but the first, of which nobody counts the bytes"
        );
    }

    #[test]
    fn the_first_train_on_another_path_is_told_from_the_one_before() {
        let before = sent(Trains::new(), 0);
        let trains = &mut sent(before.anew(), 500);
        assert_eq!(trains.mark, before.mark + 1);
        assert!(trains.on_report(60_000, &report(520, train(1, 32, 0))).is_none(), "the one before");
        let heard = trains.on_report(60_000, &report(520, train(2, 31, 0))).unwrap();
        assert_eq!((heard.sent_span_us, heard.sent_bytes), (310, 32_000));
    }

    #[test]
    fn a_first_train_of_which_nothing_came_is_lost() {
        let trains = Trains::new();
        assert!(!trains.is_lost(&report(3, None)), "it is still leaving");
        let trains = sent(trains, 0);
        assert!(!trains.is_lost(&report(32, train(1, 1, 0))));
        assert!(trains.is_lost(&report(32, None)));
    }
}
