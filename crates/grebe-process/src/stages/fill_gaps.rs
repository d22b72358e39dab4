//! Fills the gaps of a stream.

use grebe_flow::{
    Context, Count, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, Rewriter, Site, Stage,
    StageResult,
};
use grebe_frame::{Batch, Frame, Header, SampleFormat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::numbers::{Component, with_component};
use crate::stream::{DATAGRAM_BYTES, block_length};

/// Puts samples where some are missing, so that the stages behind see a stream without gaps; counts them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FillGaps {
    /// What is put there: `zero`, `hold` (each channel's last sample), or `mark` (the lowest number of a format, of floating point none: to be found again).
    #[serde(default)]
    pub with: Filler,
    /// Samples per channel of the longest gap to fill; a longer one stays, and is counted.
    #[serde(default = "a_million")]
    pub longest: Count,
}

/// Filler for missing samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Filler {
    /// Zeros; for cu8 the value 128, nearest to its zero of 127.5.
    #[default]
    Zero,
    /// Last sample before the gap, of each channel.
    Hold,
    /// Lowest number, such as -32768 of i16; NaN for floating point.
    Mark,
}

fn a_million() -> Count {
    Count(1_000_000)
}

impl Kind for FillGaps {
    const NAME: &'static str = "fill_gaps";
    const PORTS: Ports = Ports::STAGE;

    fn check(&self) -> Result<(), Fault> {
        match self.longest.0 {
            0 => Err(Fault::new("longest", "0 fills nothing: give 1 or more samples")),
            _ => Ok(()),
        }
    }

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(FillGapsStage::new(&self)))
    }
}

#[derive(Debug)]
pub(crate) struct FillGapsStage {
    with: Filler,
    longest: u64,
    position: Option<Position>,
    rewriter: Rewriter,
    /// Batch, and number of its finished frames.
    pending: Option<(Batch, usize)>,
    filled_samples: u64,
    filled_gaps: u64,
    left_samples: u64,
    counters: Counted,
}

/// Position after the last frame: the start of the next one if nothing is missing.
#[derive(Debug)]
struct Position {
    index: u64,
    sequence_in: u64,
    sequence_out: u64,
    format: SampleFormat,
    channel_count: u32,
    sample_rate_hz: f64,
    /// Last sample of each channel, in wire format.
    last: Vec<u8>,
    is_filling: bool,
}

impl FillGapsStage {
    pub(crate) fn new(fill: &FillGaps) -> Self {
        Self {
            with: fill.with,
            longest: fill.longest.0,
            position: None,
            rewriter: Rewriter::default(),
            pending: None,
            filled_samples: 0,
            filled_gaps: 0,
            left_samples: 0,
            counters: Counted::default(),
        }
    }

    /// Samples per channel that are missing before the frame and must be filled.
    fn missing_before(&mut self, header: &Header) -> u64 {
        let gap = match &self.position {
            Some(position) if position.goes_on(header) => header.first_sample_index - position.index,
            _ => {
                // Another stream begins, with its own sequence numbers.
                self.position = Some(Position::at(header));
                0
            }
        };
        let Some(position) = self.position.as_mut() else { return 0 };
        if gap > 0 && (gap <= self.longest || position.is_filling) {
            return gap;
        }
        if gap > 0 {
            self.left_samples += gap;
            position.index = header.first_sample_index;
            position.sequence_out += header.sequence.saturating_sub(position.sequence_in);
        }
        if std::mem::take(&mut position.is_filling) {
            self.filled_gaps += 1;
        }
        0
    }

