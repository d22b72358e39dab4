//! The index of a stream: names, lengths, modes and times of its files, in the order of their bytes.

use std::collections::HashSet;

use grebe_packet::Reader;

use crate::error::{Error, Result};

/// The longest index that is taken: some 200,000 files.
pub(crate) const INDEX_BYTES_MAX: usize = 16 << 20;

/// All files and directories of one transfer.
///
/// Names are relative, in UTF-8, with `/` between components. An index that is read has only names that stay inside the
/// directory that they are put into, and no two that would meet there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Index {
    /// In the order of their bytes; a directory comes before what is in it.
    pub entries: Vec<Entry>,
}

/// A file or a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, from where it was named on down.
    pub name: String,
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
        let name = std::str::from_utf8(reader.take(name_bytes.into()).ok()?).ok()?.to_owned();
        let is_possible = kind <= 1 && file_bytes < 1 << 47;
        is_possible.then(|| Self { name, bytes: (kind == 1).then_some(file_bytes), mode, modified_unix_ns })
    }

    /// The first component of the name: what the user named, and what is renamed when all is whole.
    pub(crate) fn top(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }
}

impl Index {
    /// Bytes of all files.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.entries.iter().filter_map(|entry| entry.bytes).sum()
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
            out.extend_from_slice(entry.name.as_bytes());
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
        let refuse = |entry: &Entry, why| Err(Error::Index { name: entry.name.clone(), why });
        let mut seen = HashSet::new();
        let mut total_bytes = 0_u64;
        let mut directories = HashSet::new();
        for entry in &self.entries {
            if !entry.name.split('/').all(is_plain_component) {
                return refuse(entry, "it leads out of the directory, or is no name for a file everywhere");
            }
            total_bytes = total_bytes.saturating_add(entry.bytes.unwrap_or(0));
            if total_bytes >= 1 << 47 {
                return refuse(entry, "it makes the whole larger than 128 TiB");
            }
            if !seen.insert(entry.name.as_str()) {
                return refuse(entry, "it comes twice");
            }
            if let Some((above, _)) = entry.name.rsplit_once('/')
                && !directories.contains(above)
            {
                return refuse(entry, "its directory does not come before it");
            }
            if entry.bytes.is_none() {
                directories.insert(entry.name.as_str());
            }
        }
        // Until everything is whole `a` is named `a.part`: another file of that name would be in its way.
        let clash = self.entries.iter().find(|entry| {
            entry.top() == entry.name && seen.contains(format!("{}{PART}", entry.name).as_str())
        });
        clash.map_or(Ok(()), |entry| refuse(entry, "another one has its name with .part"))
    }
}

/// What a name ends with until all is whole.
pub(crate) const PART: &str = ".part";

const VERSION: u8 = 1;

/// One component that no system takes for a path, a device or a stream.
fn is_plain_component(name: &str) -> bool {
    (1..=COMPONENT_BYTES_MAX).contains(&name.len())
        && name != "."
        && name != ".."
        && !name.chars().any(|letter| letter.is_control() || matches!(letter, '/' | '\\' | ':'))
}

/// Names of 255 bytes are what file systems take; one needs room for `.part`.
const COMPONENT_BYTES_MAX: usize = 255 - PART.len();

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(name: &str, bytes: Option<u64>) -> Entry {
        Entry { name: name.to_owned(), bytes, mode: 0o644, modified_unix_ns: -7 }
    }

    fn read(entries: Vec<Entry>) -> Result<Index> {
        Index::decode(&Index { entries }.encode())
    }

    #[test]
    fn an_index_is_read_again() {
        let entries =
            vec![entry("a", Some(3)), entry("d", None), entry("d/é e", Some(0)), entry("d/f", None)];
        assert_eq!(read(entries.clone()).unwrap().entries, entries);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", ".", "..", "../f", "/etc/f", "a//b", "a\\b", "c:f", "a\nb", "d/../../f", "d/"] {
            let error = read(vec![entry("d", None), entry(name, Some(1))]).unwrap_err();
            assert!(matches!(error, Error::Index { .. }), "{name:?}: {error}");
        }
    }

    #[test]
    fn names_that_meet_are_refused() {
        assert!(read(vec![entry("a", Some(1)), entry("a", Some(2))]).is_err());
        assert!(read(vec![entry("a.part", Some(1)), entry("a", Some(2))]).is_err());
        assert!(read(vec![entry("a", Some(1)), entry("a/b", Some(2))]).is_err(), "a file is no directory");
        assert!(read(vec![entry("d/b", Some(2))]).is_err(), "the directory is missing");
    }

    proptest! {
        #[test]
        fn foreign_bytes_are_an_error_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = VERSION;
            }
            if let Ok(index) = Index::decode(&bytes) {
                prop_assert!(index.entries.iter().all(|entry| !entry.name.contains("..") || entry.name.len() > 2));
            }
        }
    }
}
