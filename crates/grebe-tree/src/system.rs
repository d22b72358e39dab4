//! System interface: open directories, their names, times, modes and holes.
//!
//! Each name is looked up in an open [`Directory`], one component at a time, without following links. So
//! nothing in a tree leads out of it, whoever changes it meanwhile.

#[cfg(unix)]
#[path = "system/unix.rs"]
mod imp;
#[cfg(not(unix))]
#[path = "system/portable.rs"]
mod imp;

use std::fs::File;
use std::io;
use std::ops::Range;

pub(crate) use imp::{
    Directory, FLUSHES_AT_ONCE, attributes, can_hold, clear, clone_content, copy_range, flush, is_root,
    metadata, read_at, set_attributes, set_both_times, set_mode, set_modified, set_owner, user, write_all_at,
};

use crate::wire::Owner;

/// Properties of a name, without following links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) kind: Kind,
    pub(crate) bytes: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified_ns: i64,
    /// Change time, if the system has one.
    pub(crate) changed_ns: i64,
    /// The lower twelve bits.
    pub(crate) mode: u16,
    pub(crate) owner: Owner,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// Number of hard links.
    pub(crate) links: u64,
    /// It occupies less than its length, so it may have holes.
    pub(crate) is_sparse: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink,
    /// A device, a socket, a named pipe.
    Special,
}

/// Next data before `end` that is not a hole.
pub(crate) fn next_stretch(
    open: &File,
    at: u64,
    end: u64,
    metadata: &Metadata,
) -> io::Result<Option<Range<u64>>> {
    if !metadata.is_sparse {
        return Ok((at < end).then_some(at..end));
    }
    imp::next_data(open, at, end)
}

impl Metadata {
    /// Whether the content may differ from before.
    pub(crate) fn is_same_content(&self, before: &Self) -> bool {
        (self.bytes, self.modified_ns, self.changed_ns, self.device, self.inode)
            == (before.bytes, before.modified_ns, before.changed_ns, before.device, before.inode)
    }

    /// A number that changes whenever the content may have changed.
    pub(crate) fn touched(&self) -> u64 {
        let mut hasher = blake3::Hasher::new();
        for number in [self.device, self.inode, self.changed_ns as u64] {
            hasher.update(&number.to_be_bytes());
        }
        u64::from_be_bytes(std::array::from_fn(|at| hasher.finalize().as_bytes()[at]))
    }
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) bytes: Box<[u8]>,
    /// Present if the system provides it with the name. Lookups in its order are faster.
    pub(crate) inode: u64,
}

/// A listed file may have become something else.
pub(crate) fn regular(open: &File) -> io::Result<Metadata> {
    let metadata = metadata(open)?;
    if metadata.kind == Kind::File {
        Ok(metadata)
    } else {
        Err(io::Error::other("it is not a file any more"))
    }
}

/// Writes zeros if a hole is not possible.
fn write_zeros(file: &File, stretch: Range<u64>) -> io::Result<()> {
    let (zeros, mut at) = ([0; 16 << 10], stretch.start);
    while at < stretch.end {
        let bytes = (stretch.end - at).min(zeros.len() as u64);
        write_all_at(file, &zeros[..bytes as usize], at)?;
        at += bytes;
    }
    Ok(())
}

/// Whether the error concerns the whole disk, not only one file.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The system's message, without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::FileTooLarge {
        return "a file may not be so large there: the file system (FAT has 4 GB) or the limit of this user (ulimit -f)"
            .to_owned();
    }
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}
