//! How much may be under way to a viewer: what fills the path, and no more than one message beyond.
//!
//! Each message is acknowledged when it has come. From that follow the rate at which the path carries (the highest over a few seconds)
//! and its round trip (the least, over ten). A path that is slow or full so gets fewer pictures, each made when it is sent: none waits
//! behind others, and none is old when it comes.

use std::collections::VecDeque;

/// The messages that are under way, and what is known of the path by those that came.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    under_way: VecDeque<Sent>,
    under_way_bytes: usize,
    delivered_bytes: u64,
    /// Delivery rates in bytes a second, each with its time, falling.
    rates: VecDeque<(u64, f64)>,
    /// The least round trip, and when it was seen.
    round_trip: Option<(u64, u64)>,
    /// Whether the path is being emptied, so that its round trip can be seen anew.
    is_emptying: bool,
    /// Bytes of a message, as they are lately.
    message_bytes: f64,
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    number: u64,
    bytes: usize,
    at_ns: u64,
    /// Bytes that had come before it was sent.
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

    /// All messages up to `number` have come.
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
    }

    /// Bytes a second that the path carried at best lately; `None` before anything came.
    pub(crate) fn rate_bytes_per_s(&mut self, now_ns: u64) -> Option<f64> {
        while self.rates.len() > 1
            && self.rates.front().is_some_and(|(at_ns, _)| now_ns.saturating_sub(*at_ns) > RATE_HOLDS_NS)
        {
            self.rates.pop_front();
        }
        self.rates.front().map(|(_, rate)| *rate)
    }

    /// How much of what comes in pieces may ride with a message that is sent so long after the one before: a quarter of what the
    /// path carries meanwhile.
    pub(crate) fn piece_bytes(&mut self, since_ns: u64, now_ns: u64) -> usize {
        let since_s = since_ns.clamp(PIECES_SINCE_NS_MIN, PIECES_SINCE_NS_MAX) as f64 * 1e-9;
        let bytes = self.rate_bytes_per_s(now_ns).unwrap_or(0.0) * since_s / 4.0;
        (bytes as usize).clamp(PIECES_BYTES_MIN, PIECES_BYTES_MAX)
    }

    /// For how long the oldest message has been under way.
    pub(crate) fn waits_ns(&self, now_ns: u64) -> u64 {
        self.under_way.front().map_or(0, |sent| now_ns.saturating_sub(sent.at_ns))
    }

    /// What the path holds, and a message more.
    fn window_bytes(&mut self, now_ns: u64) -> f64 {
        let rate = self.rate_bytes_per_s(now_ns).unwrap_or(0.0);
        let round_trip_s = self.round_trip.map_or(0.0, |(least_ns, _)| least_ns as f64 * 1e-9);
        rate * round_trip_s * GAIN + self.message_bytes
    }
}

/// More than was carried before, so that a path that carries more is found out.
const GAIN: f64 = 1.25;
const MEAN_WEIGHT: f64 = 0.125;
const RATE_HOLDS_NS: u64 = 2_000_000_000;
const ROUND_TRIP_HOLDS_NS: u64 = 10_000_000_000;
const PIECES_SINCE_NS_MIN: u64 = 16_000_000;
const PIECES_SINCE_NS_MAX: u64 = 200_000_000;
const PIECES_BYTES_MIN: usize = 256;
const PIECES_BYTES_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages over a path of so many bytes a second, either way in `delay_ns`: how many came in ten seconds, and how long the
    /// slowest twentieth took.
    fn over(rate_bytes_per_s: f64, delay_ns: u64, message_bytes: usize, interval_ns: u64) -> (u64, u64) {
        let (mut pace, mut number, mut free_ns) = (Pace::default(), 0, 0u64);
        // Times at which messages come, and their acknowledgements.
        let mut acks: VecDeque<(u64, u64)> = VecDeque::new();
        let (mut took, mut next_ns) = (Vec::new(), 0);
        for now_ns in (0..10_000_000_000).step_by(1_000_000) {
            while acks.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
                let (_, number) = acks.pop_front().unwrap();
                pace.acknowledged(number, now_ns);
            }
            if now_ns >= next_ns && pace.may_send(now_ns) {
                number += 1;
                pace.sent(number, message_bytes, now_ns);
                let carried_ns = (message_bytes as f64 / rate_bytes_per_s * 1e9) as u64;
                free_ns = free_ns.max(now_ns) + carried_ns;
                took.push(free_ns + delay_ns - now_ns);
                acks.push_back((free_ns + 2 * delay_ns, number));
                next_ns = now_ns + interval_ns;
            }
        }
        took.sort_unstable();
        (number, took[took.len() * 95 / 100])
    }

    #[test]
    fn a_slow_path_gets_what_it_carries_and_nothing_waits_long() {
        // 1 Mbit/s, 100 ms, 4 kB: the path carries 31 a second, and each takes 32 ms of its own.
        let (count, slow_ns) = over(125e3, 50_000_000, 4000, 16_666_667);
        assert!(count > 250, "{count}");
        assert!(slow_ns < 250_000_000, "{slow_ns}");
        // 128 kbit/s, 3 kB: 5.3 a second, 188 ms each.
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
