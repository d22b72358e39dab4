//! The window beside flows that fill the queue. Rate probing would yield to their queue and get nothing, so this flow fills the queue
//! as they do, by a window as CUBIC's.
//!
//! Now and then it leaves the queue, to see whether the others still fill it. Beside flows that do not back off (BBR), backing off
//! only gives the path away: a streak of losses shows them, and from then on the window is half of the path.

#[cfg(test)]
mod tests;

use super::constants::*;
use super::cubic::{CubicShape, CubicWindow};
use super::path_model::{AckSample, PathModel};
use super::phase::{NextState, Phase};

#[derive(Debug)]
pub(super) struct CompetingWindow {
    window: CubicWindow,
    streak: LossStreak,
    half_share: Option<HalfShare>,
    recovery_until_us: u64,
    round_acked: u64,
    round_lost: u64,
    tested_us: u64,
    test: Option<PresenceTest>,
    /// Since when the queue is empty.
    empty_since_us: Option<u64>,
}

const SHAPE: CubicShape = CubicShape { beta: CUBIC_BETA, c: CUBIC_C, is_reno_friendly: true };

/// A window that makes no queue: what stands is the others'.
#[derive(Debug, Clone, Copy)]
struct PresenceTest {
    segments: f64,
    rounds: u32,
}

/// What a report tells beside competing flows.
#[derive(Debug, Clone, Copy)]
struct WindowSample {
    now_us: u64,
    /// From sending a packet to its report, with the queue.
    rtt_us: u64,
    min_rtt_us: u64,
    is_queue_empty: bool,
    acked: u64,
    lost: u64,
    round_ended: bool,
    in_flight_bytes: u64,
    /// What the path holds of this flow without a queue.
    path_bytes: f64,
    /// The path's capacity in bytes per second.
    capacity: f64,
    /// The share of packets that is lost at any rate.
    base_loss: f64,
}

impl CompetingWindow {
    /// Begins with the mean of the path's capacity and of what the others left of it.
    pub(super) fn begin(now_us: u64, path: &PathModel) -> Self {
        let rate = (path.bandwidth() + path.capacity.rate) / 2.0;
        Self::new(now_us, rate * path.queued_loop_us() as f64 / 1e6)
    }

