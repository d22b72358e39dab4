//! Reports of the receiver: arrived packets, delivery rate and delay.

use grebe_packet::{Reader, ReplayWindow, Writer};

use super::header::{KIND_FEEDBACK, TRAIN_MARKS};
use crate::error::{Error, Result};

/// Received packet numbers among the newest 65,536, for the replay window and for reports. A path that
/// reorders by more loses packets.
pub type ReceivedPackets = ReplayWindow<1_024>;

/// Report of the receiver: arrived packets, delivery rate and delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feedback<'a> {
    /// Highest packet number that arrived.
    pub highest: u64,
    /// Microseconds from its arrival to this report.
    pub age_us: u32,
    /// Receiver's clock at this report, in microseconds.
    pub at_us: u64,
    /// Bytes on the wire that have arrived, with UDP and IP headers.
    pub delivered_bytes: u64,
    /// Bytes of the stream that the receiver has.
    pub received_bytes: u64,
    /// Window end: the sender sends no byte at or above this offset.
    pub window_end: u64,
    /// Minimum of arrival time minus `sent_us` among the packets since the last report, modulo 2^32.
    pub delay_us: Option<u32>,
    /// Arrivals of the newest packet train, which measure the path.
    pub train: Option<Train>,
    /// Runs of received packet numbers, validated.
    pub runs: RunBytes<'a>,
}

/// Arrivals of packets that left faster than the path's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Train {
    /// Mark of its packets.
    pub mark: u8,
    /// Time span in microseconds, from the first to the last arrival. On paths that reorder, it follows the
    /// fitted line plus half of its error.
    pub span_us: u32,
    /// Bytes on the wire that arrived after the first packet.
    pub bytes: u32,
    /// Lateness of a packet relative to others; 0 if all arrived in order.
    pub jitter_us: u32,
}

/// Runs of packet numbers in wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunBytes<'a> {
    highest: u64,
    pub(super) bytes: &'a [u8],
}

/// The receiver's clock begins with its session.
const TIME_US_MAX: u64 = 1 << 62;
/// Maximum arrival span of a train, which has at most 2 MiB. A longer one waited for something else.
pub(crate) const TRAIN_US_MAX: u32 = 60_000_000;

/// Position of the train mark in the flags.
const MARK_SHIFT: u8 = 1;

impl<'a> Feedback<'a> {
    /// Writes the report with as many runs as fit into `out`, newest first, down to `floor`. Ignores its own
    /// `runs`. Returns the length, or `None` if not even the head fits.
    pub(crate) fn encode_with(
        &self,
        received: &ReceivedPackets,
        floor: u64,
        out: &mut [u8],
    ) -> Option<usize> {
        let mut writer = Writer::new(out);
        self.encode_head(&mut writer);
        let mut length = writer.written()?;
        let mut below: Option<u64> = None;
        for (low, high) in received.runs_down_to(floor) {
            // The first run begins at `highest`. Each later run follows the gap above it.
            if let Some(below) = below.replace(low) {
                writer.varint(below - high - 2);
            }
            let Some(written) = writer.varint(high - low).written() else { break };
            length = written;
        }
        Some(length)
    }

