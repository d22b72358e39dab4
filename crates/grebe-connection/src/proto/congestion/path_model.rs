//! Model of the path from the reports alone: round trip, queue, bandwidth, loss, capacity and jitter. All
//! states read it; they differ in what they send.

use super::constants::*;
use super::estimators::{DeliveryRate, QueueDelay, RttEstimator};
use super::loss::{LossModel, LossVerdict, RoundLosses};
use super::rate_response::{PaceCounts, RateResponse};
use crate::proto::train::{FIRST_PACKETS, TrainReport};

/// Share of a shared path to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// A share like that of other flows.
    #[default]
    Fair,
    /// All of the path, whatever the queue.
    Greedy,
    /// The rest that other flows leave.
    Background,
}

/// Content of one report of the receiver for the controller.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AckSample {
    pub(crate) now_us: u64,
    pub(crate) rtt_us: Option<u64>,
    /// Minimum one-way delay since the last report, with an unknown offset between the clocks.
    pub(crate) one_way_delay_us: Option<u32>,
    /// Receiver's clock, and the bytes on the wire delivered by then.
    pub(crate) receiver_us: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) train: Option<TrainReport>,
    pub(crate) acked_packets: u64,
    pub(crate) lost_packets: u64,
    /// Decided packets and loss events, by pace.
    pub(crate) by_pace: PaceCounts,
    /// Packets that were declared lost and arrived after all.
    pub(crate) late_packets: u64,
    pub(crate) in_flight_bytes: u64,
    /// This report ends a packet-timed round trip.
    pub(crate) round_ended: bool,
    /// The source, the receiver or a configured limit held the sender back, not the path.
    pub(crate) app_limited: bool,
    /// The application writes only now and then. Such packets say nothing about the path, not even by loss or
    /// delay.
    pub(crate) is_sparse: bool,
    /// The sender was suspended, so less arrived than the path can carry.
    pub(crate) is_stalled: bool,
}

#[derive(Debug)]
pub(super) struct PathModel {
    pub(super) mode: Mode,
    pub(super) rtt: RttEstimator,
    pub(super) queue: QueueDelay,
    pub(super) delivery: DeliveryRate,
    pub(super) loss: LossModel,
    pub(super) response: RateResponse,
    pub(super) capacity: Capacity,
    /// Lateness of a packet relative to others.
    pub(super) jitter_us: u64,
    /// Bytes in flight at the last report.
    pub(super) in_flight_bytes: u64,
    sums: RoundSums,
    /// Something other than the path held the sender back in the last round.
    was_app_limited: bool,
    was_sparse: bool,
    was_stalled: bool,
    /// End of a stall: until then, arrivals understate the path's rate.
    stalled_until_us: u64,
    now_us: u64,
    /// The bandwidth was reduced in this round although the path had stalled.
    has_yielded: bool,
    /// Pacing gain of the last round and of this one. Packets acknowledged now were sent at the former.
    gain_before: f64,
    gain_now: f64,
}

/// A packet-timed round trip that has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Round {
    pub(super) losses: LossVerdict,
    /// A queue stood.
    pub(super) had_queue: bool,
    /// Loss beyond any known loss of the path, spread over the round and not in one burst.
    pub(super) overrun: Option<f64>,
    pub(super) shortest_queue_us: Option<u64>,
    pub(super) app_limited: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct RoundSums {
    acked: u64,
    lost: u64,
    late: u64,
    events: f64,
    shortest_queue_us: Option<u64>,
    queue_us: u64,
    reports: u64,
    app_limited: bool,
    is_sparse: bool,
    is_stalled: bool,
}

