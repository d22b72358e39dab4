//! Messages of the receiver about files in blocks.

use std::ops::Range;

use grebe_packet::Reader;

use crate::error::{Error, Result};
use crate::wire::{EntryId, put_bytes, put_varint, take_bytes};

/// Blocks of a file that an earlier copy left, sent before the answer to that file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) id: EntryId,
    /// One bit per block, lowest bit of the first byte first.
    pub(crate) bits: Vec<u8>,
}

impl Left {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bits.len() + 13);
        put_varint(&mut out, self.id);
        put_bytes(&mut out, &self.bits);
        out
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(body);
        let id = reader.varint()?;
        let bits = take_bytes(&mut reader, BITS_BYTES_MAX)?.to_vec();
        reader.end()?;
        Ok(Self { id, bits })
    }
}

/// Viewer's request: send these ranges of a file next. Replaces the earlier request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) id: EntryId,
    pub(crate) stretches: Vec<Range<u64>>,
}

impl Want {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.id);
        out.extend(encode_stretches(&self.stretches));
        out
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(body);
        let id = reader.varint()?;
        Ok(Self { id, stretches: decode_stretches(reader)? })
    }
}

/// Encodes the number of ranges, then offset and length of each.
pub(crate) fn encode_stretches(stretches: &[Range<u64>]) -> Vec<u8> {
    let mut out = Vec::new();
    let stretches = &stretches[..stretches.len().min(STRETCHES_MAX)];
    put_varint(&mut out, stretches.len() as u64);
    for stretch in stretches {
        put_varint(&mut out, stretch.start);
        put_varint(&mut out, stretch.end.saturating_sub(stretch.start));
    }
    out
}

/// Reverse of [`encode_stretches`].
pub(crate) fn decode_stretches(mut reader: Reader<'_>) -> Result<Vec<Range<u64>>> {
    let count = reader.varint()?;
    if count > STRETCHES_MAX as u64 {
        return Err(Error::Malformed { what: "more stretches than anybody looks at" });
    }
    let mut stretches = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let (start, length) = (reader.varint()?, reader.varint()?);
        let end = start.checked_add(length).filter(|&end| end <= i64::MAX as u64);
        let end = end.ok_or(Error::Malformed { what: "a stretch beyond the end of any file" })?;
        stretches.push(start..end);
    }
    reader.end()?;
    Ok(stretches)
}

/// Bits for the maximum number of blocks.
const BITS_BYTES_MAX: usize = 128 << 10;
/// Maximum wanted ranges per file.
pub(crate) const STRETCHES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn block_requests_round_trip(
            id: u64, stretches in prop::collection::vec((0..u64::MAX / 4, 0..u64::MAX / 4), 0..STRETCHES_MAX),
            bits in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let stretches = stretches.into_iter().map(|(start, length)| start..start + length).collect();
            let want = Want { id, stretches };
            prop_assert_eq!(Want::decode(&want.encode()).unwrap(), want);
            let left = Left { id, bits };
            prop_assert_eq!(Left::decode(&left.encode()).unwrap(), left);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Want::decode(&bytes);
            let _ = Left::decode(&bytes);
        }
    }

    #[test]
    fn blocks_beyond_a_bound_are_refused() {
        let mut body = vec![0];
        put_varint(&mut body, STRETCHES_MAX as u64 + 1);
        body.extend([0; 2 * (STRETCHES_MAX + 1)]);
        assert!(Want::decode(&body).is_err());
        let mut body = vec![0, 1];
        put_varint(&mut body, i64::MAX as u64);
        put_varint(&mut body, 1);
        assert!(Want::decode(&body).is_err());
        assert!(Left::decode(&[0, 3, 0, 0]).is_err(), "cut off");
    }
}
