//! The GFH2 header: 64 bytes, little-endian on every host.
//!
//! | offset | field | type |
//! |---|---|---|
//! | 0 | magic `GFH2` | u32 |
//! | 4 | header_bytes = 64 | u32 |
//! | 8 | sequence | u64 |
//! | 16 | producer_ts_ns | u64 |
//! | 24 | channels, 1..=255 | u8 |
//! | 25 | sample_format, 0 = i16 | u8 |
//! | 26 | kind, 0 = samples, 1 = description | u8 |
//! | 27 | flags, 0 | u8 |
//! | 28 | block_length_samples, per channel | u32 |
//! | 32 | payload_bytes = channels x block x bytes of a sample | u32 |
//! | 36 | header_crc32c, 0 = not computed | u32 |
//! | 40 | sample_rate_hz | f64 |
//! | 48 | sg_drops_total, samples per channel | u64 |
//! | 56 | first_sample_index, per channel | u64 |
//!
//! Receivers that know only 16-bit samples read the four bytes at 24 as one number, and refuse values outside 1 to 8.

use std::fmt;

use crate::format::SampleFormat;

/// Bytes of a header on the wire.
pub const HEADER_BYTES: usize = 64;

/// `GFH2`, read as a little-endian u32.
pub const MAGIC: u32 = 0x3248_4647;

/// Maximum channels of a frame.
pub const MAX_CHANNELS: u32 = 255;

/// Header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Header {
    /// Increases by one per frame, from 0.
    pub sequence: u64,
    /// Time of the first sample: nanoseconds of the producer's monotonic clock.
    pub producer_ts_ns: u64,
    /// Channels, 1..=255.
    pub channel_count: u32,
    /// Format of a sample.
    pub format: SampleFormat,
    /// Samples per channel; 0 ends the stream.
    pub block_length_samples: u32,
    /// Samples per second and channel; 0 = unknown.
    pub sample_rate_hz: f64,
    /// Samples per channel that the generator dropped since the start of the stream.
    pub sg_drops_total: u64,
    /// Samples per channel before this frame since the start of the stream, including dropped ones.
    pub first_sample_index: u64,
}

/// Reason why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// Shorter than a header.
    #[error("shorter than the 64-byte header")]
    Short,
    /// The first four bytes are not `GFH2`.
    #[error("does not begin with GFH2")]
    Magic,
    /// `header_bytes` is not 64.
    #[error("header_bytes is not 64")]
    HeaderBytes,
    /// No channel, or more than 255.
    #[error("channels is not 1..=255")]
    ChannelCount,
    /// `payload_bytes` is not channels x block x bytes of a sample.
    #[error("payload_bytes is not channels x block x bytes of a sample")]
    PayloadBytes,
    /// The datagram ends before the payload.
    #[error("datagram shorter than its payload_bytes says")]
    Truncated,
    /// The datagram continues after the payload.
    #[error("datagram longer than its payload_bytes says")]
    Trailing,
    /// The header's checksum does not match.
    #[error("header CRC32C does not match")]
    Crc,
    /// The rate is negative, infinite or not a number.
    #[error("sample_rate_hz is negative or not finite")]
    Rate,
    /// Unknown `sample_format`.
    #[error("sample_format is unknown to this version")]
    Format,
    /// Unknown `kind` or `flags`.
    #[error("kind or flags are unknown to this version")]
    Kind,
    /// A description instead of samples, or an invalid description.
    #[error("a description that cannot be read")]
    Description,
}

impl Refusal {
    /// All reasons, in the order of [`Refusals`]' columns.
    pub const ALL: [Refusal; 12] = [
        Refusal::Short,
        Refusal::Magic,
        Refusal::HeaderBytes,
        Refusal::ChannelCount,
        Refusal::PayloadBytes,
        Refusal::Truncated,
        Refusal::Trailing,
        Refusal::Crc,
        Refusal::Rate,
        Refusal::Format,
        Refusal::Kind,
        Refusal::Description,
    ];

    /// Short name for tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Refusal::Short => "short",
            Refusal::Magic => "magic",
            Refusal::HeaderBytes => "header_bytes",
            Refusal::ChannelCount => "channel_count",
            Refusal::PayloadBytes => "payload_bytes",
            Refusal::Truncated => "truncated",
            Refusal::Trailing => "trailing",
            Refusal::Crc => "crc",
            Refusal::Rate => "rate",
            Refusal::Format => "sample_format",
            Refusal::Kind => "kind",
            Refusal::Description => "description",
        }
    }
}

