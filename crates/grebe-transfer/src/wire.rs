//! What packets say: the frames inside the encryption, and the header outside it. `docs/transfer-protocol.md` has the tables.

use std::ops::Range;

use crate::{Arrivals, Error, Result};

/// Bytes of the header outside the encryption: kind, connection, the low half of the packet number.
pub const HEADER_BYTES: usize = 9;

/// Bytes that authenticate a packet.
pub const TAG_BYTES: usize = 16;

/// Bytes of a data frame before its payload.
pub const DATA_HEADER_BYTES: usize = 12;

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

/// Ranges of the stream in ascending order, as they stand in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldRanges<'a> {
    bytes: &'a [u8],
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

/// The receiver's report: what arrived until now, how fast, and how late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feedback<'a> {
    /// The highest packet number that arrived.
    pub highest: u64,
    /// Microseconds between its arrival and this report.
    pub age_us: u32,
    /// The receiver's clock in microseconds at this report.
    pub at_us: u64,
    /// Bytes on the wire that arrived so far, with their UDP and IP headers.
    pub delivered_bytes: u64,
    /// Bytes of the file that the receiver has.
    pub received_bytes: u64,
    /// The sender sends no byte at or above this offset.
    pub window_end: u64,
    /// The least of arrival time less `sent_us` among packets that came since the last report, modulo 2^32.
    pub delay_us: Option<u32>,
    /// How the first packets arrived, which tells the rate of the path.
    pub train: Option<Train>,
    /// Runs of packet numbers that arrived, validated.
    pub runs: RunBytes<'a>,
}

/// How the first packets of a session arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Train {
    /// Microseconds between the first and the last arrival.
    pub span_us: u32,
    /// Bytes on the wire that came after the first arrival.
    pub bytes: u32,
}

