//! Samples of a stage with another rate, collected for a frame.

use std::time::Duration;

use grebe_flow::{Context, Outputs, Rewriter, StageResult};
use grebe_frame::{Header, Refusal, SampleFormat};

use crate::stream::{DATAGRAM_BYTES, block_length};

/// Samples for the next frame.
#[derive(Debug)]
pub(super) struct Block<T> {
    channels: Vec<Vec<T>>,
    /// Values per sample.
    width: usize,
    /// Header of the next frame, except for its length.
    header: Header,
    length_max: usize,
}

/// Output of complete frames, numbered from 0.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub(super) rewriter: Rewriter,
    pub(super) sequence: u64,
    refused: Option<Refusal>,
}

impl Frames {
    /// # Errors
    /// A frame that no receiver would accept.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        self.refused.map_or(Ok(()), Err)
    }
}

impl<T: Copy> Block<T> {
    pub(super) fn new() -> Self {
        Self { channels: Vec::new(), width: 1, header: Header::default(), length_max: 0 }
    }

    /// Starts the next frame with this header. Its length is a multiple of `together` samples of `width`
    /// values. No samples may be waiting.
    pub(super) fn begin(&mut self, header: Header, together: usize, width: usize) {
        let Header { format, channel_count, sample_rate_hz, .. } = header;
        let fits = block_length(DATAGRAM_BYTES, channel_count as usize, format, sample_rate_hz) as usize;
        (self.header, self.width) = (header, width);
        self.length_max = (fits - fits % together).max(together);
        self.channels.resize_with(channel_count as usize, Vec::new);
        self.channels.iter_mut().for_each(|channel| channel.reserve(self.length_max * width));
    }

    pub(super) fn extend(&mut self, channel: usize, samples: impl IntoIterator<Item = T>) {
        if let Some(waiting) = self.channels.get_mut(channel) {
            waiting.extend(samples);
        }
    }

    /// Like [`extend`](Self::extend), two values at a time.
    pub(super) fn extend_pairs(&mut self, channel: usize, pairs: impl Iterator<Item = [T; 2]>) {
        if let Some(waiting) = self.channels.get_mut(channel) {
            pairs.for_each(|pair| waiting.extend_from_slice(&pair));
        }
    }

    /// Samples per channel.
    pub(super) fn len(&self) -> usize {
        self.channels.first().map_or(0, Vec::len) / self.width
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() > 0 && self.len() >= self.length_max
    }

    /// Samples per channel that still fit into the frame.
    pub(super) fn room(&self) -> usize {
        self.length_max.saturating_sub(self.len())
    }

    /// Format of the next frame.
    pub(super) fn format(&self) -> SampleFormat {
        self.header.format
    }

    /// Makes a frame of the collected samples, by a function that writes wire format. Returns whether there
    /// was a chunk.
    pub(super) fn flush(
        &mut self,
        frames: &mut Frames,
        mut write: impl FnMut(&[T], &mut [u8]),
        output: &mut Outputs,
        ctx: &Context,
    ) -> bool {
        let length = self.len();
        if length == 0 {
            return true;
        }
        let header = Header { sequence: frames.sequence, block_length_samples: length as u32, ..self.header };
        let fill = |channel: usize, out: &mut [u8]| write(&self.channels[channel], out);
        match frames.rewriter.push_bytes(&header, fill, output, ctx) {
            Ok(false) => return false,
            Ok(true) => frames.sequence += 1,
            // A retry would be refused again, so this ends the stage without waiting.
            Err(refusal) => frames.refused = Some(refusal),
        }
        self.channels.iter_mut().for_each(Vec::clear);
        true
    }
}

/// Retries without a chunk, because a stopping graph does not wait for one by itself.
pub(super) fn finish(mut flush: impl FnMut() -> bool) -> StageResult<()> {
    for _ in 0..FINISH_TRIES {
        if flush() {
            return Ok(());
        }
        std::thread::sleep(FINISH_PAUSE);
    }
    Err("the last samples found no memory: a consumer holds all of it".into())
}

const FINISH_TRIES: u32 = 50;
const FINISH_PAUSE: Duration = Duration::from_millis(5);
