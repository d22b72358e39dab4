//! Classifies the competing flow: one that backs off at loss, as CUBIC does, or one that does not, as BBR.
//!
//! BBR shows itself by a dip (its ProbeRTT empties the queue for 200 ms, and it is back at once), by a refill (what this flow left
//! in the queue is taken within a few of its cycles), or by a streak of losses although this flow backs off at each.

use crate::proto::congestion::constants::*;

/// What a report tells beside competing flows.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowSample {
    pub(super) now_us: u64,
    /// From sending a packet to its report, with the queue.
    pub(super) rtt_us: u64,
    pub(super) min_rtt_us: u64,
    pub(super) queue_us: u64,
    pub(super) acked: u64,
    pub(super) lost: u64,
    pub(super) round_ended: bool,
    pub(super) in_flight_bytes: u64,
    /// What the path holds of this flow without a queue.
    pub(super) path_bytes: f64,
    /// The path's capacity in bytes per second, as far as it showed.
    pub(super) capacity: f64,
    pub(super) is_capacity_known: bool,
    /// The share of packets that is lost at any rate.
    pub(super) base_loss: f64,
}

impl WindowSample {
    pub(super) fn is_queue_empty(&self) -> bool {
        let empty_us = self.rtt_us / EMPTY_QUEUE_RTT_SHARE;
        self.queue_us <= empty_us.clamp(EMPTY_QUEUE_US_MIN, EMPTY_QUEUE_US_MAX)
    }

    /// The path's product of capacity and time, in segments.
    pub(super) fn capacity_segments(&self, us: f64) -> f64 {
        self.capacity * us / 1e6 / SEGMENT_BYTES
    }
}

#[cfg(test)]
pub(super) fn sample(now_ms: u64, queue_us: u64, lost: u64) -> WindowSample {
    WindowSample {
        now_us: now_ms * 1_000,
        rtt_us: 100_000,
        min_rtt_us: 50_000,
        queue_us,
        acked: 100,
        lost,
        round_ended: now_ms.is_multiple_of(100),
        in_flight_bytes: 600_000,
        path_bytes: 300_000.0,
        capacity: 12e6,
        is_capacity_known: true,
        base_loss: 0.0,
    }
}

#[derive(Debug)]
pub(in super::super) struct Classifier {
    /// The queue between dips, in microseconds.
    pub(super) usual_queue_us: f64,
    decrease: Option<Decrease>,
    refills: u32,
    loss_streak: u32,
    rounds_since_loss: u32,
    /// Since this flow left the queue itself, for whatever reason.
    rounds_since_own_dip: u32,
    dip: Option<Dip>,
    /// When the other flow returned from its last dip.
    pub(super) last_dip_us: Option<u64>,
    /// Losses and refills misled before: only dips count.
    pub(in super::super) needs_dip: bool,
}

/// This flow backed off.
#[derive(Debug, Clone, Copy)]
struct Decrease {
    window_bytes_before: f64,
    queue_us_before: f64,
    rounds: u32,
    /// The shortest queue of this round.
    shortest_queue_us: u64,
}

/// The queue is much shorter than usual.
#[derive(Debug, Clone, Copy)]
struct Dip {
    since_us: u64,
    /// This flow is the reason.
    is_own: bool,
    was_empty: bool,
}

impl Classifier {
    pub(super) fn new(queue_us: u64, needs_dip: bool) -> Self {
        Self {
            usual_queue_us: queue_us as f64,
            decrease: None,
            refills: 0,
            loss_streak: 0,
            rounds_since_loss: u32::MAX,
            rounds_since_own_dip: u32::MAX,
            dip: None,
            last_dip_us: None,
            needs_dip,
        }
    }

    /// Takes a report and this flow's window; `true`: the other flow has just shown that it does not back off.
    pub(super) fn on_report(&mut self, sample: &WindowSample, window_bytes: f64) -> bool {
        if sample.round_ended {
            self.rounds_since_own_dip = self.rounds_since_own_dip.saturating_add(1);
            self.rounds_since_loss = self.rounds_since_loss.saturating_add(1);
        }
        let dipped = self.watch_dip(sample);
        let refilled = self.watch_refill(sample, window_bytes);
        dipped || refilled && !self.needs_dip
    }

    /// This flow backs off at a loss, from this window; `true`: it did so too often for a flow that backs off as well.
    pub(super) fn on_decrease(&mut self, window_bytes: f64) -> bool {
        self.loss_streak =
            if self.rounds_since_loss <= LOSS_STREAK_ROUNDS { self.loss_streak + 1 } else { 1 };
        (self.rounds_since_loss, self.rounds_since_own_dip) = (0, 0);
        self.decrease = Some(Decrease {
            window_bytes_before: window_bytes,
            queue_us_before: self.usual_queue_us,
            rounds: 0,
            shortest_queue_us: u64::MAX,
        });
        !self.needs_dip && self.loss_streak >= LOSS_STREAK_MAX
    }

    /// This flow left the queue for a presence test.
    pub(super) fn on_presence_test(&mut self) {
        (self.rounds_since_own_dip, self.decrease, self.dip) = (0, None, None);
    }

    /// No dip came where BBR would have had one: losses and refills misled.
    pub(super) fn require_dip(&mut self) {
        (self.loss_streak, self.refills, self.decrease, self.last_dip_us) = (0, 0, None, None);
        self.needs_dip = true;
    }