/// Runs of packet numbers as they lie in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunBytes<'a> {
    highest: u64,
    bytes: &'a [u8],
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
        let frame = match reader.u8()? {
            KIND_DATA => {
                let (stamp, offset) = (reader.stamp()?, reader.u48()?);
                Frame::Data { stamp, offset, payload: reader.all() }
            }
            KIND_PROBE => Frame::Probe { stamp: reader.stamp()?, padding: reader.all().len() },
            KIND_OFFER => {
                let stamp = reader.stamp()?;
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
    (head[0], head[1]) = (KIND_DATA, stamp.rtt_code);
    head[2..6].copy_from_slice(&stamp.sent_us.to_be_bytes());
    head[6..].copy_from_slice(&offset.to_be_bytes()[2..]);
    head
}

impl<'a> Feedback<'a> {
    /// Writes the report with as many runs as `out` holds, newest first, down to `floor`; its own `runs` are not looked at.
    /// Returns the length, or `None` where not even the head fits.
    pub fn encode_with(&self, arrivals: &Arrivals, floor: u64, out: &mut [u8]) -> Option<usize> {
        let mut writer = Writer { out, at: 0 };
        self.encode_head(&mut writer)?;
        let mut below = self.highest + 1;
        for (low, high) in arrivals.runs_down_to(floor) {
            let before = writer.at;
            // The first run begins at `highest`; of the others the gap above them comes first.
            let gap_written =
                if before_first(below, self.highest) { Some(()) } else { writer.varint(below - high - 2) };
            if gap_written.and_then(|()| writer.varint(high - low)).is_none() {
                writer.at = before;
                break;
            }
            below = low;
        }
        Some(writer.at)
    }

    fn encode_head(&self, writer: &mut Writer<'_>) -> Option<()> {
        let flags = u8::from(self.delay_us.is_some()) | u8::from(self.train.is_some()) << 1;
        writer.put(&[KIND_FEEDBACK, flags])?;
        writer.put(&self.highest.to_be_bytes())?;
        writer.put(&self.age_us.to_be_bytes())?;
        writer.put(&self.at_us.to_be_bytes())?;
        writer.put(&self.delivered_bytes.to_be_bytes())?;
        writer.put(&self.received_bytes.to_be_bytes())?;
        writer.put(&self.window_end.to_be_bytes())?;
        if let Some(delay_us) = self.delay_us {
            writer.put(&delay_us.to_be_bytes())?;
        }
        if let Some(train) = self.train {
            writer.put(&train.span_us.to_be_bytes())?;
            writer.put(&train.bytes.to_be_bytes())?;
        }
        Some(())
    }

    fn decode(reader: &mut Reader<'a>) -> Result<Self> {
        let flags = reader.u8()?;
        if flags > 3 {
            return Err(Error::Malformed { what: "a report with unknown flags" });
        }
        let highest = reader.u64()?;
        let (age_us, at_us, delivered_bytes) = (reader.u32()?, reader.u64()?, reader.u64()?);
        let (received_bytes, window_end) = (reader.u64()?, reader.u64()?);
        let delay_us = if flags & 1 != 0 { Some(reader.u32()?) } else { None };
        let train =
            if flags & 2 != 0 { Some(Train { span_us: reader.u32()?, bytes: reader.u32()? }) } else { None };
        let runs = RunBytes::decode(highest, reader.all())?;
        Ok(Self {
            highest,
            age_us,
            at_us,
            delivered_bytes,
            received_bytes,
            window_end,
            delay_us,
            train,
            runs,
        })
    }
}

impl<'a> RunBytes<'a> {
    /// No runs: what a report has before [`Feedback::encode_with`] writes them.
    pub const NONE: RunBytes<'static> = RunBytes { highest: 0, bytes: &[] };

    /// The runs, highest first: lowest and highest number of each.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let mut reader = Reader { rest: self.bytes };
        let mut top = self.highest;
        let mut first = true;
        std::iter::from_fn(move || {
            if reader.rest.is_empty() {
                return None;
            }
            if !std::mem::take(&mut first) {
                top = top.checked_sub(reader.varint().ok()?)?;
            }
            let high = top;
            let low = high.checked_sub(reader.varint().ok()?)?;
            // Two below: the number between two runs did not arrive. Checked where another run follows.
            top = low.saturating_sub(2);
            Some((low, high))
        })
    }

    /// Checks that no run reaches below number 0, so that a reader need not.
    fn decode(highest: u64, bytes: &'a [u8]) -> Result<Self> {
        let malformed = || Error::Malformed { what: "a report whose runs reach below zero" };
        let mut reader = Reader { rest: bytes };
        let mut top = Some(highest);
        let mut first = true;
        while !reader.rest.is_empty() {
            let mut high = top.ok_or_else(malformed)?;
            if !std::mem::take(&mut first) {
                high = high.checked_sub(reader.varint()?).ok_or_else(malformed)?;
            }
            let low = high.checked_sub(reader.varint()?).ok_or_else(malformed)?;
            top = low.checked_sub(2);
        }
        Ok(Self { highest, bytes })
    }
}