/// Counts of refused datagrams, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refusals {
    counts: [u64; Refusal::ALL.len()],
}

impl Refusals {
    /// Counts a refusal.
    pub fn add(&mut self, reason: Refusal) {
        self.counts[reason as usize] += 1;
    }

    /// Count for one reason.
    pub fn count(&self, reason: Refusal) -> u64 {
        self.counts[reason as usize]
    }

    /// Total count.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl fmt::Display for Refusals {
    /// `magic 3, crc 1`; empty without refusals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = Refusal::ALL.into_iter().filter(|&reason| self.count(reason) > 0);
        for (position, reason) in counted.enumerate() {
            let comma = if position > 0 { ", " } else { "" };
            write!(f, "{comma}{} {}", reason.name(), self.count(reason))?;
        }
        Ok(())
    }
}

impl Header {
    /// Bytes of samples after the header.
    #[inline]
    pub fn payload_bytes(&self) -> usize {
        self.channel_count as usize * self.block_length_samples as usize * self.format.bytes()
    }

    /// Bytes of the whole frame.
    #[inline]
    pub fn frame_bytes(&self) -> usize {
        HEADER_BYTES + self.payload_bytes()
    }

    /// Whether this frame ends the stream.
    #[inline]
    pub fn is_end_of_stream(&self) -> bool {
        self.block_length_samples == 0
    }

    /// The index after the frame's last sample.
    #[inline]
    pub fn next_sample_index(&self) -> u64 {
        self.first_sample_index.wrapping_add(u64::from(self.block_length_samples))
    }

    /// The end frame of a stream whose last frame this is.
    pub fn end_of_stream(&self, producer_ts_ns: u64) -> Header {
        Header {
            sequence: self.sequence.wrapping_add(1),
            producer_ts_ns,
            first_sample_index: self.next_sample_index(),
            block_length_samples: 0,
            ..*self
        }
    }

    /// Writes the header with its checksum.
    #[inline]
    pub fn write(&self, out: &mut [u8; HEADER_BYTES]) {
        self.write_unchecked(out);
        let crc = crc32c::crc32c(&out[..]);
        out[CRC].copy_from_slice(&crc.to_le_bytes());
    }

