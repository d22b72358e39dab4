//! The header before the samples of a WAV.

use std::time::SystemTime;

use super::auxi::Auxi;
use crate::encoding::Encoding;

/// The header before the samples.
pub(crate) struct Header {
    /// Encoding of a number: complex samples are two channels.
    pub(crate) encoding: Encoding,
    pub(crate) channels: u16,
    pub(crate) sample_rate_hz: u32,
    /// For complex samples: the time of the first one, and the centre frequency, if known.
    pub(crate) receiver: Option<(Option<SystemTime>, Option<f64>)>,
}

impl Header {
    /// Bytes up to the first sample, for this size of samples; RF64 if they exceed a RIFF.
    pub(crate) fn bytes(&self, sample_bytes: u64) -> Vec<u8> {
        let Self { encoding, channels, sample_rate_hz, receiver } = *self;
        let frame_bytes = encoding.sample_bytes() * usize::from(channels);
        let mut format = Vec::new();
        format.extend((if encoding.format.is_float() { FLOAT } else { INTEGER }).to_le_bytes());
        format.extend(channels.to_le_bytes());
        format.extend(sample_rate_hz.to_le_bytes());
        format.extend(
            (u64::from(sample_rate_hz) * frame_bytes as u64).min(u32::MAX.into()).to_le_bytes()[..4].iter(),
        );
        format.extend((frame_bytes as u16).to_le_bytes());
        format.extend((8 * encoding.sample_bytes() as u16).to_le_bytes());
        let mut chunks = Vec::new();
        if encoding.format.is_float() {
            // Nothing more of the format; then, as for all but integers, how many samples there are.
            format.extend([0; 2]);
        }
        push_chunk(&mut chunks, b"fmt ", &format);
        let len_samples = sample_bytes / frame_bytes as u64;
        if encoding.format.is_float() {
            push_chunk(&mut chunks, b"fact", &len_samples.min(u32::MAX.into()).to_le_bytes()[..4]);
        }
        if let Some((start, frequency_hz)) = receiver {
            let length_s = len_samples as f64 / f64::from(sample_rate_hz);
            push_chunk(&mut chunks, b"auxi", &Auxi { start, frequency_hz }.bytes(length_s));
        }
        let riff_bytes = 4 + chunks.len() as u64 + 8 + sample_bytes + sample_bytes % 2;
        let mut file = Vec::new();
        if let (Ok(riff_bytes), Ok(sample_bytes)) = (u32::try_from(riff_bytes), u32::try_from(sample_bytes)) {
            file.extend(b"RIFF");
            file.extend(riff_bytes.to_le_bytes());
            file.extend(b"WAVE");
            file.append(&mut chunks);
            file.extend(b"data");
            file.extend(sample_bytes.to_le_bytes());
        } else {
            file.extend(b"RF64");
            file.extend(u32::MAX.to_le_bytes());
            file.extend(b"WAVE");
            let sizes = [riff_bytes + DS64_BYTES, sample_bytes, len_samples].map(u64::to_le_bytes).concat();
            push_chunk(&mut file, b"ds64", &[&sizes[..], &[0; 4]].concat());
            file.append(&mut chunks);
            file.extend(b"data");
            file.extend(u32::MAX.to_le_bytes());
        }
        file
    }
}

fn push_chunk(file: &mut Vec<u8>, name: &[u8; 4], bytes: &[u8]) {
    file.extend(name);
    file.extend((bytes.len() as u32).to_le_bytes());
    file.extend(bytes);
}

/// Size of a `ds64` chunk with its head.
const DS64_BYTES: u64 = 36;
const INTEGER: u16 = 1;
const FLOAT: u16 = 3;