    /// Fills the gap before the frame. Returns whether there were chunks for all of it.
    fn fill(&mut self, header: &Header, output: &mut Outputs, ctx: &Context) -> StageResult<bool> {
        loop {
            let left = self.missing_before(header);
            let Some(position) = self.position.as_mut().filter(|_| left > 0) else { return Ok(true) };
            position.is_filling = true;
            // The end of a stream has no samples, but may follow a gap like any frame.
            let most = match header.block_length_samples {
                0 => block_length(
                    DATAGRAM_BYTES,
                    position.channel_count as usize,
                    position.format,
                    position.sample_rate_hz,
                ),
                samples => samples,
            };
            let length = left.min(u64::from(most));
            let lead_s = if header.sample_rate_hz > 0.0 { left as f64 / header.sample_rate_hz } else { 0.0 };
            let filler = Header {
                sequence: position.sequence_out,
                producer_ts_ns: header.producer_ts_ns.saturating_sub((lead_s * 1e9) as u64),
                block_length_samples: length as u32,
                first_sample_index: position.index,
                ..*header
            };
            let bytes = position.format.bytes();
            let fill = |channel: usize, out: &mut [u8]| match self.with {
                Filler::Zero => out.fill(if position.format == SampleFormat::Cu8 { 128 } else { 0 }),
                Filler::Mark => mark(position.format, out),
                Filler::Hold => {
                    let last = &position.last[channel * bytes..(channel + 1) * bytes];
                    out.chunks_exact_mut(bytes).for_each(|sample| sample.copy_from_slice(last));
                }
            };
            if !self.rewriter.push_bytes(&filler, fill, output, ctx)? {
                return Ok(false);
            }
            position.index += length;
            position.sequence_out += 1;
            self.filled_samples += length;
        }
    }

    /// Whether the frames of the batch are contiguous, so that it can pass as a whole.
    fn is_whole(batch: &Batch) -> bool {
        let mut before: Option<Header> = None;
        batch.frames().all(|frame| {
            let header = frame.header();
            let follows = before.is_none_or(|before| {
                header.first_sample_index == before.next_sample_index()
                    && header.sequence == before.sequence + 1
                    && header.channel_count == before.channel_count
                    && header.format == before.format
                    && header.sample_rate_hz == before.sample_rate_hz
            });
            before = Some(header);
            follows
        })
    }

    /// Passes a contiguous batch. Returns the batch if there was no chunk.
    fn pass_whole(
        &mut self,
        batch: Batch,
        output: &mut Outputs,
        ctx: &Context,
    ) -> StageResult<Option<Batch>> {
        let Some(first) = batch.frames().next().map(|frame| frame.header()) else { return Ok(None) };
        if !self.fill(&first, output, ctx)? {
            return Ok(Some(batch));
        }
        let shift =
            self.position.as_ref().map_or(0, |position| position.sequence_out.wrapping_sub(first.sequence));
        let renumbered = if shift == 0 {
            batch
        } else {
            let mut own = match self.rewriter.workspace().own(batch, ctx) {
                Ok(own) => own,
                Err(batch) => return Ok(Some(batch)),
            };
            own.update_headers(|header| header.sequence = header.sequence.wrapping_add(shift));
            own.freeze()
        };
        // The filler before the batch leaves first.
        self.rewriter.flush(output, ctx);
        if let (Some(position), Some(last)) = (self.position.as_mut(), renumbered.frames().last()) {
            position.pass(&last, renumbered.len() as u64, shift);
        }
        output.send(renumbered, ctx);
        Ok(None)
    }

    /// Rewrites the frames of a batch with gaps. Returns the position if it stopped for lack of a chunk.
    fn pass_pieces(
        &mut self,
        batch: &Batch,
        done: usize,
        output: &mut Outputs,
        ctx: &Context,
    ) -> StageResult<Option<usize>> {
        for (at, frame) in batch.frames().enumerate().skip(done) {
            let header = frame.header();
            if !self.fill(&header, output, ctx)? {
                return Ok(Some(at));
            }
            let Some(position) = self.position.as_mut() else { continue };
            let shift = position.sequence_out.wrapping_sub(header.sequence);
            let renumbered = Header { sequence: position.sequence_out, ..header };
            let copy = |channel: usize, out: &mut [u8]| {
                // The channels are those of this frame.
                out.copy_from_slice(frame.channel_bytes(channel).unwrap_or_default());
            };
            if !self.rewriter.push_bytes(&renumbered, copy, output, ctx)? {
                return Ok(Some(at));
            }
            position.pass(&frame, 1, shift);
        }
        self.rewriter.flush(output, ctx);
        Ok(None)
    }

