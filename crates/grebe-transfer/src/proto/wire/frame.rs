//! The frames inside the encryption: one is the content of one packet.

use std::ops::Range;

use grebe_packet::{Reader, Writer};

use super::feedback::Feedback;
use super::header::*;
use crate::error::{Error, Result};

/// Bytes of a data frame before its payload.
pub(crate) const DATA_HEADER_BYTES: usize = 12;

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
    /// As [`Data`](Self::Data), at the end of the stream of a connection: the last byte is none of the stream's, but stands for its end,
    /// so that the end is confirmed and repeated as any other byte.
    Last {
        /// When it left.
        stamp: Stamp,
        /// Where the payload begins in the stream.
        offset: u64,
        /// The bytes: at least the one that stands for the end.
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
    /// The receiver is ready: its first frame, until the offer arrives.
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
    /// Another one where a file may have been changed and given its old length and times.
    pub touched: [u8; 8],
}

impl<'a> Frame<'a> {
    /// Reads the content of a packet.
    ///
    /// # Errors
    /// [`Error::Malformed`] says what is wrong with it.
    pub fn decode(plain: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(plain);
        let kind = reader.u8()?;
        let stamped = kind & 0xf0 == KIND_DATA;
        let train = if stamped { kind >> TRAIN_SHIFT & TRAIN_MARKS } else { 0 };
        let frame = match kind & !(train << TRAIN_SHIFT) {
            KIND_DATA => {
                let (stamp, offset) = (Stamp::read(&mut reader, train)?, reader.u48()?);
                Frame::Data { stamp, offset, payload: reader.all() }
            }
            KIND_LAST => {
                let (stamp, offset) = (Stamp::read(&mut reader, train)?, reader.u48()?);
                let payload = reader.all();
                if payload.is_empty() {
                    return Err(Error::Malformed {
                        what: "an end of a stream without the byte that stands for it",
                    });
                }
                Frame::Last { stamp, offset, payload }
            }
            KIND_PROBE => {
                Frame::Probe { stamp: Stamp::read(&mut reader, train)?, padding: reader.all().len() }
            }
            KIND_OFFER => {
                let stamp = Stamp::read(&mut reader, train)?;
                let offer = Offer {
                    total_bytes: reader.u64()?,
                    index_bytes: reader.u64()?,
                    content: reader.array()?,
                    touched: reader.array()?,
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
                5 => Verdict::Partial,
                6 => Verdict::Exists,
                7 => Verdict::Taken,
                _ => return Err(Error::Malformed { what: "an unknown verdict" }),
            }),
            KIND_CLOSE => Frame::Close,
            _ => return Err(Error::Malformed { what: "an unknown frame" }),
        };
        reader.end()?;
        Ok(frame)
    }

    /// Writes the frame and returns its length; `None` where `out` is too short.
    pub fn encode(&self, out: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(out);
        match self {
            Frame::Data { stamp, offset, payload } => {
                writer.put(&data_header(*stamp, *offset, false)).put(payload);
            }
            Frame::Last { stamp, offset, payload } => {
                writer.put(&data_header(*stamp, *offset, true)).put(payload);
            }
            Frame::Probe { stamp, padding } => {
                stamp.write(KIND_PROBE, &mut writer);
                writer.zeros(*padding);
            }
            Frame::Offer { stamp, offer } => {
                stamp.write(KIND_OFFER, &mut writer);
                writer.u64(offer.total_bytes).u64(offer.index_bytes).put(&offer.content).put(&offer.touched);
            }
            Frame::Ready => {
                writer.u8(KIND_READY);
            }
            Frame::Held(held) => {
                writer.u8(KIND_HELD).put(held.bytes);
            }
            Frame::Feedback(feedback) => {
                feedback.encode_head(&mut writer);
                writer.put(feedback.runs.bytes);
            }
            Frame::Outcome(verdict) => {
                writer.u8(KIND_OUTCOME).u8(*verdict as u8);
            }
            Frame::Close => {
                writer.u8(KIND_CLOSE);
            }
        }
        writer.written()
    }
}

