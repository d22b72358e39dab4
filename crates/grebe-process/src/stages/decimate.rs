//! Reduces a stream to its envelope.

use grebe_flow::{Context, Count, Fault, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageResult};
use grebe_frame::{Batch, Frame, Header, SampleFormat};
use schemars::JsonSchema;
use serde::Deserialize;

use super::block::{Block, Frames, finish};
use crate::error::Error;
use crate::numbers::{Component, with_component};

/// Reduces each group of `factor` samples to its minimum and maximum: an envelope without lost peaks.
///
/// Groups begin at multiples of `factor` in the stream, whatever the frames. A group cut by a gap or by the
/// end uses its available samples. The new rate is 2 / `factor` of the old one. Takes real formats, and
/// ignores NaN.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decimate {
    /// Samples per group: 3 or more.
    pub factor: Count,
}

impl Kind for Decimate {
    const NAME: &'static str = "decimate";
    const PORTS: Ports = Ports::STAGE;

    fn check(&self) -> Result<(), Fault> {
        match self.factor.0 {
            3.. => Ok(()),
            few => Err(Fault::new("factor", format!("{few} samples are no more than the two they become"))),
        }
    }

    fn rate_hz(&self, incoming: Option<f64>) -> Option<f64> {
        Some(incoming? * 2.0 / self.factor.0 as f64)
    }

    fn format(&self, incoming: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        match incoming {
            Some(format) if format.is_complex() => Err(Fault::of_kind(no_order(format))),
            real => Ok(real),
        }
    }

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(DecimateStage::new(&self)))
    }
}

#[derive(Debug)]
pub(crate) struct DecimateStage {
    factor: u64,
    /// Made for the stream's format.
    envelope: Option<Box<dyn Envelope>>,
    frames: Frames,
    /// Batch, number of its finished frames, and number of finished samples of the next one.
    pending: Option<(Batch, usize, usize)>,
}

/// Search for extremes, for any component type.
trait Envelope: std::fmt::Debug + Send {
    fn format(&self) -> SampleFormat;

    /// Takes a frame from this sample on. On an error, returns the position at which it stopped for lack of a
    /// chunk.
    fn take(
        &mut self,
        frame: &Frame<'_>,
        from: usize,
        frames: &mut Frames,
        output: &mut Outputs,
        ctx: &Context,
    ) -> Result<(), usize>;

    /// Ends the current group, and sends the waiting samples. Returns whether there was a chunk.
    fn end(&mut self, frames: &mut Frames, output: &mut Outputs, ctx: &Context) -> bool;
}

#[derive(Debug)]
struct EnvelopeOf<C> {
    factor: u64,
    /// Last header of the stream, and the index after its last sample.
    stream: Option<(Header, u64)>,
    /// Extremes of the current group, by channel.
    extremes: Vec<(C, C)>,
    has_begun: bool,
    block: Block<C>,
}

impl DecimateStage {
    pub(crate) fn new(decimate: &Decimate) -> Self {
        Self { factor: decimate.factor.0.max(2), envelope: None, frames: Frames::default(), pending: None }
    }

    /// Prepares for samples of this format. Returns whether there was a chunk for the output in the previous
    /// format.
    fn adopt(&mut self, format: SampleFormat, output: &mut Outputs, ctx: &Context) -> Result<bool, Error> {
        if let Some(envelope) = &mut self.envelope {
            if envelope.format() == format {
                return Ok(true);
            }
            if !envelope.end(&mut self.frames, output, ctx) {
                return Ok(false);
            }
        }
        if format.is_complex() {
            return Err(Error::Takes { what: no_order(format) });
        }
        let factor = self.factor;
        self.envelope = Some(with_component!(format, C => Box::new(EnvelopeOf::<C>::new(factor))));
        Ok(true)
    }
}

impl<C: Component> EnvelopeOf<C> {
    fn new(factor: u64) -> Self {
        Self { factor, stream: None, extremes: Vec::new(), has_begun: false, block: Block::new() }
    }

    /// Whether the frame's first pair directly follows the last one, or its group has begun.
    fn goes_on(&self, header: &Header) -> bool {
        let Some((last, next)) = self.stream else { return false };
        let group = header.first_sample_index / self.factor;
        let is_same_group = self.has_begun && next.saturating_sub(1) / self.factor == group;
        let is_next_group = next == header.first_sample_index;
        last.channel_count == header.channel_count
            && last.sample_rate_hz == header.sample_rate_hz
            && header.first_sample_index >= next
            && (is_same_group || is_next_group)
    }

