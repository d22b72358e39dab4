//! The growth at the start: each step is judged by what arrived of it, a round trip and a few reports later.

use super::delivery::Delivery;
use super::{MIN_BYTES_PER_S, Phase, RATE_SPAN_US_MIN, REPORTS_LATE_US, UP_GAIN};
use crate::proto::train::TrainHeard;
use crate::proto::wire::Train;

#[derive(Debug, Default)]
pub(super) struct Ramp {
    /// Bytes a second.
    rate: f64,
    gain: f64,
    step_since_us: u64,
    /// What comes now was sent in this step.
    step_arrives: bool,
    /// The sender did not send all that this step allows.
    step_unused: bool,
    jitter_us: u64,
    train: Wish,
    /// The path is fast enough for trains.
    trained: bool,
    /// Trains since the ramp began.
    trains: u32,
    /// The path's rate, where a train told it.
    told: Option<f64>,
}

/// Whether a train is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Wish {
    #[default]
    None,
    /// At the beginning of this step.
    Next,
    /// It is under way: what it tells comes before what the step would.
    Sent,
}

/// What the rate control knows when a step is judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub now_us: u64,
    pub rtt_us: u64,
    pub variation_us: u64,
    pub queue_us: u64,
    /// A queue longer than this ends the ramp.
    pub queue_us_max: u64,
    pub base_loss: f64,
}

impl Ramp {
    /// Starts from what the first packets told.
    pub fn start(&mut self, now_us: u64, train: Train) {
        let measured = f64::from(train.bytes) * 1e6 / f64::from(train.span_us.max(TRAIN_SPAN_US_MIN));
        let spread = train.span_us >= TRAIN_SPAN_US_MIN && train.bytes > 0;
        (self.rate, self.gain) = if !spread {
            // A path that did not spread the packets is faster than could be seen.
            (measured * 0.25, GAIN_BLIND)
        } else if train.span_us < train.jitter_us / 2 {
            // What spread them was jitter more than the rate: the path may have much more.
            (measured, GAIN_SEEN)
        } else {
            (0.9 * measured, UP_GAIN)
        };
        self.rate = self.rate.max(MIN_BYTES_PER_S);
        self.jitter_us = u64::from(train.jitter_us);
        self.begin_step(now_us);
        (self.train, self.trains) = (Wish::Next, 0);
    }

    /// How many packets of so many bytes to send as a train, where one is wanted: as many as the path brings in `span_us`, or in
    /// as long as the jitter, but no queue of a round trip.
    pub fn order_train(&mut self, span_us: u64, rtt_us: u64, wire_bytes: u64) -> Option<u64> {
        if self.train != Wish::Next {
            return None;
        }
        let span_us = span_us.min(rtt_us / 2).max(self.jitter_us.min(rtt_us));
        let bytes = ((self.rate * span_us as f64 / 1e6) as u64).min(TRAIN_BYTES_MAX);
        let packets = bytes / wire_bytes.max(1);
        self.trained = packets >= TRAIN_PACKETS_MIN;
        self.trains += u32::from(self.trained);
        self.train = if self.trained { Wish::Sent } else { Wish::None };
        self.trained.then_some(packets)
    }

    /// Takes what a train told that left at [`TRAIN_GAIN`] times the rate; the phase that follows, where the ramp has ended.
    pub fn take_train(&mut self, now_us: u64, heard: &TrainHeard) -> Option<Phase> {
        if self.train != Wish::Sent {
            return None;
        }
        let Train { span_us, bytes, jitter_us, .. } = heard.train;
        // Not even jitter makes a path bring more than was sent.
        let span_us = u64::from(span_us).max(heard.sent_span_us).max(1);
        let measured = f64::from(bytes) * 1e6 / span_us as f64;
        self.jitter_us = self.jitter_us.max(u64::from(jitter_us));
        let sent = heard.sent_bytes as f64 * 1e6 / heard.sent_span_us.max(1) as f64;
        let took_all = measured > 0.8 * sent || span_us * 4 < self.jitter_us * 3;
        if took_all && self.trains < TRAINS_MAX {
            // Or jitter spread it more than the rate: the path brings so much at least. The next train tells more.
            (self.rate, self.gain) = (self.rate.max(measured), GAIN_SEEN);
            self.begin_step(now_us);
            self.train = Wish::Next;
        } else {
            // Even the step is more than the path brings.
            let over = measured < STEP_TAKEN * self.rate;
            (self.rate, self.gain) = (measured, UP_GAIN);
            self.told = Some(measured);
            self.begin_step(now_us);
            if over {
                return Some(Phase::Down);
            }
        }
        None
    }

