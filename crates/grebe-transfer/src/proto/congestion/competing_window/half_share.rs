//! The window beside a flow that does not back off at loss (BBR): half of what path and queue hold, without backing off either.
//!
//! Any division of the path is stable beside BBR: it keeps what it has for ten rounds, and takes what is left to it. Each time that
//! something is left to it and taken back, as much is lost. So the window goes to its place in small steps, and stays there.

use super::classifier::Classifier;
use super::sample::WindowSample;
use crate::proto::congestion::constants::{
    DIP_INTERVAL_LATER_US, DIP_INTERVAL_US, HALF_SHARE_GAIN, HALF_SHARE_LOSS_MAX, HALF_SHARE_LOSS_ROUNDS,
    HALF_SHARE_STEP, WINDOW_SEGMENTS_MIN,
};

#[derive(Debug)]
pub(crate) struct HalfShare {
    since_us: u64,
    /// The share of packets that is lost of late.
    loss: f64,
}

impl HalfShare {
    pub(crate) fn new(now_us: u64) -> Self {
        Self { since_us: now_us, loss: 0.0 }
    }

    /// Whether no dip has shown for long that the other flow is still BBR.
    pub(crate) fn is_outdated(&self, now_us: u64, classifier: &Classifier) -> bool {
        match classifier.last_dip_us() {
            Some(dip_us) => now_us > dip_us + DIP_INTERVAL_LATER_US,
            None => now_us > self.since_us + DIP_INTERVAL_US,
        }
    }

    /// The window after a round of so many packets, from the one before, in segments.
    pub(crate) fn on_round(
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
    let held_us = min_rtt_us + classifier.usual_queue_us().min(min_rtt_us);
    let target = HALF_SHARE_GAIN * sample.capacity_segments(held_us / 2.0);
    if sample.is_capacity_known { target } else { target.max(segments) }
}

#[cfg(test)]
mod tests {
    use super::super::sample::sample;
    use super::*;
    use crate::proto::congestion::constants::SEGMENT_BYTES;

    const PACKETS: [u64; 2] = [98, 2];

    fn after_rounds(
        half_share: &mut HalfShare,
        sample: &WindowSample,
        mut segments: f64,
        packets: [u64; 2],
        rounds: u32,
    ) -> f64 {
        for _ in 0..rounds {
            segments = half_share.on_round(sample, &Classifier::new(50_000, false), segments, packets);
        }
        segments
    }

    #[test]
    fn the_window_goes_to_half_and_stays_there() {
        let sample = sample(1_000, 50_000, 0);
        let mut half_share = HalfShare::new(0);
        let half = 12e6 * 0.05 / SEGMENT_BYTES;
        let early = after_rounds(&mut half_share, &sample, 40.0, PACKETS, 20);
        assert!((60.0..0.5 * half).contains(&early), "in small steps: {early}");
        let late = after_rounds(&mut half_share, &sample, early, PACKETS, 300);
        assert!((0.9 * half..half).contains(&late), "{late} of {half}");
        let above = after_rounds(&mut half_share, &sample, 2.0 * half, PACKETS, 300);
        assert!((above - late).abs() < 1.0, "{above}");
    }

    #[test]
    fn several_that_lose_much_come_to_the_same_window() {
        let sample = sample(1_000, 50_000, 0);
        let [great, small] = [400.0, 20.0]
            .map(|segments| after_rounds(&mut HalfShare::new(0), &sample, segments, [85, 15], 200));
        assert!(great < 100.0, "{great}");
        assert!((great - small).abs() < 20.0, "{great} and {small}");
    }

    #[test]
    fn a_window_on_a_path_of_unknown_capacity_is_not_reduced() {
        let sample = WindowSample { is_capacity_known: false, ..sample(1_000, 50_000, 0) };
        let half = 12e6 * 0.05 / SEGMENT_BYTES;
        let segments = after_rounds(&mut HalfShare::new(0), &sample, 2.0 * half, PACKETS, 300);
        assert_eq!(segments, 2.0 * half);
    }
}
