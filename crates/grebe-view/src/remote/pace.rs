//! Flow control towards one viewer: at most the capacity of the path, plus one message, is under way.
//!
//! The viewer acknowledges each message. The acknowledgements give the rate of the path (maximum over a few seconds)
//! and its round trip time (minimum over ten). A slow or full path therefore gets fewer pictures. Each picture is
//! made when it is sent, so none queues and none is outdated on arrival.
//!
//! Small pictures do not show what the path carries. Pieces of large data therefore grow while round trips stay short,
//! and are halved when a queue delays them.

use std::collections::VecDeque;

/// Messages under way, and the estimates of the path.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    under_way: VecDeque<Sent>,
    under_way_bytes: usize,
    delivered_bytes: u64,
    /// Delivery rates in bytes per second with their times, in descending order.
    rates: VecDeque<(u64, f64)>,
    /// Minimum round trip time, and when it was measured.
    round_trip: Option<(u64, u64)>,
    /// Whether the path is being drained to measure the round trip time again.
    is_emptying: bool,
    /// Average size of a recent message, in bytes.
    message_bytes: f64,
    /// Rate of pieces that has not delayed anything, and when a delay last lowered it.
    pieces_bytes_per_s: f64,
    lowered_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    number: u64,
    bytes: usize,
    at_ns: u64,
    /// Bytes acknowledged before this message was sent.
    delivered_bytes: u64,
    /// Whether nothing else was under way.
    is_alone: bool,
}

impl Pace {
    /// Whether another message may be sent now.
    pub(crate) fn may_send(&mut self, now_ns: u64) -> bool {
        if self.under_way.is_empty() {
            return true;
        }
        if self.round_trip.is_some_and(|(_, at_ns)| now_ns.saturating_sub(at_ns) > ROUND_TRIP_HOLDS_NS) {
            self.is_emptying = true;
        }
        !self.is_emptying && self.under_way_bytes as f64 + self.message_bytes <= self.window_bytes(now_ns)
    }

    pub(crate) fn sent(&mut self, number: u64, bytes: usize, now_ns: u64) {
        let is_alone = self.under_way.is_empty();
        let delivered_bytes = self.delivered_bytes;
        self.under_way.push_back(Sent { number, bytes, at_ns: now_ns, delivered_bytes, is_alone });
        self.under_way_bytes += bytes;
        let weight = if self.message_bytes == 0.0 { 1.0 } else { MEAN_WEIGHT };
        self.message_bytes += (bytes as f64 - self.message_bytes) * weight;
    }

    /// Takes the acknowledgement of all messages up to `number`.
    pub(crate) fn acknowledged(&mut self, number: u64, now_ns: u64) {
        let mut newest = None;
        while let Some(sent) = self.under_way.front().copied().filter(|sent| sent.number <= number) {
            self.under_way.pop_front();
            self.under_way_bytes -= sent.bytes;
            self.delivered_bytes += sent.bytes as u64;
            newest = Some(sent);
        }
        let Some(sent) = newest else { return };
        let round_trip_ns = now_ns.saturating_sub(sent.at_ns).max(1);
        if self.round_trip.is_none_or(|(least_ns, _)| round_trip_ns <= least_ns)
            || (self.is_emptying && sent.is_alone)
        {
            self.round_trip = Some((round_trip_ns, now_ns));
            self.is_emptying = false;
        }
        let came_bytes = self.delivered_bytes - sent.delivered_bytes;
        let rate = came_bytes as f64 * 1e9 / round_trip_ns as f64;
        while self.rates.back().is_some_and(|(_, lower)| *lower <= rate) {
            self.rates.pop_back();
        }
        self.rates.push_back((now_ns, rate));
        let least_ns = self.round_trip.map_or(round_trip_ns, |(least_ns, _)| least_ns);
        if round_trip_ns.saturating_sub(least_ns) <= QUEUE_NS_MAX.max(least_ns / 4) {
            let highest = self.rates.front().map_or(rate, |(_, highest)| *highest);
            let grown = (self.pieces_bytes_per_s * PIECES_GROWTH).min(highest * GAIN);
            self.pieces_bytes_per_s = grown.max(PIECES_BYTES_MIN as f64 * 1e9 / PIECES_SINCE_NS_MIN as f64);
        } else if now_ns.saturating_sub(self.lowered_ns) > least_ns {
            // Once a round trip: what is under way was sent before.
            (self.pieces_bytes_per_s, self.lowered_ns) = (self.pieces_bytes_per_s / 2.0, now_ns);
        }
    }