    fn publish(&mut self) {
        let copied = self.rewriter.workspace().copied_frames();
        self.counters.filled_samples.set(self.filled_samples);
        self.counters.filled_gaps.set(self.filled_gaps);
        self.counters.unfilled_samples.set(self.left_samples);
        self.counters.copied_frames.set(copied);
    }
}

impl Position {
    fn at(header: &Header) -> Self {
        Self {
            index: header.first_sample_index,
            sequence_in: header.sequence,
            sequence_out: header.sequence,
            format: header.format,
            channel_count: header.channel_count,
            sample_rate_hz: header.sample_rate_hz,
            last: vec![0; header.channel_count as usize * header.format.bytes()],
            is_filling: false,
        }
    }

    fn goes_on(&self, header: &Header) -> bool {
        header.first_sample_index >= self.index
            && header.sequence >= self.sequence_in
            && header.channel_count == self.channel_count
            && header.format == self.format
            && header.sample_rate_hz == self.sample_rate_hz
    }

    /// Notes that `frames` frames passed, the last one given, with numbers `shift` above the input.
    fn pass(&mut self, last: &Frame<'_>, frames: u64, shift: u64) {
        let header = last.header();
        self.index = header.next_sample_index();
        self.sequence_out += frames;
        self.sequence_in = self.sequence_out.wrapping_sub(shift);
        let bytes = header.format.bytes();
        for (channel, held) in self.last.chunks_exact_mut(bytes).enumerate() {
            if let Some(sample) = last.channel_bytes(channel).unwrap_or_default().rchunks_exact(bytes).next()
            {
                held.copy_from_slice(sample);
            }
        }
    }
}

impl Stage for FillGapsStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let next = self.pending.take().or_else(|| Some((input.next()?, 0)));
        let Some((batch, done)) = next else { return Ok(Outcome::WantsInput) };
        self.rewriter.describe(batch.description(), Clone::clone);
        let left = if done == 0 && Self::is_whole(&batch) {
            self.pass_whole(batch, output, ctx)?.map(|batch| (batch, 0))
        } else {
            self.pass_pieces(&batch, done, output, ctx)?.map(|at| (batch, at))
        };
        self.publish();
        self.pending = left;
        Ok(if self.pending.is_some() { Outcome::Again } else { Outcome::Produced })
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        // Numbered like the passed frames.
        if let (Some(end), Some(position)) = (ctx.end_of_stream(None), &self.position) {
            let lost = end.sequence.saturating_sub(position.sequence_in);
            ctx.set_end_of_stream(Header { sequence: position.sequence_out + lost, ..end });
        }
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }

    fn ports(&self) -> Ports {
        FillGaps::PORTS
    }
}

/// Writes marks, which can be found again.
fn mark(format: SampleFormat, out: &mut [u8]) {
    with_component!(format, C => out.chunks_exact_mut(size_of::<C>()).for_each(|out| C::MARK.write(out)));
}

grebe_flow::counters! {
    struct Counted { filled_samples, filled_gaps, unfilled_samples, copied_frames }
}

#[cfg(test)]
mod tests {
    use grebe_flow::StageBench;
    use grebe_frame::{BatchPool, Complex, Sample, StreamTracker};
    use grebe_testing::stream::{batches_of, frames_of, sample_at};
    use proptest::prelude::*;

    use super::*;

    struct Filled {
        frames: Vec<(Header, Vec<Vec<i16>>)>,
        counts: [u64; 4],
    }

