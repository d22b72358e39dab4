//! Samples of a recording or a frame, as they lie in memory.

use std::borrow::Cow;

use grebe_frame::{ChannelError, Frame, Sample, SampleFormat};
use grebe_process::numbers::load;

/// Samples of all channels, on loan until the next block is requested.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) format: SampleFormat,
    pub(super) channels: usize,
    pub(super) stride_bytes: usize,
    pub(super) first: usize,
    pub(super) length: usize,
}

impl<'a> Block<'a> {
    /// The samples of a frame, for code that handles recordings and streams alike.
    pub fn of_frame(frame: &Frame<'a>) -> Self {
        let header = frame.header();
        let length = header.block_length_samples as usize;
        Self {
            bytes: frame.payload(),
            format: header.format,
            channels: header.channel_count as usize,
            stride_bytes: length * header.format.bytes(),
            first: 0,
            length,
        }
    }

    /// Sample format.
    pub fn format(&self) -> SampleFormat {
        self.format
    }

    /// How many channels it has.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Samples per channel.
    pub fn len_samples(&self) -> usize {
        self.length
    }

    /// The components of one channel, from 0, as numbers around zero in any format; I and Q of complex
    /// samples alternate.
    ///
    /// # Errors
    /// The channel does not exist.
    pub fn numbers(&self, channel: usize, numbers: &mut Vec<f32>) -> Result<(), ChannelError> {
        let bytes = self.channel_bytes(channel)?;
        numbers.resize(self.length * self.format.components(), 0.0);
        load(self.format, bytes, numbers);
        Ok(())
    }

    /// The samples of one channel, from 0. On a big-endian host they are a copy.
    ///
    /// # Errors
    /// The samples are of another format than `T`, or the channel does not exist.
    #[inline]
    pub fn channel<T: Sample>(&self, channel: usize) -> Result<Cow<'a, [T]>, ChannelError> {
        if T::FORMAT != self.format {
            return Err(ChannelError::Format { asked: T::FORMAT, is: self.format });
        }
        let bytes = self.channel_bytes(channel)?;
        if cfg!(target_endian = "little")
            && let Ok(samples) = bytemuck::try_cast_slice(bytes)
        {
            return Ok(Cow::Borrowed(samples));
        }
        let mut samples = vec![T::default(); self.length];
        let copy = bytemuck::cast_slice_mut(&mut samples);
        copy.copy_from_slice(bytes);
        T::FORMAT.swap_to_host(copy);
        Ok(Cow::Owned(samples))
    }

    /// The bytes of one channel, from 0, in the layout of a frame, in any format.
    ///
    /// # Errors
    /// The channel does not exist.
    #[inline]
    pub fn channel_bytes(&self, channel: usize) -> Result<&'a [u8], ChannelError> {
        if channel >= self.channels {
            return Err(ChannelError::Channel { asked: channel, channels: self.channels });
        }
        let sample_bytes = self.format.bytes();
        let at = channel * self.stride_bytes + self.first * sample_bytes;
        Ok(&self.bytes[at..at + self.length * sample_bytes])
    }
}
