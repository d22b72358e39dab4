//! Converts samples to another format.

use grebe_flow::{Context, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageResult};
use grebe_frame::{Description, SampleFormat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gain::rescaled;
use super::reformat::Reformatter;
use crate::error::Error;
use crate::format::Format;
use crate::numbers::{Component, load, scale, with_component, zero_of};

/// Converts samples to another format: real ones to real, complex to complex. Values beyond the new
/// range are saturated, and counted.
///
/// Results are rounded once, to the nearest number, ties to even, in 32-bit arithmetic if that is exact,
/// otherwise in 64-bit. A frame whose samples become larger is split, so that each part still fits into a
/// datagram.
///
/// Full scale is 128 counts of 8 bits, 32,768 of 16, 2,147,483,648 of 32, and 1.0 of floating point. Counts
/// start at 0, except that zero is 128 in `u8` (as in WAV files) and 127.5 in `cu8`. Thus `-1.0` is `-32768`,
/// and `1.0` saturates at `32767`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Convert {
    /// The format to make: i8, u8, i16, i32, f32, f64, or ci8, cu8, ci16, cf32.
    pub to: Format,
    /// Scaling: `full` keeps the fraction of full scale (1.0 in floating point), `counts` keeps the number.
    #[serde(default)]
    pub scale: Scaling,
}

/// Scaling between sample formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scaling {
    /// The part of full scale.
    #[default]
    Full,
    /// The number.
    Counts,
}

impl Kind for Convert {
    const NAME: &'static str = "convert";
    const PORTS: Ports = Ports::STAGE;

    fn format(&self, incoming: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        if let Some(incoming) = incoming {
            check(incoming, self.to.0).map_err(|why| Fault::new("to", why))?;
        }
        Ok(Some(self.to.0))
    }

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(ConvertStage::new(&self)))
    }
}

#[derive(Debug)]
pub(crate) struct ConvertStage {
    convert: Convert,
    reformatter: Reformatter,
    saturated_samples: u64,
    counters: Counted,
}

/// Conversion between two formats: `number * factor + summand`, for the numbers as stored.
#[derive(Debug, Clone, Copy)]
pub struct Conversion {
    from: SampleFormat,
    to: SampleFormat,
    factor: f64,
    summand: f64,
}

impl ConvertStage {
    pub(crate) fn new(convert: &Convert) -> Self {
        Self {
            convert: convert.clone(),
            reformatter: Reformatter::default(),
            saturated_samples: 0,
            counters: Counted::default(),
        }
    }
}

impl Conversion {
    /// Makes a conversion. `description` may state fewer bits than the format has.
    pub fn new(
        from: SampleFormat,
        to: SampleFormat,
        scaling: Scaling,
        description: Option<&Description>,
    ) -> Self {
        let of_bits = description.and_then(|description| description.full_scale(from));
        let factor = match scaling {
            Scaling::Full => full_scale(to) / of_bits.unwrap_or_else(|| full_scale(from)),
            Scaling::Counts => 1.0,
        };
        let summand = middle(to, scaling) - middle(from, scaling) * factor;
        Self { from, to, factor, summand }
    }

    /// Makes floats of any samples, real or complex, in which full scale is 1.
    pub fn to_floats(from: SampleFormat, description: Option<&Description>) -> Self {
        let to = if from.is_complex() { SampleFormat::Cf32 } else { SampleFormat::F32 };
        Self::new(from, to, Scaling::Full, description)
    }

    /// Applies a conversion [to floats](Self::to_floats) to the components of a channel.
    pub fn floats(&self, from: &[u8], numbers: &mut Vec<f32>) {
        numbers.resize(from.len() / self.from.component().bytes(), 0.0);
        if self.from.component() == grebe_frame::Component::F32 && self.factor == 1.0 {
            load(self.from, from, numbers);
        } else {
            self.apply(from, bytemuck::cast_slice_mut(numbers));
        }
    }

    /// Converts the components of a channel. Returns the number of saturated ones.
    pub fn apply(&self, from: &[u8], to: &mut [u8]) -> u64 {
        let wide = |format: SampleFormat| matches!(format, SampleFormat::I32 | SampleFormat::F64);
        if wide(self.from) || wide(self.to) {
            with_component!(self.from, S => with_component!(self.to, D => {
                scale::<S, D, f64>(from, to, self.factor, self.summand)
            }))
        } else {
            with_component!(self.from, S => with_component!(self.to, D => {
                scale::<S, D, f32>(from, to, self.factor, self.summand)
            }))
        }
    }