impl PathModel {
    pub(super) fn new(mode: Mode, rtt_us: Option<u64>) -> Self {
        Self {
            mode,
            rtt: RttEstimator::new(rtt_us),
            queue: QueueDelay::new(),
            delivery: DeliveryRate::new(),
            loss: LossModel::default(),
            response: RateResponse::default(),
            capacity: Capacity::default(),
            jitter_us: 0,
            in_flight_bytes: 0,
            sums: RoundSums::default(),
            was_app_limited: false,
            was_sparse: false,
            was_stalled: false,
            stalled_until_us: 0,
            now_us: 0,
            has_yielded: false,
            gain_before: 1.0,
            gain_now: 1.0,
        }
    }

    pub(super) fn on_report(&mut self, sample: &AckSample) {
        if let Some(rtt_us) = sample.rtt_us {
            self.rtt.on_sample(sample.now_us, rtt_us);
        }
        let span_us = self.rate_span_us();
        self.now_us = sample.now_us;
        let gap_us = self.delivery.on_sample(sample.receiver_us, sample.delivered_bytes, span_us);
        if gap_us > 2 * self.rtt.report_interval_us() + HOST_DELAY_US {
            self.stalled_until_us = sample.now_us + self.loop_us();
        }
        self.capacity.on_rate(self.bandwidth());
        self.in_flight_bytes = sample.in_flight_bytes;
        if let Some(delay_us) = sample.one_way_delay_us {
            self.queue.on_sample(sample.now_us, delay_us);
            self.sums.on_queue(self.queue.now_us);
        }
        self.response.on_report(&sample.by_pace);
        self.sums.events += sample.by_pace.events();
        self.sums.acked += sample.acked_packets;
        self.sums.lost += sample.lost_packets;
        self.sums.late += sample.late_packets;
        self.sums.app_limited |= sample.app_limited;
        self.sums.is_sparse |= sample.is_sparse;
        self.sums.is_stalled |= sample.is_stalled;
    }

    pub(super) fn end_round(&mut self, now_us: u64, has_competitors: bool) -> Round {
        let overrun = self.overrun();
        let sums = std::mem::take(&mut self.sums);
        (self.was_app_limited, self.was_sparse) = (sums.app_limited, sums.is_sparse);
        (self.was_stalled, self.has_yielded) = (sums.is_stalled, false);
        let mean_us = sums.queue_us / sums.reports.max(1);
        let had_queue = self.queue.on_round(now_us, mean_us, self.queue_seen_us());
        let losses = self.loss.on_round(&RoundLosses {
            acked: sums.acked,
            lost: sums.lost.saturating_sub(sums.late),
            had_queue,
            is_slow: self.gain_before <= DOWN_GAIN,
            has_competitors,
            excess_max: match self.mode {
                Mode::Background => LOSS_EXCESS_MAX / BACKGROUND_DIVISOR as f64,
                Mode::Fair | Mode::Greedy => LOSS_EXCESS_MAX,
            },
        });
        // Arrivals limited by the source say nothing about the path: draft-ietf-ccwg-bbr-06, section 5.5.4.
        if !sums.app_limited && !sums.is_stalled && now_us >= self.stalled_until_us {
            self.delivery.next_round();
        }
        Round {
            losses,
            had_queue,
            overrun: overrun.filter(|_| !had_queue),
            shortest_queue_us: sums.shortest_queue_us,
            app_limited: sums.app_limited,
        }
    }

    /// Loss of this round so far, if it is more than the path is known to lose, spread and not in one burst.
    /// Never on paths that reorder, because losses there may be spurious at first.
    pub(super) fn overrun(&self) -> Option<f64> {
        let lost = self.sums.lost.saturating_sub(self.sums.late) as f64;
        let packets = self.sums.acked as f64 + lost;
        let is_overrun = self.jitter_us == 0
            && self.sums.late == 0
            && self.sums.events >= LOSS_EVENTS_MIN
            && self.loss.is_beyond_the_paths(lost / packets, packets);
        is_overrun.then_some(lost / packets)
    }

    /// Recent loss, if the base loss is so heavy that "down" sent more than arrived. Such a base loss may be
    /// an overload.
    pub(super) fn untested_loss(&self) -> Option<f64> {
        (self.loss.base > UNTESTED_BASE_LOSS_MAX).then_some(self.response.loss().0)
    }

