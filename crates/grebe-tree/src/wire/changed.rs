//! Messages about a file that the receiver has in part.

use std::ops::Range;

use grebe_packet::Reader;

use crate::delta::{ChunkSizes, GAPS_MAX, PIECE_BYTES_MAX};
use crate::error::{Error, Result};
use crate::wire::{EntryId, put_varint, unzigzag, zigzag};

/// Part of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignaturePart {
    pub(crate) id: EntryId,
    pub(crate) state: SignatureState,
    pub(crate) piece: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureState {
    /// More parts follow.
    Begun,
    /// The last part.
    Whole,
    /// The existing file is unreadable, so the whole new one is wanted.
    Failed,
    /// Finer chunks of the oldest open [request](FinerRange); empty if not available.
    Finer,
}

impl SignaturePart {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.piece.len() + 11);
        put_varint(&mut out, self.id);
        out.push(match self.state {
            SignatureState::Begun => 0,
            SignatureState::Whole => 1,
            SignatureState::Failed => 2,
            SignatureState::Finer => 3,
        });
        out.extend_from_slice(&self.piece);
        out
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(body);
        let id = reader.varint()?;
        let state = match reader.u8()? {
            0 => SignatureState::Begun,
            1 => SignatureState::Whole,
            2 => SignatureState::Failed,
            3 => SignatureState::Finer,
            _ => return Err(Error::Malformed { what: "a signature in a state that it cannot be in" }),
        };
        let piece = reader.all();
        if piece.len() > PIECE_BYTES_MAX {
            return Err(Error::Malformed { what: "a piece of a signature that is too long" });
        }
        Ok(Self { id, state, piece: piece.to_vec() })
    }
}

/// Request for finer chunks of ranges of the existing file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refine {
    pub(crate) id: EntryId,
    pub(crate) sizes: ChunkSizes,
    /// First chunk and count of each range, in order.
    pub(crate) stretches: Vec<(u32, u32)>,
}

impl Refine {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.id);
        out.push(self.sizes.to_byte());
        put_varint(&mut out, self.stretches.len() as u64);
        for (first, chunks) in &self.stretches {
            put_varint(&mut out, (*first).into());
            put_varint(&mut out, (*chunks).into());
        }
        out
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(body);
        let id = reader.varint()?;
        let sizes = ChunkSizes::from_byte(reader.u8()?);
        let sizes = sizes.ok_or(Error::Malformed { what: "chunks of a length that none has" })?;
        let count = reader.varint()?;
        if count > GAPS_MAX as u64 {
            return Err(Error::Malformed { what: "too many repeated stretches" });
        }
        let mut stretches = Vec::new();
        for _ in 0..count {
            stretches.push((number(&mut reader)?, number(&mut reader)?));
        }
        reader.end()?;
        Ok(Self { id, sizes, stretches })
    }
}

/// Request for finer chunks of one range while the signature is in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FinerRange {
    pub(crate) id: EntryId,
    pub(crate) sizes: ChunkSizes,
    pub(crate) first: u32,
    pub(crate) chunks: u32,
}

impl FinerRange {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.id);
        out.push(self.sizes.to_byte());
        put_varint(&mut out, self.first.into());
        put_varint(&mut out, self.chunks.into());
        out
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(body);
        let id = reader.varint()?;
        let sizes = ChunkSizes::from_byte(reader.u8()?);
        let sizes = sizes.ok_or(Error::Malformed { what: "chunks of a length that none has" })?;
        let (first, chunks) = (number(&mut reader)?, number(&mut reader)?);
        reader.end()?;
        Ok(Self { id, sizes, first, chunks })
    }
}

fn number(reader: &mut Reader<'_>) -> Result<u32> {
    let what = "more chunks than a signature has";
    u32::try_from(reader.varint()?).map_err(|_| Error::Malformed { what })
}

/// Offset of the basis in the new file from here on, for a receiver that writes ahead. Correctness does not
/// depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shift {
    pub(crate) id: EntryId,
    /// Shift in bytes.
    pub(crate) bytes: i64,
}

impl Shift {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.id);
        put_varint(&mut out, zigzag(self.bytes));
        out
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(body);
        let (id, bytes) = (reader.varint()?, unzigzag(reader.varint()?));
        reader.end()?;
        Ok(Self { id, bytes })
    }
}

/// Result of making a file from a basis and sent data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) id: EntryId,
    pub(crate) word: MadeWord,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MadeWord {
    /// The basis changed; the whole file is wanted.
    Whole,
    Good,
    /// Only these ranges failed, in order.
    Without(Vec<Range<u64>>),
}

