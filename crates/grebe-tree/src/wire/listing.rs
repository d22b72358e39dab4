//! Names in a directory on the wire.
//!
//! An entry encodes the difference from its predecessor in the same message: names share a prefix, and modes,
//! times and owners repeat. A file takes some 25 bytes.

use grebe_packet::Reader;

use crate::error::{Error, Result};
use crate::name::NAME_BYTES_MAX;
use crate::wire::{DirectoryId, EntryId, put_bytes, put_varint, take_bytes, unzigzag, zigzag};

/// A name in a directory and its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Empty for [`EntryKind::Itself`].
    pub(crate) name: Vec<u8>,
    pub(crate) kind: EntryKind,
    /// Nanoseconds since 1970.
    pub(crate) modified_ns: i64,
    /// The lower twelve bits.
    pub(crate) mode: u16,
    /// Present if owners are kept.
    pub(crate) owner: Option<Owner>,
    pub(crate) attributes: Vec<Attribute>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File {
        bytes: u64,
        /// Hard links to it follow.
        is_linked: bool,
        /// Changes whenever the content may have changed. 0 for files too small to resume.
        touched: u64,
    },
    Directory,
    Symlink {
        target: Vec<u8>,
    },
    HardLink {
        to: EntryId,
    },
    /// The listed directory itself.
    Itself,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// An extended attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

impl Entry {
    /// Memory of its attributes.
    pub(crate) fn attribute_bytes(&self) -> usize {
        bytes_of_attributes(&self.attributes)
    }
}

/// Memory of attributes.
pub(crate) fn bytes_of_attributes(attributes: &[Attribute]) -> usize {
    attributes.iter().map(|attribute| attribute.name.len() + attribute.value.len()).sum()
}

/// Some names of one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) directory: DirectoryId,
    /// Last part of the directory.
    pub(crate) is_last: bool,
    /// Some names could not be read.
    pub(crate) is_incomplete: bool,
    pub(crate) entries: Vec<Entry>,
}

/// Maximum length of a link target.
const TARGET_BYTES_MAX: usize = 64 << 10;
/// Maximum bytes of the names of one listing. A shared prefix makes them far longer than the message.
const NAMES_BYTES_MAX: usize = 4 << 20;
const ATTRIBUTES_MAX: u64 = 1_000;
pub(crate) const ATTRIBUTE_BYTES_MAX: usize = 64 << 10;
/// Maximum attribute bytes of one name, so that they fit into a message.
pub(crate) const ATTRIBUTES_BYTES_MAX: usize = 256 << 10;

impl Listing {
    /// `first` is the number of the first entry.
    pub(crate) fn decode(bytes: &[u8], first: EntryId) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let directory = DirectoryId::try_from(reader.varint()?)
            .map_err(|_| Error::Malformed { what: "a directory that was not listed" })?;
        let flags = reader.u8()?;
        if flags > 3 {
            return Err(Error::Malformed { what: "flags of names that this version does not have" });
        }
        let mut state = State::default();
        let (mut entries, mut names_bytes) = (Vec::new(), 0);
        while !reader.is_empty() {
            let id = first + entries.len() as u64;
            let entry = state.decode(&mut reader, id)?;
            names_bytes += entry.name.len();
            if names_bytes > NAMES_BYTES_MAX {
                return Err(Error::Malformed { what: "more names than a message has" });
            }
            entries.push(entry);
        }
        Ok(Self { directory, is_last: flags & 1 != 0, is_incomplete: flags & 2 != 0, entries })
    }
}

/// Encodes the body of a listing.
#[derive(Debug)]
pub(crate) struct ListingWriter {
    body: Vec<u8>,
    state: State,
    flags_at: usize,
}

impl ListingWriter {
    pub(crate) fn new(directory: DirectoryId) -> Self {
        let mut body = Vec::new();
        put_varint(&mut body, directory.into());
        let flags_at = body.len();
        body.push(0);
        Self { body, state: State::default(), flags_at }
    }

