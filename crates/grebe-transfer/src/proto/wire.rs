//! What packets say: the frames inside the encryption, and the header outside it. `docs/transfer-protocol.md` has the tables.

mod bytes;
mod feedback;
mod held;

use self::bytes::{Reader, Writer};
pub use self::feedback::{Feedback, RunBytes, Train};
pub use self::held::HeldRanges;
use crate::{Error, Result};

/// Bytes of the header outside the encryption: kind, connection, the low half of the packet number.
pub const HEADER_BYTES: usize = 9;

/// Bytes that authenticate a packet.
pub const TAG_BYTES: usize = 16;

/// Bytes of a data frame before its payload.
pub const DATA_HEADER_BYTES: usize = 12;

/// How many marks set one train of packets apart from the next.
pub const TRAIN_MARKS: u8 = 3;

/// Bytes that IPv4 and UDP put before each datagram.
pub const UDP_IP_BYTES: usize = 28;

/// Bytes of a datagram that carries one byte of payload at least.
pub const OVERHEAD_BYTES: usize = HEADER_BYTES + DATA_HEADER_BYTES + TAG_BYTES;

/// The header outside the encryption. All of it is authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The parity of the key's generation.
    pub key_phase: bool,
    /// The receiver's name for the session.
    pub connection: u32,
    /// The low half of the packet number.
    pub number: u32,
}

/// What every frame of the sending side begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// The sender's smoothed round trip, coded by [`encode_rtt`]; 0: not known yet.
    pub rtt_code: u8,
    /// The sender's clock in microseconds as the packet left, modulo 2^32.
    pub sent_us: u32,
    /// Packets of one train have the same mark, 1 to [`TRAIN_MARKS`], those of the next another; 0: it belongs to none.
    pub train: u8,
}

/// One frame, the content of one packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Bytes of the file.
    Data {
        /// When it left.
        stamp: Stamp,
        /// Where the payload begins in the file.
        offset: u64,
        /// The bytes.
        payload: &'a [u8],
    },
    /// Padding that asks whether the path carries datagrams of this length.
    Probe {
        /// When it left.
        stamp: Stamp,
        /// Zeros.
        padding: usize,
    },
    /// What is going to be sent.
    Offer {
        /// When it left.
        stamp: Stamp,
        /// What it is.
        offer: Offer,
    },
    /// What arrived.
    Feedback(Feedback<'a>),
    /// The receiver is there: what a receiver says first that came with a ticket.
    Ready,
    /// Bytes that the receiver has from an earlier session.
    Held(HeldRanges<'a>),
    /// The receiver is done.
    Outcome(Verdict),
    /// The sending side is done too.
    Close,
}

/// What a sender has for its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Bytes of the stream, below 2^48.
    pub total_bytes: u64,
    /// Bytes of its index.
    pub index_bytes: u64,
    /// The same content has the same name in a later session.
    pub content: [u8; 32],
}

/// How a transfer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every byte is there and the hash is right.
    Whole,
    /// Every byte came, the hash is another: the file changed while it was read, or a disk is broken.
    HashDiffers,
    /// The receiver could not write.
    CannotWrite,
    /// The receiver does not take what was offered.
    Refused,
    /// One of the two was told to stop.
    Cancelled,
}