    /// Writes the header with a checksum of 0, "not computed". Saves a tenth of the cost of a small frame.
    #[inline]
    pub fn write_unchecked(&self, out: &mut [u8; HEADER_BYTES]) {
        out[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[4..8].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        out[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        out[16..24].copy_from_slice(&self.producer_ts_ns.to_le_bytes());
        out[24..28].copy_from_slice(&[self.channel_count as u8, self.format as u8, KIND_SAMPLES, 0]);
        out[28..32].copy_from_slice(&self.block_length_samples.to_le_bytes());
        out[32..36].copy_from_slice(&(self.payload_bytes() as u32).to_le_bytes());
        out[CRC].copy_from_slice(&[0; 4]);
        out[40..48].copy_from_slice(&self.sample_rate_hz.to_le_bytes());
        out[48..56].copy_from_slice(&self.sg_drops_total.to_le_bytes());
        out[56..64].copy_from_slice(&self.first_sample_index.to_le_bytes());
    }

    /// Reads the header at the start of `bytes`, which may continue after the frame (a pipe, a slab).
    ///
    /// # Errors
    /// The first reason why these bytes cannot begin a frame of samples; never [`Refusal::Trailing`]. A description is
    /// refused as [`Refusal::Description`]: use a [`DescriptionReader`](crate::DescriptionReader).
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Header, Refusal> {
        let Some(raw) = bytes.first_chunk::<HEADER_BYTES>() else { return Err(Refusal::Short) };
        if u32_at(raw, 0) != MAGIC {
            return Err(Refusal::Magic);
        }
        if u32_at(raw, 4) as usize != HEADER_BYTES {
            return Err(Refusal::HeaderBytes);
        }
        let Some(format) = SampleFormat::from_wire(raw[25]) else { return Err(Refusal::Format) };
        if raw[26] != KIND_SAMPLES || raw[27] != 0 {
            return Err(if raw[26] == KIND_DESCRIPTION { Refusal::Description } else { Refusal::Kind });
        }
        let header = Header { format, ..Header::trusted(raw) };
        header.check_channels()?;
        let samples = u64::from(header.channel_count) * u64::from(header.block_length_samples);
        if u64::from(u32_at(raw, 32)) != samples * format.bytes() as u64 {
            return Err(Refusal::PayloadBytes);
        }
        check_crc(raw)?;
        header.check_rate()?;
        Ok(header)
    }

    /// Checks that receivers accept a frame with this header.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.check_channels()?;
        self.check_rate()
    }

    #[inline]
    fn check_channels(&self) -> Result<(), Refusal> {
        let is_good = (1..=MAX_CHANNELS).contains(&self.channel_count);
        if is_good { Ok(()) } else { Err(Refusal::ChannelCount) }
    }

    #[inline]
    fn check_rate(&self) -> Result<(), Refusal> {
        let is_good = self.sample_rate_hz.is_finite() && self.sample_rate_hz >= 0.0;
        if is_good { Ok(()) } else { Err(Refusal::Rate) }
    }

    /// Reads the header of a whole datagram.
    ///
    /// # Errors
    /// The first reason why these bytes are not exactly one frame.
    #[inline]
    pub fn parse_datagram(bytes: &[u8]) -> Result<Header, Refusal> {
        let header = Header::parse(bytes)?;
        match bytes.len().cmp(&header.frame_bytes()) {
            std::cmp::Ordering::Less => Err(Refusal::Truncated),
            std::cmp::Ordering::Equal => Ok(header),
            std::cmp::Ordering::Greater => Err(Refusal::Trailing),
        }
    }

    /// Reads a validated header. Inlining loads only the fields used.
    #[inline]
    pub(crate) fn trusted(raw: &[u8; HEADER_BYTES]) -> Header {
        Header {
            sequence: u64_at(raw, 8),
            producer_ts_ns: u64_at(raw, 16),
            channel_count: u32::from(raw[24]),
            format: SampleFormat::from_wire(raw[25]).unwrap_or_default(),
            block_length_samples: u32_at(raw, 28),
            sample_rate_hz: f64::from_bits(u64_at(raw, 40)),
            sg_drops_total: u64_at(raw, 48),
            first_sample_index: u64_at(raw, 56),
        }
    }
}

/// Checks the checksum, if it was computed.
#[inline]
pub(crate) fn check_crc(raw: &[u8; HEADER_BYTES]) -> Result<(), Refusal> {
    let crc = u32_at(raw, CRC.start);
    if crc != 0 && crc != checksum(raw) { Err(Refusal::Crc) } else { Ok(()) }
}

fn checksum(raw: &[u8; HEADER_BYTES]) -> u32 {
    let mut zeroed = *raw;
    zeroed[CRC].fill(0);
    crc32c::crc32c(&zeroed)
}

#[inline]
pub(crate) fn u32_at(raw: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]])
}

#[inline]
pub(crate) fn u64_at(raw: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from(u32_at(raw, at)) | u64::from(u32_at(raw, at + 4)) << 32
}

