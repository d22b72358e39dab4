//! Samples of any format as a function of channel and sample index, without computing any during a run.
//!
//! The payload of frame `n` is a window of a table of noise. Each window starts 64 bytes after the previous one
//! (unaligned sources lose 10-30 %) and repeats only after 4,093 frames, a prime. So stale, swapped and shifted
//! samples are detected. The source is as hot in cache as freshly made samples.

use grebe_frame::{Header, SampleFormat};

/// Windows of the table.
const WINDOWS: u64 = 4_093;

/// Samples between windows: 64 bytes.
const GRAIN: usize = 32;

/// The payloads of a run.
#[derive(Debug)]
pub(crate) struct Pattern {
    table: Vec<u8>,
    /// Bytes before the first aligned sample.
    skip: usize,
    payload_bytes: usize,
    format: SampleFormat,
    channels: u32,
    block: u32,
    /// Bytes by which every hundredth payload is off, to see that it is noticed.
    #[cfg(test)]
    pub(crate) spoiled_by: isize,
}

impl Pattern {
    /// Frames after which payloads repeat.
    pub(crate) const PERIOD: u64 = WINDOWS;

    pub(crate) fn new(format: SampleFormat, channels: u32, block: u32) -> Self {
        let payload_bytes = channels as usize * block as usize * format.bytes();
        let samples = WINDOWS as usize * GRAIN + payload_bytes.div_ceil(2);
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut table = vec![0_u8; 64];
        table.reserve_exact(samples * 2);
        for _ in 0..samples {
            // xorshift: any noise will do that has no period within the table.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            table.extend_from_slice(&((state >> 32) as i16).to_le_bytes());
        }
        let skip = table.as_ptr().align_offset(64).min(64);
        // Moves the content after byte 64 to the aligned position.
        table.copy_within(64.., skip);
        Self {
            table,
            skip,
            payload_bytes,
            format,
            channels,
            block,
            #[cfg(test)]
            spoiled_by: 0,
        }
    }

    /// Payload of the frame with this sequence number.
    #[inline]
    pub(crate) fn payload(&self, sequence: u64) -> &[u8] {
        let window = (sequence % WINDOWS) as usize;
        let at = self.skip + window * GRAIN * 2;
        #[cfg(test)]
        let at = match sequence % 100 {
            99 => at.saturating_add_signed(self.spoiled_by).min(self.table.len() - self.payload_bytes),
            _ => at,
        };
        &self.table[at..at + self.payload_bytes]
    }

    #[inline]
    pub(crate) fn header(&self, sequence: u64, producer_ts_ns: u64, sample_rate_hz: f64) -> Header {
        Header {
            format: self.format,
            sequence,
            producer_ts_ns,
            channel_count: self.channels,
            block_length_samples: self.block,
            sample_rate_hz,
            sg_drops_total: 0,
            first_sample_index: sequence.wrapping_mul(u64::from(self.block)),
        }
    }

    pub(crate) fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    /// Whether these are the samples of the frame that the header claims to be.
    #[inline]
    pub(crate) fn holds(&self, header: &Header, payload: &[u8]) -> bool {
        self.describes(header) && payload == self.payload(header.sequence)
    }

    /// Whether a frame of this sequence has such a header.
    #[inline]
    pub(crate) fn describes(&self, header: &Header) -> bool {
        *header == self.header(header.sequence, header.producer_ts_ns, header.sample_rate_hz)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_aligned_and_differ() {
        let pattern = Pattern::new(SampleFormat::I16, 2, 100);
        assert!((0..5_000).all(|sequence| pattern.payload(sequence).as_ptr().addr().is_multiple_of(64)));
        for other in 1..WINDOWS {
            assert_ne!(pattern.payload(0), pattern.payload(other));
        }
    }

    #[test]
    fn stale_swapped_and_shifted_payloads_are_known() {
        let pattern = Pattern::new(SampleFormat::I16, 2, 100);
        let header = pattern.header(7, 0, 0.0);
        let good = pattern.payload(7).to_vec();
        assert!(pattern.holds(&header, &good));
        assert!(!pattern.holds(&header, pattern.payload(6)), "stale");
        let swapped = [&good[200..], &good[..200]].concat();
        assert!(!pattern.holds(&header, &swapped), "channels swapped");
        let mut shifted = good.clone();
        shifted.rotate_left(2);
        assert!(!pattern.holds(&header, &shifted), "shifted by a sample");
    }
}
