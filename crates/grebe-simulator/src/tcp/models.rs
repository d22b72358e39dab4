//! Congestion control models of TCP: CUBIC and BBR.

use std::collections::VecDeque;

/// Acknowledgement, with the state of the flow at its arrival.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ack {
    pub(super) now_us: u64,
    pub(super) rtt_us: u64,
    pub(super) min_rtt_us: u64,
    pub(super) packets_per_s: f64,
    pub(super) paused: bool,
    pub(super) lost: u64,
    /// Number of the acknowledged packet.
    pub(super) number: u64,
    pub(super) next_number: u64,
    pub(super) in_flight: u64,
}

/// CUBIC by RFC 9438, with the window in packets.
#[derive(Debug)]
pub(super) struct Cubic {
    pub(super) window: f64,
    threshold: f64,
    window_max: f64,
    window_reno: f64,
    epoch_us: Option<u64>,
    recovery_end: u64,
}

impl Cubic {
    pub(super) fn new() -> Self {
        Self {
            window: 10.0,
            threshold: f64::INFINITY,
            window_max: 0.0,
            window_reno: 0.0,
            epoch_us: None,
            recovery_end: 0,
        }
    }

    pub(super) fn on_ack(&mut self, ack: &Ack) {
        if ack.lost > 0 {
            if ack.number >= self.recovery_end {
                // Fast convergence (section 4.7): a flow with a shrinking share yields faster.
                let yields = if self.window < self.window_max { 0.85 } else { 1.0 };
                self.window_max = self.window * yields;
                self.window = (self.window * CUBIC_BETA).max(2.0);
                (self.threshold, self.epoch_us) = (self.window, None);
                self.recovery_end = ack.next_number;
            }
            return;
        }
        if self.window < self.threshold {
            self.window += 1.0;
            // HyStart++ (RFC 9406): slow start ends when the delay grows.
            if ack.rtt_us > ack.min_rtt_us + (ack.min_rtt_us / 8).clamp(4_000, 16_000) {
                self.threshold = self.window;
            }
            return;
        }
        let epoch_us = *self.epoch_us.get_or_insert_with(|| {
            self.window_max = self.window_max.max(self.window);
            self.window_reno = self.window;
            ack.now_us
        });
        let k = ((self.window_max - self.window_max.min(self.threshold)) / CUBIC_C).cbrt();
        let t = (ack.now_us - epoch_us + ack.rtt_us) as f64 / 1e6;
        let target = self.window_max + CUBIC_C * (t - k).powi(3);
        self.window_reno += 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA) / self.window;
        let target = target.max(self.window_reno).min(1.5 * self.window);
        self.window += ((target - self.window) / self.window).max(0.01 / self.window);
    }

    pub(super) fn on_silence(&mut self) {
        self.threshold = self.window * CUBIC_BETA;
        (self.window_max, self.window, self.epoch_us) = (self.window, 2.0, None);
    }
}

/// RFC 9438, section 4.6.
const CUBIC_BETA: f64 = 0.7;
/// RFC 9438, section 5.
const CUBIC_C: f64 = 0.4;

/// BBR version 1 like `net/ipv4/tcp_bbr.c` of Linux 6, with its constants. Rates in packets per second,
/// window in packets.
#[derive(Debug)]
pub(super) struct Bbr {
    rates: VecDeque<(u64, f64)>,
    window: f64,
    recovery: Option<Recovery>,
    round: u64,
    round_end: u64,
    phase: Phase,
    full: (f64, u32),
    pub(super) drain_until_us: Option<u64>,
    probe_index: usize,
    probe_since_us: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    Startup,
    Drain,
    Probe,
}

/// After a loss: for one round trip, no more packets leave than arrive (packet conservation).
#[derive(Debug, Clone, Copy)]
struct Recovery {
    window_before: f64,
    conserves_until: u64,
    until: u64,
}

impl Bbr {
    pub(super) fn new(probe_index: usize) -> Self {
        Self {
            rates: VecDeque::new(),
            window: 10.0,
            recovery: None,
            round: 0,
            round_end: 0,
            phase: Phase::Startup,
            full: (0.0, 0),
            drain_until_us: None,
            probe_index: 2 + probe_index % 6,
            probe_since_us: 0,
        }
    }

    fn greatest(&self) -> f64 {
        self.rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
    }

    pub(super) fn window(&self) -> f64 {
        if self.drain_until_us.is_some() { self.window.min(BBR_WINDOW_MIN) } else { self.window }
    }

