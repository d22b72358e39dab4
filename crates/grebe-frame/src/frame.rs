//! A view of one validated frame.

use std::borrow::Cow;

use crate::format::{Sample, SampleFormat, to_host};
use crate::header::{HEADER_BYTES, Header, Refusal};

/// One frame, borrowed from its datagram, pipe or chunk.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    head: &'a [u8; HEADER_BYTES],
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Views a whole datagram as a frame.
    ///
    /// # Errors
    /// The reason why it is not a frame.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Refusal> {
        Header::parse_datagram(datagram)?;
        Self::trusted(datagram).ok_or(Refusal::Short)
    }

    /// A frame that was validated on arrival.
    #[inline]
    pub(crate) fn trusted(bytes: &'a [u8]) -> Option<Self> {
        let (head, payload) = bytes.split_first_chunk()?;
        Some(Self { head, payload })
    }

    /// The header, decoded.
    #[inline]
    pub fn header(&self) -> Header {
        Header::trusted(self.head)
    }

    /// The header as on the wire.
    #[inline]
    pub fn header_bytes(&self) -> &'a [u8; HEADER_BYTES] {
        self.head
    }

    /// The samples of all channels as on the wire: channel-major, little-endian.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Samples of one channel (from 0): borrowed if the bytes are aligned and the host is little-endian, otherwise
    /// copied.
    ///
    /// # Errors
    /// The frame has another format, or fewer channels.
    #[inline]
    pub fn channel<T: Sample>(&self, channel: usize) -> Result<Cow<'a, [T]>, ChannelError> {
        if self.header().format != T::FORMAT {
            return Err(ChannelError::Format { asked: T::FORMAT, is: self.header().format });
        }
        self.channel_bytes(channel).map(samples)
    }

    /// The samples of all channels, concatenated; borrowed or copied as by [`channel`](Self::channel).
    ///
    /// # Errors
    /// The frame has another format.
    #[inline]
    pub fn samples<T: Sample>(&self) -> Result<Cow<'a, [T]>, ChannelError> {
        let is = self.header().format;
        if is != T::FORMAT {
            return Err(ChannelError::Format { asked: T::FORMAT, is });
        }
        Ok(samples(self.payload))
    }

    /// The bytes of one channel (from 0) as on the wire, in any format.
    ///
    /// # Errors
    /// The channel does not exist.
    #[inline]
    pub fn channel_bytes(&self, channel: usize) -> Result<&'a [u8], ChannelError> {
        let header = self.header();
        let channels = header.channel_count as usize;
        let bytes = header.block_length_samples as usize * header.format.bytes();
        let range = channel * bytes..(channel + 1) * bytes;
        let found = self.payload.get(range).filter(|_| channel < channels);
        found.ok_or(ChannelError::Channel { asked: channel, channels })
    }
}

/// Error of a request for samples that a frame does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The frame has another format.
    #[error("the samples are {is}, but {asked} is needed: put a convert stage before this one")]
    Format {
        /// The requested format.
        asked: SampleFormat,
        /// The format of the frame.
        is: SampleFormat,
    },
    /// The frame has fewer channels.
    #[error("channel {asked} (from 0) does not exist: the stream has {channels}")]
    Channel {
        /// The requested channel.
        asked: usize,
        /// Channels of the frame.
        channels: usize,
    },
}

/// Samples in the host's byte order, without a copy if possible.
#[inline]
fn samples<T: Sample>(bytes: &[u8]) -> Cow<'_, [T]> {
    if cfg!(target_endian = "little")
        && let Ok(samples) = bytemuck::try_cast_slice(bytes)
    {
        return Cow::Borrowed(samples);
    }
    Cow::Owned(to_host(bytes))
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use super::*;

    fn datagram(channels: u32, block: u32) -> Vec<u8> {
        let header = Header { channel_count: channels, block_length_samples: block, ..Header::default() };
        let mut bytes = vec![0; header.frame_bytes()];
        header.write(bytes.first_chunk_mut().unwrap());
        for (position, pair) in bytes[HEADER_BYTES..].chunks_exact_mut(2).enumerate() {
            pair.copy_from_slice(&(position as i16 - 3).to_le_bytes());
        }
        bytes
    }

    #[test]
    fn channels_are_stored_one_after_the_other() {
        let bytes = datagram(2, 3);
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!(frame.channel::<i16>(0).unwrap().as_ref(), [-3, -2, -1]);
        assert_eq!(frame.channel::<i16>(1).unwrap().as_ref(), [0, 1, 2]);
        assert_eq!(frame.channel::<i16>(2), Err(ChannelError::Channel { asked: 2, channels: 2 }));
        let asked = SampleFormat::Cf32;
        let wrong = Err(ChannelError::Format { asked, is: SampleFormat::I16 });
        assert_eq!(frame.channel::<Complex<f32>>(0), wrong);
        assert_eq!(frame.channel_bytes(1), Ok(&[0, 0, 1, 0, 2, 0][..]));
    }

    #[test]
    fn an_end_has_channels_without_samples() {
        let bytes = datagram(2, 0);
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!(frame.channel::<i16>(1).unwrap().len(), 0);
        assert!(frame.channel::<i16>(2).is_err());
    }

    #[test]
    fn a_misaligned_payload_is_copied_and_equal() {
        let bytes = datagram(1, 4);
        let mut shifted = vec![0; bytes.len() + 2];
        for offset in 0..2 {
            shifted[offset..offset + bytes.len()].copy_from_slice(&bytes);
            let frame = Frame::parse(&shifted[offset..offset + bytes.len()]).unwrap();
            assert_eq!(frame.channel::<i16>(0).unwrap().as_ref(), [-3, -2, -1, 0]);
            let aligned = (frame.payload().as_ptr() as usize).is_multiple_of(2);
            assert_eq!(
                matches!(frame.channel::<i16>(0), Ok(Cow::Borrowed(_))),
                aligned && cfg!(target_endian = "little")
            );
        }
    }
}
