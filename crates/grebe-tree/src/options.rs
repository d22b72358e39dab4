//! What the two ends of a copy agree on.

use std::path::PathBuf;

use grebe_packet::Reader;

use crate::error::{Error, Result};
use crate::name::{bytes_of, os_name};
use crate::wire::{put_bytes, put_varint, take_bytes};

/// How a tree is copied. One end is given them, by the person who copies; they travel to the other end.
///
/// ```
/// use grebe_tree::Options;
///
/// let options = Options { delete: true, exclude: vec!["*.tmp".to_owned()], ..Options::archive() };
/// assert!(options.recursive && options.hard_links);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Directories are copied with what is in them; else they are left out.
    pub recursive: bool,
    /// Modes are kept to the bit, and those of what is there already are mended; else new files and directories get the
    /// sender's mode less the receiver's umask, and what is there keeps its own. Symbolic links that are named are copied as
    /// links, too, and not followed.
    pub modes: bool,
    /// Names of one file stay names of one file; else each becomes a file of its own.
    pub hard_links: bool,
    /// Owner and group are kept, by number, where the receiver is root; else they are the receiver's.
    pub owners: bool,
    /// Extended attributes are kept: those of users, and as root all but those of the system.
    pub attributes: bool,
    /// A file that is there with the same size is compared by BLAKE3 and not by its time.
    pub checksum: bool,
    /// Nothing is changed; reports and events say what would be.
    pub dry_run: bool,
    /// What is at the destination, in a directory that is copied, and not at the source, is removed when all is there.
    pub delete: bool,
    /// What is in the way is removed: a directory where a file comes, the reverse, and devices, sockets and named pipes.
    pub force: bool,
    /// Changed files are sent whole, even where parts of them are there.
    pub whole_file: bool,
    /// What lies on another file system than what was named is left out, silently, as `rsync -x` does.
    pub one_file_system: bool,
    /// When the receiver brings to the disk what has come.
    pub fsync: Fsync,
    /// Patterns of what is left out, as those of `rsync --exclude`: `*` and `?` match no slash, `**` between slashes
    /// any directories; a slash at the front
    /// means from the top, one at the end only directories; without a slash in it a pattern is compared with the last part of
    /// a name, otherwise with its end. What is excluded is not deleted at the destination.
    pub exclude: Vec<String>,
    /// Each end keeps what it computes of its files, in the user's state directory, and does not read a file again for it
    /// that did not change. Where that cannot be, or another copy does it, everything is read.
    pub index: bool,
    /// Recordings can be looked at while they come: their metadata and summaries are sent before other files, their samples behind
    /// them, in blocks that halve the gaps each time, and first what somebody [looks at](crate::Arriving).
    pub progressive: bool,
    /// With `progressive`: of what comes in blocks only that is sent which somebody looks at. Such a copy ends when all was
    /// wanted, or when it is cancelled.
    pub only_wanted: bool,
    /// Signatures of files that are there have 4 bytes of each chunk's hash instead of 8, which is enough to find what is in common. Both ends have to
    /// know of it: no version before it does.
    pub short_hashes: bool,
    /// Files of these names are sent before all others; patterns as those of `exclude`.
    pub first: Vec<String>,
    /// Directories at the receiver where files that are wanted may lie under any name: what is there is not sent. Paths that are
    /// not absolute begin at the destination, which itself is always looked into.
    pub also_look_in: Vec<PathBuf>,
}

/// When what has come is brought to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fsync {
    /// The system does it when it likes: after a power cut files may be torn that were told as done.
    Never,
    /// Contents before they get their names, many files at a time, and everything before the end.
    #[default]
    Batch,
    /// Each file and its directory before it is told as done.
    File,
}

