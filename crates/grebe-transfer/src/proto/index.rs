//! The index of a stream: names, lengths, modes and times of its files, in the order of their bytes.

use std::collections::HashSet;

use grebe_packet::Reader;
pub(crate) use grebe_packet::printable;

use crate::error::{Error, Result};

/// The longest index that is taken: some 200,000 files.
pub(crate) const INDEX_BYTES_MAX: usize = 16 << 20;

/// All files and directories of one transfer.
///
/// Names are relative, any bytes that the sender's system has in its names, with `/` between components. An index that is read has
/// only names that stay inside the directory that they are put into, and no two that are the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Index {
    /// In the order of their bytes; a directory comes before what is in it.
    pub entries: Vec<Entry>,
}

/// A file or a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, from where it was named on down.
    pub name: Vec<u8>,
    /// Its bytes; `None`: a directory.
    pub bytes: Option<u64>,
    /// The lower nine bits of its mode.
    pub mode: u16,
    /// When it was last modified, in nanoseconds since 1970.
    pub modified_unix_ns: i64,
}

impl Entry {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (kind, file_bytes) = (reader.u8().ok()?, reader.u64().ok()?);
        let (mode, modified_unix_ns) = (reader.u16().ok()? & 0o777, reader.i64().ok()?);
        let name_bytes = reader.u16().ok()?;
        let name = reader.take(name_bytes.into()).ok()?.to_vec();
        let is_possible = kind <= 1 && file_bytes < 1 << 47;
        is_possible.then(|| Self { name, bytes: (kind == 1).then_some(file_bytes), mode, modified_unix_ns })
    }

    /// Whether this is what the user named, and not something in a directory.
    pub(crate) fn is_top(&self) -> bool {
        !self.name.contains(&b'/')
    }

    /// The name of the directory that it is in.
    pub(crate) fn above(&self) -> Option<&[u8]> {
        let slash = self.name.iter().rposition(|byte| *byte == b'/')?;
        Some(&self.name[..slash])
    }
}

impl Index {
    /// Bytes of all files.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.entries.iter().filter_map(|entry| entry.bytes).sum()
    }

    /// How many files there are: each has a status at the end of the content.
    pub(crate) fn files(&self) -> u64 {
        self.entries.iter().filter(|entry| entry.bytes.is_some()).count() as u64
    }

    /// The index as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        for entry in &self.entries {
            out.push(u8::from(entry.bytes.is_some()));
            out.extend_from_slice(&entry.bytes.unwrap_or(0).to_be_bytes());
            out.extend_from_slice(&entry.mode.to_be_bytes());
            out.extend_from_slice(&entry.modified_unix_ns.to_be_bytes());
            out.extend_from_slice(&(entry.name.len() as u16).to_be_bytes());
            out.extend_from_slice(&entry.name);
        }
        out
    }

    /// Reads an index that a peer made.
    ///
    /// # Errors
    /// [`Error::Index`] names the entry that is refused, and why.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let cut = || Error::Index { name: String::new(), why: "the list of files cannot be read" };
        let mut reader = Reader::new(bytes);
        if reader.u8() != Ok(VERSION) || bytes.len() > INDEX_BYTES_MAX {
            return Err(cut());
        }
        let mut entries = Vec::new();
        while !reader.is_empty() {
            entries.push(Entry::read(&mut reader).ok_or_else(cut)?);
        }
        let index = Self { entries };
        index.check()?;
        Ok(index)
    }

    /// Whether all names are safe and apart.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |entry: &Entry, why| Err(Error::Index { name: printable(&entry.name), why });
        let mut seen = HashSet::new();
        let mut total_bytes = 0_u64;
        let mut directories = HashSet::new();
        for entry in &self.entries {
            if !entry.name.split(|byte| *byte == b'/').all(is_plain_component) {
                return refuse(entry, "it leads out of the directory, or is no name of a file");
            }
            if entry.name.split(|byte| *byte == b'/').any(is_reserved) {
                return refuse(entry, "such names are for grebe's own files");
            }
            total_bytes = total_bytes.saturating_add(entry.bytes.unwrap_or(0));
            if total_bytes >= 1 << 47 {
                return refuse(entry, "it makes the whole larger than 128 TiB");
            }
            if !seen.insert(&entry.name[..]) {
                return refuse(entry, "it comes twice");
            }
            if entry.above().is_some_and(|above| !directories.contains(above)) {
                return refuse(entry, "its directory does not come before it");
            }
            if entry.bytes.is_none() {
                directories.insert(&entry.name[..]);
            }
        }
        Ok(())
    }
}

