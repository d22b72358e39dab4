//! Reads samples of a recording as frames for a history.

use std::io;

use grebe_frame::{Batch, BatchPool, Frame, Header};

use crate::data::recording::Recording;

/// Reads into its own buffer.
#[derive(Debug, Default)]
pub(super) struct Reader {
    bytes: Vec<u8>,
    pool: Option<BatchPool>,
}

impl Reader {
    /// Calls `each` with frames of `length` samples from `position` on, until it returns false. The first frame has
    /// the index `first`.
    pub(super) fn read(
        &mut self,
        recording: &mut dyn Recording,
        position: u64,
        length: u64,
        first: u64,
        mut each: impl FnMut(&Frame<'_>, u64) -> bool,
    ) -> io::Result<()> {
        let outline = recording.outline();
        let (format, channels) = (outline.format, outline.channels);
        let sample_bytes = format.bytes() * channels;
        let (read_max, frame_max) =
            ((READ_BYTES / sample_bytes).max(1) as u64, (FRAME_BYTES / sample_bytes).max(1));
        let mut done = 0;
        while done < length {
            let now = (length - done).min(read_max) as usize;
            recording.read(position + done, now, &mut self.bytes)?;
            for at in (0..now).step_by(frame_max) {
                let part = at..(at + frame_max).min(now);
                let Some(batch) = self.frame(format, channels, now, part.clone()) else { return Ok(()) };
                let index = first + done + at as u64;
                if !batch.frames().all(|frame| each(&frame, index)) {
                    return Ok(());
                }
            }
            done += now as u64;
        }
        Ok(())
    }

    /// A part of the read samples, as a frame.
    fn frame(
        &mut self,
        format: grebe_frame::SampleFormat,
        channels: usize,
        read: usize,
        part: std::ops::Range<usize>,
    ) -> Option<Batch> {
        let pool = self.pool.get_or_insert_with(|| BatchPool::new(1, FRAME_BYTES * 2));
        let mut batch = pool.acquire()?;
        let header = Header {
            channel_count: channels as u32,
            format,
            block_length_samples: part.len() as u32,
            ..Header::default()
        };
        let (bytes, size) = (&self.bytes, format.bytes());
        let fill = |channel: usize, out: &mut [u8]| {
            let from = (channel * read + part.start) * size;
            out.copy_from_slice(&bytes[from..from + out.len()]);
        };
        batch.push_bytes(&header, fill).ok()?;
        Some(batch.freeze())
    }
}

const READ_BYTES: usize = 1 << 20;
const FRAME_BYTES: usize = 60 << 10;
