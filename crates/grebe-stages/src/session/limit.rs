//! Limits the samples of a stream.

use grebe_flow::{Context, Outputs};
use grebe_frame::{Batch, BatchMut, BatchPool, Frame, Header, PushError};

/// Sends on a number of samples per channel, and no more.
#[derive(Debug, Default)]
pub(crate) struct Limit {
    /// `None`: all of them.
    left: Option<u64>,
}

impl Limit {
    pub(crate) fn new(samples: Option<u64>) -> Self {
        Self { left: samples }
    }

    /// Samples per channel left to send; `None`: all.
    pub(crate) fn left(&self) -> Option<u64> {
        self.left
    }

    /// Whether the limit is reached.
    pub(crate) fn is_reached(&self) -> bool {
        self.left == Some(0)
    }

    /// Sends on the part of a batch within the limit.
    pub(crate) fn send(&mut self, batch: Batch, output: &mut Outputs, ctx: &Context) {
        let Some(left) = &mut self.left else { return output.send(batch, ctx) };
        let samples = batch.samples();
        if samples <= *left {
            *left -= samples;
            return output.send(batch, ctx);
        }
        // Only the last batch of a stream is cut, and copied.
        if *left > 0
            && let Some(cut) = cut(&batch, *left)
        {
            output.send(cut, ctx);
        }
        *left = 0;
    }
}

/// The first samples of a batch.
fn cut(batch: &Batch, samples: u64) -> Option<Batch> {
    let bytes = batch.frames().map(|frame| frame.header().frame_bytes().next_multiple_of(64)).sum();
    let mut own = BatchPool::new(1, bytes).acquire()?;
    own.describe(batch.description());
    let mut left = samples;
    for frame in batch.frames() {
        let length = left.min(u64::from(frame.header().block_length_samples));
        if length == 0 {
            break;
        }
        push_start(&mut own, &frame, length as usize).ok()?;
        left -= length;
    }
    Some(own.freeze())
}

fn push_start(own: &mut BatchMut, frame: &Frame<'_>, length: usize) -> Result<(), PushError> {
    let header = Header { block_length_samples: length as u32, ..frame.header() };
    own.push_bytes(&header, |channel, out| {
        // The same header with a shorter length, so every channel exists and is long enough.
        out.copy_from_slice(&frame.channel_bytes(channel).unwrap_or_default()[..out.len()]);
    })
}

#[cfg(test)]
mod tests {
    use grebe_testing::stream::{batches_of, frames_of};

    use super::*;

    #[test]
    fn a_batch_is_cut_at_the_sample() {
        for channels in [1, 5, 8] {
            let batch = batches_of(channels, &[(0, 64), (64, 33), (97, 40)], 3).remove(0);
            let whole = frames_of(std::slice::from_ref(&batch));
            for samples in [1, 64, 65, 97, 136] {
                let part = frames_of(&[cut(&batch, samples).unwrap()]);
                let of = |frames: &[(Header, Vec<Vec<i16>>)], channel: usize| -> Vec<i16> {
                    frames.iter().flat_map(|(_, samples)| samples[channel].clone()).collect()
                };
                for channel in 0..channels as usize {
                    assert_eq!(of(&part, channel), of(&whole, channel)[..samples as usize]);
                }
                assert!(part.iter().zip(&whole).all(|((cut, _), (was, _))| cut.sequence == was.sequence));
            }
        }
    }
}
