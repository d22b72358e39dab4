//! Cleartext header with its abbreviated packet number, and the stamp at the head of a sender's frames.

use grebe_packet::{Reader, Writer};

use crate::error::{Error, Result};

/// Length of the cleartext header: kind, connection, low half of the packet number.
pub const HEADER_BYTES: usize = 9;

/// Length of the authentication tag.
pub const TAG_BYTES: usize = 16;

/// Cleartext header. All of it is authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Parity of the key's generation.
    pub(crate) key_phase: bool,
    /// Session number, chosen by the receiver.
    pub(crate) connection: u32,
    /// Low half of the packet number.
    pub(crate) number: u32,
}

impl Header {
    /// Writes the header.
    pub(crate) fn encode(&self, out: &mut [u8; HEADER_BYTES]) {
        out[0] = KIND_PROTECTED | u8::from(self.key_phase);
        out[1..5].copy_from_slice(&self.connection.to_be_bytes());
        out[5..9].copy_from_slice(&self.number.to_be_bytes());
    }

    /// Reads the header of a protected packet.
    ///
    /// # Errors
    /// [`Error::Malformed`] if the packet is of another kind, or too short to be authentic.
    pub fn decode(datagram: &[u8]) -> Result<Self> {
        let head =
            datagram.first_chunk::<HEADER_BYTES>().filter(|_| datagram.len() >= HEADER_BYTES + TAG_BYTES);
        let head = head.ok_or(Error::Malformed { what: "a packet shorter than its header" })?;
        if head[0] & !1 != KIND_PROTECTED {
            return Err(Error::Malformed { what: "a packet of an unknown kind" });
        }
        Ok(Self {
            key_phase: head[0] & 1 == 1,
            connection: u32::from_be_bytes([head[1], head[2], head[3], head[4]]),
            number: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
        })
    }
}

/// Expands the low half of a packet number to the full number nearest to `expected`.
pub(crate) fn expand_number(low: u32, expected: u64) -> u64 {
    const HALF: u64 = 1 << 31;
    let candidate = expected & !0xffff_ffff | u64::from(low);
    if candidate + HALF <= expected {
        candidate.saturating_add(1 << 32)
    } else if candidate > expected + HALF && candidate >= 1 << 32 {
        candidate - (1 << 32)
    } else {
        candidate
    }
}

/// Kind of a protected packet. The lowest bit is the key phase.
const KIND_PROTECTED: u8 = 0x40;

pub(super) const KIND_DATA: u8 = 0x10;
pub(super) const KIND_PROBE: u8 = 0x11;
pub(super) const KIND_LAST: u8 = 0x13;
pub(super) const KIND_FEEDBACK: u8 = 0x20;
pub(super) const KIND_OUTCOME: u8 = 0x21;
pub(super) const KIND_HANDSHAKE_TRAIN: u8 = 0x22;
pub(super) const KIND_CLOSE: u8 = 0x30;

/// Number of marks that distinguish consecutive packet trains.
pub(crate) const TRAIN_MARKS: u8 = 3;

/// Position of the train mark in the kind of a stamped frame.
pub(super) const TRAIN_SHIFT: u8 = 2;

/// Send time of a packet, and the sender's round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// The sender's smoothed round trip, coded by [`encode_rtt`]; 0 while unknown.
    pub(crate) rtt_code: u8,
    /// The sender's clock at departure in microseconds, modulo 2^32.
    pub(crate) sent_us: u32,
    /// Mark of the packet's train, 1 to [`TRAIN_MARKS`]; the next train has another mark. 0: no train.
    pub(crate) train: u8,
}

impl Stamp {
    /// Reads the stamp of a frame whose kind had this train mark.
    pub(super) fn read(reader: &mut Reader<'_>, train: u8) -> Result<Self> {
        Ok(Self { rtt_code: reader.u8()?, sent_us: reader.u32()?, train })
    }

    /// Writes the frame's kind with the train mark, then the stamp.
    pub(super) fn write(&self, kind: u8, writer: &mut Writer<'_>) {
        writer.u8(kind | self.train << TRAIN_SHIFT).u8(self.rtt_code).u32(self.sent_us);
    }
}

/// Round trip as one byte: eighths of a doubling above 16 microseconds; 0 while unknown.
pub(crate) fn encode_rtt(rtt_us: u64) -> u8 {
    let eighths = (rtt_us.max(16) as f64 / 16.0).log2() * 8.0;
    (eighths.round() as u64 + 1).min(255) as u8
}

/// Round trip in microseconds, within 5 %. Clamped to the longest plausible path.
pub(crate) fn decode_rtt(code: u8) -> Option<u64> {
    (code > 0).then(|| ((16.0 * (f64::from(code - 1) / 8.0).exp2()) as u64).min(RTT_US_MAX))
}

/// Twice the round trip of a path over a geostationary satellite with a full queue, with a margin.
const RTT_US_MAX: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_is_found_again_from_its_low_half(expected in 0..u64::MAX / 2, away in -(1_i64 << 30)..1 << 30) {
            let number = expected.saturating_add_signed(away);
            prop_assert_eq!(expand_number(number as u32, expected), number);
        }
    }

    #[test]
    fn the_header_is_read_again() {
        let header = Header { key_phase: true, connection: 0xdead_beef, number: 77 };
        let mut bytes = [0; HEADER_BYTES + TAG_BYTES];
        header.encode(bytes.first_chunk_mut().unwrap());
        assert_eq!(Header::decode(&bytes).unwrap(), header);
        assert!(Header::decode(&bytes[..HEADER_BYTES]).is_err());
    }

    #[test]
    fn no_round_trip_counts_for_more_than_ten_seconds() {
        assert_eq!(decode_rtt(u8::MAX), Some(RTT_US_MAX));
    }

    proptest! {
        #[test]
        fn a_round_trip_fits_a_byte(rtt_us in 16..10_000_000_u64) {
            let read = decode_rtt(encode_rtt(rtt_us)).unwrap() as f64;
            prop_assert!((read / rtt_us as f64 - 1.0).abs() < 0.1, "{read}");
        }
    }
}