    /// Highest recent rate of the path in bytes per second; `None` before the first acknowledgement.
    pub(crate) fn rate_bytes_per_s(&mut self, now_ns: u64) -> Option<f64> {
        while self.rates.len() > 1
            && self.rates.front().is_some_and(|(at_ns, _)| now_ns.saturating_sub(*at_ns) > RATE_HOLDS_NS)
        {
            self.rates.pop_front();
        }
        self.rates.front().map(|(_, rate)| *rate)
    }

    /// Bytes of pieces that may travel with a message sent `since_ns` after the one before: what has not delayed
    /// anything, and at least a quarter of the path's known capacity in that time.
    pub(crate) fn piece_bytes(&mut self, since_ns: u64, now_ns: u64) -> usize {
        let since_s = since_ns.clamp(PIECES_SINCE_NS_MIN, PIECES_SINCE_NS_MAX) as f64 * 1e-9;
        let quarter = self.rate_bytes_per_s(now_ns).unwrap_or(0.0) / 4.0;
        let bytes = self.pieces_bytes_per_s.max(quarter) * since_s;
        (bytes as usize).clamp(PIECES_BYTES_MIN, PIECES_BYTES_MAX)
    }

    /// Age of the oldest unacknowledged message.
    pub(crate) fn waits_ns(&self, now_ns: u64) -> u64 {
        self.under_way.front().map_or(0, |sent| now_ns.saturating_sub(sent.at_ns))
    }

    /// Bytes on a full path, plus one message.
    fn window_bytes(&mut self, now_ns: u64) -> f64 {
        let rate = self.rate_bytes_per_s(now_ns).unwrap_or(0.0);
        let round_trip_s = self.round_trip.map_or(0.0, |(least_ns, _)| least_ns as f64 * 1e-9);
        rate * round_trip_s * GAIN + self.message_bytes
    }
}