    /// How much later than others a packet came.
    pub fn jitter_us(&self) -> u64 {
        self.jitter_us
    }

    /// The path is another than before: grow again from this rate.
    pub fn restart(&mut self, now_us: u64, rate: f64) {
        (self.rate, self.gain) = (rate * GAIN_SEEN, GAIN_SEEN);
        self.begin_step(now_us);
        (self.train, self.trains) = (Wish::Next, 0);
    }

    /// The path's rate in bytes a second, where a train told it.
    pub fn told(&self) -> Option<f64> {
        self.told
    }

    /// Bytes a second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    pub fn note_unused(&mut self, unused: bool) {
        self.step_unused |= unused;
    }

    /// Over how long a rate is measured.
    pub fn span_us(&self, rtt_us: u64) -> u64 {
        (rtt_us / 4).max(2 * self.jitter_us).clamp(RATE_SPAN_US_MIN, 100_000)
    }

    /// The phase that follows, where the ramp has ended.
    pub fn judge(&mut self, seen: &Seen, delivery: &mut Delivery) -> Option<Phase> {
        let Seen { now_us, queue_us, queue_us_max, .. } = *seen;
        let variation_us = seen.variation_us;
        let span_us = self.span_us(seen.rtt_us);
        let arrives_us = self.step_since_us + seen.rtt_us + (2 * variation_us).max(self.jitter_us);
        if !self.step_arrives && now_us >= arrives_us {
            // What came before was slower: it says nothing about this step.
            self.step_arrives = true;
            delivery.measure_anew();
        }
        let train_us = if self.train == Wish::Sent { seen.rtt_us / 2 + 2 * REPORTS_LATE_US } else { 0 };
        if now_us < arrives_us + span_us / 2 + train_us || delivery.recent() == 0.0 {
            return None;
        }
        let confirmed = delivery.recent() / (1.0 - seen.base_loss);
        if queue_us > queue_us_max {
            return Some(Phase::Down);
        }
        if confirmed >= STEP_TAKEN * self.rate {
            self.rate *= self.gain;
            // A path that took this step without a queue is faster than its first packets told: a train tells by how much, where
            // it is fast enough for one.
            self.gain = if self.trained { UP_GAIN } else { GAIN_SEEN.max(self.gain) };
            self.begin_step(now_us);
            self.train = if self.trained { Wish::Next } else { Wish::None };
            return None;
        }
        // Without a queue it may be that not all of the step has come yet.
        let waited_us = now_us - arrives_us - span_us / 2 - train_us;
        if queue_us > queue_us_max / 4 + 2 * variation_us {
            return Some(Phase::Down);
        }
        if self.step_unused {
            // What was not sent cannot come: nothing was learnt of the path.
            self.begin_step(now_us);
        } else if waited_us > seen.rtt_us {
            return Some(Phase::Cruise);
        }
        None
    }

    fn begin_step(&mut self, now_us: u64) {
        (self.step_since_us, self.step_arrives, self.step_unused) = (now_us, false, false);
        self.train = Wish::None;
    }
}

/// A train leaves at so many times the rate of its step.
pub(super) const TRAIN_GAIN: f64 = 4.0;

/// From a megabit a second to a thousand gigabits.
const TRAINS_MAX: u32 = 10;
const TRAIN_PACKETS_MIN: u64 = 32;
const TRAIN_BYTES_MAX: u64 = 2 << 20;

const GAIN_BLIND: f64 = 4.0;
const GAIN_SEEN: f64 = 2.0;

/// A step from 0.9 to 1.125 of a full path brings 0.89 of itself: what brings more than half of the way from there to all was taken.
const STEP_TAKEN: f64 = 0.95;

