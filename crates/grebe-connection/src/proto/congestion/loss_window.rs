//! Window for losses that depend on the rate without a visible queue: a queue shorter than the ceiling, or a
//! policer. Other flows there back off at each loss, and so does this one.
//!
//! Backing off is also a test. If a much lower rate loses as much, the path is the cause, and rate probing
//! resumes.

use super::constants::*;
use super::cubic::{CubicShape, CubicWindow};
use super::path_model::{AckSample, Mode, PathModel};
use super::phase::{NextState, Overrun};
use super::rate_response::PaceClass;

#[derive(Debug)]
pub(super) struct LossWindow {
    window: CubicWindow,
    recovery: Option<Recovery>,
    beginning: Beginning,
    /// The rate is far below the starting rate.
    is_low: bool,
    /// The loss exceeded any loss of the path, and the window has not come down to the passing rate yet.
    lower_rate: Option<LowerRate>,
    /// The last round trip after backing off lost no more than a path may lose.
    is_passing: bool,
    /// Next state, because a lower rate lost as much after an overrun. So the path is the cause.
    next: Option<NextState>,
    /// Packets of this round since the flow backed off.
    round_packets: u64,
    round_lost: u64,
}

/// Test whether a lower rate loses as much.
#[derive(Debug, Clone, Copy)]
struct LowerRate {
    /// Share of packets lost at the rate before.
    before: f64,
    /// The rate before was that of the overrun.
    is_first: bool,
    /// Counts at this rate.
    acked: u64,
    lost: u64,
}

/// Time after backing off: for one and a half round trips the flow only counts losses.
#[derive(Debug, Clone, Copy)]
struct Recovery {
    since_us: u64,
    until_us: u64,
    acked: u64,
    lost: u64,
    /// The losses are known, or belong to packets sent earlier at another rate.
    is_judged: bool,
}

/// The path at the start of this state.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    in_flight_bytes: u64,
    segments: f64,
    bandwidth: f64,
    /// Loss events per packet at that rate; `None` while unknown.
    events: Option<f64>,
}

impl LossWindow {
    /// After an `overrun`, losses below it are unknown.
    pub(super) fn begin(now_us: u64, path: &mut PathModel, overrun: Option<Overrun>) -> Self {
        let bandwidth = overrun.map_or(path.bandwidth(), |overrun| overrun.passing_rate);
        let segments = bandwidth * path.queued_loop_us() as f64 / 1e6 / SEGMENT_BYTES;
        let events = overrun.is_none().then(|| path.response.faster_events());
        path.response.forget();
        if overrun.is_some() {
            path.loss.forget_untested();
        }
        let lower_rate =
            overrun.map(|overrun| LowerRate { before: overrun.loss, is_first: true, acked: 0, lost: 0 });
        let mut begun = Self {
            window: CubicWindow::new(segments, shape(path.mode)),
            recovery: None,
            beginning: Beginning { in_flight_bytes: path.in_flight_bytes, segments, bandwidth, events },
            is_low: false,
            lower_rate,
            is_passing: true,
            next: None,
            round_packets: 0,
            round_lost: 0,
        };
        begun.window.on_loss();
        begun.recover(now_us, path, true);
        begun
    }

    pub(super) fn cap_bytes(&self, path: &PathModel) -> u64 {
        // Most packets in flight after an overrun are lost, and only later packets reveal that.
        let lost_bytes = if self.lower_rate.is_some() { self.beginning.in_flight_bytes } else { 0 };
        path.window_cap_bytes(self.window_bytes()) + lost_bytes
    }

    /// Pace relative to the rate of the last loss.
    pub(super) fn pace_class(&self) -> PaceClass {
        let is_below = self.window.segments < (1.0 + LOSS_WINDOW_BETA) / 2.0 * self.window.max;
        if is_below { PaceClass::Below } else { PaceClass::At }
    }

    pub(super) fn on_report(&mut self, path: &mut PathModel, sample: &AckSample) -> Option<NextState> {
        let yields = path.mode == Mode::Background && path.is_over_ceiling();
        if path.is_over_ceiling() && !yields {
            // A visible queue tells more than losses.
            path.response.forget();
            return Some(NextState::Drain);
        }
        if self.is_recovering(path, sample) {
            return self.next.take();
        }
        let is_unusual = self.is_loss_unusual(path, sample);
        if yields || is_unusual {
            if self.is_loss_the_paths(path) {
                path.response.forget();
                path.delivery.restore(self.beginning.bandwidth);
                return Some(NextState::Cruise);
            }
            self.window.on_loss();
            self.recover(sample.now_us, path, false);
        } else if sample.in_flight_bytes as f64 > self.window_bytes() / 2.0 {
            self.window.on_ack(sample.now_us, path.queued_loop_us(), sample.acked_packets as f64);
        }
        None
    }