    /// Whether a dip has just ended that only a flow such as BBR makes: one that backs off at loss returns slowly.
    fn watch_dip(&mut self, sample: &WindowSample) -> bool {
        let queue_us = sample.queue_us as f64;
        let Some(dip) = &mut self.dip else {
            if queue_us < DIP_BEGINS_SHARE * self.usual_queue_us {
                let is_own = self.rounds_since_own_dip <= OWN_DIP_ROUNDS;
                self.dip = Some(Dip { since_us: sample.now_us, is_own, was_empty: false });
            } else if sample.round_ended {
                self.usual_queue_us += (queue_us - self.usual_queue_us) / USUAL_QUEUE_ROUNDS;
            }
            return false;
        };
        dip.was_empty |= sample.is_queue_empty();
        let dip = *dip;
        let is_deep = dip.was_empty && self.usual_queue_us > DEEP_QUEUE_RTT_SHARE * sample.min_rtt_us as f64;
        let ends_share = if is_deep { DEEP_DIP_ENDS_SHARE } else { DIP_ENDS_SHARE };
        if sample.now_us > dip.since_us + DIP_US_MAX + DIP_RTTS_MAX * sample.rtt_us {
            (self.dip, self.usual_queue_us) = (None, queue_us);
            return false;
        }
        if queue_us <= ends_share * self.usual_queue_us {
            return false;
        }
        self.dip = None;
        let is_foreign = !dip.is_own && sample.now_us > dip.since_us + DIP_US_MIN;
        if is_foreign {
            self.last_dip_us = Some(sample.now_us);
        }
        is_foreign
    }

    /// Whether the other flow has taken, time after time, what this flow left in the queue.
    fn watch_refill(&mut self, sample: &WindowSample, window_bytes: f64) -> bool {
        let Some(decrease) = &mut self.decrease else { return false };
        decrease.shortest_queue_us = decrease.shortest_queue_us.min(sample.queue_us);
        if !sample.round_ended {
            return false;
        }
        decrease.rounds += 1;
        let shortest_us = std::mem::replace(&mut decrease.shortest_queue_us, u64::MAX);
        if decrease.rounds <= REFILL_ROUNDS_MIN {
            return false;
        }
        let is_refilled = decrease.is_refilled(shortest_us, window_bytes, sample.capacity);
        if !is_refilled && decrease.rounds <= REFILL_ROUNDS_MAX {
            return false;
        }
        self.decrease = None;
        self.refills = if is_refilled { self.refills + 1 } else { 0 };
        self.refills >= REFILLS_MAX
    }
}

impl Decrease {
    /// Whether a queue of this length holds again what the smaller window took out of it.
    fn is_refilled(&self, queue_us: u64, window_bytes: f64, capacity: f64) -> bool {
        let left_us = (self.window_bytes_before - window_bytes) / capacity.max(1.0) * 1e6;
        left_us > REFILL_QUEUE_SHARE_MIN * self.queue_us_before
            && self.queue_us_before - (queue_us as f64) < (1.0 - REFILLED_SHARE) * left_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes the queue every 50 ms from one time to another; says whether the other flow was seen not to back off.
    fn shows_itself(
        classifier: &mut Classifier,
        ms: std::ops::Range<u64>,
        window_bytes: f64,
        queue_us: impl Fn(u64) -> u64,
    ) -> bool {
        let reports = ms.step_by(50).map(|now_ms| sample(now_ms, queue_us(now_ms), 0));
        reports.fold(false, |seen, sample| classifier.on_report(&sample, window_bytes) | seen)
    }

    /// A queue of 50 ms that is empty for 250 ms from 3 s on, and then grows by so much per second.
    fn dip(growth_us: u64) -> impl Fn(u64) -> u64 {
        move |now_ms| match now_ms {
            3_000..3_250 => 0,
            3_250.. => ((now_ms - 3_250) * growth_us / 1_000).min(50_000),
            _ => 50_000,
        }
    }

    #[test]
    fn a_flow_that_dips_and_is_back_soon_is_bbr() {
        let mut classifier = Classifier::new(50_000, false);
        assert!(shows_itself(&mut classifier, 100..6_000, 6e5, dip(60_000)));
        assert!(classifier.last_dip_us.is_some());
        let mut classifier = Classifier::new(50_000, false);
        assert!(!shows_itself(&mut classifier, 100..6_000, 6e5, dip(8_000)), "CUBIC is not back so soon");
    }

    #[test]
    fn a_dip_of_our_own_says_nothing() {
        let mut classifier = Classifier::new(50_000, false);
        shows_itself(&mut classifier, 100..2_950, 6e5, dip(60_000));
        classifier.on_presence_test();
        assert!(!shows_itself(&mut classifier, 2_950..6_000, 6e5, dip(60_000)));
    }

    #[test]
    fn a_queue_that_refills_twice_after_we_backed_off_shows_bbr() {
        for (queue_us, expected) in [(50_000, true), (36_000, false)] {
            let mut classifier = Classifier::new(50_000, false);
            let mut seen = false;
            for second in [0, 3] {
                seen |= classifier.on_decrease(6e5);
                // The smaller window leaves 200 kB: 17 ms.
                seen |=
                    shows_itself(&mut classifier, second * 1_000..second * 1_000 + 1_500, 4e5, |_| queue_us);
                shows_itself(&mut classifier, second * 1_000 + 1_500..second * 1_000 + 3_000, 6e5, |_| {
                    50_000
                });
            }
            assert_eq!(seen, expected, "{queue_us}");
        }
    }

    #[test]
    fn after_a_mistake_only_dips_count() {
        let mut classifier = Classifier::new(50_000, false);
        classifier.require_dip();
        for time_ms in [0, 500, 1_000, 1_500, 2_000] {
            assert!(!classifier.on_decrease(6e5));
            assert!(!shows_itself(&mut classifier, time_ms..time_ms + 500, 4e5, |_| 50_000));
        }
        assert!(shows_itself(&mut classifier, 2_500..6_000, 6e5, dip(60_000)));
    }
}
