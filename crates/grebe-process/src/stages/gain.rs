//! Multiplies and shifts samples.

use grebe_flow::{Context, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageResult};
use grebe_frame::{ChannelDescription, Description, MAX_CHANNELS, SampleFormat};
use schemars::JsonSchema;
use serde::Deserialize;

use super::in_place::InPlace;
use crate::numbers::{scale_in_place, with_component, zero_of};
use crate::per_channel::PerChannel;

/// Multiplies each sample with a gain and adds an offset; what exceeds the sample's integer is clipped, and
/// counted.
///
/// Takes samples of any format, and treats I and Q of complex ones alike. Computes in 32-bit floating point
/// (64-bit for i32 and f64), and rounds to the nearest number, ties to even. The description follows: a volt
/// stays a volt.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gain {
    /// Gain, one value or one per channel.
    #[serde(default = "unity")]
    pub gain: PerChannel<f64>,
    /// Offset after the gain, in units of the samples (i16: -32768 to 32767), one value or one per channel.
    #[serde(default = "zero")]
    pub offset: PerChannel<f64>,
}

fn unity() -> PerChannel<f64> {
    vec![1.0].into()
}

fn zero() -> PerChannel<f64> {
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
    /// Gain and offset by channel; a channel without its own stays unchanged.
    scale: Vec<(f64, f64)>,
    is_identity: bool,
    in_place: InPlace,
    clipped_samples: u64,
    counters: Counted,
}

impl GainStage {
    pub(crate) fn new(gain: &Gain) -> Self {
        let of = |channel| {
            (gain.gain.of(channel).copied().unwrap_or(1.0), gain.offset.of(channel).copied().unwrap_or(0.0))
        };
        let scale: Vec<_> = (0..MAX_CHANNELS as usize).map(of).collect();
        Self {
            is_identity: scale.iter().all(|scale| *scale == (1.0, 0.0)),
            scale,
            in_place: InPlace::default(),
            clipped_samples: 0,
            counters: Counted::default(),
        }
    }
}

impl Stage for GainStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if self.is_identity {
            let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
            output.send(batch, ctx);
            return Ok(Outcome::Produced);
        }
        let mut batch = match self.in_place.next(input, ctx) {
            Ok(batch) => batch,
            Err(outcome) => return Ok(outcome),
        };
        let scale = &self.scale;
        self.in_place.describe(&mut batch, |input| {
            let channel = |(channel, &(gain, offset)): (&ChannelDescription, &(f64, f64))| {
                if gain == 0.0 {
                    ChannelDescription { name: channel.name.clone(), ..ChannelDescription::default() }
                } else {
                    rescaled(channel, 1.0 / gain, -offset / gain)
                }
            };
            let channels = input.channels.iter().zip(scale).map(channel).collect();
            Description { channels, ..input.clone() }
        });
        batch.update_bytes(|header, channel, bytes| {
            let (gain, offset) = scale[channel % scale.len()];
            self.clipped_samples += apply(header.format, gain, offset, bytes);
        });
        self.counters.copied_frames.set(self.in_place.copied_frames());
        self.counters.clipped_samples.set(self.clipped_samples);
        output.send(batch.freeze(), ctx);
        Ok(Outcome::Produced)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }

    fn ports(&self) -> Ports {
        Gain::PORTS
    }
}

/// Changes the samples of a channel. Returns the number of clipped components.
fn apply(format: SampleFormat, gain: f64, offset: f64, bytes: &mut [u8]) -> u64 {
    let zero = zero_of(format);
    with_component!(format, C => scale_in_place::<C>(bytes, gain, offset + zero - zero * gain))
}

/// Description of a channel whose samples changed so that `sample * factor + summand` of the new ones gives
/// the old. Without a unit or scale it stays unchanged, because the meaning of its samples is unknown.
pub(super) fn rescaled(channel: &ChannelDescription, factor: f64, summand: f64) -> ChannelDescription {
    if channel.unit.is_empty() && (channel.scale, channel.offset) == (1.0, 0.0) {
        return channel.clone();
    }
    ChannelDescription {
        scale: channel.scale * factor,
        offset: channel.offset + channel.scale * summand,
        ..channel.clone()
    }
}

grebe_flow::counters! {
    struct Counted { copied_frames, clipped_samples }
}

#[cfg(test)]
mod tests {
    use grebe_flow::StageBench;
    use grebe_frame::{BatchPool, Complex, Header, Sample};
    use grebe_testing::stream::{frames_of, stream};
    use proptest::prelude::*;

    use super::*;

    fn scaled(gain: f32, offset: f32, sample: i16) -> i16 {
        let exact = f32::from(sample) * gain + offset;
        exact.clamp(-32_768.0, 32_767.0).round_ties_even() as i16
    }

