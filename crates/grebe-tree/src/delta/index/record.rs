//! Record of one file in an index: its identity, the results, and their encoding.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use grebe_packet::Reader;

use crate::delta::ChunkSizes;
use crate::system::Metadata;
use crate::wire::{ShortHash, put_varint};

/// Properties that identify an unchanged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub(crate) bytes: u64,
    pub(crate) mtime_ns: i64,
    /// 0 if the system does not provide it; the same for `inode`.
    pub(crate) ctime_ns: i64,
    pub(crate) inode: u64,
}

/// Results for a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// Hash of the whole file.
    pub(crate) hash: Option<ShortHash>,
    /// Pieces of its signature, as sent.
    pub(crate) signature: Option<(ChunkSizes, Vec<Vec<u8>>)>,
}

impl FileIdentity {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let Metadata { bytes, modified_ns, changed_ns, inode, .. } = *metadata;
        Self { bytes, mtime_ns: modified_ns, ctime_ns: changed_ns, inode }
    }

    /// Whether the last change is old enough that another one would show in the times.
    pub(super) fn is_settled(&self, now: SystemTime) -> bool {
        let until = now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(CLOCK_STEP);
        i128::from(self.mtime_ns.max(self.ctime_ns)) < until.as_nanos() as i128
    }
}

pub(super) fn put_record(out: &mut Vec<u8>, name: &[u8], body: &[u8]) {
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&key(name).to_le_bytes());
    out.extend_from_slice(&check(body));
    out.extend_from_slice(body);
}

pub(super) fn encode(name: &[u8], identity: &FileIdentity, known: &Known) -> Vec<u8> {
    let mut body = Vec::new();
    put_varint(&mut body, name.len() as u64);
    body.extend_from_slice(name);
    put_varint(&mut body, identity.bytes);
    body.extend_from_slice(&identity.mtime_ns.to_le_bytes());
    body.extend_from_slice(&identity.ctime_ns.to_le_bytes());
    body.extend_from_slice(&identity.inode.to_le_bytes());
    body.push(u8::from(known.hash.is_some()) | u8::from(known.signature.is_some()) << 1);
    if let Some(hash) = &known.hash {
        body.extend_from_slice(hash);
    }
    if let Some((sizes, pieces)) = &known.signature {
        body.push(sizes.to_byte());
        put_varint(&mut body, pieces.len() as u64);
        for piece in pieces {
            put_varint(&mut body, piece.len() as u64);
            body.extend_from_slice(piece);
        }
    }
    body
}

/// Decodes a body if it belongs to this name and file.
pub(super) fn decode(body: &[u8], name: &[u8], identity: &FileIdentity) -> Option<Known> {
    let mut reader = Reader::new(body);
    let name_bytes = reader.varint().ok()?;
    if reader.take(usize::try_from(name_bytes).ok()?).ok()? != name {
        return None;
    }
    let said = FileIdentity {
        bytes: reader.varint().ok()?,
        mtime_ns: i64::from_le_bytes(reader.array().ok()?),
        ctime_ns: i64::from_le_bytes(reader.array().ok()?),
        inode: u64::from_le_bytes(reader.array().ok()?),
    };
    if said != *identity {
        return None;
    }
    let flags = reader.u8().ok()?;
    let hash = if flags & 1 != 0 { Some(reader.array().ok()?) } else { None };
    let signature = if flags & 2 != 0 {
        let sizes = ChunkSizes::from_byte(reader.u8().ok()?)?;
        let mut pieces = Vec::new();
        for _ in 0..reader.varint().ok()? {
            let bytes = reader.varint().ok()?;
            pieces.push(reader.take(usize::try_from(bytes).ok()?).ok()?.to_vec());
        }
        Some((sizes, pieces))
    } else {
        None
    };
    reader.end().ok()?;
    Some(Known { hash, signature })
}

pub(super) fn key(name: &[u8]) -> u64 {
    number_of(blake3::hash(name).as_bytes())
}

pub(super) fn check(body: &[u8]) -> [u8; 8] {
    let hash = blake3::hash(body);
    std::array::from_fn(|at| hash.as_bytes()[at])
}

/// Number in the first eight bytes.
pub(super) fn number_of(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Head of a record: length of the body, hash of the name, hash of the body.
pub(super) const HEAD_BYTES: usize = 4 + 8 + 8;

/// Maximum body: a signature with the most chunks, and a name.
pub(super) const BODY_BYTES_MAX: usize = 64 << 20;

/// Resolution of the coarsest file system clock in use (FAT: two seconds).
const CLOCK_STEP: Duration = Duration::from_secs(2);
