//! Congestion window of CUBIC (RFC 9438), in segments.

use super::constants::*;

/// Response of a window to a loss, and its growth afterwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CubicShape {
    /// Factor of the window at a loss.
    pub(super) beta: f64,
    /// Segments per cubed second.
    pub(super) c: f64,
    /// Whether it grows at least as fast as Reno.
    pub(super) is_reno_friendly: bool,
}

#[derive(Debug)]
pub(super) struct CubicWindow {
    shape: CubicShape,
    pub(super) segments: f64,
    /// W_max, W_est and cwnd_epoch of RFC 9438.
    pub(super) max: f64,
    reno: f64,
    at_epoch: f64,
    epoch_us: Option<u64>,
}

impl CubicWindow {
    pub(super) fn new(segments: f64, shape: CubicShape) -> Self {
        let segments = segments.max(WINDOW_SEGMENTS_MIN);
        Self { shape, segments, max: segments, reno: segments, at_epoch: segments, epoch_us: None }
    }

    /// Sections 4.6 (multiplicative decrease) and 4.7 (fast convergence).
    pub(super) fn on_loss(&mut self) {
        let is_shrinking = self.segments < self.max;
        self.max = self.segments * if is_shrinking { (1.0 + self.shape.beta) / 2.0 } else { 1.0 };
        self.segments = (self.segments * self.shape.beta).max(WINDOW_SEGMENTS_MIN);
        (self.at_epoch, self.epoch_us) = (self.segments, None);
    }

    /// Lowers the window, and its maximum, to the share that passed.
    pub(super) fn on_excess(&mut self, passed: f64) {
        self.max *= passed;
        self.segments = (self.segments * passed).max(WINDOW_SEGMENTS_MIN);
        (self.at_epoch, self.epoch_us) = (self.segments, None);
    }

    /// Sections 4.2 (window increase function) and 4.3 (Reno-friendly region).
    pub(super) fn on_ack(&mut self, now_us: u64, rtt_us: u64, acked: f64) {
        let CubicShape { beta, c, is_reno_friendly } = self.shape;
        if self.epoch_us.is_none() {
            self.max = self.max.max(self.segments);
            (self.reno, self.at_epoch) = (self.segments, self.segments);
        }
        let epoch_us = *self.epoch_us.get_or_insert(now_us);
        let k_s = ((self.max - self.at_epoch) / c).cbrt();
        let t_s = (now_us - epoch_us + rtt_us) as f64 / 1e6;
        let cubic = self.max + c * (t_s - k_s).powi(3);
        self.reno += acked * 3.0 * (1.0 - beta) / (1.0 + beta) / self.segments;
        let target = if is_reno_friendly { cubic.max(self.reno) } else { cubic };
        self.segments += acked * ((target - self.segments) / self.segments).max(0.0);
    }
}