    /// Description after the conversion: a volt stays a volt.
    pub fn describe(&self, description: &Description) -> Description {
        // Descriptions count from the zero of cu8, and use plain numbers for the others.
        let summand = self.summand - zero_of(self.to) + zero_of(self.from) * self.factor;
        let channel = |channel| rescaled(channel, 1.0 / self.factor, -summand / self.factor);
        let mut described = Description {
            channels: description.channels.iter().map(channel).collect(),
            ..description.clone()
        };
        described.rest.remove(Description::BITS);
        described
    }
}

impl Stage for ConvertStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(place) = self.reformatter.next(input) else { return Ok(Outcome::WantsInput) };
        let (to, scaling) = (self.convert.to.0, self.convert.scale);
        let mut from = to;
        let mut is_same = true;
        for frame in place.batch.frames() {
            from = frame.header().format;
            is_same &= from == to;
            check(from, to).map_err(|what| Error::Takes { what })?;
        }
        if is_same && self.reformatter.passes(&place) {
            output.send(place.batch, ctx);
            return Ok(Outcome::Produced);
        }
        let told = place.batch.description().cloned();
        let mut conversion = Conversion::new(from, to, scaling, told.as_deref());
        self.reformatter.rewriter.describe(place.batch.description(), |input| conversion.describe(input));
        let saturated = &mut self.saturated_samples;
        let outcome = self.reformatter.rewrite(
            place,
            to,
            |header, from, out| {
                if header.format != conversion.from {
                    conversion = Conversion::new(header.format, to, scaling, told.as_deref());
                }
                *saturated += conversion.apply(from, out);
            },
            output,
            ctx,
        );
        self.counters.saturated_samples.set(self.saturated_samples);
        outcome
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        self.reformatter.finish(self.convert.to.0, ctx);
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }

    fn ports(&self) -> Ports {
        Convert::PORTS
    }
}

/// Reason why samples of one format cannot become those of another.
pub fn check(from: SampleFormat, to: SampleFormat) -> Result<(), String> {
    match (from.is_complex(), to.is_complex()) {
        (false, true) => Err(format!(
            "{from} samples are real, and {to} ones complex: the other component is unknown. Give {}",
            real_names()
        )),
        (true, false) => Err(format!(
            "{from} samples are complex, and {to} ones real: give ci8, cu8, ci16 or cf32, or make real ones with a magnitude stage"
        )),
        _ => Ok(()),
    }
}

fn real_names() -> &'static str {
    "i8, u8, i16, i32, f32 or f64"
}

/// Counts of full scale.
fn full_scale(format: SampleFormat) -> f64 {
    with_component!(format, C => C::FULL_SCALE)
}

/// Zero point that stays the same.
fn middle(format: SampleFormat, scaling: Scaling) -> f64 {
    match (format, scaling) {
        (SampleFormat::U8, Scaling::Full) => 128.0,
        _ => zero_of(format),
    }
}

