//! Options that both ends of a copy share.

use std::path::PathBuf;

use grebe_packet::Reader;

use crate::error::{Error, Result};
use crate::name::{bytes_of, os_name};
use crate::wire::{put_bytes, put_varint, take_bytes};

/// Options of a copy. The user's end gets them and passes them to the other end.
///
/// ```
/// use grebe_tree::Options;
///
/// let options = Options { delete: true, exclude: vec!["*.tmp".to_owned()], ..Options::archive() };
/// assert!(options.recursive && options.hard_links);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Copies directories with their contents; otherwise skips directories.
    pub recursive: bool,
    /// Keeps modes exactly, and corrects those of existing files. Otherwise new files and directories get the
    /// sender's mode minus the receiver's umask, and existing ones keep theirs. Also copies symbolic links
    /// among the sources as links instead of following them.
    pub modes: bool,
    /// Keeps hard links; otherwise each name becomes a file of its own.
    pub hard_links: bool,
    /// Keeps owner and group, by number, if the receiver is root.
    pub owners: bool,
    /// Keeps extended attributes: those of users, and as root all but those of the system.
    pub attributes: bool,
    /// Compares existing files of the same size by BLAKE3 instead of by time.
    pub checksum: bool,
    /// Changes nothing; reports and events show what a copy would do.
    pub dry_run: bool,
    /// After a complete copy, removes names from copied directories at the destination that the source lacks.
    pub delete: bool,
    /// Removes obstacles: a directory where a file belongs, the reverse, and devices, sockets and named
    /// pipes.
    pub force: bool,
    /// Sends changed files whole, even if parts of them exist.
    pub whole_file: bool,
    /// Silently skips everything on another file system than its source, like `rsync -x`.
    pub one_file_system: bool,
    /// When the receiver flushes data to the disk.
    pub fsync: Fsync,
    /// Exclude patterns, like those of `rsync --exclude`. `*` and `?` match no slash; `**` between slashes
    /// matches any directories. A leading slash anchors a pattern at the top; a trailing slash limits it to
    /// directories. A pattern without a slash is compared with the last component of a name, otherwise with
    /// its end. Excluded files are not deleted at the destination.
    pub exclude: Vec<String>,
    /// Keeps an index of computed hashes and signatures at each end, in the user's state directory, so that
    /// unchanged files are not read again. If the index is unavailable or another copy uses it, everything is
    /// read.
    pub index: bool,
    /// Makes recordings viewable while they arrive. Metadata and summaries precede other files, and samples
    /// follow in blocks that halve the gaps each time. Blocks that a [viewer](crate::Arriving) wants come
    /// first.
    pub progressive: bool,
    /// With `progressive`: sends only the blocks that a viewer wants. Such a copy ends when all blocks were
    /// wanted, or when it is cancelled.
    pub only_wanted: bool,
    /// Uses 4 bytes of each chunk's hash in signatures instead of 8, which is enough to find common parts.
    /// Both ends must support it; earlier versions do not.
    pub short_hashes: bool,
    /// Sends matching files before all others; patterns like those of `exclude`.
    pub first: Vec<String>,
    /// Directories at the receiver to search for content under any name, so that it need not be sent.
    /// Relative paths begin at the destination, which is always searched.
    pub also_look_in: Vec<PathBuf>,
}

/// Flush policy of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fsync {
    /// Leaves flushing to the system. A power cut may damage files that were reported as done.
    Never,
    /// Flushes contents before they get their names, many files at a time, and everything before the end.
    #[default]
    Batch,
    /// Flushes each file and its directory before reporting it as done.
    File,
}

impl Options {
    /// Options of `-a`: recursive, with modes, hard links and owners.
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
                os_name(bytes).ok_or(Error::Malformed { what: "a directory name that is not text" })?;
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

/// Reads patterns after their count.
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
            str::from_utf8(text).map_err(|_| Error::Malformed { what: "a pattern that is not text" })?;
        patterns.push(text.to_owned());
    }
    Ok(patterns)
}

const BITS: usize = 18;
/// Bit for the `first` patterns, unknown to earlier versions.
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