    /// `id` is the number of this entry.
    pub(crate) fn add(&mut self, entry: &Entry, id: EntryId) {
        self.state.encode(&mut self.body, entry, id);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.body.len()
    }

    pub(crate) fn finish(mut self, is_last: bool, is_incomplete: bool) -> Vec<u8> {
        self.body[self.flags_at] = u8::from(is_last) | u8::from(is_incomplete) << 1;
        self.body
    }
}

/// Predecessor of an entry.
#[derive(Debug, Default)]
struct State {
    name: Vec<u8>,
    modified_ns: i64,
    mode: u16,
    owner: Owner,
}

const SAME_TIME: u8 = 1 << 3;
const SAME_MODE: u8 = 1 << 4;
const SAME_OWNER: u8 = 1 << 5;
const LINKED: u8 = 1 << 6;
const ATTRIBUTES: u8 = 1 << 7;

impl State {
    fn encode(&mut self, out: &mut Vec<u8>, entry: &Entry, id: EntryId) {
        let (kind, is_linked) = match entry.kind {
            EntryKind::File { is_linked, .. } => (0, is_linked),
            EntryKind::Directory => (1, false),
            EntryKind::Symlink { .. } => (2, false),
            EntryKind::HardLink { .. } => (3, false),
            EntryKind::Itself => (4, false),
        };
        let is_owner_same = entry.owner.is_none_or(|owner| owner == self.owner);
        let mut tag = kind;
        for (bit, is_set) in [
            (SAME_TIME, entry.modified_ns == self.modified_ns),
            (SAME_MODE, entry.mode == self.mode),
            (SAME_OWNER, is_owner_same),
            (LINKED, is_linked),
            (ATTRIBUTES, !entry.attributes.is_empty()),
        ] {
            tag |= bit * u8::from(is_set);
        }
        out.push(tag);
        let shared = entry.name.iter().zip(&self.name).take_while(|(new, old)| new == old).count();
        put_varint(out, shared as u64);
        put_bytes(out, &entry.name[shared..]);
        match &entry.kind {
            EntryKind::File { bytes, touched, .. } => {
                put_varint(out, *bytes);
                if *bytes >= TOUCHED_BYTES {
                    out.extend_from_slice(&touched.to_be_bytes());
                }
            }
            EntryKind::Symlink { target } => put_bytes(out, target),
            EntryKind::HardLink { to } => put_varint(out, id - to),
            EntryKind::Directory | EntryKind::Itself => {}
        }
        if tag & SAME_TIME == 0 {
            put_varint(out, zigzag(entry.modified_ns.wrapping_sub(self.modified_ns)));
        }
        if tag & SAME_MODE == 0 {
            put_varint(out, entry.mode.into());
        }
        if let Some(owner) = entry.owner
            && tag & SAME_OWNER == 0
        {
            put_varint(out, owner.user.into());
            put_varint(out, owner.group.into());
        }
        if !entry.attributes.is_empty() {
            put_varint(out, entry.attributes.len() as u64);
            for attribute in &entry.attributes {
                put_bytes(out, &attribute.name);
                put_bytes(out, &attribute.value);
            }
        }
        self.name.truncate(shared);
        self.name.extend_from_slice(&entry.name[shared..]);
        self.modified_ns = entry.modified_ns;
        self.mode = entry.mode;
        self.owner = entry.owner.unwrap_or(self.owner);
    }