    fn filled(with: Filler, longest: u64, batches: Vec<Batch>) -> Filled {
        let fill = FillGaps { with, longest: Count(longest) };
        let mut bench = StageBench::new(FillGapsStage::new(&fill)).unwrap();
        let mut made = Vec::new();
        batches.into_iter().for_each(|batch| made.extend(bench.feed(batch).unwrap()));
        made.extend(bench.end().unwrap());
        let snapshot = bench.snapshot();
        let stage = snapshot.stage("stage").unwrap();
        let counts = ["filled_samples", "filled_gaps", "unfilled_samples", "copied_frames"]
            .map(|name| stage.own(name).unwrap());
        Filled { frames: frames_of(&made), counts }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Wherever the gaps are: afterwards there is none, each sample is at its place, and numbers increase
        /// by one.
        #[test]
        fn a_stream_with_holes_becomes_one_without(
            channels in 1u32..=8, together in 1usize..7,
            pieces in prop::collection::vec((1u32..100, prop_oneof![3 => Just(0u64), 1 => 1u64..700]), 1..30),
        ) {
            let mut index = 0;
            let (mut frames, mut there) = (Vec::new(), Vec::new());
            for (at, (length, gap)) in pieces.into_iter().enumerate() {
                let gap = if at == 0 { 0 } else { gap };
                there.extend(std::iter::repeat_n(false, gap as usize));
                there.extend(std::iter::repeat_n(true, length as usize));
                index += gap;
                frames.push((index, length));
                index += u64::from(length);
            }
            let gaps = frames.windows(2).filter(|pair| pair[0].0 + u64::from(pair[0].1) < pair[1].0).count() as u64;
            for with in [Filler::Zero, Filler::Hold, Filler::Mark] {
                let made = filled(with, 1_000, batches_of(channels, &frames, together));
                let mut tracker = StreamTracker::new();
                made.frames.iter().for_each(|(header, _)| { tracker.arrive(header); });
                prop_assert_eq!((tracker.counts().lost_frames, tracker.counts().lost_samples), (0, 0));
                for channel in 0..channels as usize {
                    let got: Vec<i16> = made.frames.iter().flat_map(|(_, samples)| samples[channel].clone()).collect();
                    let mut held = 0;
                    let expected: Vec<i16> = there.iter().enumerate().map(|(index, there)| {
                        match (there, with) {
                            (true, _) => { held = sample_at(channel, index as u64); held }
                            (false, Filler::Zero) => 0,
                            (false, Filler::Hold) => held,
                            (false, Filler::Mark) => i16::MIN,
                        }
                    }).collect();
                    prop_assert_eq!(got, expected);
                }
                let missing = there.iter().filter(|there| !**there).count() as u64;
                prop_assert_eq!(made.counts[..3].to_vec(), vec![missing, gaps, 0]);
            }
        }
    }

    /// Filler between two frames with these samples, in 100 channels.
    fn between<T: Sample>(with: Filler, samples: [T; 2]) -> T {
        let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
        for (sequence, first_sample_index) in [(0, 0), (2, 3)] {
            let header = Header {
                format: T::FORMAT,
                sequence,
                first_sample_index,
                channel_count: 100,
                block_length_samples: 2,
                ..Header::default()
            };
            batch.push::<T>(&header, |_, out| out.copy_from_slice(&samples)).unwrap();
        }
        let stage = FillGapsStage::new(&FillGaps { with, longest: Count(9) });
        let made = StageBench::new(stage).unwrap().feed(batch.freeze()).unwrap();
        let frames: Vec<_> = made.iter().flat_map(|batch| batch.frames()).collect();
        assert_eq!(frames.len(), 3);
        let first = frames[1].channel::<T>(0).unwrap().into_owned();
        assert!((0..100).all(|channel| frames[2].channel::<T>(channel).unwrap().as_ref() == samples));
        first[0]
    }

    #[test]
    fn a_gap_before_the_end_is_filled() {
        let mut batches = batches_of(2, &[(0, 10)], 1);
        let last = batches[0].frames().last().unwrap().header();
        let mut end = BatchPool::new(1, 4096).acquire().unwrap();
        let header = Header {
            sequence: last.sequence + 2,
            first_sample_index: last.next_sample_index() + 90,
            block_length_samples: 0,
            ..last
        };
        end.push::<i16>(&header, |_, _| ()).unwrap();
        batches.push(end.freeze());
        let made = filled(Filler::Zero, 1_000, batches);
        let samples: u32 = made.frames.iter().map(|(header, _)| header.block_length_samples).sum();
        assert_eq!((samples, made.counts), (100, [90, 1, 0, 0]));
        assert_eq!(made.frames.last().unwrap().0.first_sample_index, 100);
    }

