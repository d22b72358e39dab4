use grebe_frame::HEADER_BYTES;

use crate::error::{Error, Result};

/// What is sent, and at which rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stream {
    pub label: &'static str,
    /// Channels per frame.
    pub channels: u32,
    /// Samples per channel and frame; `None`: what fits.
    pub block: Option<u32>,
    /// Millions of samples per second and channel; `None`: as fast as it goes.
    pub target_msps: Option<f64>,
}

impl Stream {
    /// Samples per channel in a frame of at most so many bytes, a multiple of `grain`.
    ///
    /// # Errors
    /// [`Error::TooSmall`].
    pub(crate) fn block_for(&self, frame_bytes: usize, grain: usize) -> Result<u32> {
        let sample_bytes = 2 * self.channels as usize;
        let room = frame_bytes.saturating_sub(HEADER_BYTES) / sample_bytes / grain * grain;
        if room == 0 {
            let needed = HEADER_BYTES + sample_bytes * grain;
            return Err(Error::TooSmall { bytes: frame_bytes, channels: self.channels, needed });
        }
        let room = room as u32;
        Ok(self.block.map_or(room, |block| block.min(room)))
    }
}