    /// Whether this round lost packets, and more of them than the path loses at any rate.
    fn is_loss_unusual(&mut self, path: &PathModel, sample: &AckSample) -> bool {
        self.round_packets += sample.acked_packets + sample.lost_packets;
        self.round_lost += sample.lost_packets.saturating_sub(sample.late_packets);
        // Losses of other flows look like the path's own, and background mode yields to others.
        let is_explained =
            path.mode != Mode::Background && path.loss.explains(self.round_lost, self.round_packets);
        let is_unusual = sample.by_pace.events() > 0.0 && !is_explained;
        if is_unusual || sample.round_ended {
            (self.round_packets, self.round_lost) = (0, 0);
        }
        is_unusual
    }

    fn recover(&mut self, now_us: u64, path: &PathModel, is_judged: bool) {
        let rtt_us = path.queued_loop_us();
        let until_us = now_us + rtt_us + rtt_us / 2;
        self.recovery = Some(Recovery { since_us: now_us, until_us, acked: 0, lost: 0, is_judged });
    }

    fn is_recovering(&mut self, path: &mut PathModel, sample: &AckSample) -> bool {
        let Some(recovery) = &mut self.recovery else { return false };
        if !recovery.is_judged {
            recovery.acked += sample.acked_packets;
            recovery.lost += sample.lost_packets.saturating_sub(sample.late_packets);
            if sample.now_us < recovery.since_us + path.loop_us() {
                return true;
            }
            recovery.is_judged = true;
            let Recovery { acked, lost, until_us, .. } = *recovery;
            let packets = (acked + lost).max(1) as f64;
            let mut passed = acked as f64 / packets;
            self.is_passing = !path.loss.is_beyond_the_paths(1.0 - passed, packets);
            if let Some(test) = &mut self.lower_rate {
                (test.acked, test.lost) = (test.acked + acked, test.lost + lost);
                let is_first = test.is_first;
                let Some(loss) = test.measured() else {
                    self.recover(sample.now_us, path, false);
                    return true;
                };
                if test.is_same(loss) {
                    path.loss.learn_slow(loss, (test.acked + test.lost) as f64);
                    path.response.forget();
                    // The rate while a policer's bucket was full is not the path's rate.
                    path.delivery.forget_greater();
                    path.delivery.restore(self.beginning.bandwidth);
                    self.next = Some(if is_first {
                        NextState::RampFrom(path.full_rate() / UNTRAINED_GAIN)
                    } else {
                        NextState::ProbeUp
                    });
                    return true;
                }
                if is_first {
                    self.beginning.bandwidth = path.delivery.recent;
                }
                self.lower_rate = (loss > LOSS_EXCESS_MAX).then_some(LowerRate {
                    before: loss,
                    is_first: false,
                    acked: 0,
                    lost: 0,
                });
                passed = 1.0 - loss;
            }
            if passed < 1.0 - LOSS_EXCESS_MAX {
                // When other flows start, much of the loss is not this flow's excess.
                let is_ours = self.lower_rate.is_some() || path.mode == Mode::Background;
                self.window.on_excess(passed.max(if is_ours { 0.0 } else { DOWN_GAIN }));
                // The packets in flight were sent before the reduction.
                self.recover(sample.now_us, path, true);
                return true;
            }
            if sample.now_us < until_us {
                return true;
            }
        } else if sample.now_us < recovery.until_us {
            return true;
        }
        self.recovery = None;
        self.watch_for_low_rate(path);
        false
    }

    /// Starts counting losses at a much lower rate than the starting rate.
    fn watch_for_low_rate(&mut self, path: &mut PathModel) {
        let (loss, packets) = path.response.loss();
        let is_beyond = path.loss.is_beyond_the_paths(loss, packets);
        if self.is_low && is_beyond {
            path.response.forget();
        }
        if self.is_low || self.window.segments > DOWN_GAIN * self.beginning.segments {
            return;
        }
        self.is_low = true;
        if self.beginning.events.is_none() && !is_beyond {
            self.beginning.events = Some(path.response.all_events());
        }
        path.response.forget();
    }

    /// Whether a much lower rate loses as much as the starting rate. Then the path is the cause, not the
    /// rate.
    fn is_loss_the_paths(&self, path: &PathModel) -> bool {
        let events_min = self.beginning.events.map_or(f64::INFINITY, |events| DOWN_GAIN * events);
        let events_known = match path.mode {
            // Mistaking others' losses for the path's would take the path from them.
            Mode::Background => LOSS_EVENTS_MIN * BACKGROUND_DIVISOR as f64,
            Mode::Fair | Mode::Greedy => LOSS_EVENTS_MIN,
        };
        let (loss, packets) = path.response.loss();
        self.is_low
            && self.is_passing
            && path.response.has_events(events_known)
            && !path.loss.is_beyond_the_paths(loss, packets)
            && path.response.all_events() > events_min
    }