    fn close_group(&mut self) {
        if std::mem::take(&mut self.has_begun) {
            for (channel, extremes) in self.extremes.iter_mut().enumerate() {
                self.block.extend(channel, pair(std::mem::replace(extremes, C::NOTHING)));
            }
        }
    }

    fn flush(&mut self, frames: &mut Frames, output: &mut Outputs, ctx: &Context) -> bool {
        let write = |samples: &[C], out: &mut [u8]| {
            for (sample, out) in samples.iter().zip(out.chunks_exact_mut(size_of::<C>())) {
                sample.write(out);
            }
        };
        self.block.flush(frames, write, output, ctx)
    }
}

impl<C: Component> Envelope for EnvelopeOf<C> {
    fn format(&self) -> SampleFormat {
        C::FORMAT
    }

    fn take(
        &mut self,
        frame: &Frame<'_>,
        from: usize,
        frames: &mut Frames,
        output: &mut Outputs,
        ctx: &Context,
    ) -> Result<(), usize> {
        let header = frame.header();
        let index = header.first_sample_index;
        if from == 0 && !self.goes_on(&header) {
            // The next pair does not follow the waiting ones.
            if !self.end(frames, output, ctx) {
                return Err(0);
            }
            self.extremes.resize(header.channel_count as usize, C::NOTHING);
        }
        let length = header.block_length_samples as usize;
        // It was made for samples of this format.
        let samples = frame.samples::<C>().unwrap_or_default();
        let mut at = from;
        while at < length {
            if self.block.is_full() && !self.flush(frames, output, ctx) {
                return Err(at);
            }
            let here = index + at as u64;
            let group = here / self.factor;
            if !self.has_begun && self.block.len() == 0 {
                // Pairs stay together.
                self.block.begin(scaled(&header, group * 2, self.factor), 2, 1);
            }
            let is_at_its_start = !self.has_begun && here == group * self.factor;
            let whole = ((length - at) as u64 / self.factor).min(self.block.room() as u64 / 2);
            if is_at_its_start && whole > 0 {
                // Whole groups need no memory, so this goes channel by channel. The result is not longer than
                // the frame.
                let (factor, count) = (self.factor as usize, (whole * self.factor) as usize);
                for channel in 0..self.extremes.len() {
                    let start = channel * length + at;
                    let groups = samples[start..start + count].chunks_exact(factor);
                    self.block
                        .extend_pairs(channel, groups.map(|group| pair(C::extremes(C::NOTHING, group))));
                }
                at += count;
                self.stream = Some((header, index + at as u64));
                continue;
            }
            let left = (group + 1).saturating_mul(self.factor) - here;
            let count = left.min((length - at) as u64) as usize;
            for (channel, extremes) in self.extremes.iter_mut().enumerate() {
                let start = channel * length + at;
                *extremes = C::extremes(*extremes, &samples[start..start + count]);
            }
            self.has_begun = true;
            at += count;
            self.stream = Some((header, index + at as u64));
            if count as u64 == left {
                self.close_group();
            }
        }
        Ok(())
    }

    fn end(&mut self, frames: &mut Frames, output: &mut Outputs, ctx: &Context) -> bool {
        self.close_group();
        self.flush(frames, output, ctx)
    }
}

impl Stage for DecimateStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let next = self.pending.take().or_else(|| Some((input.next()?, 0, 0)));
        let Some((batch, done, mut from)) = next else { return Ok(Outcome::WantsInput) };
        let factor = self.factor;
        let rate_hz = batch.frames().next().map_or(0.0, |frame| frame.header().sample_rate_hz);
        self.frames.rewriter.describe(batch.description(), |input| input.decimated(factor, 2, rate_hz));
        for (at, frame) in batch.frames().enumerate().skip(done) {
            let is_ready = self.adopt(frame.header().format, output, ctx)?;
            let taken = match &mut self.envelope {
                Some(envelope) if is_ready => envelope.take(&frame, from, &mut self.frames, output, ctx),
                _ => Err(0),
            };
            if let Err(stopped) = taken {
                self.pending = Some((batch, at, stopped));
                return Ok(Outcome::Again);
            }
            from = 0;
        }
        self.frames.check()?;
        self.frames.rewriter.flush(output, ctx);
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, output: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        if let Some(envelope) = &mut self.envelope {
            finish(|| envelope.end(&mut self.frames, output, ctx))?;
        }
        self.frames.check()?;
        self.frames.rewriter.flush(output, ctx);
        if let Some(end) = ctx.end_of_stream(None) {
            let index = end.first_sample_index.div_ceil(self.factor) * 2;
            let scaled = scaled(&end, index, self.factor);
            ctx.set_end_of_stream(Header { sequence: self.frames.sequence, ..scaled });
        }
        Ok(())
    }

    fn ports(&self) -> Ports {
        Decimate::PORTS
    }
}