impl<'a> HeldRanges<'a> {
    /// The ranges.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + use<'a> {
        let mut reader = Reader { rest: self.bytes };
        let mut at = 0_u64;
        std::iter::from_fn(move || {
            let start = at.checked_add(reader.varint().ok()?)?;
            at = start.checked_add(reader.varint().ok()?)?;
            Some(start..at)
        })
    }

    /// Writes a frame of as many of the ranges as `out` holds; they ascend. Returns its length.
    pub fn encode(ranges: impl Iterator<Item = Range<u64>>, out: &mut [u8]) -> Option<usize> {
        let mut writer = Writer { out, at: 0 };
        writer.put(&[KIND_HELD])?;
        let mut at = 0;
        for range in ranges {
            let before = writer.at;
            let written =
                writer.varint(range.start - at).and_then(|()| writer.varint(range.end - range.start));
            if written.is_none() {
                writer.at = before;
                break;
            }
            at = range.end;
        }
        Some(writer.at)
    }

    fn decode(bytes: &'a [u8]) -> Result<Self> {
        let held = Self { bytes };
        let mut reader = Reader { rest: bytes };
        let mut at = 0_u64;
        while !reader.rest.is_empty() {
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

/// A round trip as one byte: eighths of a doubling above 16 microseconds; 0 for "not known".
pub fn encode_rtt(rtt_us: u64) -> u8 {
    let eighths = (rtt_us.max(16) as f64 / 16.0).log2() * 8.0;
    (eighths.round() as u64 + 1).min(255) as u8
}

/// The round trip in microseconds, within 5 %.
pub fn decode_rtt(code: u8) -> Option<u64> {
    (code > 0).then(|| (16.0 * (f64::from(code - 1) / 8.0).exp2()) as u64)
}

const KIND_PROTECTED: u8 = 0x40;
const KIND_DATA: u8 = 0x10;
const KIND_PROBE: u8 = 0x11;
const KIND_OFFER: u8 = 0x12;
const KIND_FEEDBACK: u8 = 0x20;
const KIND_OUTCOME: u8 = 0x21;
const KIND_READY: u8 = 0x22;
const KIND_HELD: u8 = 0x23;
const KIND_CLOSE: u8 = 0x30;

fn before_first(below: u64, highest: u64) -> bool {
    below == highest + 1
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Error::Malformed { what: "a frame that is cut short" })?;
        self.rest = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u48(&mut self) -> Result<u64> {
        let low: [u8; 6] = self.array()?;
        let mut bytes = [0; 8];
        bytes[2..].copy_from_slice(&low);
        Ok(u64::from_be_bytes(bytes))
    }

    fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn stamp(&mut self) -> Result<Stamp> {
        Ok(Stamp { rtt_code: self.u8()?, sent_us: self.u32()? })
    }

    /// LEB128, at most ten bytes.
    fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::Malformed { what: "a number without an end" })
    }

    fn all(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}

struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        self.out.get_mut(self.at..self.at + bytes.len())?.copy_from_slice(bytes);
        self.at += bytes.len();
        Some(())
    }

    fn head(&mut self, kind: u8, stamp: Stamp) -> Option<()> {
        self.put(&[kind, stamp.rtt_code])?;
        self.put(&stamp.sent_us.to_be_bytes())
    }

    fn varint(&mut self, mut value: u64) -> Option<()> {
        while value >= 0x80 {
            self.put(&[value as u8 | 0x80])?;
            value >>= 7;
        }
        self.put(&[value as u8])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report() -> Feedback<'static> {
        Feedback {
            highest: 0,
            age_us: 5,
            at_us: 1 << 40,
            delivered_bytes: 7,
            received_bytes: 6,
            window_end: 1 << 20,
            delay_us: Some(u32::MAX),
            train: Some(Train { span_us: 3_000, bytes: 40_000 }),
            runs: RunBytes::NONE,
        }
    }

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
            kind in 0..6_u8, rtt_code: u8, sent_us: u32, number in 0..1_u64 << 48,
            payload in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let frame = frame(kind, Stamp { rtt_code, sent_us }, number, &payload);
            let mut bytes = [0; 400];
            let length = frame.encode(&mut bytes).unwrap();
            prop_assert_eq!(Frame::decode(&bytes[..length]).unwrap(), frame.clone());
            for short in 0..length {
                prop_assert_eq!(frame.encode(&mut vec![0; short]), None);
            }
        }

        #[test]
        fn a_report_says_which_packets_arrived(
            numbers in prop::collection::btree_set(0..3_000_u64, 1..400), floor in 0..3_000_u64, room in 0..400_usize,
        ) {
            let mut arrivals = Arrivals::default();
            for number in &numbers {
                arrivals.accept(*number);
            }
            let report = Feedback { highest: arrivals.highest().unwrap(), ..report() };
            let mut bytes = vec![0; 64 + room];
            let length = report.encode_with(&arrivals, floor, &mut bytes).unwrap();
            let Frame::Feedback(read) = Frame::decode(&bytes[..length]).unwrap() else { panic!() };
            prop_assert_eq!(Feedback { runs: RunBytes::NONE, ..read }, Feedback { ..report });
            let listed: Vec<u64> = read.runs.iter().flat_map(|(low, high)| (low..=high).rev()).collect();
            let expected: Vec<u64> = numbers.iter().rev().copied().filter(|number| *number >= floor).collect();
            prop_assert_eq!(&listed[..], &expected[..listed.len()], "the newest, nothing else");
            prop_assert!(listed.len() == expected.len() || length + 20 > bytes.len(), "as many as fit");
        }

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
