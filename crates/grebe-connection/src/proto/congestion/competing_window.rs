//! The window beside flows that fill the queue. Rate probing would yield to their queue and get nothing; so this flow fills the queue
//! as they do, by a window as CUBIC's, or beside BBR by a window of half of the path.
//!
//! Now and then it leaves the queue, to see whether the others still fill it.

mod classifier;
#[cfg(test)]
mod tests;

use self::classifier::{Classifier, WindowSample};
use super::constants::*;
use super::cubic::{CubicShape, CubicWindow};
use super::path_model::{AckSample, PathModel};
use super::phase::NextState;

#[derive(Debug)]
pub(super) struct CompetingWindow {
    window: CubicWindow,
    pub(super) classifier: Classifier,
    half_share: Option<HalfShare>,
    recovery_until_us: u64,
    round_acked: u64,
    round_lost: u64,
    tested_us: u64,
    test: Option<PresenceTest>,
    /// Since when the queue is empty.
    empty_since_us: Option<u64>,
}

const SHAPE: CubicShape = CubicShape { beta: CUBIC_BETA, c: CUBIC_C };

/// A window that makes no queue: what stands is the others'.
#[derive(Debug, Clone, Copy)]
struct PresenceTest {
    segments: f64,
    rounds: u32,
}

impl CompetingWindow {
    /// Begins with the mean of what was delivered before the others came, and of what they left. `needs_dip`: losses and refills
    /// misled before.
    pub(super) fn begin(now_us: u64, path: &PathModel, needs_dip: bool) -> Self {
        let rate = path.bandwidth();
        let rate = (rate + path.capacity.rate_alone.max(rate)) / 2.0;
        let window_bytes = rate * Self::loop_us(path) as f64 / 1e6;
        Self::new(now_us, window_bytes, path.queue.now_us, needs_dip)
    }

    fn new(now_us: u64, window_bytes: f64, queue_us: u64, needs_dip: bool) -> Self {
        Self {
            window: CubicWindow::new(window_bytes / SEGMENT_BYTES, SHAPE),
            classifier: Classifier::new(queue_us, needs_dip),
            half_share: None,
            recovery_until_us: now_us,
            round_acked: 0,
            round_lost: 0,
            tested_us: now_us,
            test: None,
            empty_since_us: None,
        }
    }

    /// Spreads the window over a round trip, in bytes per second.
    pub(super) fn pace(&self, path: &PathModel) -> f64 {
        WINDOW_PACE_GAIN * self.window_bytes() * 1e6 / Self::loop_us(path) as f64
    }

    pub(super) fn cap_bytes(&self) -> u64 {
        self.window_bytes() as u64 + WINDOW_CAP_SLACK_BYTES
    }

    pub(super) fn on_report(&mut self, path: &PathModel, sample: &AckSample) -> Option<NextState> {
        let sample = WindowSample {
            now_us: sample.now_us,
            rtt_us: Self::loop_us(path),
            min_rtt_us: path.rtt.min_us(),
            queue_us: path.queue.now_us,
            acked: sample.acked_packets,
            lost: sample.lost_packets.saturating_sub(sample.late_packets),
            round_ended: sample.round_ended,
            in_flight_bytes: sample.in_flight_bytes,
            path_bytes: path.delivery.recent * path.loop_us() as f64 / 1e6,
            capacity: path.capacity.rate(),
            is_capacity_known: path.capacity.is_known,
            base_loss: path.loss.base,
        };
        let has_competitors = self.on_sample(&sample, |packets| path.loss.usual(packets));
        (!has_competitors).then_some(NextState::ProbeUp)
    }

    /// Round trip with the queue, from sending a packet to its report.
    fn loop_us(path: &PathModel) -> u64 {
        path.rtt.smoothed_us() + path.rtt.report_interval_us()
    }

    fn window_bytes(&self) -> f64 {
        self.test.map_or(self.window.segments, |test| test.segments) * SEGMENT_BYTES
    }

    /// `usual_losses` says how many of so many packets the path alone loses in a round. `false`: no other flow fills the queue.
    fn on_sample(&mut self, sample: &WindowSample, usual_losses: impl Fn(u64) -> f64) -> bool {
        if self.is_queue_gone(sample) {
            return false;
        }
        if self.test.is_some() {
            return self.go_on_testing(sample);
        }
        if self.classifier.on_report(sample, self.window_bytes()) {
            self.half_share.get_or_insert(HalfShare::new(sample.now_us));
        }
        if sample.now_us < self.recovery_until_us {
            return true;
        }
        self.round_acked += sample.acked;
        self.round_lost += sample.lost;
        if self.half_share.is_some() {
            self.hold_half_share(sample);
        } else if self.round_lost as f64 > usual_losses(self.round_acked + self.round_lost) {
            self.back_off(sample);
        } else if self.is_used(sample) {
            self.window.on_ack(sample.now_us, sample.rtt_us, sample.acked as f64);
            if sample.now_us > self.tested_us + 2 * PRESENCE_TEST_INTERVAL_US {
                self.begin_test(sample);
            }
        }
        if sample.round_ended {
            (self.round_acked, self.round_lost) = (0, 0);
        }
        true
    }