/// The bytes before the payload of a data frame, for a caller who puts the payload in place himself. Offsets are below 2^48.
pub(crate) fn data_header(stamp: Stamp, offset: u64, is_last: bool) -> [u8; DATA_HEADER_BYTES] {
    let mut head = [0; DATA_HEADER_BYTES];
    let kind = if is_last { KIND_LAST } else { KIND_DATA };
    (head[0], head[1]) = (kind | stamp.train << TRAIN_SHIFT, stamp.rtt_code);
    head[2..6].copy_from_slice(&stamp.sent_us.to_be_bytes());
    head[6..].copy_from_slice(&offset.to_be_bytes()[2..]);
    head
}

/// How a transfer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every byte is there and the hash is right.
    Whole,
    /// Every byte arrived, but a hash differs: the file changed while it was read, or a disk is broken.
    HashDiffers,
    /// The receiver could not write.
    CannotWrite,
    /// The receiver does not take what was offered.
    Refused,
    /// One of the two was cancelled.
    Cancelled,
    /// Everything came, but not all of it could be had: the receiver knows what.
    Partial,
    /// Files of these names are there already.
    Exists,
    /// Somebody else has used the ticket.
    Taken,
}

/// Ranges of the stream in ascending order, as they stand in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldRanges<'a> {
    pub(super) bytes: &'a [u8],
}

impl<'a> HeldRanges<'a> {
    /// The ranges.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        let mut at = 0_u64;
        std::iter::from_fn(move || {
            let start = at.checked_add(reader.varint().ok()?)?;
            at = start.checked_add(reader.varint().ok()?)?;
            Some(start..at)
        })
    }

    /// Writes a frame of as many of the ranges as `out` holds; they ascend. Returns its length.
    pub(crate) fn encode(ranges: impl Iterator<Item = Range<u64>>, out: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(out);
        let mut length = writer.u8(KIND_HELD).written()?;
        let mut at = 0;
        for range in ranges {
            writer.varint(range.start - at).varint(range.end - range.start);
            let Some(written) = writer.written() else { break };
            (length, at) = (written, range.end);
        }
        Some(length)
    }

    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self> {
        let held = Self { bytes };
        let mut reader = Reader::new(bytes);
        let mut at = 0_u64;
        while !reader.is_empty() {
            for _ in 0..2 {
                at = at
                    .checked_add(reader.varint()?)
                    .filter(|at| *at < 1 << 48)
                    .ok_or(Error::Malformed { what: "ranges beyond any file" })?;
            }
        }
        Ok(held)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame<'a>(kind: u8, stamp: Stamp, number: u64, payload: &'a [u8]) -> Frame<'a> {
        match kind {
            0 => Frame::Data { stamp, offset: number, payload },
            1 => Frame::Probe { stamp, padding: payload.len() },
            2 => {
                let offer = Offer {
                    total_bytes: number,
                    index_bytes: number / 2,
                    content: [number as u8; 32],
                    touched: [3; 8],
                };
                Frame::Offer { stamp, offer }
            }
            3 => Frame::Ready,
            4 => Frame::Outcome(Verdict::HashDiffers),
            5 if !payload.is_empty() => Frame::Last { stamp, offset: number, payload },
            _ => Frame::Close,
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            kind in 0..7_u8, rtt_code: u8, sent_us: u32, train in 0..=TRAIN_MARKS, number in 0..1_u64 << 48,
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

    }

    proptest! {
        #[test]
        fn ranges_that_are_held_are_read_again(
            steps in prop::collection::vec((1..1_u64 << 30, 1..1_u64 << 30), 0..60), room in 1..300_usize,
        ) {
            let mut at = 0;
            let ranges: Vec<Range<u64>> = steps.iter().map(|(gap, length)| {
                let start = at + gap;
                at = start + length;
                start..at
            }).collect();
            let mut bytes = vec![0; room];
            let length = HeldRanges::encode(ranges.iter().cloned(), &mut bytes).unwrap();
            let Frame::Held(held) = Frame::decode(&bytes[..length]).unwrap() else { panic!() };
            let read: Vec<Range<u64>> = held.iter().collect();
            prop_assert_eq!(&read[..], &ranges[..read.len()]);
            prop_assert!(read.len() == ranges.len() || length + 12 > room, "as many as fit");
        }
    }
}
