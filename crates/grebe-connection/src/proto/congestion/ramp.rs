//! Ramp: the rate grows step by step from the measurement of the first train. Arrivals judge each step a
//! round trip and a few reports later, or a train does.

use super::constants::*;
use super::loss::LossVerdict;
use super::path_model::{AckSample, Mode, PathModel, Round};
use super::phase::{NextState, Overrun};
use crate::proto::train::{FIRST_PACKETS, TrainReport};
use crate::proto::wire::Train;

#[derive(Debug)]
pub(super) struct Ramp {
    /// Rate of this step in bytes per second.
    rate: f64,
    /// Gain of the next step over this one.
    gain: f64,
    since_us: u64,
    /// Packets of this step are arriving now.
    is_arriving: bool,
    /// The sender did not use all of this step.
    is_unused: bool,
    train: StepTrain,
    /// The path is fast enough for trains.
    takes_trains: bool,
    /// Trains since the ramp began.
    trains: u32,
}

/// Train of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepTrain {
    None,
    /// Due at the start of the step.
    Due,
    /// In flight: its measurement comes before the step's.
    Sent,
}

impl Ramp {
    /// Starts from the measurement of the first train.
    pub(super) fn after_first_train(now_us: u64, train: Train) -> Self {
        let span_us = u64::from(train.span_us);
        if span_us < TRAIN_SPAN_US_MIN || train.bytes == 0 {
            let measured = f64::from(train.bytes) * 1e6 / TRAIN_SPAN_US_MIN as f64;
            return Self::new(now_us, measured / TRAIN_GAIN, TRAIN_GAIN);
        }
        let (mut span_us, mut gain) = (span_us as f64, UP_GAIN);
        let error_us = error_us(&train);
        if is_vague(error_us, span_us) {
            // The receiver added half of the error. Jitter hides a spread below the error, so this step takes
            // the middle.
            (span_us, gain) = ((span_us - error_us / 2.0).max(error_us / 2.0), UNTRAINED_GAIN);
        }
        Self::new(now_us, BELOW_SHARE * f64::from(train.bytes) * 1e6 / span_us, gain)
    }

    /// Starts from a rate in bytes per second that the path has outgrown.
    pub(super) fn from_rate(now_us: u64, rate: f64) -> Self {
        Self::new(now_us, UNTRAINED_GAIN * rate, UNTRAINED_GAIN)
    }

    fn new(now_us: u64, rate: f64, gain: f64) -> Self {
        Self {
            rate: rate.max(1.0),
            gain,
            since_us: now_us,
            is_arriving: false,
            is_unused: false,
            train: StepTrain::Due,
            takes_trains: false,
            trains: 0,
        }
    }

    /// Pace in bytes per second.
    pub(super) fn pace(&self) -> f64 {
        self.rate
    }

    pub(super) fn train_pace(&self) -> f64 {
        TRAIN_GAIN * self.rate
    }

    pub(super) fn cap_bytes(&self, path: &PathModel) -> u64 {
        path.rate_cap_bytes(self.rate.max(path.bandwidth()))
    }

    /// Number of packets in the train that is due, of `packet_bytes` each. The path delivers them within half
    /// of the queue ceiling, or at the next step's rate within twice the jitter.
    ///
    /// `packets_max` are available: a train that waits for the source would measure the source.
    pub(super) fn order_train(
        &mut self,
        path: &PathModel,
        packet_bytes: u64,
        packets_max: u64,
    ) -> Option<u64> {
        if self.train != StepTrain::Due {
            return None;
        }
        let rtt_us = path.rtt.min_us();
        let queue_us = (path.queue_ceiling_us() / 2).min(rtt_us / 2);
        // The path may be faster than this step by the gain.
        let jitter_us = (2.0 * self.gain * path.jitter_us as f64) as u64;
        let span_us = queue_us.max(jitter_us.min(rtt_us));
        let bytes = ((self.rate * span_us as f64 / 1e6) as u64).min(TRAIN_BYTES_MAX);
        let packets = bytes / packet_bytes.max(1);
        if packets > packets_max {
            return None;
        }
        self.takes_trains = packets >= FIRST_PACKETS;
        self.train = if self.takes_trains { StepTrain::Sent } else { StepTrain::None };
        self.trains += u32::from(self.takes_trains);
        self.takes_trains.then_some(packets)
    }