    pub(super) fn window_bytes(&self) -> f64 {
        self.window.segments * SEGMENT_BYTES
    }
}

impl LowerRate {
    /// Share of packets lost at this rate, once enough of them are decided.
    fn measured(&self) -> Option<f64> {
        let packets = (self.acked + self.lost) as f64;
        let is_enough = self.before * packets >= LOSS_EVENTS_MIN;
        is_enough.then_some(self.lost as f64 / packets)
    }

    /// Whether as large a share passes as at the rate before, within a tenth or within chance. Then the path
    /// loses the rest. If less passes, something else changed.
    fn is_same(&self, loss: f64) -> bool {
        let (passes, passed) = (1.0 - loss, 1.0 - self.before);
        let noise = (passes * loss / (self.acked + self.lost) as f64).sqrt();
        let difference_max = (DEVIATIONS * noise).max((1.0 - BELOW_SHARE) * passed);
        loss > LOSS_EXCESS_MAX && (passes - passed).abs() < difference_max
    }
}

/// Shape of the reduction and growth.
fn shape(mode: Mode) -> CubicShape {
    match mode {
        Mode::Background => CubicShape { beta: BACKGROUND_BETA, c: BACKGROUND_C, is_reno_friendly: false },
        Mode::Fair | Mode::Greedy => {
            CubicShape { beta: LOSS_WINDOW_BETA, c: LOSS_WINDOW_C, is_reno_friendly: true }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rate_response::PaceCounts;
    use super::*;

    const RTT_US: u64 = 40_000;

    /// A path that delivers 12.5 MB/s: 333 segments per round trip.
    fn path() -> PathModel {
        let mut path = PathModel::new(Mode::Fair, Some(RTT_US));
        path.delivery.restore(12.5e6);
        path
    }

    /// Feeds a report every 5 ms for the given time, with a loss event wherever `is_lost` returns true.
    /// Returns the next state, if any.
    fn run(
        window: &mut LossWindow,
        path: &mut PathModel,
        ms: std::ops::Range<u64>,
        is_lost: impl Fn(u64) -> bool,
    ) -> Option<NextState> {
        ms.step_by(5).find_map(|now_ms| {
            let mut by_pace = PaceCounts::default();
            (0..40).for_each(|_| by_pace.on_ack(window.pace_class(), false));
            if is_lost(now_ms) {
                by_pace.on_lost(window.pace_class(), true);
            }
            let sample = AckSample {
                now_us: now_ms * 1_000,
                rtt_us: Some(RTT_US),
                acked_packets: 40,
                lost_packets: u64::from(is_lost(now_ms)),
                by_pace,
                in_flight_bytes: window.cap_bytes(path),
                ..AckSample::default()
            };
            path.on_report(&sample);
            window.on_report(path, &sample)
        })
    }

    /// A window that began after 100 events in 5,000 packets.
    fn begun(path: &mut PathModel) -> LossWindow {
        let mut report = PaceCounts::default();
        (0..5_000).for_each(|number| match number % 50 {
            0 => report.on_lost(PaceClass::At, true),
            _ => report.on_ack(PaceClass::At, false),
        });
        path.response.on_report(&report);
        LossWindow::begin(0, path, None)
    }

    #[test]
    fn it_backs_off_at_each_event_and_grows_to_where_it_was() {
        let mut path = path();
        let mut window = begun(&mut path);
        let before = window.window.segments;
        assert_eq!(run(&mut window, &mut path, 5..10_000, |now_ms| now_ms == 200), None);
        assert!(window.window.segments > before, "{} of {before}", window.window.segments);
        assert_eq!(run(&mut window, &mut path, 10_000..10_060, |now_ms| now_ms == 10_000), None);
        assert!(window.window.segments < 0.95 * window.window.max);
    }

    #[test]
    fn what_the_path_is_known_to_lose_is_no_reason_to_back_off() {
        for (packets, is_known) in [(100.0, false), (1_000.0, true)] {
            let mut path = path();
            path.loss.learn_slow(0.02, packets);
            let mut window = begun(&mut path);
            let before = window.window.segments;
            run(&mut window, &mut path, 5..400, |now_ms| now_ms % 50 == 0);
            assert_eq!(window.window.segments > before, is_known, "{packets}");
        }
    }

    #[test]
    fn it_ends_where_backing_off_changes_nothing() {
        let mut path = path();
        let mut window = begun(&mut path);
        let next = run(&mut window, &mut path, 5..5_000, |now_ms| now_ms % 10 == 0);
        assert_eq!(next, Some(NextState::Cruise));
        assert_eq!(path.bandwidth(), 12.5e6, "the rate is what it was");
    }

    #[test]
    fn it_goes_on_where_losses_become_rare() {
        let mut path = path();
        let mut window = begun(&mut path);
        assert_eq!(run(&mut window, &mut path, 5..20_000, |now_ms| now_ms % 1_000 == 0), None);
    }
}