    fn new(now_us: u64, window_bytes: f64) -> Self {
        Self {
            window: CubicWindow::new(window_bytes / SEGMENT_BYTES, SHAPE),
            streak: LossStreak::default(),
            half_share: None,
            recovery_until_us: now_us,
            round_acked: 0,
            round_lost: 0,
            tested_us: now_us,
            test: None,
            empty_since_us: None,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        if self.half_share.is_some() { Phase::HalfShare } else { Phase::Compete }
    }

    pub(super) fn window_bytes(&self) -> f64 {
        self.test.map_or(self.window.segments, |test| test.segments) * SEGMENT_BYTES
    }

    pub(super) fn on_report(&mut self, path: &PathModel, sample: &AckSample) -> Option<NextState> {
        let sample = WindowSample {
            now_us: sample.now_us,
            rtt_us: path.queued_loop_us(),
            min_rtt_us: path.rtt.min_us(),
            is_queue_empty: path.queue.now_us
                <= (path.queued_loop_us() / EMPTY_QUEUE_RTT_SHARE).max(EMPTY_QUEUE_US_MIN),
            acked: sample.acked_packets,
            lost: sample.lost_packets.saturating_sub(sample.late_packets),
            round_ended: sample.round_ended,
            in_flight_bytes: sample.in_flight_bytes,
            path_bytes: path.delivery.recent * path.loop_us() as f64 / 1e6,
            capacity: path.capacity.rate,
            base_loss: path.loss.base,
        };
        let has_competitors = self.on_sample(&sample, |packets| path.loss.usual(packets));
        (!has_competitors).then_some(NextState::ProbeUp)
    }

    /// `usual_losses` says how many of so many packets the path alone loses in a round. `false`: no other flow fills the queue.
    fn on_sample(&mut self, sample: &WindowSample, usual_losses: impl Fn(u64) -> f64) -> bool {
        if self.is_queue_gone(sample) {
            return false;
        }
        if self.test.is_some() {
            return self.go_on_testing(sample);
        }
        self.streak.rounds += u32::from(sample.round_ended);
        if sample.now_us < self.recovery_until_us {
            return true;
        }
        self.round_acked += sample.acked;
        self.round_lost += sample.lost;
        if let Some(half_share) = &mut self.half_share {
            if sample.round_ended
                && sample.in_flight_bytes as f64 > self.window.segments * SEGMENT_BYTES / 2.0
            {
                let packets = [self.round_acked, self.round_lost];
                self.window.segments = half_share.on_round(sample, self.window.segments, packets);
            }
        } else if self.round_lost as f64 > usual_losses(self.round_acked + self.round_lost) {
            self.back_off(sample);
        } else if sample.in_flight_bytes as f64 > self.window_bytes() / 2.0 {
            // A window that a slow source or a set limit does not fill learns nothing from packets that are not lost.
            self.window.on_ack(sample.now_us, sample.rtt_us, sample.acked as f64);
            if sample.now_us > self.tested_us + 2 * PATH_WINDOW_US {
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
        if !sample.is_queue_empty {
            self.empty_since_us = None;
            return false;
        }
        let since_us = *self.empty_since_us.get_or_insert(sample.now_us);
        sample.now_us > since_us + ALONE_US + DRAIN_ROUNDS * sample.rtt_us
    }

    fn begin_test(&mut self, sample: &WindowSample) {
        let segments = BELOW_SHARE * sample.path_bytes / SEGMENT_BYTES;
        let segments = segments.clamp(WINDOW_SEGMENTS_MIN, self.window.segments.max(WINDOW_SEGMENTS_MIN));
        self.test = Some(PresenceTest { segments, rounds: 0 });
    }

    fn go_on_testing(&mut self, sample: &WindowSample) -> bool {
        let Some(test) = &mut self.test else { return true };
        test.rounds += u32::from(sample.round_ended);
        if sample.is_queue_empty {
            return false;
        }
        if u64::from(test.rounds) >= DRAIN_ROUNDS {
            (self.test, self.tested_us) = (None, sample.now_us);
            (self.round_acked, self.round_lost) = (0, 0);
            self.recovery_until_us = sample.now_us + sample.rtt_us;
        }
        true
    }

    /// The other flow loses packets too, and backs off too, unless this happens again and again.
    fn back_off(&mut self, sample: &WindowSample) {
        (self.round_acked, self.round_lost) = (0, 0);
        self.recovery_until_us = sample.now_us + sample.rtt_us + sample.rtt_us / 2;
        if self.streak.on_loss() {
            self.half_share = Some(HalfShare::default());
            return;
        }
        self.window.on_loss();
        if sample.now_us > self.tested_us + PATH_WINDOW_US {
            self.begin_test(sample);
        }
    }
}

/// Losses that follow each other so soon that the other flows cannot have backed off at them.
#[derive(Debug, Default)]
struct LossStreak {
    losses: u32,
    /// Since the last one.
    rounds: u32,
}

impl LossStreak {
    /// `true`: the other flows do not back off.
    fn on_loss(&mut self) -> bool {
        self.losses = if self.rounds <= LOSS_STREAK_ROUNDS { self.losses + 1 } else { 1 };
        self.rounds = 0;
        self.losses >= LOSS_STREAK_MAX
    }
}

/// The window beside a flow that does not back off at loss (BBR): half of what path and queue hold, without backing off either.
///
/// Any division of the path is stable beside BBR: it keeps what it has for ten rounds, and takes what is left to it. Each time that
/// something is left to it and taken back, as much is lost. So the window goes to its place in small steps, and stays there.
#[derive(Debug, Default)]
struct HalfShare {
    /// The share of packets that is lost of late.
    loss: f64,
}

impl HalfShare {
    /// The window after a round of so many packets, from the one before, in segments.
    fn on_round(&mut self, sample: &WindowSample, segments: f64, [acked, lost]: [u64; 2]) -> f64 {
        let packets = (acked + lost).max(1) as f64;
        self.loss += (lost as f64 / packets - self.loss) / BANDWIDTH_ROUNDS as f64;
        let loss = (self.loss - sample.base_loss).max(0.0);
        // One such flow beside BBR loses 1.5 to 2.3 % in a queue of a round trip, several more.
        let loss_max = LOSS_EXCESS_MAX / 2.0;
        let excess = (loss - loss_max).max(0.0);
        let held_us = sample.rtt_us.min(2 * sample.min_rtt_us) as f64;
        let held = sample.capacity * held_us / 1e6 / SEGMENT_BYTES;
        // Growth slows down as the loss comes near its bound, so that several flows that do this come to the same window.
        let step_max = HALF_SHARE_STEP * held.max(segments);
        let growth_max = step_max * (1.0 - loss / loss_max).max(0.0);
        let step = (BELOW_SHARE * held / 2.0 - segments).clamp(-step_max, growth_max);
        (segments + step - excess * segments).max(WINDOW_SEGMENTS_MIN)
    }
}
