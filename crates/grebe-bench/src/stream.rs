//! Shared parts of the stream benches: frames with known samples, pacing, checks, and results.

mod check;
mod maker;
mod pattern;
mod run;

pub use check::Checker;
pub(crate) use check::{Seen, Work};
pub use maker::{FrameSender, Frames};
pub(crate) use maker::{Made, Maker, Plan};
pub(crate) use run::{Faults, RunOf, SocketCosts, StreamRun, measured};

use grebe_frame::{HEADER_BYTES, SampleFormat};

use crate::error::{Error, Result};

/// Content and rate of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stream {
    pub label: &'static str,
    /// Format of a sample.
    pub format: SampleFormat,
    /// Channels per frame.
    pub channels: u32,
    /// Samples per channel and frame; `None`: as many as fit.
    pub block: Option<u32>,
    /// Millions of samples per second and channel; `None`: as fast as it goes.
    pub target_msps: Option<f64>,
}

impl Stream {
    /// Samples per channel of a frame of at most `frame_bytes`, a multiple of `grain`.
    pub(crate) fn block_for(&self, frame_bytes: usize, grain: usize) -> Result<u32> {
        let sample_bytes = self.format.bytes() * self.channels as usize;
        let room = frame_bytes.saturating_sub(HEADER_BYTES) / sample_bytes / grain * grain;
        if room == 0 {
            return Err(Error::Usage(format!(
                "{frame_bytes} bytes have no room for a frame of {} channels; at least {} are needed",
                self.channels,
                HEADER_BYTES + sample_bytes * grain
            )));
        }
        Ok(self.block.map_or(room as u32, |block| block.min(room as u32)))
    }
}
