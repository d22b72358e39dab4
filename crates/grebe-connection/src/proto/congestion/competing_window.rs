//! Window beside flows that fill the queue. Rate probing would yield to their queue and get nothing. So this
//! flow fills the queue too, with a window like CUBIC's.
//!
//! Now and then it drains the queue to test whether the others still fill it. Backing off beside flows that
//! do not back off (BBR) only gives the path away. A streak of losses reveals such flows, and from then on
//! the window is half of the path.

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
    /// Start of the present time with an empty queue.
    empty_since_us: Option<u64>,
}

/// A window small enough to build no queue: a queue that stands belongs to others.
#[derive(Debug, Clone, Copy)]
struct PresenceTest {
    segments: f64,
    rounds: u32,
}

/// One report, as seen beside competing flows.
#[derive(Debug, Clone, Copy)]
struct WindowSample {
    now_us: u64,
    /// Time from sending a packet to its report, including the queue.
    rtt_us: u64,
    min_rtt_us: u64,
    is_queue_empty: bool,
    acked: u64,
    lost: u64,
    round_ended: bool,
    in_flight_bytes: u64,
    /// Bytes of this flow that the path holds without a queue.
    path_bytes: f64,
    /// Capacity of the path in bytes per second.
    capacity: f64,
    /// Share of packets that the path loses at any rate.
    base_loss: f64,
}

impl CompetingWindow {
    /// Starts at the mean of the path's capacity and this flow's share of it.
    pub(super) fn begin(now_us: u64, path: &PathModel) -> Self {
        let rate = (path.bandwidth() + path.capacity.rate) / 2.0;
        Self::new(now_us, rate * path.queued_loop_us() as f64 / 1e6)
    }

    fn new(now_us: u64, window_bytes: f64) -> Self {
        let shape = CubicShape { beta: CUBIC_BETA, c: CUBIC_C, is_reno_friendly: true };
        Self {
            window: CubicWindow::new(window_bytes / SEGMENT_BYTES, shape),
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
            is_queue_empty: path.queue.now_us <= EMPTY_QUEUE_US_MIN,
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

    /// `usual_losses` gives the losses that the path alone may cause among that number of packets in a round.
    /// `false`: no other flow fills the queue.
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
            // A window that the source or a limit does not fill learns nothing from acknowledgements.
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

    /// Whether the queue is empty, for longer than any competing flow leaves it empty.
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

    /// Backs off. The other flow loses packets and backs off too, unless this happens again and again.
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

/// Losses in such quick succession that the other flows cannot have backed off.
#[derive(Debug, Default)]
struct LossStreak {
    losses: u32,
    /// Rounds since the last loss.
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

/// Window beside a flow that does not back off at a loss (BBR): half of the contents of path and queue, also
/// without backing off.
///
/// Any division of the path is stable beside BBR, which keeps its share for ten rounds and takes any share
/// that is left. Each time it gains and returns such a share, packets are lost. So the window approaches its
/// target in small steps and stays there.
#[derive(Debug, Default)]
struct HalfShare {
    /// Recent share of lost packets.
    loss: f64,
}

impl HalfShare {
    /// Window in segments after a round with these packets, from the window before.
    fn on_round(&mut self, sample: &WindowSample, segments: f64, [acked, lost]: [u64; 2]) -> f64 {
        let packets = (acked + lost).max(1) as f64;
        self.loss += (lost as f64 / packets - self.loss) / BANDWIDTH_ROUNDS as f64;
        let loss = (self.loss - sample.base_loss).max(0.0);
        // One such flow beside BBR loses 1.5 to 2.3 % in a queue of one round trip; several lose more.
        let loss_max = LOSS_EXCESS_MAX / 2.0;
        let excess = (loss - loss_max).max(0.0);
        let held_us = sample.rtt_us.min(2 * sample.min_rtt_us) as f64;
        let held = sample.capacity * held_us / 1e6 / SEGMENT_BYTES;
        // Growth slows down as the loss nears its bound, so that several such flows converge to the same
        // window.
        let step_max = HALF_SHARE_STEP * held.max(segments);
        let growth_max = step_max * (1.0 - loss / loss_max).max(0.0);
        let step = (BELOW_SHARE * held / 2.0 - segments).clamp(-step_max, growth_max);
        (segments + step - excess * segments).max(WINDOW_SEGMENTS_MIN)
    }
}
