//! Position in a stream whose gaps are being filled.

use grebe_frame::{Frame, Header, SampleFormat};

/// Position after the last frame: the start of the next one if nothing is missing.
#[derive(Debug)]
pub(super) struct Position {
    pub(super) index: u64,
    pub(super) sequence_in: u64,
    pub(super) sequence_out: u64,
    pub(super) format: SampleFormat,
    pub(super) channel_count: u32,
    pub(super) sample_rate_hz: f64,
    /// Last sample of each channel, in wire format.
    pub(super) last: Vec<u8>,
    pub(super) is_filling: bool,
}

impl Position {
    pub(super) fn at(header: &Header) -> Self {
        Self {
            index: header.first_sample_index,
            sequence_in: header.sequence,
            sequence_out: header.sequence,
            format: header.format,
            channel_count: header.channel_count,
            sample_rate_hz: header.sample_rate_hz,
            last: vec![0; header.channel_count as usize * header.format.bytes()],
            is_filling: false,
        }
    }

    pub(super) fn goes_on(&self, header: &Header) -> bool {
        header.first_sample_index >= self.index
            && header.sequence >= self.sequence_in
            && header.channel_count == self.channel_count
            && header.format == self.format
            && header.sample_rate_hz == self.sample_rate_hz
    }

    /// Notes that `frames` frames passed, the last one given, with numbers `shift` above the input.
    pub(super) fn pass(&mut self, last: &Frame<'_>, frames: u64, shift: u64) {
        let header = last.header();
        self.index = header.next_sample_index();
        self.sequence_out += frames;
        self.sequence_in = self.sequence_out.wrapping_sub(shift);
        let bytes = header.format.bytes();
        for (channel, held) in self.last.chunks_exact_mut(bytes).enumerate() {
            if let Some(sample) = last.channel_bytes(channel).unwrap_or_default().rchunks_exact(bytes).next()
            {
                held.copy_from_slice(sample);
            }
        }
    }
}