/// Above 1, so that the estimate grows when the path gets faster.
const GAIN: f64 = 1.25;
const MEAN_WEIGHT: f64 = 0.125;
const RATE_HOLDS_NS: u64 = 2_000_000_000;
const ROUND_TRIP_HOLDS_NS: u64 = 10_000_000_000;
/// A longer delay than this, and than a quarter of the round trip, is a queue.
const QUEUE_NS_MAX: u64 = 10_000_000;
/// By each acknowledgement.
const PIECES_GROWTH: f64 = 1.1;
const PIECES_SINCE_NS_MIN: u64 = 16_000_000;
const PIECES_SINCE_NS_MAX: u64 = 200_000_000;
const PIECES_BYTES_MIN: usize = 256;
const PIECES_BYTES_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn over(rate_bytes_per_s: f64, delay_ns: u64, message_bytes: usize, interval_ns: u64) -> (u64, u64) {
        let (count, slow_ns, _) = with_pieces(rate_bytes_per_s, delay_ns, message_bytes, interval_ns, 0);
        (count, slow_ns)
    }

    /// Simulates messages over a path of `rate_bytes_per_s` with a one-way delay of `delay_ns`. Returns the number of
    /// messages in ten seconds, the 95th percentile of their delay, and when `pieces_bytes` of pieces were there.
    fn with_pieces(
        rate_bytes_per_s: f64,
        delay_ns: u64,
        message_bytes: usize,
        interval_ns: u64,
        pieces_bytes: usize,
    ) -> (u64, u64, Option<u64>) {
        let (mut left_bytes, mut there_ns) = (pieces_bytes, None);
        let (mut pace, mut number, mut free_ns) = (Pace::default(), 0, 0u64);
        // Arrival times of messages, and of their acknowledgements.
        let mut acks: VecDeque<(u64, u64)> = VecDeque::new();
        let (mut took, mut next_ns) = (Vec::new(), 0);
        for now_ns in (0..10_000_000_000).step_by(1_000_000) {
            while acks.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
                let (_, number) = acks.pop_front().unwrap();
                pace.acknowledged(number, now_ns);
            }
            if now_ns >= next_ns && pace.may_send(now_ns) {
                number += 1;
                let piece_bytes = pace.piece_bytes(interval_ns, now_ns).min(left_bytes);
                left_bytes -= piece_bytes;
                let message_bytes = message_bytes + piece_bytes;
                pace.sent(number, message_bytes, now_ns);
                let carried_ns = (message_bytes as f64 / rate_bytes_per_s * 1e9) as u64;
                free_ns = free_ns.max(now_ns) + carried_ns;
                took.push(free_ns + delay_ns - now_ns);
                if piece_bytes > 0 && left_bytes == 0 {
                    there_ns = Some(free_ns + delay_ns);
                }
                acks.push_back((free_ns + 2 * delay_ns, number));
                next_ns = now_ns + interval_ns;
            }
        }
        took.sort_unstable();
        (number, took[took.len() * 95 / 100], there_ns)
    }

    #[test]
    fn pieces_use_what_small_pictures_leave_of_a_slow_path_and_delay_them_little() {
        // 1 Mbit/s, 100 ms round trip, pictures of 150 bytes: a waterfall of 35 kB takes 0.28 s of the path alone.
        let (count, slow_ns, there_ns) = with_pieces(125e3, 50_000_000, 150, 16_666_667, 35_000);
        assert!(there_ns.is_some_and(|there_ns| there_ns < 2_000_000_000), "{there_ns:?}");
        assert!(count > 550 && slow_ns < 100_000_000, "{count} {slow_ns}");
        // Without end: pictures keep coming, and none waits for more than a round trip.
        let (count, slow_ns, _) = with_pieces(125e3, 50_000_000, 150, 16_666_667, 1 << 30);
        assert!(count > 300 && slow_ns < 150_000_000, "{count} {slow_ns}");
        // 128 kbit/s.
        let (count, slow_ns, _) = with_pieces(16e3, 50_000_000, 150, 16_666_667, 1 << 30);
        assert!(count > 250 && slow_ns < 150_000_000, "{count} {slow_ns}");
    }

    #[test]
    fn a_slow_path_gets_what_it_carries_and_nothing_waits_long() {
        // 1 Mbit/s, 100 ms round trip, 4 kB: the path carries 31 messages per second; one takes 32 ms to send.
        let (count, slow_ns) = over(125e3, 50_000_000, 4000, 16_666_667);
        assert!(count > 250, "{count}");
        assert!(slow_ns < 250_000_000, "{slow_ns}");
        // 128 kbit/s, 3 kB: 5.3 messages per second, 188 ms each.
        let (count, slow_ns) = over(16e3, 50_000_000, 3000, 16_666_667);
        assert!(count >= 45, "{count}");
        assert!(slow_ns < 800_000_000, "{slow_ns}");
    }

    #[test]
    fn a_fast_path_gets_all_there_are() {
        let (count, slow_ns) = over(125e6, 50_000_000, 4000, 16_666_667);
        assert!(count > 550, "{count}");
        assert!(slow_ns < 60_000_000, "{slow_ns}");
    }

    #[test]
    fn what_is_acknowledged_is_no_longer_under_way() {
        let mut pace = Pace::default();
        pace.sent(1, 100, 0);
        pace.sent(2, 100, 5);
        pace.acknowledged(1, 10);
        pace.acknowledged(1, 11);
        assert_eq!(pace.waits_ns(25), 20);
        pace.acknowledged(2, 30);
        assert!(pace.may_send(31) && pace.waits_ns(31) == 0);
    }
}
