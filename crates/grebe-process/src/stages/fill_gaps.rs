//! Fills the gaps of a stream.

mod position;

use grebe_flow::{
    Context, Count, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, Rewriter, Site, Stage,
    StageResult,
};
use grebe_frame::{Batch, Header, SampleFormat};
use position::Position;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::numbers::{Component, with_component};
use crate::stream::{DATAGRAM_BYTES, block_length};

/// Fills gaps in the stream, and counts the filled samples.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FillGaps {
    /// Filler: `zero`, `hold` (the last sample of each channel), or `mark` (the lowest number of the format; NaN in
    /// floating point).
    #[serde(default)]
    pub with: Filler,
    /// Longest gap to fill, in samples per channel; longer gaps stay, and are counted.
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

    /// Passes a contiguous batch. Returns the batch if the pool is empty.
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
        if let (Some(position), Some(last)) = (self.position.as_mut(), renumbered.frames().next_back()) {
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
mod tests;