    pub(super) fn encode_head(&self, writer: &mut Writer<'_>) {
        let mark = self.train.map_or(0, |train| train.mark);
        let flags = u8::from(self.delay_us.is_some()) | mark << MARK_SHIFT;
        writer.u8(KIND_FEEDBACK).u8(flags).u64(self.highest).u32(self.age_us).u64(self.at_us);
        writer.u64(self.delivered_bytes).u64(self.received_bytes).u64(self.window_end);
        if let Some(delay_us) = self.delay_us {
            writer.u32(delay_us);
        }
        if let Some(train) = self.train {
            train.write(writer);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self> {
        let flags = reader.u8()?;
        if flags >> MARK_SHIFT > TRAIN_MARKS {
            return Err(Error::Malformed { what: "a report with unknown flags" });
        }
        let highest = reader.u64()?;
        let (age_us, at_us, delivered_bytes) = (reader.u32()?, reader.u64()?, reader.u64()?);
        let (received_bytes, window_end) = (reader.u64()?, reader.u64()?);
        let delay_us = if flags & 1 != 0 { Some(reader.u32()?) } else { None };
        let train = match flags >> MARK_SHIFT {
            0 => None,
            mark => Some(Train::read(reader, mark)?),
        };
        if at_us >= TIME_US_MAX || delivered_bytes >= 1 << 62 {
            return Err(IMPOSSIBLE);
        }
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

impl Train {
    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.span_us).u32(self.bytes).u32(self.jitter_us);
    }

    pub(super) fn read(reader: &mut Reader<'_>, mark: u8) -> Result<Self> {
        let train = Self { mark, span_us: reader.u32()?, bytes: reader.u32()?, jitter_us: reader.u32()? };
        if train.span_us.max(train.jitter_us) > TRAIN_US_MAX { Err(IMPOSSIBLE) } else { Ok(train) }
    }

    /// Rate to which the path spread it, in bytes per second. `None`: jitter hides it.
    pub(crate) fn rate(&self) -> Option<f64> {
        (self.span_us > self.jitter_us).then(|| f64::from(self.bytes) * 1e6 / f64::from(self.span_us))
    }
}

const IMPOSSIBLE: Error = Error::Malformed { what: "a report of more than can be" };

impl<'a> RunBytes<'a> {
    /// No runs: the value before [`Feedback::encode_with`] writes them.
    pub(crate) const NONE: RunBytes<'static> = RunBytes { highest: 0, bytes: &[] };

    /// The runs, highest first: lowest and highest number of each.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        let mut top = self.highest;
        let mut first = true;
        std::iter::from_fn(move || {
            if reader.is_empty() {
                return None;
            }
            if !std::mem::take(&mut first) {
                top = top.checked_sub(reader.varint().ok()?)?;
            }
            let high = top;
            let low = high.checked_sub(reader.varint().ok()?)?;
            // Two below, because the number between two runs did not arrive. Checked if another run follows.
            top = low.saturating_sub(2);
            Some((low, high))
        })
    }

    /// Checks that no run reaches below 0, so that readers need not.
    fn decode(highest: u64, bytes: &'a [u8]) -> Result<Self> {
        let malformed = || Error::Malformed { what: "a report with runs below zero" };
        let mut reader = Reader::new(bytes);
        let mut top = Some(highest);
        let mut first = true;
        while !reader.is_empty() {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::proto::wire::Frame;

    fn report() -> Feedback<'static> {
        Feedback {
            highest: 0,
            age_us: 5,
            at_us: 1 << 40,
            delivered_bytes: 7,
            received_bytes: 6,
            window_end: 1 << 20,
            delay_us: Some(u32::MAX),
            train: Some(Train { mark: 2, span_us: 3_000, bytes: 40_000, jitter_us: 70 }),
            runs: RunBytes::NONE,
        }
    }

    #[test]
    fn a_report_of_more_than_can_be_is_refused() {
        let is_read = |report: Feedback<'_>| {
            let mut bytes = [0; 200];
            let mut received = ReceivedPackets::default();
            received.accept(0);
            let length = report.encode_with(&received, 0, &mut bytes).unwrap();
            Frame::decode(&bytes[..length]).is_ok()
        };
        let train = |span_us, jitter_us| Some(Train { mark: 1, span_us, bytes: 1, jitter_us });
        let most = Feedback { at_us: TIME_US_MAX - 1, train: train(TRAIN_US_MAX, TRAIN_US_MAX), ..report() };
        assert!(is_read(most));
        assert!(!is_read(Feedback { at_us: TIME_US_MAX, ..most }));
        assert!(!is_read(Feedback { delivered_bytes: 1 << 62, ..most }));
        assert!(!is_read(Feedback { train: train(TRAIN_US_MAX + 1, 0), ..most }));
        assert!(!is_read(Feedback { train: train(0, TRAIN_US_MAX + 1), ..most }));
    }

    proptest! {
        #[test]
        fn a_report_says_which_packets_arrived(
            numbers in prop::collection::btree_set(0..3_000_u64, 1..400), floor in 0..3_000_u64, room in 0..400_usize,
        ) {
            let mut received = ReceivedPackets::default();
            for number in &numbers {
                received.accept(*number);
            }
            let report = Feedback { highest: received.highest().unwrap(), ..report() };
            let mut bytes = vec![0; 64 + room];
            let length = report.encode_with(&received, floor, &mut bytes).unwrap();
            let Frame::Feedback(read) = Frame::decode(&bytes[..length]).unwrap() else { panic!() };
            prop_assert_eq!(Feedback { runs: RunBytes::NONE, ..read }, Feedback { ..report });
            let listed: Vec<u64> = read.runs.iter().flat_map(|(low, high)| (low..=high).rev()).collect();
            let expected: Vec<u64> = numbers.iter().rev().copied().filter(|number| *number >= floor).collect();
            prop_assert_eq!(&listed[..], &expected[..listed.len()], "the newest, nothing else");
            prop_assert!(listed.len() == expected.len() || length + 20 > bytes.len(), "as many as fit");
        }
    }
}