    fn decode(&mut self, reader: &mut Reader<'_>, id: EntryId) -> Result<Entry> {
        let tag = reader.u8()?;
        let shared = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
        if shared > self.name.len() {
            return Err(Error::Malformed { what: "a name that begins as no other" });
        }
        let rest = take_bytes(reader, NAME_BYTES_MAX)?;
        self.name.truncate(shared);
        self.name.extend_from_slice(rest);
        if self.name.len() > NAME_BYTES_MAX {
            return Err(Error::Malformed { what: "a name that is too long" });
        }
        let kind = match tag & 7 {
            0 => {
                let bytes = reader.varint()?;
                if bytes > FILE_BYTES_MAX {
                    return Err(Error::Malformed { what: "a file that is larger than files can be" });
                }
                let touched = if bytes >= TOUCHED_BYTES { reader.u64()? } else { 0 };
                EntryKind::File { bytes, is_linked: tag & LINKED != 0, touched }
            }
            1 => EntryKind::Directory,
            2 => EntryKind::Symlink { target: take_bytes(reader, TARGET_BYTES_MAX)?.to_vec() },
            3 => {
                let back = reader.varint()?;
                let to = id.checked_sub(back).filter(|_| back > 0);
                EntryKind::HardLink { to: to.ok_or(Error::Malformed { what: "a link to a later entry" })? }
            }
            4 => EntryKind::Itself,
            _ => return Err(Error::Malformed { what: "a name of an unknown kind" }),
        };
        if tag & LINKED != 0 && tag & 7 != 0 || (kind == EntryKind::Itself) != self.name.is_empty() {
            return Err(Error::Malformed { what: "a name that cannot be" });
        }
        if tag & SAME_TIME == 0 {
            self.modified_ns = self.modified_ns.wrapping_add(unzigzag(reader.varint()?));
        }
        if tag & SAME_MODE == 0 {
            let mode = u16::try_from(reader.varint()?).ok().filter(|mode| *mode <= 0o7777);
            self.mode = mode.ok_or(Error::Malformed { what: "a mode that cannot be" })?;
        }
        if tag & SAME_OWNER == 0 {
            let mut number = || {
                u32::try_from(reader.varint()?)
                    .map_err(|_| Error::Malformed { what: "an owner that cannot be" })
            };
            self.owner = Owner { user: number()?, group: number()? };
        }
        let attributes = if tag & ATTRIBUTES != 0 { decode_attributes(reader)? } else { Vec::new() };
        Ok(Entry {
            name: self.name.clone(),
            kind,
            modified_ns: self.modified_ns,
            mode: self.mode,
            owner: Some(self.owner),
            attributes,
        })
    }
}

fn decode_attributes(reader: &mut Reader<'_>) -> Result<Vec<Attribute>> {
    let count = reader.varint()?;
    if count == 0 || count > ATTRIBUTES_MAX {
        return Err(Error::Malformed { what: "a number of attributes that cannot be" });
    }
    let mut attributes = Vec::new();
    for _ in 0..count {
        let name = take_bytes(reader, NAME_BYTES_MAX)?.to_vec();
        if name.is_empty() || name.contains(&0) {
            return Err(Error::Malformed { what: "an attribute without a name" });
        }
        attributes.push(Attribute { name, value: take_bytes(reader, ATTRIBUTE_BYTES_MAX)?.to_vec() });
        if bytes_of_attributes(&attributes) > ATTRIBUTES_BYTES_MAX {
            return Err(Error::Malformed { what: "more attributes of a name than are taken" });
        }
    }
    Ok(attributes)
}

/// Minimum length of a file that can be resumed.
pub(crate) const TOUCHED_BYTES: u64 = 1 << 20;

