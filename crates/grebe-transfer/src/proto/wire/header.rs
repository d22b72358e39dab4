//! The header outside the encryption, and the packet numbers that it abbreviates.

use crate::error::{Error, Result};

/// Bytes of the header outside the encryption: kind, connection, the low half of the packet number.
pub const HEADER_BYTES: usize = 9;

/// Bytes that authenticate a packet.
pub const TAG_BYTES: usize = 16;

/// The header outside the encryption. All of it is authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The parity of the key's generation.
    pub(crate) key_phase: bool,
    /// The number that the receiver gave to the session.
    pub(crate) connection: u32,
    /// The low half of the packet number.
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
    /// [`Error::Malformed`] for another kind of packet, or one too short to be authentic.
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

/// The full packet number nearest to the one that is expected next, from its low half.
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

/// The kind of a protected packet; its lowest bit is the key's phase.
const KIND_PROTECTED: u8 = 0x40;

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
}
