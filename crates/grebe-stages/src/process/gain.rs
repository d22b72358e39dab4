//! Multiplies and shifts samples.

use grebe_flow::{
    Context, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageResult, Workspace,
};
use grebe_frame::{Batch, MAX_CHANNELS};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::per_channel::PerChannel;

/// Multiplies each sample with a gain and adds an offset; what exceeds 16 bits is clipped, and counted.
///
/// Computed in 32-bit floating point and rounded to the nearest number, ties to even.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gain {
    /// The factor, one or one per channel.
    #[serde(default = "unity")]
    pub gain: PerChannel<f32>,
    /// What is added after that, in counts of -32768 to 32767, one or one per channel.
    #[serde(default = "zero")]
    pub offset: PerChannel<f32>,
}

fn unity() -> PerChannel<f32> {
    vec![1.0].into()
}

fn zero() -> PerChannel<f32> {
    vec![0.0].into()
}

impl Kind for Gain {
    const NAME: &'static str = "gain";
    const PORTS: Ports = Ports::STAGE;

    fn check(&self) -> Result<(), Fault> {
        for (name, values) in [("gain", &self.gain), ("offset", &self.offset)] {
            if values.values().is_empty() || values.values().len() > MAX_CHANNELS as usize {
                return Err(Fault::new(name, "give one value, or one per channel, 1 to 255"));
            }
            if values.values().iter().any(|value| !value.is_finite()) {
                return Err(Fault::new(name, "give a finite number"));
            }
        }
        Ok(())
    }

    fn channels(&self, incoming: Option<u32>) -> Result<Option<u32>, Fault> {
        self.gain.check("gain", incoming)?;
        self.offset.check("offset", incoming)?;
        Ok(incoming)
    }

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(GainStage::new(&self)))
    }
}

#[derive(Debug)]
pub(crate) struct GainStage {
    /// Gain and offset, by channel; a channel that has none of its own stays as it is.
    scale: [(f32, f32); MAX_CHANNELS as usize],
    workspace: Workspace,
    pending: Option<Batch>,
    clipped_samples: u64,
    counters: Counters,
}

impl GainStage {
    pub(crate) fn new(gain: &Gain) -> Self {
        let of = |channel| {
            (gain.gain.of(channel).copied().unwrap_or(1.0), gain.offset.of(channel).copied().unwrap_or(0.0))
        };
        Self {
            scale: std::array::from_fn(of),
            workspace: Workspace::default(),
            pending: None,
            clipped_samples: 0,
            counters: Counters::new(COUNTERS),
        }
    }

    fn is_identity(&self) -> bool {
        self.scale.iter().all(|scale| *scale == (1.0, 0.0))
    }
}

impl Stage for GainStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = self.pending.take().or_else(|| input.next()) else {
            return Ok(Outcome::WantsInput);
        };
        if self.is_identity() {
            output.send(batch, ctx);
            return Ok(Outcome::Produced);
        }
        let mut batch = match self.workspace.own(batch, ctx) {
            Ok(batch) => batch,
            Err(batch) => {
                self.pending = Some(batch);
                return Ok(Outcome::Again);
            }
        };
        batch.update::<i16>(|_, channel, samples| {
            let (gain, offset) = self.scale[channel % self.scale.len()];
            self.clipped_samples += apply(gain, offset, samples);
        })?;
        self.counters.set(COPIED, self.workspace.copied_frames());
        self.counters.set(CLIPPED, self.clipped_samples);
        output.send(batch.freeze(), ctx);
        Ok(Outcome::Produced)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }

    fn ports(&self) -> Ports {
        Gain::PORTS
    }
}

/// Changes the samples; how many of them were clipped. Written so that compilers make vector instructions of it.
fn apply(gain: f32, offset: f32, samples: &mut [i16]) -> u64 {
    let mut clipped = 0;
    // In pieces whose count of clipped samples fits into the lanes that the samples have.
    for piece in samples.chunks_mut(1 << 14) {
        let mut clipped_here = 0u16;
        for sample in piece {
            let exact = f32::from(*sample) * gain + offset;
            let within = exact.clamp(-32_768.0, 32_767.0);
            clipped_here += u16::from(exact != within);
            // Within the binade from 2^23 on, a float is a whole number: the sum is rounded by the processor, and its last
            // 16 bits are the sample.
            *sample = (within + ROUNDER).to_bits() as i16;
        }
        clipped += u64::from(clipped_here);
    }
    clipped
}

/// 1.5 x 2^23.
const ROUNDER: f32 = 12_582_912.0;
const COUNTERS: &[&str] = &["copied_frames", "clipped_samples"];
const COPIED: usize = 0;
const CLIPPED: usize = 1;