/// The frame holds samples.
const KIND_SAMPLES: u8 = 0;
/// The frame holds a description.
pub(crate) const KIND_DESCRIPTION: u8 = 1;
pub(crate) const CRC: std::ops::Range<usize> = 36..40;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Header {
        Header {
            sequence: 0x0102_0304_0506_0708,
            producer_ts_ns: 0x1112_1314_1516_1718,
            channel_count: 4,
            format: SampleFormat::I16,
            block_length_samples: 167,
            sample_rate_hz: 25e6,
            sg_drops_total: 5,
            first_sample_index: 0x2122_2324_2526_2728,
        }
    }

    fn encoded(header: &Header) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        header.write(&mut bytes);
        bytes
    }

    #[test]
    fn the_wire_is_as_the_table_says() {
        let bytes = encoded(&sample());
        let mut expected = Vec::new();
        expected.extend(b"GFH2");
        expected.extend(64u32.to_le_bytes());
        expected.extend(0x0102_0304_0506_0708u64.to_le_bytes());
        expected.extend(0x1112_1314_1516_1718u64.to_le_bytes());
        expected.extend(4u32.to_le_bytes());
        expected.extend(167u32.to_le_bytes());
        expected.extend(1336u32.to_le_bytes());
        expected.extend([0; 4]);
        expected.extend(25e6f64.to_le_bytes());
        expected.extend(5u64.to_le_bytes());
        expected.extend(0x2122_2324_2526_2728u64.to_le_bytes());
        let crc = crc32c::crc32c(&expected);
        expected[36..40].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(bytes[..], expected[..]);
    }

    #[test]
    fn the_end_of_stream_follows_the_last_frame() {
        let end = sample().end_of_stream(99);
        let expected = Header {
            sequence: sample().sequence + 1,
            producer_ts_ns: 99,
            first_sample_index: sample().first_sample_index + 167,
            block_length_samples: 0,
            ..sample()
        };
        assert_eq!(end, expected);
        assert!(end.is_end_of_stream());
    }

    #[test]
    fn the_checksum_is_castagnoli() {
        // RFC 3720, B.4: 32 bytes of zeroes.
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn each_reason_has_its_refusal() {
        let good = encoded(&Header { block_length_samples: 0, ..sample() });
        let changed = |at: usize, with: &[u8]| {
            let mut bytes = good;
            bytes[36..40].fill(0);
            bytes[at..at + with.len()].copy_from_slice(with);
            Header::parse_datagram(&bytes)
        };
        assert!(Header::parse_datagram(&good).is_ok());
        assert!(changed(8, &[9]).is_ok(), "a checksum of zero is accepted");
        assert_eq!(Header::parse_datagram(&good[..63]), Err(Refusal::Short));
        assert_eq!(changed(0, b"GFH1"), Err(Refusal::Magic));
        assert_eq!(changed(4, &[65]), Err(Refusal::HeaderBytes));
        assert_eq!(changed(24, &[0]), Err(Refusal::ChannelCount));
        assert!(changed(24, &[255]).is_ok());
        assert_eq!(changed(25, &[10]), Err(Refusal::Format));
        assert_eq!(changed(26, &[1]), Err(Refusal::Description));
        assert_eq!(changed(26, &[2]), Err(Refusal::Kind));
        assert_eq!(changed(27, &[1]), Err(Refusal::Kind));
        assert_eq!(changed(32, &[2]), Err(Refusal::PayloadBytes));
        assert_eq!(changed(28, &[1]), Err(Refusal::PayloadBytes));
        assert_eq!(changed(36, &[1]), Err(Refusal::Crc));
        for rate in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(changed(40, &rate.to_le_bytes()), Err(Refusal::Rate), "{rate}");
        }
        assert!(changed(40, &0f64.to_le_bytes()).is_ok(), "an unknown rate is accepted");
        let mut long = encoded(&sample()).to_vec();
        long.resize(64 + 1336 - 1, 0);
        assert_eq!(Header::parse_datagram(&long), Err(Refusal::Truncated));
        long.push(0);
        assert!(Header::parse_datagram(&long).is_ok());
        long.push(0);
        assert_eq!(Header::parse_datagram(&long), Err(Refusal::Trailing));
    }

    #[test]
    fn refusals_are_counted_by_reason() {
        let mut refusals = Refusals::default();
        refusals.add(Refusal::Crc);
        refusals.add(Refusal::Magic);
        refusals.add(Refusal::Magic);
        assert_eq!((refusals.to_string().as_str(), refusals.total()), ("magic 2, crc 1", 3));
    }

    prop_compose! {
        fn headers()(
            sequence: u64, producer_ts_ns: u64, channel_count in 1u32..=255, block_length_samples in 0u32..100_000,
            format in prop::sample::select(&SampleFormat::ALL), sample_rate_hz in prop_oneof![Just(0.0), 1e-3..1e12f64], sg_drops_total: u64, first_sample_index: u64,
        ) -> Header {
            Header {
                sequence, producer_ts_ns, channel_count, format, block_length_samples, sample_rate_hz, sg_drops_total,
                first_sample_index,
            }
        }
    }

    proptest! {
        #[test]
        fn every_header_round_trips(header in headers()) {
            prop_assert_eq!(Header::parse(&encoded(&header)), Ok(header));
            let mut unchecked = [0xff; HEADER_BYTES];
            header.write_unchecked(&mut unchecked);
            prop_assert_eq!(Header::parse(&unchecked), Ok(header));
        }

        #[test]
        fn no_byte_string_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Header::parse_datagram(&bytes);
        }

        /// Damages a good header, because random bytes rarely pass the magic. A checksum finds any change of one byte.
        #[test]
        fn a_damaged_header_is_refused(header in headers(), at in 0usize..64, change in 1u8..) {
            let mut bytes = encoded(&header);
            bytes[at] ^= change;
            let crc_cleared = bytes[36..40] == [0; 4];
            prop_assert!(crc_cleared || Header::parse(&bytes).is_err());
        }
    }
}