    /// Sets the lateness of packets without a queue, as the first train showed it.
    pub(super) fn expect_jitter(&mut self, jitter_us: u64) {
        self.jitter_us = jitter_us;
        self.queue.expect_jitter(jitter_us);
    }

    /// Span of a delivery rate measurement.
    pub(super) fn rate_span_us(&self) -> u64 {
        self.rtt.min_us().max(RATE_SPAN_PER_JITTER * self.jitter_us).clamp(RATE_SPAN_US_MIN, RATE_SPAN_US_MAX)
    }

    /// Notes the pacing gain of the round that begins.
    pub(super) fn begin_round(&mut self, gain: f64) {
        (self.gain_before, self.gain_now) = (self.gain_now, gain);
    }

    /// Confirmed rate in bytes per second.
    pub(super) fn bandwidth(&self) -> f64 {
        self.delivery.bandwidth()
    }

    /// Rate that passes when too much is sent, in bytes per second.
    pub(super) fn passing_rate(&self) -> f64 {
        let is_measured = self.delivery.recent > 0.0 && !self.sums.app_limited && !self.was_app_limited;
        if is_measured { self.delivery.recent } else { self.bandwidth() }
    }

    /// Rate that fills the path, in bytes per second: the delivered rate plus the base loss.
    pub(super) fn full_rate(&self) -> f64 {
        self.bandwidth() / (1.0 - self.loss.base)
    }

    /// Maximum queue that this flow may build alone.
    pub(super) fn queue_ceiling_us(&self) -> u64 {
        let rtt_us = self.rtt.min_us();
        match self.mode {
            Mode::Fair | Mode::Greedy => (rtt_us / QUEUE_CEILING_RTT_SHARE).max(QUEUE_CEILING_US_MIN),
            Mode::Background => {
                (rtt_us / QUEUE_CEILING_RTT_SHARE).max(QUEUE_CEILING_US_MIN) / BACKGROUND_DIVISOR
            }
        }
    }

    pub(super) fn is_over_ceiling(&self) -> bool {
        self.mode != Mode::Greedy && self.queue.now_us > self.queue_ceiling_us()
    }

    /// If the queue exceeds the ceiling, reduces the bandwidth to the latest rate. Returns whether it did.
    pub(super) fn cut_to_recent(&mut self) -> bool {
        let is_over = self.is_over_ceiling() && self.delivery.recent > 0.0 && !self.is_sparse();
        if is_over && self.excess_bytes() <= 0.0 {
            // The report of the queue is older than the bytes in flight, which no longer fill the path.
            self.stalled_until_us = self.now_us + self.loop_us();
        }
        if is_over && !self.is_stalled() {
            self.delivery.forget_greater();
        } else if is_over && !std::mem::replace(&mut self.has_yielded, true) {
            self.delivery.yield_to(BELOW_SHARE);
        }
        is_over
    }

    /// Whether a host or a hop was suspended. The queue is then backlog, and arrivals understate the path's
    /// rate.
    pub(super) fn is_stalled(&self) -> bool {
        self.sums.is_stalled || self.was_stalled || self.now_us < self.stalled_until_us
    }

    /// Whether the application writes only now and then; knowledge of the path then holds until there is more
    /// to send. A writer that waits for a full path is not sparse.
    pub(super) fn is_sparse(&self) -> bool {
        (self.sums.is_sparse || self.was_sparse) && self.excess_bytes() <= 0.0
    }

    /// Whether losses depend on this flow's rate although no queue shows it.
    pub(super) fn is_loss_ours(&self, round: &Round) -> bool {
        if self.jitter_us > 0 {
            // Spurious losses are recognised too late here to tell them from real ones.
            return false;
        }
        // Of the newest packets, the arrived ones are known before the lost ones. At heavy loss, slow packets
        // would seem to be lost less often.
        let is_early = self.gain_now <= DOWN_GAIN && self.loss.base > UNTESTED_BASE_LOSS_MAX;
        round.overrun.is_some() || !is_early && self.response.losses_rise()
    }