    /// Whether the queue is empty, and for longer than any competing flow leaves it so.
    fn is_queue_gone(&mut self, sample: &WindowSample) -> bool {
        if !sample.is_queue_empty() {
            self.empty_since_us = None;
            return false;
        }
        let since_us = *self.empty_since_us.get_or_insert(sample.now_us);
        sample.now_us > since_us + ALONE_US + ALONE_RTTS * sample.rtt_us
    }

    fn begin_test(&mut self, sample: &WindowSample) {
        let segments = PRESENCE_TEST_WINDOW_SHARE * sample.path_bytes / SEGMENT_BYTES;
        let segments = segments.clamp(WINDOW_SEGMENTS_MIN, self.window.segments.max(WINDOW_SEGMENTS_MIN));
        self.test = Some(PresenceTest { segments, rounds: 0 });
    }

    fn go_on_testing(&mut self, sample: &WindowSample) -> bool {
        let Some(test) = &mut self.test else { return true };
        test.rounds += u32::from(sample.round_ended);
        if sample.is_queue_empty() {
            return false;
        }
        if test.rounds > PRESENCE_TEST_ROUNDS {
            (self.test, self.tested_us) = (None, sample.now_us);
            self.classifier.on_presence_test();
            (self.round_acked, self.round_lost) = (0, 0);
            self.recovery_until_us = sample.now_us + sample.rtt_us;
        }
        true
    }

    fn hold_half_share(&mut self, sample: &WindowSample) {
        let is_used = self.is_used(sample);
        let Some(half_share) = &mut self.half_share else { return };
        if sample.round_ended && is_used {
            let packets = [self.round_acked, self.round_lost];
            let segments = self.window.segments;
            self.window.segments = half_share.on_round(sample, &self.classifier, segments, packets);
        }
        if half_share.is_outdated(sample.now_us, &self.classifier) {
            // Perhaps it was never BBR, or another flow came that does back off.
            self.half_share = None;
            self.classifier.require_dip();
            self.window = CubicWindow::new(self.window.segments, SHAPE);
        }
    }

    /// A window that a slow source or a set limit does not fill learns nothing from packets that are not lost.
    fn is_used(&self, sample: &WindowSample) -> bool {
        sample.in_flight_bytes as f64 > self.window_bytes() / 2.0
    }

    /// The other flow loses packets too, and backs off too.
    fn back_off(&mut self, sample: &WindowSample) {
        (self.round_acked, self.round_lost) = (0, 0);
        self.recovery_until_us = sample.now_us + sample.rtt_us + sample.rtt_us / 2;
        if self.classifier.on_decrease(self.window_bytes()) {
            self.half_share = Some(HalfShare::new(sample.now_us));
            return;
        }
        self.window.on_loss();
        if sample.now_us > self.tested_us + PRESENCE_TEST_INTERVAL_US {
            self.begin_test(sample);
        }
    }
}

/// The window beside a flow that does not back off at loss (BBR): half of what path and queue hold, without backing off either.
///
/// Any division of the path is stable beside BBR: it keeps what it has for ten rounds, and takes what is left to it. Each time that
/// something is left to it and taken back, as much is lost. So the window goes to its place in small steps, and stays there.
#[derive(Debug)]
struct HalfShare {
    since_us: u64,
    /// The share of packets that is lost of late.
    loss: f64,
}

impl HalfShare {
    fn new(now_us: u64) -> Self {
        Self { since_us: now_us, loss: 0.0 }
    }

    /// Whether no dip has shown for long that the other flow is still BBR.
    fn is_outdated(&self, now_us: u64, classifier: &Classifier) -> bool {
        match classifier.last_dip_us {
            Some(dip_us) => now_us > dip_us + DIP_INTERVAL_LATER_US,
            None => now_us > self.since_us + DIP_INTERVAL_US,
        }
    }

    /// The window after a round of so many packets, from the one before, in segments.
    fn on_round(
        &mut self,
        sample: &WindowSample,
        classifier: &Classifier,
        segments: f64,
        [acked, lost]: [u64; 2],
    ) -> f64 {
        let packets = acked + lost;
        if packets == 0 {
            return segments;
        }
        self.loss += (lost as f64 / packets as f64 - self.loss) / HALF_SHARE_LOSS_ROUNDS;
        let loss = (self.loss - sample.base_loss).max(0.0);
        let excess = (loss - HALF_SHARE_LOSS_MAX).max(0.0);
        // Growth slows down as the loss comes near its bound, so that several flows that do this come to the same window.
        let step_max = HALF_SHARE_STEP * sample.capacity_segments(sample.min_rtt_us as f64).max(segments);
        let growth_max = step_max * (1.0 - loss / HALF_SHARE_LOSS_MAX).max(0.0);
        let step = (target(sample, classifier, segments) - segments).clamp(-step_max, growth_max);
        (segments + step - excess * segments).max(WINDOW_SEGMENTS_MIN)
    }
}

/// Half of what path and queue hold, in segments. Where the capacity is not known that may be too little, so that it shrinks nothing.
fn target(sample: &WindowSample, classifier: &Classifier, segments: f64) -> f64 {
    let min_rtt_us = sample.min_rtt_us as f64;
    let held_us = min_rtt_us + classifier.usual_queue_us.min(min_rtt_us);
    let target = HALF_SHARE_GAIN * sample.capacity_segments(held_us / 2.0);
    if sample.is_capacity_known { target } else { target.max(segments) }
}
