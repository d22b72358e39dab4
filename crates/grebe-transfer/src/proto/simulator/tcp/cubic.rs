//! CUBIC as RFC 9438 has it.

use super::ack::Ack;

/// The window in packets.
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
                // Fast convergence (section 4.7): a flow whose share shrinks gives way faster.
                let yields = if self.window < self.window_max { 0.85 } else { 1.0 };
                self.window_max = self.window * yields;
                self.window = (self.window * BETA).max(2.0);
                (self.threshold, self.epoch_us) = (self.window, None);
                self.recovery_end = ack.next_number;
            }
            return;
        }
        if self.window < self.threshold {
            self.window += 1.0;
            // HyStart++ (RFC 9406): slow start ends where the delay grows.
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
        let k = ((self.window_max - self.window_max.min(self.threshold)) / C).cbrt();
        let t = (ack.now_us - epoch_us + ack.rtt_us) as f64 / 1e6;
        let target = self.window_max + C * (t - k).powi(3);
        self.window_reno += 3.0 * (1.0 - BETA) / (1.0 + BETA) / self.window;
        let target = target.max(self.window_reno).min(1.5 * self.window);
        self.window += ((target - self.window) / self.window).max(0.01 / self.window);
    }

    pub(super) fn on_silence(&mut self) {
        self.threshold = self.window * BETA;
        (self.window_max, self.window, self.epoch_us) = (self.window, 2.0, None);
    }
}

/// RFC 9438, section 4.6.
const BETA: f64 = 0.7;
/// RFC 9438, section 5.
const C: f64 = 0.4;