impl Header {
    /// Writes the header.
    pub fn encode(&self, out: &mut [u8; HEADER_BYTES]) {
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

/// The full packet number nearest to what is expected next, from its low half.
pub fn expand_number(low: u32, expected: u64) -> u64 {
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

impl<'a> Frame<'a> {
    /// Reads the content of a packet.
    ///
    /// # Errors
    /// [`Error::Malformed`] says what is wrong with it.
    pub fn decode(plain: &'a [u8]) -> Result<Self> {
        let mut reader = Reader { rest: plain };
        let kind = reader.u8()?;
        let stamped = kind & 0xf0 == KIND_DATA;
        let train = if stamped { kind >> TRAIN_SHIFT & TRAIN_MARKS } else { 0 };
        let frame = match kind & !(train << TRAIN_SHIFT) {
            KIND_DATA => {
                let (stamp, offset) = (reader.stamp(train)?, reader.u48()?);
                Frame::Data { stamp, offset, payload: reader.all() }
            }
            KIND_PROBE => Frame::Probe { stamp: reader.stamp(train)?, padding: reader.all().len() },
            KIND_OFFER => {
                let stamp = reader.stamp(train)?;
                let offer = Offer {
                    total_bytes: reader.u64()?,
                    index_bytes: reader.u64()?,
                    content: reader.array()?,
                };
                if offer.total_bytes >= 1 << 48 || offer.index_bytes > offer.total_bytes {
                    return Err(Error::Malformed { what: "an offer of more than can be" });
                }
                Frame::Offer { stamp, offer }
            }
            KIND_READY => Frame::Ready,
            KIND_HELD => Frame::Held(HeldRanges::decode(reader.all())?),
            KIND_FEEDBACK => Frame::Feedback(Feedback::decode(&mut reader)?),
            KIND_OUTCOME => Frame::Outcome(match reader.u8()? {
                0 => Verdict::Whole,
                1 => Verdict::HashDiffers,
                2 => Verdict::CannotWrite,
                3 => Verdict::Refused,
                4 => Verdict::Cancelled,
                _ => return Err(Error::Malformed { what: "an unknown verdict" }),
            }),
            KIND_CLOSE => Frame::Close,
            _ => return Err(Error::Malformed { what: "an unknown frame" }),
        };
        if reader.rest.is_empty() { Ok(frame) } else { Err(Error::Malformed { what: "bytes after a frame" }) }
    }

    /// Writes the frame and returns its length; `None` where `out` is too short.
    pub fn encode(&self, out: &mut [u8]) -> Option<usize> {
        let mut writer = Writer { out, at: 0 };
        match self {
            Frame::Data { stamp, offset, payload } => {
                writer.put(&data_header(*stamp, *offset))?;
                writer.put(payload)?;
            }
            Frame::Probe { stamp, padding } => {
                writer.head(KIND_PROBE, *stamp)?;
                writer.out.get_mut(writer.at..writer.at + padding)?.fill(0);
                writer.at += padding;
            }
            Frame::Offer { stamp, offer } => {
                writer.head(KIND_OFFER, *stamp)?;
                writer.put(&offer.total_bytes.to_be_bytes())?;
                writer.put(&offer.index_bytes.to_be_bytes())?;
                writer.put(&offer.content)?;
            }
            Frame::Ready => writer.put(&[KIND_READY])?,
            Frame::Held(held) => {
                writer.put(&[KIND_HELD])?;
                writer.put(held.bytes)?;
            }
            Frame::Feedback(feedback) => {
                feedback.encode_head(&mut writer)?;
                writer.put(feedback.runs.bytes)?;
            }
            Frame::Outcome(verdict) => writer.put(&[KIND_OUTCOME, *verdict as u8])?,
            Frame::Close => writer.put(&[KIND_CLOSE])?,
        }
        Some(writer.at)
    }
}

/// What stands before the payload of a data frame, for those who put the payload in place themselves. Offsets are below 2^48.
pub fn data_header(stamp: Stamp, offset: u64) -> [u8; DATA_HEADER_BYTES] {
    let mut head = [0; DATA_HEADER_BYTES];
    (head[0], head[1]) = (KIND_DATA | stamp.train << TRAIN_SHIFT, stamp.rtt_code);
    head[2..6].copy_from_slice(&stamp.sent_us.to_be_bytes());
    head[6..].copy_from_slice(&offset.to_be_bytes()[2..]);
    head
}

/// A round trip as one byte: eighths of a doubling above 16 microseconds; 0 for "not known".
pub fn encode_rtt(rtt_us: u64) -> u8 {
    let eighths = (rtt_us.max(16) as f64 / 16.0).log2() * 8.0;
    (eighths.round() as u64 + 1).min(255) as u8
}

/// The round trip in microseconds, within 5 %.
pub fn decode_rtt(code: u8) -> Option<u64> {
    (code > 0).then(|| (16.0 * (f64::from(code - 1) / 8.0).exp2()) as u64)
}

/// Where the mark of a train stands in the kind of a stamped frame.
const TRAIN_SHIFT: u8 = 2;

const KIND_PROTECTED: u8 = 0x40;
const KIND_DATA: u8 = 0x10;
const KIND_PROBE: u8 = 0x11;
const KIND_OFFER: u8 = 0x12;
const KIND_FEEDBACK: u8 = 0x20;
const KIND_OUTCOME: u8 = 0x21;
const KIND_READY: u8 = 0x22;
const KIND_HELD: u8 = 0x23;
const KIND_CLOSE: u8 = 0x30;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame<'a>(kind: u8, stamp: Stamp, number: u64, payload: &'a [u8]) -> Frame<'a> {
        match kind {
            0 => Frame::Data { stamp, offset: number, payload },
            1 => Frame::Probe { stamp, padding: payload.len() },
            2 => {
                let offer =
                    Offer { total_bytes: number, index_bytes: number / 2, content: [number as u8; 32] };
                Frame::Offer { stamp, offer }
            }
            3 => Frame::Ready,
            4 => Frame::Outcome(Verdict::HashDiffers),
            _ => Frame::Close,
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            kind in 0..6_u8, rtt_code: u8, sent_us: u32, train in 0..=TRAIN_MARKS, number in 0..1_u64 << 48,
            payload in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let frame = frame(kind, Stamp { rtt_code, sent_us, train }, number, &payload);
            let mut bytes = [0; 400];
            let length = frame.encode(&mut bytes).unwrap();
            prop_assert_eq!(Frame::decode(&bytes[..length]).unwrap(), frame.clone());
            for short in 0..length {
                prop_assert_eq!(frame.encode(&mut vec![0; short]), None);
            }
        }

        #[test]
        fn foreign_bytes_are_an_error_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0x0f..0x32_u8) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            if let Ok(Frame::Feedback(report)) = Frame::decode(&bytes) {
                let mut above = u64::MAX;
                for (low, high) in report.runs.iter() {
                    prop_assert!(low <= high && high <= report.highest && high < above);
                    above = low;
                }
            }
            let _ = Header::decode(&bytes);
        }

        #[test]
        fn a_number_is_found_again_from_its_low_half(expected in 0..u64::MAX / 2, away in -(1_i64 << 30)..1 << 30) {
            let number = expected.saturating_add_signed(away);
            prop_assert_eq!(expand_number(number as u32, expected), number);
        }

        #[test]
        fn a_round_trip_fits_a_byte(rtt_us in 16..20_000_000_u64) {
            let read = decode_rtt(encode_rtt(rtt_us)).unwrap() as f64;
            prop_assert!((read / rtt_us as f64 - 1.0).abs() < 0.1, "{read}");
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