    pub(super) fn packets_per_s(&self) -> f64 {
        let gain = match self.phase {
            Phase::Startup => HIGH_GAIN,
            Phase::Drain => 1.0 / HIGH_GAIN,
            Phase::Probe if self.drain_until_us.is_some() => 1.0,
            Phase::Probe => CYCLE[self.probe_index],
        };
        if self.rates.is_empty() { f64::INFINITY } else { MARGIN * gain * self.greatest() }
    }

    /// Packets per burst: those of a millisecond, as the kernel hands them to the network card.
    pub(super) fn burst(&self) -> u64 {
        if self.rates.is_empty() {
            return 2;
        }
        (self.packets_per_s() * 1_500.0 / 1_024.0 / 1_448.0).clamp(2.0, 44.0) as u64
    }

    pub(super) fn on_ack(&mut self, ack: &Ack) {
        let round_ended = ack.number >= self.round_end;
        if round_ended {
            self.round += 1;
            self.round_end = ack.next_number;
        }
        if !ack.paused || ack.packets_per_s >= self.greatest() {
            while self.rates.front().is_some_and(|(round, _)| round + 10 <= self.round) {
                self.rates.pop_front();
            }
            while self.rates.back().is_some_and(|(_, rate)| *rate <= ack.packets_per_s) {
                self.rates.pop_back();
            }
            self.rates.push_back((self.round, ack.packets_per_s));
        }
        if self.drain_until_us.is_some_and(|until_us| ack.now_us > until_us) {
            self.drain_until_us = None;
        }
        let product = self.greatest() * ack.min_rtt_us as f64 / 1e6;
        self.update_phase(ack, round_ended, product);
        self.set_window(ack, product);
    }

    fn update_phase(&mut self, ack: &Ack, round_ended: bool, product: f64) {
        match self.phase {
            Phase::Startup if round_ended => {
                if self.greatest() >= 1.25 * self.full.0 {
                    self.full = (self.greatest(), 0);
                } else {
                    self.full.1 += 1;
                }
                if self.full.1 >= 3 {
                    self.phase = Phase::Drain;
                }
            }
            Phase::Startup => {}
            Phase::Drain if ack.in_flight as f64 <= product => {
                (self.phase, self.probe_since_us) = (Phase::Probe, ack.now_us);
            }
            Phase::Drain => {}
            Phase::Probe => {
                let long = ack.now_us > self.probe_since_us + ack.min_rtt_us;
                let over = match self.probe_index {
                    0 => long && (ack.lost > 0 || ack.in_flight as f64 >= 1.25 * product),
                    1 => long || ack.in_flight as f64 <= product,
                    _ => long,
                };
                if over {
                    self.probe_index = (self.probe_index + 1) % CYCLE.len();
                    self.probe_since_us = ack.now_us;
                }
            }
        }
    }

    fn set_window(&mut self, ack: &Ack, product: f64) {
        let in_flight = ack.in_flight as f64;
        if ack.lost > 0 {
            self.window = (self.window - ack.lost as f64).max(1.0);
            if self.recovery.is_none() {
                let until = ack.next_number;
                let window_before = self.window + ack.lost as f64;
                self.recovery = Some(Recovery { window_before, conserves_until: until, until });
                self.window = in_flight + 1.0;
            }
        }
        if let Some(recovery) = self.recovery {
            if ack.number < recovery.conserves_until {
                if ack.lost > 0 {
                    // A retransmission takes another round trip.
                    self.recovery = Some(Recovery { until: ack.next_number, ..recovery });
                }
                self.window = self.window.max(in_flight + 1.0);
                return;
            }
            if ack.number >= recovery.until {
                self.window = self.window.max(recovery.window_before);
                self.recovery = None;
            }
        }
        let gain = if self.phase == Phase::Probe { 2.0 } else { HIGH_GAIN };
        // Room for packets held in the sending host and the network card.
        let target =
            gain * product + 3.0 * self.burst() as f64 + if self.probe_index == 0 { 2.0 } else { 0.0 };
        let grown = self.window + 1.0;
        self.window = if self.phase != Phase::Startup {
            grown.min(target)
        } else if self.window < target {
            grown
        } else {
            self.window
        };
        self.window = self.window.max(BBR_WINDOW_MIN);
    }
}

const HIGH_GAIN: f64 = 2.885;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Paces slightly below the measured rate.
const MARGIN: f64 = 0.99;
const BBR_WINDOW_MIN: f64 = 4.0;