    pub(super) fn on_report(
        &mut self,
        path: &mut PathModel,
        sample: &AckSample,
        round: Option<&Round>,
    ) -> Option<NextState> {
        self.is_unused |= sample.app_limited;
        if let Some(heard) = &sample.train
            && self.train == StepTrain::Sent
            && self.is_beyond_the_path(sample.now_us, path, heard)
        {
            return Some(NextState::Drain);
        }
        if path.is_sparse() {
            // Judges the step by its data, if there is enough.
            if self.train != StepTrain::Sent {
                self.begin_step(sample.now_us, self.train);
            }
            return None;
        }
        let is_queue_empty = path.queue.now_us < EMPTY_QUEUE_US_MIN;
        let overrun = path.overrun().filter(|_| is_queue_empty).or(round.and_then(|round| round.overrun));
        if let Some(loss) = overrun.filter(|_| path.mode != Mode::Greedy) {
            // Until packets of this step arrive, the rate is that of the train, with the pause after it.
            let is_measured = self.is_arriving && path.delivery.recent > 0.0;
            let passing_rate = if is_measured { path.passing_rate() } else { (1.0 - loss) * self.rate };
            return Some(NextState::LossWindow { overrun: Some(Overrun { loss, passing_rate }) });
        }
        let has_excessive_loss = round.is_some_and(|round| round.losses == LossVerdict::Excessive);
        if has_excessive_loss && round.is_some_and(|round| !round.had_queue) {
            path.delivery.forget_greater();
        }
        if path.cut_to_recent() || has_excessive_loss {
            return Some(NextState::Drain);
        }
        self.judge_step(sample.now_us, path)
    }

    /// Takes the measurement of a train, which left at [`TRAIN_GAIN`] times the rate. `true`: the step
    /// exceeds the path.
    fn is_beyond_the_path(&mut self, now_us: u64, path: &mut PathModel, heard: &TrainReport) -> bool {
        let Train { span_us, bytes, jitter_us, .. } = heard.train;
        path.jitter_us = path.jitter_us.max(u64::from(jitter_us));
        // Even with jitter, no path delivers faster than the sender sends.
        let span_us = u64::from(span_us).max(heard.sent_span_us).max(1);
        let arrived = f64::from(bytes) * 1e6 / span_us as f64;
        // The rate that fills the path: what the path loses has to be sent too.
        let measured = arrived / (1.0 - path.loss.base);
        let sent = heard.sent_bytes as f64 * 1e6 / heard.sent_span_us.max(1) as f64;
        // A train that arrives almost as fast as it left was not spread. One that is shorter than ordered, on a
        // faster path than known, measures the jitter too.
        let ordered_us = 2 * u64::from(jitter_us);
        let is_short = ordered_us < path.rtt.min_us() && UP_GAIN * (span_us as f64) < ordered_us as f64;
        let is_vague = is_short || is_vague(error_us(&heard.train), span_us as f64);
        if (UP_GAIN * measured > sent || is_vague) && self.trains < BANDWIDTH_ROUNDS as u32 {
            // The path delivers at least this; the next train measures more.
            (self.rate, self.gain) = (self.rate.max(measured), UNTRAINED_GAIN);
            self.begin_step(now_us, StepTrain::Due);
            return false;
        }
        let is_beyond = measured < BELOW_SHARE * self.rate;
        path.capacity.on_rate(arrived);
        (self.rate, self.gain) = (measured, UP_GAIN);
        self.begin_step(now_us, StepTrain::None);
        is_beyond
    }