/// Result of a group; marks if it has no valid number.
fn pair<C: Component>((low, high): (C, C)) -> [C; 2] {
    if low > high { [C::MARK; 2] } else { [low, high] }
}

/// Header after the stage, at this output index.
fn scaled(header: &Header, first_sample_index: u64, factor: u64) -> Header {
    let ratio = 2.0 / factor as f64;
    let sg_drops_total = (header.sg_drops_total as f64 * ratio) as u64;
    Header { sample_rate_hz: header.sample_rate_hz * ratio, first_sample_index, sg_drops_total, ..*header }
}

fn no_order(format: SampleFormat) -> String {
    format!(
        "{format} samples come in, and of complex ones none is the smallest: a magnitude stage before this one makes real ones, \
         decimate_filtered takes them as they are"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use grebe_flow::StageBench;
    use grebe_frame::{BatchPool, Sample};
    use grebe_testing::stream::{batches_of, frames_of, sample_at};
    use proptest::prelude::*;

    use super::*;

    fn decimated(factor: u64, batches: Vec<Batch>) -> Vec<(Header, Vec<Vec<i16>>)> {
        let mut bench = StageBench::new(DecimateStage::new(&Decimate { factor: Count(factor) })).unwrap();
        let mut made = Vec::new();
        batches.into_iter().for_each(|batch| made.extend(bench.feed(batch).unwrap()));
        made.extend(bench.end().unwrap());
        frames_of(&made)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// For any division into frames and batches, and any gaps.
        #[test]
        fn every_group_becomes_its_extremes_at_its_place(
            factor in 3u64..300, channels in 1u32..=8, together in 1usize..9,
            pieces in prop::collection::vec((1u32..200, prop_oneof![4 => Just(0u64), 1 => 1u64..900]), 1..40),
        ) {
            let mut index = 0;
            let mut frames = Vec::new();
            for (length, gap) in pieces {
                index += gap;
                frames.push((index, length));
                index += u64::from(length);
            }
            let mut expected: BTreeMap<u64, Vec<(i16, i16)>> = BTreeMap::new();
            for &(first, length) in &frames {
                for index in first..first + u64::from(length) {
                    let group = expected.entry(index / factor).or_insert_with(|| vec![i16::NOTHING; channels as usize]);
                    for (channel, extremes) in group.iter_mut().enumerate() {
                        *extremes = i16::extremes(*extremes, &[sample_at(channel, index)]);
                    }
                }
            }
            let made = decimated(factor, batches_of(channels, &frames, together));
            let mut got = BTreeMap::new();
            for (position, (header, samples)) in made.iter().enumerate() {
                prop_assert_eq!(header.sequence, position as u64);
                prop_assert_eq!(header.sample_rate_hz, 1e6 * (2.0 / factor as f64));
                prop_assert_eq!(header.first_sample_index % 2, 0);
                for pair in 0..header.block_length_samples as usize / 2 {
                    let of = |channel: &Vec<i16>| (channel[2 * pair], channel[2 * pair + 1]);
                    let group = header.first_sample_index / 2 + pair as u64;
                    prop_assert!(got.insert(group, samples.iter().map(of).collect::<Vec<_>>()).is_none());
                }
            }
            prop_assert_eq!(got, expected);
        }
    }

    #[test]
    fn small_pairs_travel_together() {
        let frames: Vec<(u64, u32)> = (0..64).map(|frame| (frame * 640, 640)).collect();
        let made = decimated(100, batches_of(1, &frames, 40));
        // 40,960 samples become 820; 10 ms at 20 kS/s are 200, rounded down to 192.
        let lengths: Vec<u32> = made.iter().map(|(header, _)| header.block_length_samples).collect();
        assert_eq!(lengths, [192, 192, 192, 192, 52]);
        assert_eq!(made[1].0.producer_ts_ns, 1_000_000 + 9_600_000);
    }

    #[test]
    fn another_stream_begins_another_frame() {
        let mut batches = batches_of(1, &[(0, 50)], 1);
        batches.extend(batches_of(2, &[(0, 50)], 1));
        let made = decimated(10, batches);
        let shapes: Vec<_> =
            made.iter().map(|(header, _)| (header.channel_count, header.block_length_samples)).collect();
        assert_eq!(shapes, [(1, 10), (2, 10)]);
    }

    /// Envelope of these samples in 255 channels.
    fn envelope_of<T: Sample>(factor: u64, samples: &[T]) -> Vec<T> {
        let header = Header {
            format: T::FORMAT,
            channel_count: 255,
            block_length_samples: samples.len() as u32,
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
        batch.push::<T>(&header, |_, out| out.copy_from_slice(samples)).unwrap();
        let mut bench = StageBench::new(DecimateStage::new(&Decimate { factor: Count(factor) })).unwrap();
        let mut made = bench.feed(batch.freeze()).unwrap();
        made.extend(bench.end().unwrap());
        let channel = |channel| {
            let frames = made.iter().flat_map(|batch| batch.frames());
            frames.flat_map(|frame| frame.channel::<T>(channel).unwrap().into_owned()).collect::<Vec<T>>()
        };
        let first = channel(0);
        assert!((0..255).all(|at| channel(at) == first));
        first
    }

    #[test]
    fn every_real_format_has_an_envelope() {
        assert_eq!(envelope_of::<i8>(3, &[1, -128, 5, 7, 127, 6]), [-128, 5, 6, 127]);
        assert_eq!(envelope_of::<u8>(3, &[1, 0, 255]), [0, 255]);
        assert_eq!(envelope_of::<i32>(3, &[i32::MAX, 0, 70_000]), [0, i32::MAX]);
        assert_eq!(envelope_of::<f64>(3, &[1e300, -1e300, 0.0]), [-1e300, 1e300]);
        let ramp: Vec<f32> = (0..40).map(|at| at as f32 - 20.0).collect();
        assert_eq!(envelope_of::<f32>(50, &ramp), [-20.0, 19.0]);
        let holes: Vec<f32> = (0..40).map(|at| if at % 2 == 0 { f32::NAN } else { at as f32 }).collect();
        assert_eq!(envelope_of::<f32>(50, &holes), [1.0, 39.0]);
        assert_eq!(envelope_of::<f32>(3, &[f32::INFINITY, 0.0, 1.0]), [0.0, f32::INFINITY]);
        assert!(format!("{:?}", i16::extremes(i16::NOTHING, &[])).contains("32767"));
    }

    #[test]
    fn another_format_goes_on_in_frames_of_its_own_and_complex_samples_have_no_envelope() {
        let mut bench = StageBench::new(DecimateStage::new(&Decimate { factor: Count(10) })).unwrap();
        let batch = |format: SampleFormat, sequence| {
            let header = Header {
                format,
                sequence,
                channel_count: 2,
                block_length_samples: 20,
                first_sample_index: sequence * 20,
                ..Header::default()
            };
            let mut batch = BatchPool::new(1, 4_096).acquire().unwrap();
            batch.push_bytes(&header, |_, out| out.fill(0)).unwrap();
            batch.freeze()
        };
        let mut made = bench.feed(batch(SampleFormat::I16, 0)).unwrap();
        made.extend(bench.feed(batch(SampleFormat::F32, 1)).unwrap());
        made.extend(bench.feed(batch(SampleFormat::F64, 2)).unwrap());
        let frames = made.iter().flat_map(|batch| batch.frames()).map(|frame| frame.header());
        let of: Vec<_> =
            frames.map(|header| (header.format, header.sequence, header.first_sample_index)).collect();
        assert_eq!(of, [(SampleFormat::I16, 0, 0), (SampleFormat::F32, 1, 4)]);
        let said = bench.feed(batch(SampleFormat::Ci8, 3)).unwrap_err().to_string();
        assert!(said.contains("ci8 samples come in") && said.contains("magnitude"), "{said}");
        let decimate = Decimate { factor: Count(3) };
        assert!(decimate.format(Some(SampleFormat::Cf32)).is_err());
        assert_eq!(decimate.format(Some(SampleFormat::F32)), Ok(Some(SampleFormat::F32)));
    }

    #[test]
    fn a_factor_that_reduces_nothing_is_refused() {
        assert!(Decimate { factor: Count(2) }.check().is_err());
        assert!(Decimate { factor: Count(3) }.check().is_ok());
    }
}