#[cfg(test)]
mod tests {
    use grebe_flow::StageBench;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{frames_of, stream};

    fn scaled(gain: f32, offset: f32, sample: i16) -> i16 {
        let exact = f32::from(sample) * gain + offset;
        exact.clamp(-32_768.0, 32_767.0).round_ties_even() as i16
    }

    proptest! {
        #[test]
        fn each_sample_is_the_rounded_product(
            gain in -4.0..4.0f32, offset in -1e5..1e5f32, mut samples in prop::collection::vec(any::<i16>(), 0..300),
        ) {
            let expected: Vec<i16> = samples.iter().map(|&sample| scaled(gain, offset, sample)).collect();
            let outside = |&&sample: &&i16| {
                !(-32_768.0..=32_767.0).contains(&(f32::from(sample) * gain + offset))
            };
            let clipped = samples.iter().filter(outside).count() as u64;
            prop_assert_eq!(apply(gain, offset, &mut samples), clipped);
            prop_assert_eq!(samples, expected);
        }
    }

    #[test]
    fn ties_go_to_even_and_a_long_piece_is_counted_whole() {
        let mut samples = [1, 3, -1, -3, 5];
        assert_eq!(apply(0.5, 0.0, &mut samples), 0);
        assert_eq!(samples, [0, 2, 0, -2, 2]);
        let mut many = vec![i16::MAX; 100_000];
        assert_eq!(apply(2.0, 0.0, &mut many), 100_000);
    }

    #[test]
    fn every_channel_has_its_own_gain_and_gaps_and_headers_stay() {
        for channels in 1..=8u32 {
            let gains: Vec<f32> = (0..channels).map(|channel| 0.5 * channel as f32 - 1.0).collect();
            let gain = Gain { gain: gains.clone().into(), offset: vec![3.0].into() };
            gain.channels(Some(channels)).unwrap();
            let mut bench = StageBench::new(GainStage::new(&gain)).unwrap();
            let batches = stream(channels, &[(0, 64), (64, 33), (500, 7)]);
            let before = frames_of(&batches);
            let made: Vec<_> = batches.into_iter().flat_map(|batch| bench.feed(batch).unwrap()).collect();
            let after = frames_of(&made);
            assert_eq!(after.len(), before.len());
            for ((header, samples), (was, were)) in after.iter().zip(&before) {
                assert_eq!(header, was);
                for (channel, samples) in samples.iter().enumerate() {
                    let expected: Vec<i16> =
                        were[channel].iter().map(|&sample| scaled(gains[channel], 3.0, sample)).collect();
                    assert_eq!(*samples, expected, "channel {channel} of {channels}");
                }
            }
            assert!(bench.end().unwrap().is_empty());
            assert_eq!(bench.snapshot().stage("stage").unwrap().own("copied_frames"), Some(0));
        }
    }

    #[test]
    fn what_somebody_else_holds_is_copied_counted_and_left_as_it_was() {
        let gain = Gain { gain: vec![2.0].into(), offset: zero() };
        let mut bench = StageBench::new(GainStage::new(&gain)).unwrap();
        for batch in stream(2, &[(0, 10), (10, 10)]) {
            let held = batch.clone();
            let before = frames_of(std::slice::from_ref(&held));
            let made = bench.feed(batch).unwrap();
            assert_eq!(frames_of(&[held]), before);
            assert_eq!(frames_of(&made)[0].1[0][3], before[0].1[0][3].saturating_mul(2));
        }
        assert_eq!(bench.snapshot().stage("stage").unwrap().own("copied_frames"), Some(2));
    }

    #[test]
    fn a_gain_of_one_hands_on_what_came() {
        let mut bench = StageBench::new(GainStage::new(&Gain { gain: unity(), offset: zero() })).unwrap();
        let batch = stream(1, &[(0, 10)]).remove(0);
        let held = batch.clone();
        assert_eq!(frames_of(&bench.feed(batch).unwrap()), frames_of(&[held]));
        assert_eq!(bench.snapshot().stage("stage").unwrap().own("copied_frames"), Some(0));
    }

    #[test]
    fn parameters_that_cannot_be_are_refused() {
        let with = |gain: Vec<f32>| Gain { gain: gain.into(), offset: zero() };
        assert!(with(vec![]).check().is_err());
        assert!(with(vec![f32::NAN]).check().is_err());
        assert!(with(vec![1.0; 9]).check().is_err());
        assert!(with(vec![1.0, 2.0]).channels(Some(3)).is_err());
        assert_eq!(with(vec![1.0, 2.0]).channels(None), Ok(None));
    }
}
