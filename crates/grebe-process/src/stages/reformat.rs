//! Rewrites frames in another format.

use grebe_flow::{Context, Inputs, Outcome, Outputs, Rewriter, StageResult};
use grebe_frame::{Batch, Header, SampleFormat};

/// Rewrites batches with samples of another format.
///
/// A frame whose samples become larger is split into parts no larger than it was, so that each still fits
/// into a datagram. Frames are renumbered, and a lost frame counts as several.
#[derive(Debug, Default)]
pub(super) struct Reformatter {
    pub(super) rewriter: Rewriter,
    numbering: Option<Numbering>,
    pending: Option<Place>,
}

/// Progress in a batch.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) batch: Batch,
    frame: usize,
    /// Finished samples of the frame; `None` before its numbering.
    samples: Option<usize>,
}

/// Next numbers, if nothing is missing.
#[derive(Debug, Clone, Copy)]
struct Numbering {
    came: u64,
    made: u64,
}

impl Reformatter {
    pub(super) fn next(&mut self, input: &mut Inputs) -> Option<Place> {
        self.pending.take().or_else(|| Some(Place { batch: input.next()?, frame: 0, samples: None }))
    }

    /// Whether the batch can pass unchanged, if its samples need no change.
    pub(super) fn passes(&mut self, place: &Place) -> bool {
        place.frame == 0
            && place.samples.is_none()
            && self.numbering.is_none_or(|numbering| numbering.came == numbering.made)
    }

    /// Rewrites the rest of a batch; `change` converts the bytes of a channel.
    pub(super) fn rewrite(
        &mut self,
        mut place: Place,
        to: SampleFormat,
        mut change: impl FnMut(&Header, &[u8], &mut [u8]),
        output: &mut Outputs,
        ctx: &Context,
    ) -> StageResult {
        let batch = place.batch.clone();
        for frame in batch.frames().skip(place.frame) {
            let header = frame.header();
            let length = header.block_length_samples as usize;
            let piece = piece_length(&header, to);
            let mut at = match place.samples {
                Some(done) => done,
                None => self.number(&header, length.div_ceil(piece)),
            };
            while at < length {
                let count = piece.min(length - at);
                let bytes = at * header.format.bytes()..(at + count) * header.format.bytes();
                let fill = |channel: usize, out: &mut [u8]| {
                    // The channels are those of this frame.
                    change(&header, &frame.channel_bytes(channel).unwrap_or_default()[bytes.clone()], out);
                };
                let part = self.part(&header, to, at, count);
                if !self.rewriter.push_bytes(&part, fill, output, ctx)? {
                    place.samples = Some(at);
                    self.pending = Some(place);
                    return Ok(Outcome::Again);
                }
                if let Some(numbering) = &mut self.numbering {
                    numbering.made += 1;
                }
                at += count;
            }
            (place.frame, place.samples) = (place.frame + 1, None);
        }
        self.rewriter.flush(output, ctx);
        Ok(Outcome::Produced)
    }

    /// Reports the end of the output stream.
    pub(super) fn finish(&self, to: SampleFormat, ctx: &mut Context) {
        if let Some(end) = ctx.end_of_stream(None) {
            let sequence = self.numbering.map_or(end.sequence, |numbering| {
                numbering.made + end.sequence.saturating_sub(numbering.came)
            });
            ctx.set_end_of_stream(Header { format: to, sequence, ..end });
        }
    }

    /// Numbers a frame that is split into `pieces`. Returns the first sample to rewrite.
    fn number(&mut self, header: &Header, pieces: usize) -> usize {
        let made = match self.numbering {
            Some(Numbering { came, made }) if header.sequence >= came => {
                made + (header.sequence - came) * pieces as u64
            }
            // A stream begins.
            _ => header.sequence,
        };
        self.numbering = Some(Numbering { came: header.sequence + 1, made });
        0
    }

    fn part(&self, header: &Header, to: SampleFormat, at: usize, count: usize) -> Header {
        let later_s = if header.sample_rate_hz > 0.0 { at as f64 / header.sample_rate_hz } else { 0.0 };
        Header {
            format: to,
            sequence: self.numbering.map_or(header.sequence, |numbering| numbering.made),
            producer_ts_ns: header.producer_ts_ns + (later_s * 1e9) as u64,
            block_length_samples: count as u32,
            first_sample_index: header.first_sample_index + at as u64,
            ..*header
        }
    }
}

/// Samples per channel of each part of a frame.
fn piece_length(header: &Header, to: SampleFormat) -> usize {
    let length = header.block_length_samples as usize;
    let pieces = to.bytes().div_ceil(header.format.bytes());
    let even = length.div_ceil(pieces).max(1);
    // Keeps the alignment of channels to 64 bytes, if there was one.
    if even > ALIGN && pieces > 1 { even.next_multiple_of(ALIGN) } else { even }
}

const ALIGN: usize = 32;
