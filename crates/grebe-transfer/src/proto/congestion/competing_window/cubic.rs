//! The window as CUBIC has it (RFC 9438), in segments.

use crate::proto::congestion::constants::{CUBIC_BETA, CUBIC_C, CUBIC_TARGET_GAIN_MAX, WINDOW_SEGMENTS_MIN};

#[derive(Debug)]
pub(crate) struct CubicWindow {
    segments: f64,
    /// W_max, W_est and cwnd_epoch of the RFC.
    max: f64,
    reno: f64,
    at_epoch: f64,
    epoch_us: Option<u64>,
}

impl CubicWindow {
    pub(crate) fn new(segments: f64) -> Self {
        let segments = segments.max(WINDOW_SEGMENTS_MIN);
        Self { segments, max: segments, reno: segments, at_epoch: segments, epoch_us: None }
    }

    pub(crate) fn segments(&self) -> f64 {
        self.segments
    }

    /// Moves the window by another rule than CUBIC's.
    pub(crate) fn set(&mut self, segments: f64) {
        self.segments = segments;
    }

    /// Sections 4.6 (multiplicative decrease) and 4.7 (fast convergence).
    pub(crate) fn on_loss(&mut self) {
        let is_shrinking = self.segments < self.max;
        self.max = self.segments * if is_shrinking { (1.0 + CUBIC_BETA) / 2.0 } else { 1.0 };
        self.segments = (self.segments * CUBIC_BETA).max(WINDOW_SEGMENTS_MIN);
        (self.at_epoch, self.epoch_us) = (self.segments, None);
    }

    /// Sections 4.2 (window increase function) and 4.3 (Reno-friendly region).
    pub(crate) fn on_ack(&mut self, now_us: u64, rtt_us: u64, acked: f64) {
        if self.epoch_us.is_none() {
            self.max = self.max.max(self.segments);
            (self.reno, self.at_epoch) = (self.segments, self.segments);
        }
        let epoch_us = *self.epoch_us.get_or_insert(now_us);
        let k_s = ((self.max - self.at_epoch) / CUBIC_C).cbrt();
        let t_s = (now_us - epoch_us + rtt_us) as f64 / 1e6;
        let cubic = self.max + CUBIC_C * (t_s - k_s).powi(3);
        self.reno += acked * 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA) / self.segments;
        let target = cubic.max(self.reno).min(CUBIC_TARGET_GAIN_MAX * self.segments);
        self.segments += acked * ((target - self.segments) / self.segments).max(0.0);
    }
}
