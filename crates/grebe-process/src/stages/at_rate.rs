//! Common part of stages that compute samples at another rate.

use std::fmt;

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Ports, Stage, StageResult};
use grebe_frame::{Batch, Description, Frame, Header, SampleFormat};

use super::block::{Block, Frames, finish};
use crate::error::Error;
use crate::grid::{Grid, INDEX_MAX};
use crate::numbers::store;

/// A conversion to another rate, of stretches without a gap.
pub(super) trait AtRate: fmt::Debug + Send {
    /// Prepares for samples like these.
    fn begin(&mut self, header: &Header, description: Option<&Description>) -> Result<Layout, Error>;

    /// Takes samples of a channel, in the format of the header.
    fn push(&mut self, channel: usize, format: SampleFormat, bytes: &[u8]);

    /// Makes the outputs of a channel up to the end of its samples, an index.
    fn end(&mut self, channel: usize, end: i64);

    /// Numbers of the outputs of a channel so far, to be taken.
    fn made(&mut self, channel: usize) -> &mut Vec<f32>;

    /// Adapts the rest of a description; places and times are already changed.
    fn describe(&self, _: &mut Description) {}

    /// How many numbers were not finite, and counted as zero.
    fn invalid_numbers(&self) -> u64 {
        0
    }
}

/// Output of a conversion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) grid: Grid,
    pub(super) format: SampleFormat,
    pub(super) rate_hz: f64,
}

#[derive(Debug)]
pub(super) struct AtRateStage<C> {
    convert: C,
    stretch: Option<Stretch>,
    block: Block<f32>,
    frames: Frames,
    /// Batch, number of its finished frames, and number of finished samples of the next one.
    pending: Option<(Batch, usize, usize)>,
    saturated_samples: u64,
    counters: Counted,
}

/// Samples without a gap.
#[derive(Debug)]
struct Stretch {
    layout: Layout,
    centre_hz: Option<f64>,
    /// Header of its last frame.
    header: Header,
    /// Index after its last sample.
    end: u64,
    /// Output to send next.
    next: i64,
    is_ended: bool,
}

impl<C: AtRate> AtRateStage<C> {
    pub(super) fn new(convert: C) -> Self {
        Self {
            convert,
            stretch: None,
            block: Block::new(),
            frames: Frames::default(),
            pending: None,
            saturated_samples: 0,
            counters: Counted::default(),
        }
    }

    /// Ends a stretch that the batch's first samples do not continue, begins theirs and describes it. Returns whether there
    /// were chunks for the last samples before.
    fn follow(
        &mut self,
        header: &Header,
        batch: &Batch,
        output: &mut Outputs,
        ctx: &Context,
    ) -> Result<bool, Error> {
        let centre_hz = batch.description().and_then(|description| description.centre_frequency_hz);
        let goes_on = |stretch: &Stretch| stretch.centre_hz == centre_hz && stretch.goes_on(header);
        if !self.stretch.as_ref().is_some_and(goes_on) {
            if !self.end(output, ctx) {
                return Ok(false);
            }
            if header.first_sample_index > INDEX_MAX {
                let what = format!("sample index {} is beyond 2^56", header.first_sample_index);
                return Err(Error::Takes { what });
            }
            let layout = self.convert.begin(header, batch.description().map(|it| &**it))?;
            let next = layout.grid.first_at(header.first_sample_index as i64);
            let (header, end) = (*header, header.first_sample_index);
            self.stretch = Some(Stretch { layout, centre_hz, header, end, next, is_ended: false });
        }
        if let Some(Stretch { layout, header, .. }) = &self.stretch {
            self.frames.rewriter.describe(batch.description(), |input| {
                let mut described = layout.grid.describe(input, header.sample_rate_hz);
                self.convert.describe(&mut described);
                described
            });
        }
        Ok(true)
    }

    /// Takes a frame from this sample on. On an error, returns the position at which it stopped for lack of a
    /// chunk.
    fn take(
        &mut self,
        frame: &Frame<'_>,
        from: usize,
        output: &mut Outputs,
        ctx: &Context,
    ) -> Result<(), usize> {
        let header = frame.header();
        let length = header.block_length_samples as usize;
        let mut at = from;
        loop {
            if !self.collect(output, ctx) {
                return Err(at);
            }
            if at == length {
                return Ok(());
            }
            let count = PIECE.min(length - at);
            let bytes = at * header.format.bytes()..(at + count) * header.format.bytes();
            for channel in 0..header.channel_count as usize {
                // It has the channels of its header.
                let samples = frame.channel_bytes(channel).unwrap_or_default();
                self.convert.push(channel, header.format, &samples[bytes.clone()]);
            }
            at += count;
            if let Some(stretch) = &mut self.stretch {
                (stretch.header, stretch.end) = (header, header.first_sample_index + at as u64);
            }
        }
    }