/// Arrivals closer than this are one wake-up of the receiver, not a rate.
const TRAIN_SPAN_US_MIN: u32 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn train(span_us: u32, bytes: u32, jitter_us: u32) -> Train {
        Train { mark: 1, span_us, bytes, jitter_us }
    }

    fn ramp(first: Train) -> Ramp {
        let mut ramp = Ramp::default();
        ramp.start(0, first);
        ramp
    }

    fn heard(sent_span_us: u64, train: Train) -> TrainHeard {
        TrainHeard { train, sent_span_us, sent_bytes: u64::from(train.bytes) }
    }

    #[test]
    fn a_train_that_was_spread_tells_the_rate() {
        let mut ramp = ramp(train(3_000, 37_500, 0));
        let packets = ramp.order_train(25_000, 100_000, 1_500).unwrap();
        assert_eq!(packets, 187, "what 90 Mbit/s bring in 25 ms");
        assert_eq!(ramp.order_train(25_000, 200_000, 1_500), None, "one at a time");
        assert_eq!(ramp.told(), None);
        ramp.take_train(100_000, &heard(6_000, train(22_400, 280_000, 0)));
        assert_eq!(ramp.rate() * 8.0, 100e6);
        assert_eq!(ramp.told(), Some(ramp.rate()));
        assert_eq!(ramp.order_train(25_000, 200_000, 1_500), None, "that is the rate");
    }

    #[test]
    fn a_train_that_came_as_it_left_is_followed_by_a_faster_one() {
        let mut ramp = ramp(train(30_000, 37_500, 0));
        assert!(ramp.order_train(100_000, 200_000, 1_500).is_some());
        ramp.take_train(100_000, &heard(25_000, train(25_100, 112_500, 0)));
        assert!(ramp.rate() * 8.0 > 35e6);
        assert!(ramp.order_train(100_000, 200_000, 1_500).is_some());
    }

    #[test]
    fn a_train_that_a_full_queue_thinned_out_tells_the_rate() {
        let mut ramp = ramp(train(3_000, 37_500, 0));
        assert!(ramp.order_train(12_500, 200_000, 1_500).is_some());
        let train = TrainHeard { sent_bytes: 150_000, ..heard(3_000, train(3_000, 37_500, 0)) };
        assert_eq!(ramp.take_train(100_000, &train), None);
        assert_eq!(ramp.order_train(12_500, 200_000, 1_500), None, "no more came, however many were sent");
    }

    #[test]
    fn trains_end() {
        let mut ramp = ramp(train(3_000, 37_500, 50_000));
        let mut trains = 0;
        while ramp.order_train(12_500, 200_000, 1_500).is_some() {
            trains += 1;
            ramp.take_train(100_000, &heard(10_000, train(11_000, 37_500, 50_000)));
        }
        assert_eq!(trains, TRAINS_MAX);
    }

    #[test]
    fn jitter_longer_than_a_train_makes_it_say_little() {
        let mut ramp = ramp(train(3_000, 37_500, 20_000));
        assert!(
            ramp.order_train(12_500, 200_000, 1_500).is_some_and(|packets| packets > 150),
            "as long as the jitter"
        );
        ramp.take_train(100_000, &heard(2_000, train(9_000, 112_500, 20_000)));
        assert!(ramp.order_train(12_500, 200_000, 1_500).is_some(), "another one");
        ramp.take_train(200_000, &heard(5_000, train(20_000, 250_000, 20_000)));
        assert!(ramp.order_train(12_500, 200_000, 1_500).is_none());
        assert_eq!(ramp.rate() * 8.0, 100e6);
    }

    #[test]
    fn no_path_brings_more_than_was_sent() {
        let mut ramp = ramp(train(3_000, 37_500, 20_000));
        assert!(ramp.order_train(12_500, 200_000, 1_500).is_some());
        ramp.take_train(100_000, &heard(4_000, train(400, 100_000, 20_000)));
        assert!(ramp.rate() <= 100_000.0 / 4e-3);
    }

    #[test]
    fn a_slow_path_gets_no_train() {
        let mut ramp = ramp(train(30_000, 37_500, 0));
        assert_eq!(ramp.order_train(12_500, 200_000, 1_500), None);
    }
}
