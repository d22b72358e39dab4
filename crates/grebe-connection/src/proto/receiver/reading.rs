//! Receiver of a connection's stream. Its length is unknown, and an application reads it at its own pace.

use super::{REPEATS, Receiver};
use crate::proto::wire::STREAM_BYTES_MAX;

impl Receiver {
    /// Length of the stream including the byte that marks its end, once known.
    pub(crate) fn end(&self) -> Option<u64> {
        (self.total_bytes != STREAM_BYTES_MAX).then_some(self.total_bytes)
    }

    /// Sets the number of bytes that wait for the application. A blocked sender learns at once that it may
    /// continue.
    pub fn set_backlog(&mut self, now_us: u64, backlog_bytes: u64) {
        self.backlog_bytes = backlog_bytes;
        let may_end = self.window_end_now();
        let gain_bytes = may_end.saturating_sub(self.window_end);
        let is_quiet = self.reports_due == 0 && self.verdict.is_none() && self.packets.highest().is_some();
        if is_quiet && gain_bytes >= may_end.saturating_sub(self.received.prefix_end()) / WINDOW_GAIN_SHARE {
            (self.reports_due, self.next_report_us) = (REPEATS, now_us);
        }
    }

    /// Whether the stream may end at `end`. The first claim counts, unless data beyond it has arrived.
    pub(super) fn is_end(&mut self, end: u64) -> bool {
        if self.total_bytes == STREAM_BYTES_MAX && self.received.end() <= end && end <= self.window_end {
            self.total_bytes = end;
        }
        self.total_bytes == end
    }
}

/// A gain of the window below this share waits for the next report.
const WINDOW_GAIN_SHARE: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::receiver::Arrived;
    use crate::proto::wire::{Frame, Stamp};

    fn stamp() -> Stamp {
        Stamp { rtt_code: 80, sent_us: 0, train: 0 }
    }

    /// Window ends in the reports that are due until `until_us`.
    fn window_ends(receiver: &mut Receiver, until_us: u64) -> Vec<u64> {
        let mut report = [0; 1_200];
        let mut ends = Vec::new();
        for now_us in (until_us.saturating_sub(1_000_000)..=until_us).step_by(1_000) {
            while let Some(length) = receiver.poll_report(now_us, &mut report) {
                if let Frame::Feedback(report) = Frame::decode(&report[..length]).unwrap() {
                    ends.push(report.window_end);
                }
            }
        }
        ends
    }

    #[test]
    fn the_end_comes_with_its_byte_and_only_once() {
        let mut receiver = Receiver::new(1 << 20);
        let data = |offset, payload| Frame::Data { stamp: stamp(), offset, payload };
        let last = |offset, payload| Frame::Last { stamp: stamp(), offset, payload };
        assert!(matches!(
            receiver.on_packet(0, 0, 100, &last(100, b"ab\0")),
            Arrived::Data { offset: 100, .. }
        ));
        assert_eq!((receiver.end(), receiver.is_complete()), (Some(103), false));
        assert_eq!(receiver.on_packet(0, 1, 100, &last(200, b"\0")), Arrived::Nothing, "another end");
        assert_eq!(receiver.on_packet(0, 2, 100, &data(103, b"x")), Arrived::Nothing, "behind the end");
        assert!(matches!(receiver.on_packet(0, 3, 100, &data(0, &[1; 100])), Arrived::Data { .. }));
        assert!(receiver.is_complete());
    }

    #[test]
    fn an_end_before_what_has_come_is_none() {
        let mut receiver = Receiver::new(1 << 20);
        receiver.on_packet(0, 0, 100, &Frame::Data { stamp: stamp(), offset: 50, payload: b"there" });
        let early = Frame::Last { stamp: stamp(), offset: 10, payload: b"\0" };
        assert_eq!(receiver.on_packet(0, 1, 100, &early), Arrived::Nothing);
        assert_eq!(receiver.end(), None);
    }

    #[test]
    fn who_does_not_read_holds_the_sender_back_and_who_reads_lets_it_go_on() {
        let window_bytes = 1 << 20;
        let mut receiver = Receiver::new(window_bytes);
        let payload = [7; 1_024];
        for number in 0..1_024 {
            let frame = Frame::Data { stamp: stamp(), offset: number * 1_024, payload: &payload };
            assert!(matches!(receiver.on_packet(number, number, 1_100, &frame), Arrived::Data { .. }));
            receiver.set_backlog(number, (number + 1) * 1_024);
        }
        let held = *window_ends(&mut receiver, 1_000_000).last().unwrap();
        assert!(held < window_bytes + window_bytes / 2, "{held}");
        receiver.set_backlog(1_500_000, window_bytes - 2_048);
        assert_eq!(window_ends(&mut receiver, 2_000_000), [], "that is not worth a report");
        receiver.set_backlog(2_500_000, 0);
        let ends = window_ends(&mut receiver, 3_000_000);
        assert!(ends.len() > 1 && ends[0] >= 2 * window_bytes, "{ends:?}");
    }
}