    fn apply_i16(gain: f32, offset: f32, samples: &mut [i16]) -> u64 {
        apply(SampleFormat::I16, gain.into(), offset.into(), bytemuck::cast_slice_mut(samples))
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
            prop_assert_eq!(apply_i16(gain, offset, &mut samples), clipped);
            prop_assert_eq!(samples, expected);
        }
    }

    #[test]
    fn ties_go_to_even_and_a_long_piece_is_counted_whole() {
        let mut samples = [1, 3, -1, -3, 5];
        assert_eq!(apply_i16(0.5, 0.0, &mut samples), 0);
        assert_eq!(samples, [0, 2, 0, -2, 2]);
        let mut many = vec![i16::MAX; 100_000];
        assert_eq!(apply_i16(2.0, 0.0, &mut many), 100_000);
    }

    #[test]
    fn every_channel_has_its_own_gain_and_gaps_and_headers_stay() {
        for channels in 1..=8u32 {
            let gains: Vec<f64> = (0..channels).map(|channel| 0.5 * f64::from(channel) - 1.0).collect();
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
                    let expected: Vec<i16> = were[channel]
                        .iter()
                        .map(|&sample| scaled(gains[channel] as f32, 3.0, sample))
                        .collect();
                    assert_eq!(*samples, expected, "channel {channel} of {channels}");
                }
            }
            assert!(bench.end().unwrap().is_empty());
            assert_eq!(bench.snapshot().stage("stage").unwrap().own("copied_frames"), Some(0));
        }
    }

    /// Result of a gain of -1.5 and an offset of 2 for these samples in 200 channels, and the number of
    /// clipped components.
    fn all_channels<T: Sample>(samples: &[T]) -> (Vec<T>, u64) {
        let header = Header {
            format: T::FORMAT,
            channel_count: 200,
            block_length_samples: samples.len() as u32,
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
        batch.push::<T>(&header, |_, out| out.copy_from_slice(samples)).unwrap();
        let gain = Gain { gain: vec![-1.5].into(), offset: vec![2.0].into() };
        let mut bench = StageBench::new(GainStage::new(&gain)).unwrap();
        let made = bench.feed(batch.freeze()).unwrap();
        let frame = made[0].frames().next().unwrap();
        let first = frame.channel::<T>(0).unwrap().into_owned();
        assert!((0..200).all(|channel| *frame.channel::<T>(channel).unwrap() == first));
        (first, bench.snapshot().stage("stage").unwrap().own("clipped_samples").unwrap())
    }

    #[test]
    fn every_format_is_scaled_in_its_own_numbers() {
        assert_eq!(all_channels::<i8>(&[1, 100, -100]), (vec![0, -128, 127], 400), "0.5 is rounded to even");
        assert_eq!(all_channels::<u8>(&[1, 0, 255]), (vec![0, 2, 0], 200));
        assert_eq!(all_channels::<i32>(&[1_000_000_001, i32::MIN]), (vec![-1_500_000_000, i32::MAX], 200));
        assert_eq!(all_channels::<f32>(&[1.0, 1e30]), (vec![0.5, 1e30 * -1.5], 0));
        assert_eq!(all_channels::<f64>(&[1.0 + 1e-12]), (vec![2.0 - 1.5 * (1.0 + 1e-12)], 0));
        let (made, clipped) = all_channels(&[Complex::new(100i16, -200), Complex::new(30_000, 0)]);
        assert_eq!((made, clipped), (vec![Complex::new(-148, 302), Complex::new(-32_768, 2)], 200));
        // Around 127.5: 27.5 becomes -39.25, and 28.5 becomes -40.75.
        assert_eq!(all_channels(&[Complex::new(155u8, 156)]), (vec![Complex::new(88, 87)], 0));
        assert_eq!(all_channels(&[Complex::new(1.0f32, -2.0)]), (vec![Complex::new(0.5, 5.0)], 0));
    }

    #[test]
    fn a_volt_stays_a_volt() {
        let volts = ChannelDescription { unit: "V".into(), scale: 0.01, offset: 0.5, ..Default::default() };
        let of = |channel: &ChannelDescription, sample: f64| sample * channel.scale + channel.offset;
        let after = rescaled(&volts, 1.0 / 4.0, -10.0 / 4.0);
        assert!((of(&volts, 100.0) - of(&after, 410.0)).abs() < 1e-12);
        assert_eq!(rescaled(&ChannelDescription::default(), 2.0, 1.0), ChannelDescription::default());

        let mut batch = BatchPool::new(1, 4_096).acquire().unwrap();
        let header = Header { channel_count: 1, block_length_samples: 1, ..Header::default() };
        batch.push::<i16>(&header, |_, out| out.fill(100)).unwrap();
        batch.describe(Some(&std::sync::Arc::new(Description {
            channels: vec![volts.clone()],
            ..Default::default()
        })));
        let gain = Gain { gain: vec![4.0].into(), offset: vec![10.0].into() };
        let made = StageBench::new(GainStage::new(&gain)).unwrap().feed(batch.freeze()).unwrap();
        assert_eq!(made[0].description().unwrap().channels, [after]);
    }

    #[test]
    fn gain_copies_and_counts_a_shared_batch_and_leaves_it_unchanged() {
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
    fn a_gain_of_one_passes_batches_unchanged() {
        let mut bench = StageBench::new(GainStage::new(&Gain { gain: unity(), offset: zero() })).unwrap();
        let batch = stream(1, &[(0, 10)]).remove(0);
        let held = batch.clone();
        assert_eq!(frames_of(&bench.feed(batch).unwrap()), frames_of(&[held]));
        assert_eq!(bench.snapshot().stage("stage").unwrap().own("copied_frames"), Some(0));
    }

    #[test]
    fn parameters_that_cannot_be_are_refused() {
        let with = |gain: Vec<f64>| Gain { gain: gain.into(), offset: zero() };
        assert!(with(vec![]).check().is_err());
        assert!(with(vec![f64::NAN]).check().is_err());
        assert!(with(vec![1.0; 256]).check().is_err());
        assert!(with(vec![1.0, 2.0]).channels(Some(3)).is_err());
        assert_eq!(with(vec![1.0, 2.0]).channels(None), Ok(None));
    }
}