/// System calls use signed offsets.
const FILE_BYTES_MAX: u64 = i64::MAX as u64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries() -> impl Strategy<Value = Vec<Entry>> {
        let name = prop::collection::vec(any::<u8>(), 1..40);
        let kind = prop_oneof![
            (0_u64..TOUCHED_BYTES, any::<bool>()).prop_map(|(bytes, is_linked)| EntryKind::File {
                bytes,
                is_linked,
                touched: 0
            }),
            (TOUCHED_BYTES..FILE_BYTES_MAX, any::<bool>(), any::<u64>())
                .prop_map(|(bytes, is_linked, touched)| EntryKind::File { bytes, is_linked, touched }),
            Just(EntryKind::Directory),
            prop::collection::vec(any::<u8>(), 0..50).prop_map(|target| EntryKind::Symlink { target }),
            (0_u64..100).prop_map(|to| EntryKind::HardLink { to }),
            Just(EntryKind::Itself),
        ];
        let attribute = (prop::collection::vec(1_u8.., 1..9), prop::collection::vec(any::<u8>(), 0..9))
            .prop_map(|(name, value)| Attribute { name, value });
        let entry = (
            name,
            kind,
            prop_oneof![Just(7), any::<i64>()],
            prop_oneof![Just(0o644), 0_u16..0o10000],
            (prop_oneof![Just(0), any::<u32>()], prop_oneof![Just(0), any::<u32>()]),
            prop::collection::vec(attribute, 0..3),
        )
            .prop_map(|(name, kind, modified_ns, mode, (user, group), attributes)| Entry {
                name: if kind == EntryKind::Itself { Vec::new() } else { name },
                kind,
                modified_ns,
                mode,
                owner: Some(Owner { user, group }),
                attributes,
            });
        prop::collection::vec(entry, 0..20)
    }

    proptest! {
        #[test]
        fn names_come_back(entries in entries(), directory: u32, is_last: bool, is_incomplete: bool) {
            const FIRST: EntryId = 100;
            let mut writer = ListingWriter::new(directory);
            entries.iter().zip(FIRST..).for_each(|(entry, id)| writer.add(entry, id));
            let listing = Listing::decode(&writer.finish(is_last, is_incomplete), FIRST).unwrap();
            prop_assert_eq!(listing, Listing { directory, is_last, is_incomplete, entries });
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Listing::decode(&bytes, 5);
        }

        #[test]
        fn a_changed_byte_is_an_error_or_other_names_and_never_a_panic(
            entries in entries(), at: prop::sample::Index, by in 1_u8..,
        ) {
            let mut writer = ListingWriter::new(0);
            entries.iter().zip(100..).for_each(|(entry, id)| writer.add(entry, id));
            let mut bytes = writer.finish(true, false);
            let at = at.index(bytes.len());
            bytes[at] ^= by;
            let _ = Listing::decode(&bytes, 100);
        }
    }

    #[test]
    fn a_file_among_its_like_takes_few_bytes() {
        let mut writer = ListingWriter::new(3);
        let mut bytes = Vec::new();
        for at in 0..100_u64 {
            let entry = Entry {
                name: format!("frame-{at:06}.dat").into_bytes(),
                kind: EntryKind::File { bytes: 4_096, is_linked: false, touched: 0 },
                modified_ns: 1_790_000_000_000_000_000 + at as i64 * 1_000_000,
                mode: 0o644,
                owner: None,
                attributes: Vec::new(),
            };
            let before = writer.bytes();
            writer.add(&entry, at);
            bytes.push(writer.bytes() - before);
        }
        assert!(bytes[1..].iter().all(|bytes| *bytes <= 16), "{bytes:?}");
    }

    #[test]
    fn more_attributes_than_a_sender_lists_are_refused() {
        let listing = |count: usize| {
            let attribute = Attribute { name: b"user.x".to_vec(), value: vec![0; 60_000] };
            let entry = Entry {
                name: b"a".to_vec(),
                kind: EntryKind::Directory,
                modified_ns: 0,
                mode: 0,
                owner: None,
                attributes: vec![attribute; count],
            };
            let mut writer = ListingWriter::new(0);
            writer.add(&entry, 0);
            Listing::decode(&writer.finish(true, false), 0)
        };
        assert!(listing(4).is_ok() && listing(5).is_err());
    }

    #[test]
    fn a_link_to_itself_or_to_what_comes_later_is_refused() {
        let entry = |back: u8| [0, 0, 3 | SAME_TIME | SAME_MODE | SAME_OWNER, 0, 1, b'a', back];
        assert!(Listing::decode(&entry(1), 5).is_ok());
        assert!(Listing::decode(&entry(0), 5).is_err());
        assert!(Listing::decode(&entry(6), 5).is_err());
    }
}