grebe_flow::counters! {
    struct Counted { saturated_samples }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use grebe_flow::StageBench;
    use grebe_frame::{Batch, BatchPool, ChannelDescription, Complex, Header, Sample, StreamTracker};
    use grebe_testing::stream::{batches_of, frames_of, sample_at};
    use proptest::prelude::*;

    use super::*;

    /// Converted samples, and the number of saturated ones.
    fn converted<S: Sample, D: Sample>(samples: &[S], scale: Scaling) -> (Vec<D>, u64) {
        let conversion = Conversion::new(S::FORMAT, D::FORMAT, scale, None);
        let mut out = vec![D::default(); samples.len()];
        let saturated = conversion.apply(bytemuck::cast_slice(samples), bytemuck::cast_slice_mut(&mut out));
        (out, saturated)
    }

    #[test]
    fn full_scale_becomes_full_scale() {
        use Scaling::Full;
        assert_eq!(converted(&[i16::MIN, 0, 16_384], Full), (vec![-1.0f32, 0.0, 0.5], 0));
        assert_eq!(converted(&[-1.0f32, 0.25, 1.0, f32::NAN], Full), (vec![i16::MIN, 8_192, i16::MAX, 0], 2));
        assert_eq!(converted(&[0u8, 128, 255], Full), (vec![-32_768i16, 0, 32_512], 0));
        assert_eq!(converted(&[-32_768i16, 0, 32_767, 128, 384], Full), (vec![0u8, 128, 255, 128, 130], 1));
        assert_eq!(converted(&[i8::MIN, 1], Full), (vec![i32::MIN, 1 << 24], 0));
        assert_eq!(
            converted(&[i32::MIN, i32::MAX, 1], Full),
            (vec![-1.0f64, 1.0 - 1.0 / 2_147_483_648.0, 1.0 / 2_147_483_648.0], 0)
        );
        assert_eq!(converted(&[-1.0f64, 1.0, 1.0 / 2_147_483_648.0], Full), (vec![i32::MIN, i32::MAX, 1], 1));
        let pair = [Complex::new(0u8, 255), Complex::new(127, 128)];
        let expected = [Complex::new(-127.5 / 128.0, 127.5 / 128.0), Complex::new(-0.5 / 128.0, 0.5 / 128.0)];
        assert_eq!(converted(&pair, Full), (expected.map(|c: Complex<f32>| c).to_vec(), 0));
        assert_eq!(converted(&expected.map(|c: Complex<f32>| c), Full), (pair.to_vec(), 0));
    }

    #[test]
    fn counts_stay_numbers() {
        use Scaling::Counts;
        assert_eq!(converted(&[i16::MIN, 300], Counts), (vec![-32_768.0f32, 300.0], 0));
        assert_eq!(converted(&[300i16, -129, 5], Counts), (vec![127i8, -128, 5], 2));
        assert_eq!(converted(&[0.5f32, 1.5, -0.5, 2.5], Counts), (vec![0i16, 2, 0, 2], 0), "ties go to even");
        assert_eq!(converted(&[200u8], Counts), (vec![200i32], 0));
        assert_eq!(converted(&[Complex::new(200u8, 0)], Counts), (vec![Complex::new(72.5f32, -127.5)], 0));
        assert_eq!(converted(&[f64::NEG_INFINITY, 1e300], Counts), (vec![i32::MIN, i32::MAX], 2));
        assert_eq!(converted(&[i32::MAX], Counts), (vec![2_147_483_647.0f64], 0));
    }

    proptest! {
        #[test]
        fn conversion_to_a_wider_format_and_back_is_lossless(
            bytes in prop::collection::vec(any::<u8>(), 0..300), words in prop::collection::vec(any::<i16>(), 0..300),
            longs in prop::collection::vec(any::<i32>(), 0..300),
        ) {
            for scale in [Scaling::Full, Scaling::Counts] {
                let there = converted::<i16, f32>(&words, scale);
                prop_assert_eq!(converted(&there.0, scale), (words.clone(), 0));
                let there = converted::<i32, f64>(&longs, scale);
                prop_assert_eq!(converted(&there.0, scale), (longs.clone(), 0));
                let there = converted::<u8, i16>(&bytes, scale);
                prop_assert_eq!(converted(&there.0, scale), (bytes.clone(), 0));
                let there = converted::<i16, i32>(&words, scale);
                prop_assert_eq!(converted(&there.0, scale), (words.clone(), 0));
                let pairs: Vec<Complex<u8>> = bytes.chunks_exact(2).map(|pair| Complex::new(pair[0], pair[1])).collect();
                let there = converted::<_, Complex<f32>>(&pairs, scale);
                prop_assert_eq!(converted(&there.0, scale), (pairs.clone(), 0));
            }
        }
    }

    fn stage(to: SampleFormat) -> StageBench {
        StageBench::new(ConvertStage::new(&Convert { to: Format(to), scale: Scaling::Full })).unwrap()
    }

    #[test]
    fn frames_are_split_within_the_limit_and_losses_stay_losses() {
        for channels in [1, 3, 100] {
            // Frames 2 and 3 were lost, with 72 samples.
            let batches = batches_of(channels, &[(0, 64), (64, 64), (200, 64), (264, 7)], 2);
            let before = frames_of(&batches);
            let mut bench = stage(SampleFormat::F64);
            let made: Vec<Batch> = batches.into_iter().flat_map(|batch| bench.feed(batch).unwrap()).collect();
            let mut tracker = StreamTracker::new();
            let mut samples = Vec::new();
            for frame in made.iter().flat_map(|batch| batch.frames()) {
                let header = frame.header();
                tracker.arrive(&header);
                assert!(header.block_length_samples <= 16 && header.format == SampleFormat::F64);
                assert!(header.frame_bytes() <= before[0].0.frame_bytes());
                let last = channels as usize - 1;
                for (at, value) in frame.channel::<f64>(last).unwrap().iter().enumerate() {
                    let index = header.first_sample_index + at as u64;
                    assert_eq!(value * 32_768.0, f64::from(sample_at(last, index)));
                    samples.push(index);
                }
            }
            assert_eq!(samples, (0..128).chain(200..271).collect::<Vec<u64>>());
            let counts = tracker.counts();
            assert_eq!((counts.lost_frames, counts.lost_samples), (8, 72), "a lost frame was four");
        }
    }

    #[test]
    fn convert_passes_equal_formats_unchanged_and_keeps_frames_when_narrowing() {
        let batches = batches_of(2, &[(0, 64), (64, 64), (200, 64)], 2);
        let before = frames_of(&batches);
        let mut bench = stage(SampleFormat::I16);
        let made: Vec<Batch> =
            batches.clone().into_iter().flat_map(|batch| bench.feed(batch).unwrap()).collect();
        assert_eq!(frames_of(&made), before);
        let mut bench = stage(SampleFormat::I8);
        let made: Vec<Batch> = batches.into_iter().flat_map(|batch| bench.feed(batch).unwrap()).collect();
        let headers: Vec<Header> =
            made.iter().flat_map(|batch| batch.frames()).map(|frame| frame.header()).collect();
        let expected = before.iter().map(|(header, _)| Header { format: SampleFormat::I8, ..*header });
        assert_eq!(headers, expected.collect::<Vec<_>>());
    }

    #[test]
    fn convert_rescales_the_description() {
        let millivolts =
            |scale, offset| ChannelDescription { name: "MLII".into(), unit: "mV".into(), scale, offset };
        let mut batch = batches_of(1, &[(0, 4)], 1).remove(0).try_unique().unwrap();
        batch.describe(Some(&Arc::new(Description {
            channels: vec![millivolts(0.005, -1.0)],
            ..Description::default()
        })));
        let made = stage(SampleFormat::F32).feed(batch.freeze()).unwrap();
        assert_eq!(made[0].description().unwrap().channels, [millivolts(0.005 * 32_768.0, -1.0)]);
        // 128 is the zero of u8.
        let to_bytes = Conversion::new(SampleFormat::I16, SampleFormat::U8, Scaling::Full, None);
        let of = |text: &Description, sample: f64| sample * text.channels[0].scale + text.channels[0].offset;
        let text = Description { channels: vec![millivolts(2.0, 3.0)], ..Description::default() };
        assert_eq!(of(&text, 512.0), of(&to_bytes.describe(&text), 130.0));
        let to_pair = Conversion::new(SampleFormat::Ci16, SampleFormat::Cu8, Scaling::Full, None);
        assert_eq!(of(&text, 512.0), of(&to_pair.describe(&text), 2.0), "told around 127.5");
    }

    #[test]
    fn real_stays_real_and_complex_complex() {
        let said = stage(SampleFormat::Cf32).feed(batches_of(1, &[(0, 4)], 1).remove(0)).unwrap_err();
        assert!(said.to_string().contains("i16 samples are real, and cf32 ones complex"), "{said}");
        let convert = Convert { to: Format(SampleFormat::F32), scale: Scaling::Full };
        assert!(convert.format(Some(SampleFormat::Ci8)).is_err());
        assert_eq!(convert.format(None), Ok(Some(SampleFormat::F32)));
    }

    #[test]
    fn saturation_is_counted() {
        let mut bench = stage(SampleFormat::I8);
        let mut batch = BatchPool::new(1, 4_096).acquire().unwrap();
        let header = Header { channel_count: 2, block_length_samples: 10, ..Header::default() };
        batch.push::<i16>(&header, |channel, out| out[..channel].fill(i16::MAX)).unwrap();
        bench.feed(batch.freeze()).unwrap();
        assert_eq!(bench.snapshot().stage("stage").unwrap().own("saturated_samples"), Some(1));
    }
}
