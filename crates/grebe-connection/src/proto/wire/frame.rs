//! Frames, the encrypted content of packets. A packet has one frame.

use grebe_packet::{Reader, Writer};

use super::feedback::{Feedback, Train};
use super::header::*;
use crate::error::{Error, Result, Verdict};

/// Bytes of a data frame before its payload.
pub(crate) const DATA_HEADER_BYTES: usize = 12;

/// One frame, the content of one packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Bytes of the stream.
    Data {
        /// Send time.
        stamp: Stamp,
        /// Offset of the payload in the stream.
        offset: u64,
        /// The payload.
        payload: &'a [u8],
    },
    /// Like [`Data`](Self::Data), at the end of a connection's stream. Its last byte is not data but stands
    /// for the end, so that the end is confirmed and retransmitted like any byte.
    Last {
        /// Send time.
        stamp: Stamp,
        /// Offset of the payload in the stream.
        offset: u64,
        /// The payload; at least the byte that stands for the end.
        payload: &'a [u8],
    },
    /// Padding to test whether the path carries datagrams of this length.
    Probe {
        /// Send time.
        stamp: Stamp,
        /// Zeros.
        padding: usize,
    },
    /// Report of the receiver.
    Feedback(Feedback<'a>),
    /// Measurement of the train in the handshake.
    HandshakeTrain {
        /// Window end before the first report.
        window_end: u64,
        /// The measurement.
        train: Train,
    },
    /// The receiver is done.
    Outcome(Verdict),
    /// The sending side is done too.
    Close,
}

impl<'a> Frame<'a> {
    /// Reads the content of a packet.
    ///
    /// # Errors
    /// [`Error::Malformed`] names the fault.
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
            KIND_FEEDBACK => Frame::Feedback(Feedback::decode(&mut reader)?),
            KIND_HANDSHAKE_TRAIN => {
                Frame::HandshakeTrain { window_end: reader.u64()?, train: Train::read(&mut reader, 1)? }
            }
            KIND_OUTCOME => Frame::Outcome(match reader.u8()? {
                0 => Verdict::Whole,
                4 => Verdict::Cancelled,
                7 => Verdict::Taken,
                _ => return Err(Error::Malformed { what: "an unknown verdict" }),
            }),
            KIND_CLOSE => Frame::Close,
            _ => return Err(Error::Malformed { what: "an unknown frame" }),
        };
        reader.end()?;
        Ok(frame)
    }

    /// Writes the frame and returns its length, or `None` if `out` is too short.
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
            Frame::Feedback(feedback) => {
                feedback.encode_head(&mut writer);
                writer.put(feedback.runs.bytes);
            }
            Frame::HandshakeTrain { window_end, train } => {
                writer.u8(KIND_HANDSHAKE_TRAIN).u64(*window_end);
                train.write(&mut writer);
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

/// Bytes before the payload of a data frame, for a caller that writes the payload itself. Offsets are below
/// 2^48.
pub(crate) fn data_header(stamp: Stamp, offset: u64, is_last: bool) -> [u8; DATA_HEADER_BYTES] {
    let mut head = [0; DATA_HEADER_BYTES];
    let kind = if is_last { KIND_LAST } else { KIND_DATA };
    (head[0], head[1]) = (kind | stamp.train << TRAIN_SHIFT, stamp.rtt_code);
    head[2..6].copy_from_slice(&stamp.sent_us.to_be_bytes());
    head[6..].copy_from_slice(&offset.to_be_bytes()[2..]);
    head
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame<'a>(kind: u8, stamp: Stamp, number: u64, payload: &'a [u8]) -> Frame<'a> {
        match kind {
            0 => Frame::Data { stamp, offset: number, payload },
            1 => Frame::Probe { stamp, padding: payload.len() },
            2 => Frame::Outcome(Verdict::Taken),
            4 => {
                let train =
                    Train { mark: 1, span_us: stamp.sent_us >> 8, bytes: stamp.sent_us, jitter_us: 7 };
                Frame::HandshakeTrain { window_end: number, train }
            }
            3 if !payload.is_empty() => Frame::Last { stamp, offset: number, payload },
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

    }
}