    fn judge_step(&mut self, now_us: u64, path: &mut PathModel) -> Option<NextState> {
        let (rtt_us, variation_us) = (path.rtt.min_us(), path.rtt.variation_us());
        let arrives_us = self.since_us + rtt_us + (2 * variation_us).max(path.jitter_us);
        if !self.is_arriving && now_us >= arrives_us {
            self.is_arriving = true;
            path.delivery.measure_anew();
        }
        let train_us = if self.train == StepTrain::Sent { rtt_us / 2 + 2 * REPORT_DELAY_US_MAX } else { 0 };
        let judged_us = arrives_us + path.rate_span_us() / 2 + train_us;
        if now_us < judged_us || path.delivery.recent == 0.0 {
            return None;
        }
        let queue_us_max = (path.queue_ceiling_us() / 2).max(EMPTY_QUEUE_US_MIN);
        let queue_us = path.queue.now_us;
        if queue_us > queue_us_max {
            return Some(NextState::Drain);
        }
        if path.delivery.recent / (1.0 - path.loss.base) >= BELOW_SHARE * self.rate {
            self.grow(now_us);
            return None;
        }
        if self.is_unused {
            // Unsent data cannot arrive, so nothing was learnt about the path.
            self.begin_step(now_us, StepTrain::None);
            return None;
        }
        // Without a queue, part of the step may still be in flight.
        (now_us > judged_us + rtt_us).then_some(NextState::Cruise)
    }

    /// Grows, because the path took the step without a queue.
    fn grow(&mut self, now_us: u64) {
        self.rate *= self.gain;
        if self.takes_trains {
            self.gain = UP_GAIN;
            self.begin_step(now_us, StepTrain::Due);
        } else {
            self.gain = self.gain.max(UNTRAINED_GAIN);
            self.begin_step(now_us, StepTrain::None);
        }
    }

    fn begin_step(&mut self, now_us: u64, train: StepTrain) {
        (self.since_us, self.is_arriving, self.is_unused, self.train) = (now_us, false, false, train);
    }
}

/// Uncertainty of the line through a train's arrivals.
fn error_us(train: &Train) -> f64 {
    f64::from(train.jitter_us) / (f64::from(train.bytes) / SEGMENT_BYTES).max(1.0).sqrt()
}

/// Whether a train with this uncertainty gives no rate.
fn is_vague(error_us: f64, span_us: f64) -> bool {
    error_us > (1.0 - 1.0 / UP_GAIN) * span_us
}

#[cfg(test)]
mod tests {
    use super::super::rate_response::{PaceClass, PaceCounts};
    use super::*;

    const RTT_US: u64 = 100_000;

    fn train(span_us: u32, bytes: u32, jitter_us: u32) -> Train {
        Train { mark: 1, span_us, bytes, jitter_us }
    }

    fn start(first: Train) -> (Ramp, PathModel) {
        let mut path = PathModel::new(Mode::Fair, Some(RTT_US));
        path.jitter_us = u64::from(first.jitter_us);
        (Ramp::after_first_train(0, first), path)
    }

    /// Feeds the measurement of a train of `bytes` that left within the given time.
    fn hear(
        ramp: &mut Ramp,
        path: &mut PathModel,
        (sent_span_us, sent_bytes): (u64, u64),
        train: Train,
    ) -> bool {
        ramp.is_beyond_the_path(RTT_US, path, &TrainReport { train, sent_span_us, sent_bytes })
    }

    #[test]
    fn a_train_that_was_spread_tells_the_rate() {
        let (mut ramp, mut path) = start(train(3_000, 37_500, 0));
        let packets = ramp.order_train(&path, 1_500, u64::MAX).unwrap();
        assert_eq!(packets, 93, "what 90 Mbit/s bring in 12.5 ms, half of the ceiling");
        assert_eq!(ramp.order_train(&path, 1_500, u64::MAX), None, "one at a time");
        assert!(!hear(&mut ramp, &mut path, (3_000, 140_000), train(11_200, 140_000, 0)));
        assert_eq!(ramp.pace() * 8.0, 100e6);
        assert_eq!(path.capacity.rate, ramp.pace());
        assert_eq!(ramp.order_train(&path, 1_500, u64::MAX), None, "that is the rate");
    }

