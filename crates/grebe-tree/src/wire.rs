//! Messages of a copy, described in `docs/tree-protocol.md`.
//!
//! Each is a frame: kind (1), length of the body (LEB128), body. Input comes from a peer: each length has a
//! bound, and any bytes become a message or an [`Error`](crate::Error).

mod answers;
mod blocks;
mod changed;
mod data;
mod frame;
mod hello;
mod listing;
mod offer;
mod outcome;

pub(crate) use answers::{Answer, AnswerWriter, Answers};
pub(crate) use blocks::{Left, STRETCHES_MAX, Want, decode_stretches, encode_stretches};
pub(crate) use changed::{
    FinerRange, Made, MadeWord, Refine, Shift, SignaturePart, SignatureState, WITHOUT_MAX,
};
pub(crate) use data::{DataFrame, DataWriter, RecordKind};
pub(crate) use frame::{Frame, FrameReader, FrameWriter, Kind};
pub(crate) use hello::{Hello, Role};
#[cfg(unix)]
pub(crate) use listing::ATTRIBUTE_BYTES_MAX;
pub(crate) use listing::{
    ATTRIBUTES_BYTES_MAX, Attribute, Entry, EntryKind, Listing, ListingWriter, Owner, TOUCHED_BYTES,
    bytes_of_attributes,
};
pub(crate) use offer::{OfferedNames, Taken};
pub(crate) use outcome::{Note, SenderEnd, Summary};

/// Maximum length of a frame's body in bytes.
pub(crate) const FRAME_BYTES_MAX: usize = 1 << 20;

/// Unit of hashing, writing and resuming, in bytes of a file.
pub(crate) const GROUP_BYTES: usize = 256 << 10;

/// Maximum files listed and not sent, some 20 MB with their names. More than a path holds of small files, or
/// of names in a round trip.
pub(crate) const FILES_AHEAD: usize = 100_000;

/// Length of a hash on the wire; collisions are infeasible.
pub(crate) const HASH_BYTES: usize = 16;

/// Truncated BLAKE3 hash.
pub(crate) type ShortHash = [u8; HASH_BYTES];

/// Number of a file or directory, in listing order.
pub(crate) type EntryId = u64;

/// Number of a directory, in listing order; 0 is the top.
pub(crate) type DirectoryId = u32;

/// The top of a copy.
pub(crate) const TOP: DirectoryId = 0;

/// First [`HASH_BYTES`] of a hash.
pub(crate) fn short(hash: &blake3::Hash) -> ShortHash {
    std::array::from_fn(|at| hash.as_bytes()[at])
}

/// Appends a number in LEB128.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends bytes after their length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Maps a signed number to an unsigned one that is small for a small magnitude.
pub(crate) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// Reverse of [`zigzag`].
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Reads bytes after their length, at most `max`.
pub(crate) fn take_bytes<'a>(reader: &mut grebe_packet::Reader<'a>, max: usize) -> crate::Result<&'a [u8]> {
    let length = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
    if length > max {
        return Err(crate::Error::Malformed { what: "a field that is too long" });
    }
    Ok(reader.take(length)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(value: u64, signed: i64) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            prop_assert!(bytes.len() <= 10);
            prop_assert_eq!(grebe_packet::Reader::new(&bytes).varint().unwrap(), value);
            prop_assert_eq!(unzigzag(zigzag(signed)), signed);
        }
    }

    #[test]
    fn small_numbers_are_short_whatever_their_sign() {
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
    }
}