    #[test]
    fn every_format_is_filled() {
        assert_eq!(
            between(Filler::Hold, [Complex::new(1.0f32, 2.0), Complex::new(3.0, 4.0)]),
            Complex::new(3.0, 4.0)
        );
        assert_eq!(between(Filler::Hold, [1.0, 2.5f64]), 2.5);
        assert_eq!(between(Filler::Zero, [Complex::new(9u8, 9); 2]), Complex::new(128, 128));
        assert_eq!(between(Filler::Zero, [9i32; 2]), 0);
        assert_eq!(between(Filler::Mark, [9i32; 2]), i32::MIN);
        assert_eq!(between(Filler::Mark, [Complex::new(9i8, 9); 2]), Complex::new(-128, -128));
        let none = between(Filler::Mark, [Complex::new(9.0f32, 9.0); 2]);
        assert!(none.re.is_nan() && none.im.is_nan());
    }

    #[test]
    fn a_stream_without_holes_goes_on_untouched() {
        let batches = batches_of(3, &[(0, 64), (64, 64), (128, 5)], 2);
        let (before, held) = (frames_of(&batches), batches.clone());
        let made = filled(Filler::Mark, 1_000, batches);
        assert_eq!(made.frames, before);
        assert_eq!(made.counts, [0; 4], "nothing was copied although somebody else held it");
        drop(held);
    }

    #[test]
    fn a_hole_that_is_too_long_stays_with_its_lost_frames() {
        let made =
            filled(Filler::Zero, 100, batches_of(1, &[(0, 64), (164, 64), (1_000, 64), (1_064, 1)], 1));
        assert_eq!(made.counts, [100, 1, 772, 0]);
        let mut tracker = StreamTracker::new();
        made.frames.iter().for_each(|(header, _)| {
            tracker.arrive(header);
        });
        let counts = tracker.counts();
        assert_eq!((counts.lost_frames, counts.lost_samples), (2, 772));
        assert_eq!(counts.samples, 64 * 3 + 100 + 1);
    }

    #[test]
    fn what_the_generator_dropped_is_filled_too_and_the_rest_renumbered() {
        // Consecutive frame numbers, although samples are missing.
        let mut batches = batches_of(1, &[(0, 10)], 1);
        for (sequence, index) in [(1, 50), (2, 60)] {
            let mut batch = BatchPool::new(1, 4096).acquire().unwrap();
            let header = Header {
                sequence,
                channel_count: 1,
                block_length_samples: 10,
                sample_rate_hz: 1e6,
                first_sample_index: index,
                sg_drops_total: 40,
                ..Header::default()
            };
            batch.push::<i16>(&header, |_, samples| samples.fill(9)).unwrap();
            batches.push(batch.freeze());
        }
        let held = batches[2].clone();
        let made = filled(Filler::Hold, 1_000, batches);
        let numbers: Vec<(u64, u64)> =
            made.frames.iter().map(|(header, _)| (header.sequence, header.first_sample_index)).collect();
        assert_eq!(numbers, [(0, 0), (1, 10), (2, 20), (3, 30), (4, 40), (5, 50), (6, 60)]);
        assert_eq!(made.counts, [40, 1, 0, 1], "the batch that was held is copied to get its number");
        assert_eq!(held.frames().next().unwrap().header().sequence, 2);
    }

    #[test]
    fn another_stream_keeps_its_numbers() {
        let mut batches = batches_of(1, &[(1_000, 10)], 1);
        batches.extend(batches_of(2, &[(0, 10), (30, 10)], 1));
        let made = filled(Filler::Zero, 1_000, batches);
        let shapes: Vec<_> =
            made.frames.iter().map(|(header, _)| (header.sequence, header.first_sample_index)).collect();
        assert_eq!(shapes, [(0, 1_000), (0, 0), (1, 10), (2, 20), (3, 30)]);
    }
}