    #[test]
    fn a_train_waits_until_there_is_enough_to_send() {
        let (mut ramp, path) = start(train(3_000, 37_500, 0));
        assert_eq!(ramp.order_train(&path, 1_500, 92), None);
        assert_eq!(ramp.order_train(&path, 1_500, 93), Some(93));
    }

    #[test]
    fn a_pause_of_the_writer_is_no_answer_of_the_path() {
        let (mut ramp, mut path) = start(train(3_000, 37_500, 0));
        let rate = ramp.pace();
        for now_us in (0..10 * RTT_US).step_by(10_000) {
            // Few bytes arrived late because few were written, and late.
            let sample = AckSample {
                now_us,
                rtt_us: Some(RTT_US),
                one_way_delay_us: Some(if now_us == 0 { 0 } else { 60_000 }),
                receiver_us: now_us + 1,
                delivered_bytes: now_us / 1_000,
                round_ended: now_us % RTT_US == 0,
                app_limited: true,
                is_sparse: true,
                ..AckSample::default()
            };
            path.on_report(&sample);
            let round = sample.round_ended.then(|| path.end_round(now_us, false));
            assert!(ramp.on_report(&mut path, &sample, round.as_ref()).is_none());
        }
        assert!(path.is_over_ceiling() && ramp.pace() == rate);
    }

    #[test]
    fn a_writer_that_waits_for_a_full_path_is_no_pause() {
        let (mut ramp, mut path) = start(train(3_000, 37_500, 0));
        let next = (0..10 * RTT_US).step_by(10_000).find_map(|now_us| {
            let sample = AckSample {
                now_us,
                rtt_us: Some(RTT_US),
                one_way_delay_us: Some(if now_us == 0 { 0 } else { 60_000 }),
                receiver_us: now_us + 1,
                delivered_bytes: now_us,
                in_flight_bytes: 3 * RTT_US,
                is_sparse: true,
                ..AckSample::default()
            };
            path.on_report(&sample);
            ramp.on_report(&mut path, &sample, None)
        });
        assert_eq!(
            next,
            Some(NextState::Drain),
            "a byte per microsecond comes, and three round trips of it are in flight"
        );
    }

    #[test]
    fn a_train_that_came_as_it_left_is_followed_by_a_faster_one() {
        let (mut ramp, mut path) = start(train(6_000, 37_500, 0));
        assert!(ramp.order_train(&path, 1_500, u64::MAX).is_some());
        assert!(!hear(&mut ramp, &mut path, (12_500, 112_500), train(12_600, 112_500, 0)));
        assert!(ramp.pace() * 8.0 > 70e6);
        assert!(ramp.order_train(&path, 1_500, u64::MAX).is_some());
    }

    #[test]
    fn a_train_that_a_full_queue_thinned_out_tells_the_rate() {
        let (mut ramp, mut path) = start(train(3_000, 37_500, 0));
        assert!(ramp.order_train(&path, 1_500, u64::MAX).is_some());
        assert!(!hear(&mut ramp, &mut path, (3_000, 150_000), train(3_000, 37_500, 0)));
        assert_eq!(ramp.order_train(&path, 1_500, u64::MAX), None, "no more came, however many were sent");
    }

    /// Of a train that left at 400 Mbit/s, half arrived, at the rate of a path of 100 Mbit/s.
    #[test]
    fn what_the_path_loses_is_sent_too() {
        let (mut ramp, mut path) = start(train(3_000, 37_500, 0));
        path.loss.learn_slow(0.5, 1_000.0);
        assert!(ramp.order_train(&path, 1_500, u64::MAX).is_some());
        assert!(!hear(&mut ramp, &mut path, (3_000, 150_000), train(6_000, 75_000, 0)));
        assert_eq!(ramp.pace() * 8.0, 200e6, "half of it is lost");
        assert_eq!(path.capacity.rate * 8.0, 100e6, "what arrives");
    }

