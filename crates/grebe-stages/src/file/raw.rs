//! Files of samples without structure: how each kind of number becomes an `i16`.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// How a sample stands in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Encoding {
    pub(crate) number: Number,
    pub(crate) order: Order,
}

/// A kind of number. Integers become `i16` by their upper 16 bits, floats by a full scale of 1.0 = 32,768.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    I8,
    U8,
    I16,
    U16,
    I24,
    I32,
    U32,
    F32,
    F64,
}

/// Which byte of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

/// Interleaved samples of one or several channels in a file.
#[derive(Debug)]
pub(crate) struct RawFile {
    path: PathBuf,
    file: File,
    encoding: Encoding,
    channels: usize,
    /// Where sample 0 stands.
    offset_bytes: u64,
    /// What was read and is not decoded yet; empty where nothing needs decoding.
    bytes: Vec<u8>,
}

impl Number {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Number::I8 | Number::U8 => 1,
            Number::I16 | Number::U16 => 2,
            Number::I24 => 3,
            Number::I32 | Number::U32 | Number::F32 => 4,
            Number::F64 => 8,
        }
    }

    /// What a person should know of the conversion.
    pub(crate) fn note(self) -> Option<&'static str> {
        match self {
            Number::I16 => None,
            Number::I8 | Number::U8 => Some("8-bit samples are scaled to 16 bits (times 256)"),
            Number::U16 => Some("unsigned samples are shifted to signed ones (minus 32,768)"),
            Number::I24 => Some("24-bit samples are cut to their upper 16 bits"),
            Number::I32 | Number::U32 => Some("32-bit samples are cut to their upper 16 bits"),
            Number::F32 | Number::F64 => {
                Some("float samples are scaled to 16 bits (1.0 becomes 32,768) and clipped")
            }
        }
    }
}

impl RawFile {
    pub(crate) fn new(
        path: &Path,
        file: File,
        encoding: Encoding,
        channels: usize,
        offset_bytes: u64,
    ) -> Self {
        let frame_bytes = encoding.number.bytes() * channels;
        let stands_as_is =
            encoding == Encoding { number: Number::I16, order: Order::Little } && channels == 1;
        let buffer_bytes = if stands_as_is { 0 } else { BUFFER_BYTES / frame_bytes * frame_bytes };
        Self { path: path.into(), file, encoding, channels, offset_bytes, bytes: vec![0; buffer_bytes] }
    }

    pub(crate) fn channels(&self) -> usize {
        self.channels
    }

    /// Reads `length` samples per channel from `position` on into `out`, whose channels begin `stride` samples apart.
    pub(crate) fn read(
        &mut self,
        position: u64,
        length: usize,
        stride: usize,
        out: &mut [i16],
    ) -> Result<(), Error> {
        self.try_read(position, length, stride, out).map_err(|source| Error::file("read", &self.path)(source))
    }

    fn try_read(
        &mut self,
        position: u64,
        length: usize,
        stride: usize,
        out: &mut [i16],
    ) -> std::io::Result<()> {
        let frame_bytes = self.encoding.number.bytes() * self.channels;
        self.file.seek(SeekFrom::Start(self.offset_bytes + position * frame_bytes as u64))?;
        if self.bytes.is_empty() {
            let out = &mut out[..length];
            self.file.read_exact(bytemuck::cast_slice_mut(out))?;
            if cfg!(target_endian = "big") {
                out.iter_mut().for_each(|sample| *sample = i16::from_le(*sample));
            }
            return Ok(());
        }
        let mut done = 0;
        while done < length {
            let now = (length - done).min(self.bytes.len() / frame_bytes);
            let bytes = &mut self.bytes[..now * frame_bytes];
            self.file.read_exact(bytes)?;
            for channel in 0..self.channels {
                let lane = &mut out[channel * stride + done..][..now];
                self.encoding.decode(bytes, channel, self.channels, lane);
            }
            done += now;
        }
        Ok(())
    }
}