/// Whether a component is for files that this program makes in the receiver's directory, in whatever case a system compares names.
pub(crate) fn is_reserved(component: &[u8]) -> bool {
    component.get(..RESERVED.len()).is_some_and(|head| head.eq_ignore_ascii_case(RESERVED))
}

/// One component that leads nowhere else. What else a name may have in it is for the receiver's system to say.
fn is_plain_component(name: &[u8]) -> bool {
    (1..=COMPONENT_BYTES_MAX).contains(&name.len()) && name != b"." && name != b".." && !name.contains(&0)
}

const VERSION: u8 = 2;
const RESERVED: &[u8] = b".grebe-";

/// The longest of any system: 255 units of UTF-16 take no more in UTF-8.
const COMPONENT_BYTES_MAX: usize = 765;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(name: impl AsRef<[u8]>, bytes: Option<u64>) -> Entry {
        Entry { name: name.as_ref().to_vec(), bytes, mode: 0o644, modified_unix_ns: -7 }
    }

    fn read(entries: Vec<Entry>) -> Result<Index> {
        Index::decode(&Index { entries }.encode())
    }

    #[test]
    fn an_index_is_read_again_whatever_letters_its_names_have() {
        let mut entries =
            vec![entry("a", Some(3)), entry("d", None), entry("d/é e", Some(0)), entry("d/f", None)];
        for name in [&b"obs_2024-01-01T12:00:00.fits"[..], b"a\\b", b"new\nline", b"\xff\xfe", &[b'x'; 255]] {
            entries.push(entry(name, Some(1)));
        }
        assert_eq!(read(entries.clone()).unwrap().entries, entries);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", ".", "..", "../f", "/etc/f", "a//b", "a\0b", "d/../../f", "d/"] {
            let error = read(vec![entry("d", None), entry(name, Some(1))]).unwrap_err();
            assert!(matches!(error, Error::Index { .. }), "{name:?}: {error}");
        }
    }

    #[test]
    fn names_of_our_own_files_are_refused() {
        for name in [".grebe-partial", ".grebe-0123456789abcdef.journal", "d/.Grebe-Partial"] {
            assert!(read(vec![entry("d", None), entry(name, Some(1))]).is_err(), "{name}");
        }
        assert!(read(vec![entry(".grebe", Some(1))]).is_ok());
    }

    #[test]
    fn names_that_meet_are_refused() {
        assert!(read(vec![entry("a", Some(1)), entry("a", Some(2))]).is_err());
        assert!(read(vec![entry("a", Some(1)), entry("a/b", Some(2))]).is_err(), "a file is no directory");
        assert!(read(vec![entry("d/b", Some(2))]).is_err(), "the directory is missing");
    }

    #[test]
    fn a_name_does_nothing_to_a_terminal() {
        assert_eq!(printable(b"a\x1b[2Jb\xff\nc \xc3\xa9"), "a\\u{1b}[2Jb\\xff\\nc é");
        assert_eq!(printable("a\u{202e}b".as_bytes()), "a\\u{202e}b");
    }

    proptest! {
        #[test]
        fn foreign_bytes_are_an_error_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = VERSION;
            }
            if let Ok(index) = Index::decode(&bytes) {
                prop_assert!(index.entries.iter().all(|entry| entry.name != b".."));
            }
        }
    }
}