    /// An overrun shows before the step is measured. The rate until then is that of the train, over the pause
    /// that followed it.
    #[test]
    fn a_step_that_is_not_measured_yet_tells_its_own_rate() {
        let (mut ramp, mut path) = start(train(3_000, 37_500, 0));
        let mut by_pace = PaceCounts::default();
        (0..40).for_each(|_| by_pace.on_ack(PaceClass::Unknown, false));
        (0..40).for_each(|_| by_pace.on_lost(PaceClass::Unknown, true));
        let train = AckSample { receiver_us: 1, ..AckSample::default() };
        let (acked_packets, lost_packets, delivered_bytes) = (40, 40, 37_500);
        let now_us = RTT_US;
        let step = AckSample {
            now_us,
            receiver_us: RTT_US,
            delivered_bytes,
            acked_packets,
            lost_packets,
            by_pace,
            ..train
        };
        path.on_report(&train);
        path.on_report(&step);
        assert!((370e3..380e3).contains(&path.delivery.recent), "the train, and the pause");
        let next = ramp.on_report(&mut path, &step, None);
        let passing_rate = ramp.pace() / 2.0;
        assert_eq!(next, Some(NextState::LossWindow { overrun: Some(Overrun { loss: 0.5, passing_rate }) }));
    }

    #[test]
    fn a_train_that_brought_less_than_its_step_ends_the_ramp() {
        let (mut ramp, mut path) = start(train(3_000, 37_500, 0));
        assert!(ramp.order_train(&path, 1_500, u64::MAX).is_some());
        assert!(hear(&mut ramp, &mut path, (3_000, 140_000), train(20_000, 140_000, 0)));
    }

    #[test]
    fn trains_end() {
        let (mut ramp, mut path) = start(train(3_000, 37_500, 50_000));
        let mut trains: usize = 0;
        while ramp.order_train(&path, 1_500, u64::MAX).is_some() {
            trains += 1;
            hear(&mut ramp, &mut path, (10_000, 37_500), train(11_000, 37_500, 50_000));
        }
        assert_eq!(trains, BANDWIDTH_ROUNDS);
    }

    #[test]
    fn a_train_is_twice_as_long_as_the_jitter_at_the_next_rate() {
        for (span_us, gain) in [(3_000, 2.0), (15_000, 1.25)] {
            let (mut ramp, path) = start(train(span_us, 37_500, 10_000));
            let bytes = ramp.pace() * gain * 0.02;
            assert_eq!(ramp.order_train(&path, 1_500, u64::MAX), Some((bytes / 1_500.0) as u64));
        }
    }

    #[test]
    fn a_train_that_is_short_beside_the_jitter_is_followed_by_a_longer_one() {
        for (span_us, is_short) in [(25_000, true), (35_000, false)] {
            let (mut ramp, mut path) = start(train(3_000, 37_500, 20_000));
            assert!(ramp.order_train(&path, 1_500, u64::MAX).is_some());
            hear(&mut ramp, &mut path, (5_000, 500_000), train(span_us, 500_000, 20_000));
            assert_eq!(ramp.order_train(&path, 1_500, u64::MAX).is_some(), is_short, "{span_us}");
        }
    }

    /// 25 packets and a jitter of 20 ms: an error of 4 ms, of which the receiver added a half.
    #[test]
    fn a_spread_within_its_error_may_be_half_as_long() {
        for (span_us, taken_us) in [(4_000, 2_000.0_f64), (6_000, 4_000.0), (40_000, 40_000.0)] {
            let (ramp, _) = start(train(span_us, 37_500, 20_000));
            assert_eq!(ramp.pace().round(), (BELOW_SHARE * 37_500.0 * 1e6 / taken_us).round(), "{span_us}");
        }
    }

    #[test]
    fn no_path_brings_more_than_was_sent() {
        let (mut ramp, mut path) = start(train(3_000, 37_500, 20_000));
        assert!(ramp.order_train(&path, 1_500, u64::MAX).is_some());
        hear(&mut ramp, &mut path, (4_000, 100_000), train(400, 100_000, 20_000));
        assert!(ramp.pace() <= 100_000.0 / 4e-3);
    }

    #[test]
    fn a_slow_path_gets_no_train() {
        let (mut ramp, path) = start(train(30_000, 37_500, 0));
        assert_eq!(ramp.order_train(&path, 1_500, u64::MAX), None);
    }
}