impl Encoding {
    /// Takes one of `channels` interleaved channels out of `bytes`.
    fn decode(self, bytes: &[u8], channel: usize, channels: usize, out: &mut [i16]) {
        match self.number {
            Number::I8 => self.each(bytes, channel, channels, out, |[byte]| i16::from(byte as i8) << 8),
            Number::U8 => self.each(bytes, channel, channels, out, |[byte]| (i16::from(byte) - 128) << 8),
            Number::I16 => self.each(bytes, channel, channels, out, i16::from_le_bytes),
            Number::U16 => {
                self.each(bytes, channel, channels, out, |raw| (u16::from_le_bytes(raw) ^ 0x8000) as i16);
            }
            Number::I24 => {
                self.each(bytes, channel, channels, out, |[_, low, high]| i16::from_le_bytes([low, high]))
            }
            Number::I32 => {
                self.each(bytes, channel, channels, out, |raw| (i32::from_le_bytes(raw) >> 16) as i16)
            }
            Number::U32 => {
                let signed = |raw| ((u32::from_le_bytes(raw) ^ 0x8000_0000) >> 16) as i16;
                self.each(bytes, channel, channels, out, signed);
            }
            // `as` saturates, and makes 0 of what is not a number.
            Number::F32 => {
                self.each(bytes, channel, channels, out, |raw| {
                    (f32::from_le_bytes(raw) * 32_768.0).round() as i16
                });
            }
            Number::F64 => {
                self.each(bytes, channel, channels, out, |raw| {
                    (f64::from_le_bytes(raw) * 32_768.0).round() as i16
                });
            }
        }
    }

    /// Calls `convert` with the bytes of each sample of a channel, the lowest first.
    #[inline]
    fn each<const BYTES: usize>(
        self,
        bytes: &[u8],
        channel: usize,
        channels: usize,
        out: &mut [i16],
        convert: impl Fn([u8; BYTES]) -> i16,
    ) {
        let frames = bytes.as_chunks::<BYTES>().0.iter().skip(channel).step_by(channels);
        for (sample, raw) in out.iter_mut().zip(frames) {
            let mut raw = *raw;
            if self.order == Order::Big {
                raw.reverse();
            }
            *sample = convert(raw);
        }
    }
}

const BUFFER_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(number: Number, order: Order, bytes: &[u8]) -> Vec<i16> {
        let mut out = vec![0; bytes.len() / number.bytes()];
        Encoding { number, order }.decode(bytes, 0, 1, &mut out);
        out
    }

    #[test]
    fn every_number_becomes_what_its_note_says() {
        let little = Order::Little;
        assert_eq!(decode(Number::I8, little, &[0x80, 0, 0x7f]), [-32_768, 0, 32_512]);
        assert_eq!(decode(Number::U8, little, &[0, 128, 255]), [-32_768, 0, 32_512]);
        assert_eq!(decode(Number::I16, Order::Big, &[0x12, 0x34]), [0x1234]);
        assert_eq!(decode(Number::U16, little, &[0, 0, 0, 0x80, 0xff, 0xff]), [-32_768, 0, 32_767]);
        assert_eq!(decode(Number::I24, little, &[0xff, 0x34, 0x92]), [0x9234u16 as i16]);
        assert_eq!(decode(Number::I32, Order::Big, &[0x92, 0x34, 0, 0]), [0x9234u16 as i16]);
        assert_eq!(decode(Number::U32, little, &[0, 0, 0, 0x80, 0, 0, 0, 0]), [0, -32_768]);
        let floats = [1.0f32, -1.0, 0.5, -2.0, f32::NAN, 1e-9].map(f32::to_le_bytes).concat();
        assert_eq!(decode(Number::F32, little, &floats), [32_767, -32_768, 16_384, -32_768, 0, 0]);
        let floats = [-0.25f64, 3.0 / 32_768.0].map(f64::to_be_bytes).concat();
        assert_eq!(decode(Number::F64, Order::Big, &floats), [-8_192, 3]);
    }

    #[test]
    fn channels_are_taken_apart() {
        let bytes: Vec<u8> = (0..12i16).flat_map(i16::to_le_bytes).collect();
        for channel in 0..3 {
            let mut out = [0; 4];
            Encoding { number: Number::I16, order: Order::Little }.decode(&bytes, channel, 3, &mut out);
            assert_eq!(out, [0, 3, 6, 9].map(|sample| sample + channel as i16));
        }
    }
}
