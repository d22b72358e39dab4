//! A view of one validated frame.

use std::borrow::Cow;

use crate::header::{HEADER_BYTES, Header, Refusal};

/// One frame, borrowed from the datagram, the pipe or the chunk it stands in.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    head: &'a [u8; HEADER_BYTES],
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Views a whole datagram as a frame.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Refusal> {
        Header::parse_datagram(datagram)?;
        Self::trusted(datagram).ok_or(Refusal::Short)
    }

    /// The bytes of a frame that was validated where it came in.
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

    /// The header as it stands on the wire.
    #[inline]
    pub fn header_bytes(&self) -> &'a [u8; HEADER_BYTES] {
        self.head
    }

    /// All channels' samples as they stand on the wire: channel-major, little-endian.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Samples of one channel, borrowed where the bytes are aligned to two and the host is little-endian, else copied;
    /// empty where there is no such channel.
    #[inline]
    pub fn channel(&self, channel: usize) -> Cow<'a, [i16]> {
        let header = self.header();
        let bytes = header.block_length_samples as usize * 2;
        samples(self.payload.get(channel * bytes..(channel + 1) * bytes).unwrap_or_default())
    }
}

/// Little-endian samples as `i16`, without a copy where the host allows.
#[inline]
fn samples(bytes: &[u8]) -> Cow<'_, [i16]> {
    if cfg!(target_endian = "little")
        && let Ok(samples) = bytemuck::try_cast_slice(bytes)
    {
        return Cow::Borrowed(samples);
    }
    Cow::Owned(bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect())
}

#[cfg(test)]
mod tests {
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
    fn channels_lie_one_behind_the_other() {
        let bytes = datagram(2, 3);
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!(frame.channel(0).as_ref(), [-3, -2, -1]);
        assert_eq!(frame.channel(1).as_ref(), [0, 1, 2]);
        assert!(frame.channel(2).is_empty());
    }

    #[test]
    fn a_misaligned_payload_is_copied_and_equal() {
        let bytes = datagram(1, 4);
        let mut shifted = vec![0; bytes.len() + 2];
        for offset in 0..2 {
            shifted[offset..offset + bytes.len()].copy_from_slice(&bytes);
            let frame = Frame::parse(&shifted[offset..offset + bytes.len()]).unwrap();
            assert_eq!(frame.channel(0).as_ref(), [-3, -2, -1, 0]);
            let aligned = (frame.payload().as_ptr() as usize).is_multiple_of(2);
            assert_eq!(
                matches!(frame.channel(0), Cow::Borrowed(_)),
                aligned && cfg!(target_endian = "little")
            );
        }
    }
}
