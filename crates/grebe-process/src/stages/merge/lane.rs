//! One of the streams that are merged.

use grebe_flow::Inputs;
use grebe_frame::{Batch, Header};

use crate::error::Error;

/// Input stream, with its progress. Positions are sample indices of the first stream.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) batch: Option<Batch>,
    /// Next frame of the batch.
    frame: usize,
    pub(super) header: Header,
    /// Position of the next sample of that frame, and of the frame's end.
    pub(super) begin: i64,
    pub(super) end: i64,
    /// Offset from this stream's sample index to the first stream's.
    pub(super) shift: i64,
    /// Drops reported by its generator up to the last output frame.
    pub(super) drops: Option<u64>,
}

impl Lane {
    /// Advances to the next frame with samples, in this batch or the next. Returns whether there is one.
    pub(super) fn advance(&mut self, port: usize, input: &mut Inputs) -> Result<bool, Error> {
        while self.begin >= self.end {
            let end = self.end;
            if self.batch.as_ref().is_none_or(|batch| self.frame + 1 >= batch.len()) {
                self.batch = input.pop(port);
                self.frame = 0;
            } else {
                self.frame += 1;
            }
            let next = self.batch.as_ref().and_then(|batch| batch.frames().nth(self.frame));
            let Some(next) = next.map(|frame| frame.header()) else { return Ok(false) };
            let is_other = self.header.channel_count != 0 && next.channel_count != self.header.channel_count;
            let was = self.header;
            self.header = next;
            self.enter()?;
            if is_other || was.channel_count != 0 && self.begin < end {
                let text = |header: &Header| {
                    format!("{} channels at sample {}", header.channel_count, header.first_sample_index)
                };
                return Err(Error::Changed { was: text(&was), is: text(&next) });
            }
        }
        Ok(true)
    }

    pub(super) fn enter(&mut self) -> Result<(), Error> {
        let index = i64::try_from(self.header.first_sample_index).unwrap_or(i64::MAX);
        let placed = index.checked_add(self.shift);
        let end = placed.and_then(|begin| begin.checked_add(self.header.block_length_samples.into()));
        let (Some(begin), Some(end)) = (placed, end) else {
            let (got, expected) = (self.header.first_sample_index, i64::MAX as u64);
            return Err(Error::Shape { what: "sample index of a merged stream", got, expected });
        };
        (self.begin, self.end) = (begin, end);
        Ok(())
    }

    /// Number of samples in the frame before this position.
    pub(super) fn offset(&self, place: i64) -> usize {
        (place - (self.end - i64::from(self.header.block_length_samples))) as usize
    }

    /// Copies samples of a channel from a position on.
    pub(super) fn copy(&self, channel: usize, begin: i64, out: &mut [u8]) {
        let frame = self.batch.as_ref().and_then(|batch| batch.frames().nth(self.frame));
        if let Some(bytes) = frame.and_then(|frame| frame.channel_bytes(channel).ok()) {
            let from = self.offset(begin) * self.header.format.bytes();
            out.copy_from_slice(&bytes[from..from + out.len()]);
        }
    }
}
