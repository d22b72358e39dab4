//! Format of a sample: from the `fmt ` chunk and, where that is ambiguous, from the samples.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use grebe_frame::{MAX_CHANNELS, SampleFormat};

use super::chunks::{Chunks, Format};
use super::numbers::{u16_at, u32_at};
use crate::encoding::Encoding;
use crate::error::Error;

/// Position of the used bits in an integer, from the samples.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) encoding: Encoding,
    /// Number of used bits at the lower end.
    pub(super) bits: Option<u32>,
    pub(super) note: Option<String>,
}

impl Chunks<'_> {
    /// Reads the chunk of this size at the file's position.
    pub(super) fn format(&mut self, bytes: u32) -> Result<Format, Error> {
        if bytes < 16 {
            return Err(self.malformed("its fmt chunk is shorter than 16 bytes"));
        }
        let raw = self.array::<16>()?;
        let [tag, channels, frame_bytes, bits] = [0, 2, 12, 14].map(|at| u16_at(&raw, at));
        let (tag, valid) = if tag == EXTENSIBLE && bytes >= 26 {
            let more = self.array::<10>()?;
            (u16_at(&more, 8), u16_at(&more, 2))
        } else {
            (tag, 0)
        };
        if channels == 0 || u32::from(channels) > MAX_CHANNELS {
            return Err(self.field("number of channels", channels, "1 to 255 can be read"));
        }
        if tag != INTEGER && tag != FLOAT {
            let path = self.path.display();
            let must = format!(
                "only uncompressed integers (1) and floats (3) can be read: convert it, as in sox '{path}' -e signed-integer -b 16 out.wav"
            );
            return Err(self.field("format tag", tag, &must));
        }
        // A writer that means another block size also states the matching bytes per second.
        let is_block = u32_at(&raw, 8) == u32_at(&raw, 4).wrapping_mul(frame_bytes.into());
        let sample_bytes = self.sample_bytes(tag, channels, frame_bytes, bits, is_block)?;
        let encoding = match (tag, sample_bytes) {
            (INTEGER, 1) => Encoding::of(SampleFormat::U8),
            (INTEGER, 2) => Encoding::of(SampleFormat::I16),
            (INTEGER, 3) => Encoding::I24,
            (INTEGER, 4) => Encoding::of(SampleFormat::I32),
            (FLOAT, 4) => Encoding::of(SampleFormat::F32),
            (FLOAT, 8) => Encoding::of(SampleFormat::F64),
            _ => {
                return Err(self.field("bits a sample", bits, BITS));
            }
        };
        let valid = u32::from(if valid > 0 { valid } else { bits });
        let is_fewer = tag == INTEGER && sample_bytes > 1 && valid > 0 && valid < 8 * u32::from(sample_bytes);
        let valid_bits = is_fewer.then_some(valid);
        Ok(Format { encoding, channels: channels.into(), sample_rate_hz: u32_at(&raw, 4), valid_bits })
    }

    /// Bytes of a sample of one channel, by the bits and the block align, which do not always agree.
    fn sample_bytes(
        &mut self,
        tag: u16,
        channels: u16,
        frame_bytes: u16,
        bits: u16,
        is_block: bool,
    ) -> Result<u16, Error> {
        let by_bits = bits.div_ceil(8);
        if !(1..=8).contains(&by_bits) {
            return Err(self.field("bits a sample", bits, BITS));
        }
        let (frame, by_bits_frame) = (u32::from(frame_bytes), u32::from(by_bits) * u32::from(channels));
        if frame == by_bits_frame {
            return Ok(by_bits);
        }
        // Integers may take more bytes than their bits need.
        let by_align = frame_bytes / channels;
        let is_wider = bits > 8 && (by_bits..=4).contains(&by_align);
        if tag == INTEGER && is_block && is_wider && frame_bytes.is_multiple_of(channels) {
            return Ok(by_align);
        }
        // Some writers state the bits of a frame, or the bytes of one channel.
        let is_other_unit =
            frame == u32::from(bits) * u32::from(channels) || frame == u32::from(by_bits) || frame == 0;
        if bits > 0 && is_other_unit {
            self.notes.push(format!(
                "block align is {frame_bytes}, and {channels} channels of {bits} bits take {by_bits_frame} bytes: it is read so"
            ));
            return Ok(by_bits);
        }
        Err(self.field("block align", frame_bytes, "it must be channels times bytes per sample"))
    }
}

impl Level {
    /// Of a file with `bytes` bytes of samples from `offset_bytes` on.
    pub(super) fn of(format: &Format, mut file: &File, offset_bytes: u64, bytes: u64) -> io::Result<Self> {
        let encoding = format.encoding;
        let as_told = Self { encoding, bits: None, note: None };
        let Some(valid) = format.valid_bits else { return Ok(as_told) };
        let sample_bytes = encoding.sample_bytes();
        let mut samples = Vec::new();
        file.seek(SeekFrom::Start(offset_bytes))?;
        file.take(bytes.min(LOOKED_AT_BYTES) / 12 * 12).read_to_end(&mut samples)?;
        // Sign-extended at any width.
        let numbers = || samples.chunks_exact(sample_bytes).map(number);
        let width = 8 * sample_bytes as u32;
        let spare = width - valid;
        let says = format!("the header says {valid} bits of {width}");
        if numbers().all(|number| number.trailing_zeros() >= spare) {
            // As the format has it: at the upper end.
            return Ok(as_told);
        }
        let lower = |number: i32| number << (32 - valid) >> (32 - valid);
        if numbers().all(|number| lower(number) == number) {
            let note = format!("{says}, which stand at the lower end: full scale is that of {valid} bits");
            return Ok(Self { encoding, bits: Some(valid), note: Some(note) });
        }
        if valid == 24 && numbers().all(|number| number >> 24 == 0) {
            let note = format!("{says}, which stand at the lower end, without their sign above them");
            return Ok(Self { encoding: Encoding::I24_OF_32, bits: None, note: Some(note) });
        }
        let note = format!("{says}, and the samples use more: they are read with all {width}");
        Ok(Self { note: Some(note), ..as_told })
    }
}

fn number(bytes: &[u8]) -> i32 {
    let padded = bytes.iter().rev().fold(0u32, |number, &byte| number << 8 | u32::from(byte));
    let shift = 32 - 8 * bytes.len() as u32;
    (padded << shift) as i32 >> shift
}

const BITS: &str = "8, 16, 24 and 32 (float: 32, 64) can be read";
const INTEGER: u16 = 1;
const FLOAT: u16 = 3;
/// The actual tag is 24 bytes into the chunk.
const EXTENSIBLE: u16 = 0xfffe;
/// Bytes examined to find the used bits of samples.
const LOOKED_AT_BYTES: u64 = 1 << 20;
