//! Journal of a part: how much of it is on the disk, for a later copy.
//!
//! Two records alternate: if one is torn, the other is intact. They are in a folder that only this user can
//! enter, so they are trusted; the checksum only detects a torn write.

use std::fs::File;
use std::io;

use crate::blocks::{BlockMap, Blocks};
use crate::system::{read_at, write_all_at};
use crate::wire::{HASH_BYTES, ShortHash, short};

/// Received amount of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Come {
    /// Everything up to this offset.
    Prefix(u64),
    /// These blocks.
    Blocks(BlockMap),
}

impl Come {
    /// End of the contiguous part at the start.
    pub(super) fn prefix(&self) -> u64 {
        match self {
            Self::Prefix(prefix) => *prefix,
            Self::Blocks(map) => map.prefix(),
        }
    }

    pub(super) fn into_blocks(self, blocks: Blocks) -> BlockMap {
        match self {
            Self::Prefix(prefix) => BlockMap::of_prefix(blocks, prefix),
            Self::Blocks(map) => map,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Prefix(prefix) => *prefix,
            Self::Blocks(map) => map.come_bytes(),
        }
    }
}

/// Writes the good amount of the part into one of two places.
pub(super) fn write(journal: &File, turn: u64, identity: &ShortHash, come: &Come) -> io::Result<()> {
    let mut record = Vec::with_capacity(PREFIX_RECORD_BYTES);
    match come {
        Come::Prefix(prefix) => {
            record.extend_from_slice(PREFIX_MAGIC);
            record.extend_from_slice(identity);
            record.extend_from_slice(&prefix.to_be_bytes());
        }
        Come::Blocks(map) => {
            record.extend_from_slice(BLOCKS_MAGIC);
            record.extend_from_slice(identity);
            record.extend_from_slice(map.bits());
        }
    }
    let check = short(&blake3::hash(&record));
    record.extend_from_slice(&check);
    write_all_at(journal, &record, turn % 2 * record.len() as u64)
}

/// Reads the journal of a file with this identity and length. A record of blocks takes precedence, because a
/// journal is emptied before it changes its kind.
pub(super) fn read(journal: &File, identity: &ShortHash, bytes: u64) -> Option<Come> {
    let blocks = Blocks::of(bytes);
    let bits_bytes = blocks.count().div_ceil(8) as usize;
    let maps = (0..2).filter_map(|turn| {
        let bits = record(journal, turn, BLOCKS_MAGIC, identity, bits_bytes)?;
        BlockMap::from_bits(blocks, &bits)
    });
    if let Some(map) = maps.max_by_key(BlockMap::come_bytes) {
        return Some(Come::Blocks(map));
    }
    let prefixes = (0..2).filter_map(|turn| {
        let said = record(journal, turn, PREFIX_MAGIC, identity, 8)?;
        Some(said.iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte)))
    });
    prefixes.max().map(Come::Prefix)
}

/// Record of this kind, if it is complete and belongs to this file.
fn record(
    journal: &File,
    turn: u64,
    magic: &[u8; 8],
    identity: &ShortHash,
    said_bytes: usize,
) -> Option<Vec<u8>> {
    let mut record = vec![0; HEAD_BYTES + said_bytes + HASH_BYTES];
    let at = turn * record.len() as u64;
    let mut got = 0;
    while got < record.len() {
        match read_at(journal, &mut record[got..], at + got as u64).ok()? {
            0 => return None,
            read => got += read,
        }
    }
    let (said, check) = record.split_at(HEAD_BYTES + said_bytes);
    let is_good = *check == short(&blake3::hash(said)) && said[..8] == *magic && said[8..24] == *identity;
    is_good.then(|| said[HEAD_BYTES..].to_vec())
}

const PREFIX_MAGIC: &[u8; 8] = b"grebe j1";
const BLOCKS_MAGIC: &[u8; 8] = b"grebe j2";
const HEAD_BYTES: usize = 8 + HASH_BYTES;
const PREFIX_RECORD_BYTES: usize = HEAD_BYTES + 8 + HASH_BYTES;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receive::partial::identity;

    #[test]
    fn half_a_record_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let of = identity(1, 2, 3);
        let mut map = BlockMap::none(Blocks::of(9 << 18));
        [0, 4, 8].into_iter().for_each(|block| map.add(block));
        for (come, less) in [
            (Come::Prefix(77), Come::Prefix(60)),
            (Come::Blocks(map), Come::Blocks(BlockMap::none(Blocks::of(9 << 18)))),
        ] {
            let _ = std::fs::remove_file(&path);
            let file = File::create_new(&path).unwrap();
            write(&file, 0, &of, &come).unwrap();
            let good = std::fs::read(&path).unwrap();
            for at in 0..good.len() {
                let mut bytes = good.clone();
                bytes[at] ^= 1;
                std::fs::write(&path, &bytes).unwrap();
                assert_eq!(read(&File::open(&path).unwrap(), &of, 9 << 18), None, "byte {at}");
                std::fs::write(&path, &good[..at]).unwrap();
                assert_eq!(read(&File::open(&path).unwrap(), &of, 9 << 18), None, "cut at {at}");
            }
            std::fs::write(&path, [&good[..], &good[..20]].concat()).unwrap();
            assert_eq!(read(&File::open(&path).unwrap(), &of, 9 << 18), Some(come.clone()));
            assert_eq!(read(&File::open(&path).unwrap(), &identity(1, 2, 4), 9 << 18), None);
            write(&file, 1, &of, &less).unwrap();
            std::fs::write(&path, &good).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            write(&file, 1, &of, &less).unwrap();
            assert_eq!(read(&File::open(&path).unwrap(), &of, 9 << 18), Some(come), "the one that says more");
        }
    }

    #[test]
    fn a_prefix_becomes_blocks_and_blocks_a_prefix() {
        let blocks = Blocks::of(9 << 18);
        let map = Come::Prefix((3 << 18) + 5).into_blocks(blocks);
        assert_eq!(map.come_bytes(), 3 << 18);
        let mut map = map;
        map.add(7);
        let come = Come::Blocks(map);
        assert_eq!((come.prefix(), come.bytes()), (3 << 18, 4 << 18));
    }
}
