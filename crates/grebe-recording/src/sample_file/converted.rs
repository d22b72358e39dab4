//! How samples become others while they are read.

use grebe_frame::SampleFormat;
use grebe_process::Conversion;

use super::window::Window;
use crate::error::Error;

/// How samples become others while they are read.
#[derive(Debug)]
pub(super) struct Converted {
    pub(super) conversion: Conversion,
    /// Format in the file.
    pub(super) from: SampleFormat,
    pub(super) window: Window,
    pub(super) saturated_samples: u64,
}

impl Converted {
    /// Fills `window`, which has the room, with samples from `read`, which gets memory and its stride.
    pub(super) fn fill(
        &mut self,
        window: &mut Window,
        to: SampleFormat,
        channels: usize,
        length: usize,
        read: impl FnOnce(&mut [u8], usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.window.make_room(self.from.bytes(), channels, length);
        let stride_bytes = self.window.stride_bytes;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.window.words);
        read(bytes, stride_bytes)?;
        let out: &mut [u8] = bytemuck::cast_slice_mut(&mut window.words);
        let channels = bytes.chunks(stride_bytes).zip(out.chunks_mut(window.stride_bytes)).take(channels);
        for (from, out) in channels {
            let (from, out) = (&from[..length * self.from.bytes()], &mut out[..length * to.bytes()]);
            self.saturated_samples += self.conversion.apply(from, out);
        }
        Ok(())
    }
}
