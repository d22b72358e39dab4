//! Helpers for several test modules: a report, and a link in virtual time. The link has a drop-tail queue, a
//! bottleneck, loss in runs, delay, jitter and duplicates.

use grebe_clock::Echo;

use crate::proto::estimate::Estimate;
use crate::proto::report::{Advice, Direction, LimitedBy, Report, Rtt};
use crate::proto::tracker::{Summary, Tracker};
use crate::proto::train::{Train, packet_bits};

#[derive(Debug, Clone)]
pub(crate) struct SimulatedLink {
    pub(crate) rate_bps: f64,
    pub(crate) queue_bytes: f64,
    pub(crate) delay_ns: u64,
    pub(crate) jitter_ns: u64,
    pub(crate) loss: f64,
    pub(crate) run: u32,
    pub(crate) copies: f64,
    pub(crate) seed: u64,
    /// Token bucket before the queue: rate in bits per second, and capacity in bytes.
    pub(crate) policer: Option<(f64, f64)>,
    tokens: f64,
    filled_ns: u64,
    /// Bytes of all trains.
    pub(crate) sent_bytes: u64,
    /// Pings beside the last train, one per 20 ms; they are neither lost nor cause loss.
    pub(crate) echoes: Vec<Echo>,
    busy_until: f64,
    run_left: u32,
    pub(crate) now_ns: u64,
}

impl SimulatedLink {
    pub(crate) fn new(rate_bps: f64, rtt_ms: u64, seed: u64) -> Self {
        let rtt_ns = rtt_ms * 1_000_000;
        Self {
            rate_bps,
            queue_bytes: (rate_bps / 8.0 * rtt_ns as f64 / 1e9).max(65_536.0),
            delay_ns: rtt_ns / 2,
            jitter_ns: 0,
            loss: 0.0,
            run: 1,
            copies: 0.0,
            seed: seed | 1,
            policer: None,
            tokens: f64::INFINITY,
            filled_ns: 0,
            sent_bytes: 0,
            echoes: Vec::new(),
            busy_until: 0.0,
            run_left: 0,
            now_ns: 0,
        }
    }

    /// Sends a train, waits for the last arrival, and summarises it.
    pub(crate) fn carry(&mut self, train: Train) -> Summary {
        let mut tracker = Tracker::new(train);
        let mut arrivals = Vec::new();
        let bits = packet_bits(train.size);
        self.echoes.clear();
        for seq in 0..train.count {
            let sent = self.now_ns + u64::from(seq) * train.interval_ns;
            self.sent_bytes += train.packet_bytes();
            self.ping(sent);
            if !self.passes_policer(sent, bits / 8.0) {
                continue;
            }
            self.busy_until = self.busy_until.max(sent as f64);
            if (self.busy_until - sent as f64) * self.rate_bps / 8e9 > self.queue_bytes {
                continue;
            }
            self.busy_until += bits / self.rate_bps * 1e9;
            if self.run_left > 0 {
                self.run_left -= 1;
                continue;
            }
            if self.uniform() < self.loss / f64::from(self.run) {
                self.run_left = self.run - 1;
                continue;
            }
            let jitter = (self.uniform() * self.jitter_ns as f64) as u64;
            let due = self.busy_until as u64 + self.delay_ns + jitter;
            arrivals.push((due, seq, sent));
            if self.uniform() < self.copies {
                arrivals.push((due, seq, sent));
            }
        }
        arrivals.sort_unstable();
        for (due, seq, sent) in arrivals {
            tracker.arrived(seq, sent, due);
        }
        self.now_ns = (self.busy_until as u64).max(self.now_ns + train.duration_ns()) + 2 * self.delay_ns;
        tracker.summary(Some(0))
    }

    fn ping(&mut self, at_ns: u64) {
        if self.echoes.last().is_none_or(|echo| at_ns - echo.sent_ns >= 20_000_000) {
            let received_ns = (self.busy_until as u64).max(at_ns) + self.delay_ns;
            let returned_ns = received_ns + self.delay_ns;
            self.echoes.push(Echo { sent_ns: at_ns, received_ns, replied_ns: received_ns, returned_ns });
        }
    }

    fn passes_policer(&mut self, at_ns: u64, bytes: f64) -> bool {
        let Some((rate_bps, bucket_bytes)) = self.policer else { return true };
        let filled = self.tokens + at_ns.saturating_sub(self.filled_ns) as f64 * rate_bps / 8e9;
        (self.tokens, self.filled_ns) = (filled.min(bucket_bytes), at_ns);
        let passes = self.tokens >= bytes;
        self.tokens -= if passes { bytes } else { 0.0 };
        passes
    }

    fn uniform(&mut self) -> f64 {
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        (self.seed.wrapping_mul(2_685_821_657_736_338_717) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn direction(knee_mbps: f64, loss: f64) -> Direction {
    Direction {
        datagram_bytes: 1_472,
        knee_bps: Some(Estimate::around(knee_mbps * 1e6, 1e6)),
        limit: Some(LimitedBy::Link),
        loss: Some(Estimate::around(loss, loss / 10.0)),
        ..Direction::default()
    }
}

/// Report of a path with 100 Mbit/s, 250 ms and 1 % loss up.
pub(crate) fn report() -> Report {
    let ms = Estimate::around(250.0, 0.5);
    Report {
        peer: String::new(),
        elapsed_s: 1.0,
        spent_bytes: 0,
        rtt: Rtt { min_ms: ms, p50_ms: ms, p99_ms: ms, count: 9, loss: Estimate::exact(0.0) },
        clock_offset_ms: Estimate::exact(0.0),
        up: direction(100.0, 0.01),
        down: direction(100.0, 0.0),
        verdict: Vec::new(),
        advice: Advice::default(),
    }
}
