//! Reduces a stream to its envelope.

use std::time::Duration;

use grebe_flow::{
    Context, Count, Fault, Inputs, Kind, Outcome, Outputs, Ports, Rewriter, Site, Stage, StageResult,
};
use grebe_frame::{Batch, Description, Frame, Header, MAX_CHANNELS, SampleFormat};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::stream::{DATAGRAM_BYTES, block_length};

/// Makes two samples, the smallest and the largest, of each group of `factor`: an envelope that no spike slips through.
///
/// Groups begin at multiples of `factor` in the stream, whatever the frames are. A group that is cut by a gap or by the end is
/// made of the samples there are. The stream's rate becomes 2 / `factor` of what it was.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decimate {
    /// Samples that become two: 3 or more.
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

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(DecimateStage::new(&self)))
    }
}

#[derive(Debug)]
pub(crate) struct DecimateStage {
    factor: u64,
    /// The stream's last header, and the index behind its last sample.
    stream: Option<(Header, u64)>,
    /// The group that has begun.
    extremes: [(i16, i16); MAX_CHANNELS as usize],
    has_begun: bool,
    block: Block,
    rewriter: Rewriter,
    /// A batch, how many of its frames are done, and how many samples of the next.
    pending: Option<(Batch, usize, usize)>,
}

/// Pairs that wait to become a frame.
#[derive(Debug)]
struct Block {
    channels: [Vec<i16>; MAX_CHANNELS as usize],
    /// The header of the frame to come, but for its length.
    header: Header,
    length_max: usize,
    sequence: u64,
}

impl DecimateStage {
    pub(crate) fn new(decimate: &Decimate) -> Self {
        let channels = std::array::from_fn(|_| Vec::with_capacity(DATAGRAM_BYTES));
        Self {
            factor: decimate.factor.0.max(2),
            stream: None,
            extremes: [NOTHING; MAX_CHANNELS as usize],
            has_begun: false,
            block: Block { channels, header: Header::default(), length_max: 2, sequence: 0 },
            rewriter: Rewriter::default(),
            pending: None,
        }
    }

    /// Takes a frame from this sample on. The error is where it stopped because there was no chunk to write into.
    fn take(
        &mut self,
        frame: &Frame<'_>,
        from: usize,
        output: &mut Outputs,
        ctx: &Context,
    ) -> Result<(), usize> {
        let header = frame.header();
        let index = header.first_sample_index;
        if from == 0 && !self.goes_on(&header) {
            // The next pair does not follow those that wait.
            self.close_group();
            if !self.block.flush(&mut self.rewriter, output, ctx) {
                return Err(0);
            }
        }
        let length = header.block_length_samples as usize;
        let channels: [_; MAX_CHANNELS as usize] =
            std::array::from_fn(|channel| frame.channel::<i16>(channel).unwrap_or_default());
        let mut at = from;
        while at < length {
            if self.block.is_full() && !self.block.flush(&mut self.rewriter, output, ctx) {
                return Err(at);
            }
            let here = index + at as u64;
            let group = here / self.factor;
            let left = (group + 1).saturating_mul(self.factor) - here;
            let count = left.min((length - at) as u64) as usize;
            if !self.has_begun {
                self.block.begin(&header, group, self.factor);
            }
            for (extremes, samples) in
                self.extremes.iter_mut().zip(&channels).take(header.channel_count as usize)
            {
                *extremes = extremes_of(*extremes, &samples[at..at + count]);
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

    /// Whether the frame's first pair stands right behind the last, or its group has begun.
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
            self.block.push(&self.extremes);
            self.extremes = [NOTHING; MAX_CHANNELS as usize];
        }
    }
}

impl Block {
    /// Called before the first sample of a group: where no pair waits, the next frame begins here.
    fn begin(&mut self, header: &Header, group: u64, factor: u64) {
        if !self.channels[0].is_empty() {
            return;
        }
        self.header = scaled(header, group * 2, factor);
        let Header { channel_count, sample_rate_hz, .. } = self.header;
        // Pairs stay together.
        self.length_max =
            (block_length(DATAGRAM_BYTES, channel_count as usize, SampleFormat::I16, sample_rate_hz)
                as usize
                & !1)
                .max(2);
    }

    fn push(&mut self, extremes: &[(i16, i16)]) {
        for (channel, &(low, high)) in
            self.channels.iter_mut().zip(extremes).take(self.header.channel_count as usize)
        {
            channel.extend([low, high]);
        }
    }

