//! The growth at the start: each step is judged by what arrived of it, a round trip and a few reports later.

use super::delivery::Delivery;
use super::{MIN_BYTES_PER_S, Phase, RATE_SPAN_US_MIN, UP_GAIN};
use crate::wire::Train;

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
    }

    /// How much later than others a packet came.
    pub fn jitter_us(&self) -> u64 {
        self.jitter_us
    }

    /// The path is another than before: grow again from this rate.
    pub fn restart(&mut self, now_us: u64, rate: f64) {
        (self.rate, self.gain) = (rate * GAIN_SEEN, GAIN_SEEN);
        self.begin_step(now_us);
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
        if now_us < arrives_us + span_us / 2 || delivery.recent() == 0.0 {
            return None;
        }
        let confirmed = delivery.recent() / (1.0 - seen.base_loss);
        if queue_us > queue_us_max {
            return Some(Phase::Down);
        }
        if confirmed >= STEP_TAKEN * self.rate {
            self.rate = self.rate.max(confirmed) * self.gain;
            // A path that took this step without a queue is faster than its first packets told.
            self.gain = self.gain.max(GAIN_SEEN);
            self.begin_step(now_us);
            return None;
        }
        // Without a queue it may be that not all of the step has come yet.
        let waited_us = now_us - arrives_us - span_us / 2;
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
    }
}

const GAIN_BLIND: f64 = 4.0;
const GAIN_SEEN: f64 = 2.0;

/// A step from 0.9 to 1.125 of a full path brings 0.89 of itself: what brings more than half of the way from there to all was taken.
const STEP_TAKEN: f64 = 0.95;

/// Arrivals closer than this are one wake-up of the receiver, not a rate.
const TRAIN_SPAN_US_MIN: u32 = 200;