    /// Round trip without a queue, from sending a packet to its report.
    pub(super) fn loop_us(&self) -> u64 {
        self.rtt.min_us() + self.rtt.report_interval_us()
    }

    /// Bytes in flight beyond the capacity of the path without a queue. Known at once, while the reported
    /// queue is one round trip old.
    pub(super) fn excess_bytes(&self) -> f64 {
        let path_us = self.loop_us() + self.jitter_us / 2;
        self.in_flight_bytes as f64 - self.full_rate() * path_us as f64 / 1e6
    }

    /// Round trip with the queue, from sending a packet to its report.
    pub(super) fn queued_loop_us(&self) -> u64 {
        self.rtt.smoothed_us() + self.rtt.report_interval_us()
    }

    /// Minimum delay that counts as a queue.
    pub(super) fn queue_seen_us(&self) -> u64 {
        self.queue_ceiling_us() / STANDING_QUEUE_SHARE
    }

    /// Pace that spreads a window over a round trip, in bytes per second.
    pub(super) fn window_pace(&self, window_bytes: f64) -> f64 {
        window_bytes * 1e6 / self.queued_loop_us() as f64
    }

    /// Cap of bytes in flight for window states: the window plus a few packets for bursts.
    pub(super) fn window_cap_bytes(&self, window_bytes: f64) -> u64 {
        (window_bytes + BURST_SEGMENTS * SEGMENT_BYTES) as u64
    }

    /// Cap of bytes in flight for rate states.
    pub(super) fn rate_cap_bytes(&self, rate: f64) -> u64 {
        let seconds = (self.rtt.min_us() + REPORT_DELAY_US_MAX) as f64 / 1e6;
        (CAP_GAIN * rate * seconds) as u64 + FIRST_PACKETS * SEGMENT_BYTES as u64
    }
}

impl RoundSums {
    fn on_queue(&mut self, queue_us: u64) {
        self.shortest_queue_us =
            Some(self.shortest_queue_us.map_or(queue_us, |shortest_us| shortest_us.min(queue_us)));
        self.queue_us += queue_us;
        self.reports += 1;
    }
}

/// Capacity of the path for all flows together. Beside other flows the delivery rate understates it.
#[derive(Debug, Default)]
pub(super) struct Capacity {
    /// Maximum rate, delivered or measured by a train, in bytes per second.
    pub(super) rate: f64,
    /// Rounds in a row without a queue.
    rounds_alone: usize,
}

impl Capacity {
    /// Raises the capacity. Cross traffic within a train can only make it look smaller.
    pub(super) fn on_rate(&mut self, rate: f64) {
        self.rate = self.rate.max(rate);
    }

    /// Takes a round in which the queue was empty at least once, and its bandwidth.
    pub(super) fn on_empty_round(&mut self, bandwidth: f64) {
        self.rounds_alone += 1;
        if self.rounds_alone >= BANDWIDTH_ROUNDS {
            self.rate = bandwidth;
        }
    }

    /// Takes a round in which a queue stood.
    pub(super) fn on_full_round(&mut self) {
        self.rounds_alone = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_train_tells_the_capacity_until_the_flow_was_alone() {
        let mut capacity = Capacity::default();
        capacity.on_rate(12e6);
        capacity.on_rate(5e6);
        assert_eq!(capacity.rate, 12e6, "others may have sent into the second");
        for _ in 1..BANDWIDTH_ROUNDS {
            capacity.on_empty_round(10e6);
        }
        capacity.on_full_round();
        capacity.on_empty_round(10e6);
        assert_eq!(capacity.rate, 12e6, "a queue stood");
        (0..BANDWIDTH_ROUNDS).for_each(|_| capacity.on_empty_round(10e6));
        assert_eq!(capacity.rate, 10e6);
    }
}