    fn is_full(&self) -> bool {
        self.channels[0].len() >= self.length_max
    }

    /// Makes a frame of what waits; whether there was a chunk for it.
    fn flush(&mut self, rewriter: &mut Rewriter, output: &mut Outputs, ctx: &Context) -> bool {
        let length = self.channels[0].len();
        if length == 0 {
            return true;
        }
        let header = Header { sequence: self.sequence, block_length_samples: length as u32, ..self.header };
        let fill = |channel: usize, out: &mut [i16]| out.copy_from_slice(&self.channels[channel]);
        if rewriter.push(&header, fill, output, ctx) != Ok(true) {
            return false;
        }
        self.sequence += 1;
        self.channels.iter_mut().for_each(Vec::clear);
        true
    }
}

impl Stage for DecimateStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let next = self.pending.take().or_else(|| Some((input.next()?, 0, 0)));
        let Some((batch, done, mut from)) = next else { return Ok(Outcome::WantsInput) };
        let factor = self.factor;
        self.rewriter.describe(batch.description(), |input| {
            let first_sample_index = input.first_sample_index.div_ceil(factor) * 2;
            Description { first_sample_index, ..input.clone() }
        });
        for (at, frame) in batch.frames().enumerate().skip(done) {
            frame.channel::<i16>(0)?;
            if let Err(stopped) = self.take(&frame, from, output, ctx) {
                self.pending = Some((batch, at, stopped));
                return Ok(Outcome::Again);
            }
            from = 0;
        }
        self.rewriter.flush(output, ctx);
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, output: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        self.close_group();
        for _ in 0..FINISH_TRIES {
            if self.block.flush(&mut self.rewriter, output, ctx) {
                self.rewriter.flush(output, ctx);
                if let Some(end) = ctx.end_of_stream(None) {
                    let index = end.first_sample_index.div_ceil(self.factor) * 2;
                    let scaled = scaled(&end, index, self.factor);
                    ctx.set_end_of_stream(Header { sequence: self.block.sequence, ..scaled });
                }
                return Ok(());
            }
            // A graph that is being stopped does not wait for a chunk by itself.
            std::thread::sleep(FINISH_PAUSE);
        }
        Err("the last samples found no memory: a consumer holds all of it".into())
    }

    fn ports(&self) -> Ports {
        Decimate::PORTS
    }
}

/// A header as it is behind the stage, at this sample index there.
fn scaled(header: &Header, first_sample_index: u64, factor: u64) -> Header {
    let ratio = 2.0 / factor as f64;
    let sg_drops_total = (header.sg_drops_total as f64 * ratio) as u64;
    Header { sample_rate_hz: header.sample_rate_hz * ratio, first_sample_index, sg_drops_total, ..*header }
}

/// Written so that compilers make vector instructions of it.
fn extremes_of((mut low, mut high): (i16, i16), samples: &[i16]) -> (i16, i16) {
    for &sample in samples {
        low = low.min(sample);
        high = high.max(sample);
    }
    (low, high)
}

const FINISH_TRIES: u32 = 50;
const FINISH_PAUSE: Duration = Duration::from_millis(5);
const NOTHING: (i16, i16) = (i16::MAX, i16::MIN);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use grebe_flow::StageBench;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{batches_of, frames_of, sample_at};

    fn decimated(factor: u64, batches: Vec<Batch>) -> Vec<(Header, Vec<Vec<i16>>)> {
        let mut bench = StageBench::new(DecimateStage::new(&Decimate { factor: Count(factor) })).unwrap();
        let mut made = Vec::new();
        batches.into_iter().for_each(|batch| made.extend(bench.feed(batch).unwrap()));
        made.extend(bench.end().unwrap());
        frames_of(&made)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// However the stream is cut into frames and batches, and whatever is missing of it.
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
                    let group = expected.entry(index / factor).or_insert_with(|| vec![NOTHING; channels as usize]);
                    for (channel, extremes) in group.iter_mut().enumerate() {
                        *extremes = extremes_of(*extremes, &[sample_at(channel, index)]);
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
        // 40,960 samples become 820; 10 ms of 20 kS/s are 200, rounded down to 192.
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

    #[test]
    fn a_factor_that_reduces_nothing_is_refused() {
        assert!(Decimate { factor: Count(2) }.check().is_err());
        assert!(Decimate { factor: Count(3) }.check().is_ok());
    }
}
