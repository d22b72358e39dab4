//! Which bytes a receiver has from an earlier session.

use std::ops::Range;

use grebe_packet::{Reader, Writer};

use super::stamp::KIND_HELD;
use crate::error::{Error, Result};

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
    use crate::proto::wire::Frame;

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