/// Maximum failed ranges; beyond it, the whole file is wanted.
pub(crate) const WITHOUT_MAX: usize = 1_000;

impl Made {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.id);
        match &self.word {
            MadeWord::Whole => out.push(0),
            MadeWord::Good => out.push(1),
            MadeWord::Without(stretches) => {
                out.push(2);
                put_varint(&mut out, stretches.len() as u64);
                let mut end = 0;
                for stretch in stretches {
                    put_varint(&mut out, stretch.start - end);
                    put_varint(&mut out, stretch.end - stretch.start);
                    end = stretch.end;
                }
            }
        }
        out
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(body);
        let id = reader.varint()?;
        let word = match reader.u8()? {
            0 => MadeWord::Whole,
            1 => MadeWord::Good,
            2 => MadeWord::Without(stretches(&mut reader)?),
            _ => return Err(Error::Malformed { what: "a file that is neither made nor wanted again" }),
        };
        reader.end()?;
        Ok(Self { id, word })
    }
}

fn stretches(reader: &mut Reader<'_>) -> Result<Vec<Range<u64>>> {
    let count = reader.varint()?;
    if count > WITHOUT_MAX as u64 {
        return Err(Error::Malformed { what: "more stretches than are sent again" });
    }
    let (mut stretches, mut end) = (Vec::new(), 0_u64);
    for _ in 0..count {
        let start = end.checked_add(reader.varint()?);
        let stretch = start.and_then(|start| Some(start..start.checked_add(reader.varint().ok()?)?));
        let stretch = stretch.filter(|stretch| !stretch.is_empty());
        let stretch = stretch.ok_or(Error::Malformed { what: "a stretch that no file has" })?;
        end = stretch.end;
        stretches.push(stretch);
    }
    Ok(stretches)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_about_changed_files_round_trip(
            id: u64, piece: Vec<u8>, gaps in prop::collection::vec((any::<u32>(), 1..=u32::MAX), 0..20),
        ) {
            let states =
                [SignatureState::Begun, SignatureState::Whole, SignatureState::Failed, SignatureState::Finer];
            for state in states {
                let part = SignaturePart { id, state, piece: piece.clone() };
                prop_assert_eq!(SignaturePart::decode(&part.encode()).unwrap(), part);
            }
            let sizes = ChunkSizes::from_byte(14 | (id as u8 & 0x80)).unwrap();
            let stretches = piece.iter().map(|byte| (u32::from(*byte) << 20, u32::MAX - u32::from(*byte))).collect();
            let refine = Refine { id, sizes, stretches };
            prop_assert_eq!(Refine::decode(&refine.encode()).unwrap(), refine);
            let look = FinerRange { id, sizes, first: id as u32, chunks: (id >> 32) as u32 };
            prop_assert_eq!(FinerRange::decode(&look.encode()).unwrap(), look);
            let shift = Shift { id, bytes: id.rotate_left(7) as i64 };
            prop_assert_eq!(Shift::decode(&shift.encode()).unwrap(), shift);
            let mut end = 0;
            let without = gaps.iter().map(|(gap, len)| {
                let start = end + u64::from(*gap);
                end = start + u64::from(*len);
                start..end
            });
            for word in [MadeWord::Whole, MadeWord::Good, MadeWord::Without(without.collect())] {
                let made = Made { id, word };
                prop_assert_eq!(Made::decode(&made.encode()).unwrap(), made);
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = (SignaturePart::decode(&bytes), Made::decode(&bytes), Refine::decode(&bytes));
            let _ = (Shift::decode(&bytes), FinerRange::decode(&bytes));
        }
    }

    #[test]
    fn ranges_outside_of_the_file_are_refused() {
        for numbers in
            [&[1, 5, 0][..], &[1, u64::MAX, 1], &[2, 0, u64::MAX, 0, 1], &[1, 5], &[WITHOUT_MAX as u64 + 1]]
        {
            let mut body = vec![7, 2];
            numbers.iter().for_each(|number| put_varint(&mut body, *number));
            assert!(Made::decode(&body).is_err(), "{numbers:?}");
        }
    }

    #[test]
    fn pieces_that_are_too_long_are_refused() {
        let part =
            |bytes| SignaturePart { id: 1, state: SignatureState::Begun, piece: vec![0; bytes] }.encode();
        assert!(SignaturePart::decode(&part(PIECE_BYTES_MAX)).is_ok());
        assert!(SignaturePart::decode(&part(PIECE_BYTES_MAX + 1)).is_err());
    }
}