impl Options {
    /// What `-a` means: everything below, with modes, hard links and owners.
    pub fn archive() -> Self {
        Self { recursive: true, modes: true, hard_links: true, owners: true, ..Self::default() }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let bits = self.bits().iter().rev().fold(0, |bits, bit| bits << 1 | u64::from(*bit));
        put_varint(out, bits);
        put_varint(out, self.exclude.len() as u64);
        for pattern in &self.exclude {
            put_bytes(out, pattern.as_bytes());
        }
        put_varint(out, self.also_look_in.len() as u64);
        for directory in &self.also_look_in {
            put_bytes(out, &bytes_of(directory.as_os_str()));
        }
        if !self.first.is_empty() {
            put_varint(out, self.first.len() as u64);
            self.first.iter().for_each(|pattern| put_bytes(out, pattern.as_bytes()));
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let bits = reader.varint()?;
        if bits >> BITS != 0 {
            return Err(Error::Malformed { what: "options that this version does not have" });
        }
        let exclude = take_patterns(reader)?;
        let directories = reader.varint()?;
        if directories > PATTERNS_MAX {
            return Err(Error::Malformed { what: "too many directories to look in" });
        }
        let mut also_look_in = Vec::new();
        for _ in 0..directories {
            let bytes = take_bytes(reader, PATH_BYTES_MAX)?;
            let path =
                os_name(bytes).ok_or(Error::Malformed { what: "a directory whose name is no text" })?;
            also_look_in.push(PathBuf::from(path));
        }
        let bit = |at: usize| bits >> at & 1 == 1;
        let first = if bit(HAS_FIRST) { take_patterns(reader)? } else { Vec::new() };
        Ok(Self {
            recursive: bit(0),
            modes: bit(1),
            hard_links: bit(2),
            owners: bit(3),
            attributes: bit(4),
            checksum: bit(5),
            dry_run: bit(6),
            delete: bit(7),
            force: bit(8),
            whole_file: bit(9),
            one_file_system: bit(10),
            fsync: match (bit(11), bit(17)) {
                (_, true) => Fsync::File,
                (true, _) => Fsync::Batch,
                _ => Fsync::Never,
            },
            index: bit(12),
            progressive: bit(13),
            only_wanted: bit(14),
            short_hashes: bit(16),
            first,
            exclude,
            also_look_in,
        })
    }

    fn bits(&self) -> [bool; BITS] {
        [
            self.recursive,
            self.modes,
            self.hard_links,
            self.owners,
            self.attributes,
            self.checksum,
            self.dry_run,
            self.delete,
            self.force,
            self.whole_file,
            self.one_file_system,
            self.fsync != Fsync::Never,
            self.index,
            self.progressive,
            self.only_wanted,
            !self.first.is_empty(),
            self.short_hashes,
            self.fsync == Fsync::File,
        ]
    }
}

/// Takes patterns behind their number.
fn take_patterns(reader: &mut Reader<'_>) -> Result<Vec<String>> {
    let count = reader.varint()?;
    if count > PATTERNS_MAX {
        return Err(Error::Malformed { what: "too many patterns" });
    }
    let mut patterns = Vec::new();
    for _ in 0..count {
        let length = reader.varint()?;
        let text = reader.take(usize::try_from(length).unwrap_or(usize::MAX))?;
        let text =
            str::from_utf8(text).map_err(|_| Error::Malformed { what: "a pattern that is no text" })?;
        patterns.push(text.to_owned());
    }
    Ok(patterns)
}

const BITS: usize = 18;
/// The bit that says that patterns of what is sent first follow: no version before it has it.
const HAS_FIRST: usize = 15;
const PATTERNS_MAX: u64 = 10_000;
const PATH_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_travels_by_itself() {
        let mut all: Vec<Options> = (0..BITS)
            .filter(|at| *at != HAS_FIRST)
            .map(|at| {
                let mut bytes = Vec::new();
                put_varint(&mut bytes, 1 << at);
                put_varint(&mut bytes, 0);
                put_varint(&mut bytes, 0);
                Options::decode(&mut Reader::new(&bytes)).unwrap()
            })
            .collect();
        all.push(Options { also_look_in: vec!["/old".into(), "b".into()], ..Options::default() });
        all.push(Options { exclude: vec!["*.o".to_owned(), "ü/**".to_owned()], ..Options::archive() });
        all.push(Options { first: vec!["*.json".to_owned()], ..Options::archive() });
        for (at, options) in all.iter().enumerate() {
            let mut bytes = Vec::new();
            options.encode(&mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(&Options::decode(&mut reader).unwrap(), options, "option {at}");
            assert!(reader.is_empty());
            assert_eq!(all.iter().filter(|other| *other == options).count(), 1, "option {at}");
        }
    }

    #[test]
    fn options_of_a_later_version_are_refused() {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, 1 << BITS);
        put_varint(&mut bytes, 0);
        assert!(Options::decode(&mut Reader::new(&bytes)).is_err());
    }
}