    /// Makes frames of the outputs so far. Returns whether there were chunks for complete ones.
    fn collect(&mut self, output: &mut Outputs, ctx: &Context) -> bool {
        loop {
            if self.block.is_full() && !self.flush(output, ctx) {
                return false;
            }
            let Some(stretch) = &mut self.stretch else { return true };
            let width = stretch.layout.format.components();
            let ready = self.convert.made(0).len() / width;
            if ready == 0 {
                return true;
            }
            if self.block.len() == 0 {
                self.block.begin(stretch.output_header(stretch.next), 1, width);
            }
            let count = ready.min(self.block.room());
            for channel in 0..stretch.header.channel_count as usize {
                self.block.extend(channel, self.convert.made(channel).drain(..count * width));
            }
            stretch.next += count as i64;
        }
    }

    /// Computes and sends the samples up to the end of the stretch. Returns whether there were chunks.
    fn end(&mut self, output: &mut Outputs, ctx: &Context) -> bool {
        if let Some(stretch) = &mut self.stretch
            && !std::mem::replace(&mut stretch.is_ended, true)
        {
            for channel in 0..stretch.header.channel_count as usize {
                self.convert.end(channel, stretch.end as i64);
            }
        }
        let is_made = self.collect(output, ctx) && self.flush(output, ctx);
        if is_made {
            self.stretch = None;
        }
        is_made
    }

    fn flush(&mut self, output: &mut Outputs, ctx: &Context) -> bool {
        let format = self.block.format();
        let saturated = &mut self.saturated_samples;
        let write = |numbers: &[f32], out: &mut [u8]| *saturated += store(format, numbers, out);
        self.block.flush(&mut self.frames, write, output, ctx)
    }

    fn finish_step(&mut self, output: &mut Outputs, ctx: &Context) -> StageResult<()> {
        self.frames.check()?;
        self.frames.rewriter.flush(output, ctx);
        self.counters.saturated_samples.set(self.saturated_samples);
        self.counters.invalid_numbers.set(self.convert.invalid_numbers());
        Ok(())
    }
}

impl Stretch {
    fn goes_on(&self, header: &Header) -> bool {
        let last = &self.header;
        !self.is_ended
            && header.first_sample_index == self.end
            && header.format == last.format
            && header.channel_count == last.channel_count
            && header.sample_rate_hz == last.sample_rate_hz
    }

    fn output_header(&self, output: i64) -> Header {
        let Layout { grid, format, rate_hz } = self.layout;
        let index = self.header.first_sample_index as i64;
        let later_ns = grid.later_ns(output, index, self.header.sample_rate_hz);
        Header {
            format,
            sample_rate_hz: rate_hz,
            first_sample_index: output as u64,
            producer_ts_ns: self.header.producer_ts_ns.saturating_add_signed(later_ns),
            sg_drops_total: (self.header.sg_drops_total as f64 / grid.spacing()) as u64,
            ..self.header
        }
    }
}

impl<C: AtRate> Stage for AtRateStage<C> {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let next = self.pending.take().or_else(|| Some((input.next()?, 0, 0)));
        let Some((batch, done, mut from)) = next else { return Ok(Outcome::WantsInput) };
        for (at, frame) in batch.frames().enumerate().skip(done) {
            let is_ready = from > 0 || self.follow(&frame.header(), &batch, output, ctx)?;
            let taken = if is_ready { self.take(&frame, from, output, ctx) } else { Err(0) };
            if let Err(stopped) = taken {
                self.pending = Some((batch, at, stopped));
                return Ok(Outcome::Again);
            }
            from = 0;
        }
        self.finish_step(output, ctx)?;
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, output: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        // Where the whole stream ends, before its stretch is forgotten.
        let end = ctx.end_of_stream(None).zip(self.stretch.as_ref()).map(|(end, stretch)| {
            let output = stretch.layout.grid.first_at(end.first_sample_index.min(INDEX_MAX) as i64);
            let last = Stretch { header: end, ..*stretch };
            last.output_header(output)
        });
        finish(|| self.end(output, ctx))?;
        self.finish_step(output, ctx)?;
        if let Some(end) = end {
            ctx.set_end_of_stream(Header { sequence: self.frames.sequence, ..end });
        }
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }

    fn ports(&self) -> Ports {
        Ports::STAGE
    }
}

grebe_flow::counters! {
    struct Counted { saturated_samples, invalid_numbers }
}
/// Samples to load at once.
const PIECE: usize = 4_096;
