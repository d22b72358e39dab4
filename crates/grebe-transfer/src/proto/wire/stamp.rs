//! What frames begin with: a kind and, on the sending side, the round trip, the time, and the packet train.

use grebe_packet::{Reader, Writer};

use crate::error::Result;

pub(super) const KIND_DATA: u8 = 0x10;
pub(super) const KIND_PROBE: u8 = 0x11;
pub(super) const KIND_OFFER: u8 = 0x12;
pub(super) const KIND_FEEDBACK: u8 = 0x20;
pub(super) const KIND_OUTCOME: u8 = 0x21;
pub(super) const KIND_READY: u8 = 0x22;
pub(super) const KIND_HELD: u8 = 0x23;
pub(super) const KIND_CLOSE: u8 = 0x30;

/// How many marks set one packet train apart from the next.
pub(crate) const TRAIN_MARKS: u8 = 3;

/// Where the mark of a train lies in the kind of a stamped frame.
pub(super) const TRAIN_SHIFT: u8 = 2;

/// When a packet left, and what the sender knew then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// The sender's smoothed round trip, coded by [`encode_rtt`]; 0: not known yet.
    pub(crate) rtt_code: u8,
    /// The sender's clock in microseconds as the packet left, modulo 2^32.
    pub(crate) sent_us: u32,
    /// Packets of one train have the same mark, 1 to [`TRAIN_MARKS`], those of the next train another; 0: no train.
    pub(crate) train: u8,
}

impl Stamp {
    /// Reads the stamp of a frame whose kind had this train mark.
    pub(super) fn read(reader: &mut Reader<'_>, train: u8) -> Result<Self> {
        Ok(Self { rtt_code: reader.u8()?, sent_us: reader.u32()?, train })
    }

    /// Writes the kind of the frame with the train mark in it, then the stamp.
    pub(super) fn write(&self, kind: u8, writer: &mut Writer<'_>) {
        writer.u8(kind | self.train << TRAIN_SHIFT).u8(self.rtt_code).u32(self.sent_us);
    }
}

/// A round trip as one byte: eighths of a doubling above 16 microseconds; 0 means "not known".
pub(crate) fn encode_rtt(rtt_us: u64) -> u8 {
    let eighths = (rtt_us.max(16) as f64 / 16.0).log2() * 8.0;
    (eighths.round() as u64 + 1).min(255) as u8
}

/// The round trip in microseconds, within 5 %.
pub(crate) fn decode_rtt(code: u8) -> Option<u64> {
    (code > 0).then(|| (16.0 * (f64::from(code - 1) / 8.0).exp2()) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_round_trip_fits_a_byte(rtt_us in 16..20_000_000_u64) {
            let read = decode_rtt(encode_rtt(rtt_us)).unwrap() as f64;
            prop_assert!((read / rtt_us as f64 - 1.0).abs() < 0.1, "{read}");
        }
    }
}
