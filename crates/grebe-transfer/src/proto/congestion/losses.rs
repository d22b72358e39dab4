//! What the path loses whatever the rate, and what it loses because of it.

use crate::proto::windowed_filter::RecentMin;

#[derive(Debug)]
pub(super) struct Losses {
    base: f64,
    /// The loss at less than the path's rate, and the packets that it was seen on.
    low: Option<(f64, f64)>,
    /// The longest queue of late, negative.
    queue_us: RecentMin<i64>,
}

/// One round trip, to judge its losses by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judged {
    pub now_us: u64,
    pub acked: u64,
    pub lost: u64,
    /// The mean queue of the round.
    pub queue_us: u64,
    /// A queue as long as this is one.
    pub queue_us_max: u64,
    /// It was sent at less than the path's rate.
    pub slow: bool,
    /// Others fill the queue.
    pub company: bool,
    pub slack: f64,
}

/// What a round's losses mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No more than the path loses anyway.
    Usual,
    /// More, while a queue stood: the path takes no more than what came.
    Crowded,
    /// So much more that the rate is to fall at once.
    Risen,
}

impl Losses {
    pub fn new() -> Self {
        Self { base: 0.0, low: None, queue_us: RecentMin::new(QUEUE_SPAN_US) }
    }

    /// The share of packets that is lost whatever the rate.
    pub fn base(&self) -> f64 {
        self.base
    }

    pub fn judge(&mut self, round: &Judged) -> Verdict {
        self.queue_us.add(round.now_us, -(round.queue_us as i64));
        let packets = (round.acked + round.lost) as f64;
        if packets < 8.0 {
            return Verdict::Usual;
        }
        let loss = round.lost as f64 / packets;
        let quiet = round.queue_us <= self.quiet_us(round.queue_us_max);
        if !round.company {
            self.learn(loss, packets, quiet, round.slow);
        }
        // Losses come in runs: ten packets lost at once are one event.
        let noise = (10.0 * loss.max(0.001) / packets).sqrt();
        if loss > self.base + round.slack + 2.0 * noise {
            Verdict::Risen
        } else if !quiet && loss > self.base + CROWDED + noise {
            Verdict::Crowded
        } else {
            Verdict::Usual
        }
    }

    /// How many of so many packets may be lost in one round trip without a meaning.
    pub fn usual(&self, packets: u64) -> f64 {
        let expected = self.base * packets as f64;
        expected + 2.0 * (10.0 * expected).sqrt()
    }

    /// Where a queue stands, it may be that which loses packets, and others may be in it: that tells nothing of the path.
    fn learn(&mut self, loss: f64, packets: f64, quiet: bool, slow: bool) {
        if quiet && slow {
            // What is lost at less than the path's rate is lost anyway.
            let (low, packets_before) = self.low.unwrap_or((0.0, 0.0));
            let packets_sum = (packets_before + packets).min(LOW_PACKETS);
            self.low = Some((low + (loss - low) * (packets / packets_sum).min(1.0), packets_sum));
            self.base = self.low.map_or(0.0, |(low, _)| low);
        } else if loss < self.base || quiet && self.low.is_none() {
            self.base += (loss - self.base) * packets / (packets + 400.0);
        }
        self.base = self.base.min(LOSS_GUARD);
    }

    /// A queue up to this is none: a short one is told from a full one by how long it gets.
    fn quiet_us(&self, queue_us_max: u64) -> u64 {
        let longest_us = self.queue_us.least().unwrap_or(0).unsigned_abs();
        (longest_us / 3).clamp(QUIET_US, queue_us_max.max(QUIET_US))
    }
}

const QUEUE_SPAN_US: u64 = 10_000_000;
const QUIET_US: u64 = 1_500;
const LOW_PACKETS: f64 = 4_000.0;
const CROWDED: f64 = 0.01;

/// Loss beyond this is never taken for the path's own.
const LOSS_GUARD: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;

    fn round(lost: u64, queue_us: u64, slow: bool) -> Judged {
        Judged {
            now_us: 1_000_000,
            acked: 400 - lost,
            lost,
            queue_us,
            queue_us_max: 6_000,
            slow,
            company: false,
            slack: 0.05,
        }
    }

    #[test]
    fn loss_without_a_queue_is_the_paths_own() {
        let mut losses = Losses::new();
        for _ in 0..20 {
            assert_eq!(losses.judge(&round(40, 500, true)), Verdict::Usual);
        }
        assert!((losses.base() - 0.1).abs() < 0.001, "{}", losses.base());
    }

    #[test]
    fn loss_while_a_queue_stands_is_not() {
        let mut losses = Losses::new();
        for _ in 0..20 {
            assert_eq!(losses.judge(&round(40, 20_000, true)), Verdict::Crowded);
        }
        assert_eq!(losses.base(), 0.0);
        assert_eq!(losses.judge(&round(140, 20_000, true)), Verdict::Risen);
    }

    #[test]
    fn a_short_queue_is_told_from_a_full_one_by_how_long_it_gets() {
        let mut losses = Losses::new();
        losses.judge(&round(0, 5_500, false));
        losses.judge(&round(40, 5_000, true));
        assert_eq!(losses.base(), 0.0);
        losses.judge(&round(40, 1_000, true));
        assert!(losses.base() > 0.05);
    }
}
