//! Directories that are held open, and what stands in them.
//!
//! A name is looked up from the open directory, whatever becomes of the names above it. A link at its end is not followed, and
//! a named pipe is not waited for.

#[cfg(unix)]
#[path = "directory/unix.rs"]
mod imp;
#[cfg(not(unix))]
#[path = "directory/portable.rs"]
mod imp;

use std::fs::File;
use std::io;
use std::path::Path;

pub(super) use imp::{Directory, flush_at_once, metadata};
use imp::{metadata_of, open_source};

use crate::proto::index::Entry;

/// What stands under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Metadata {
    pub(super) kind: Kind,
    pub(super) bytes: u64,
    pub(super) modified_unix_ns: i64,
    /// The lower nine bits.
    pub(super) mode: u16,
    /// Device and inode, where the system has them.
    pub(super) identity: [u64; 2],
    /// Its time of change: a file that was changed and given its old time back still has another one.
    pub(super) touched: [u64; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Symlink,
    /// A device, a socket, a named pipe.
    Special,
}

impl Metadata {
    /// Whether it still is the same file or directory, whatever was written to it.
    pub(super) fn is_same_thing(&self, before: &Self) -> bool {
        (self.kind, self.identity) == (before.kind, before.identity)
    }

    /// Whether the system tells one file from another.
    pub(super) fn has_identity(&self) -> bool {
        self.identity != [0; 2]
    }

    pub(super) fn is_of(&self, entry: &Entry) -> bool {
        match entry.bytes {
            None => self.kind == Kind::Directory,
            Some(bytes) => self.kind == Kind::File && self.bytes == bytes,
        }
    }
}

impl Directory {
    /// Gives a file another name where nothing may be replaced.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] where something has that name.
    pub(super) fn rename_to_free(&self, name: &Path, to: &Self, new: &Path, kind: Kind) -> io::Result<()> {
        if let Some(renamed) = self.rename_exclusively(name, to, new) {
            return renamed;
        }
        // Other systems only rename over what is there: that is then something of ours.
        let is_directory = kind == Kind::Directory;
        match is_directory {
            true => to.create_directory(new, 0o700)?,
            false => drop(to.create_file(new, 0o600)?),
        }
        self.rename(name, to, new).inspect_err(|_| {
            let _ = if is_directory { to.remove_directory(new) } else { to.remove_file(new) };
        })
    }

    /// Removes what stands under a name, with all that is in it.
    pub(super) fn remove_all(&self, name: &Path) -> io::Result<()> {
        if self.metadata(name)?.kind != Kind::Directory {
            return self.remove_file(name);
        }
        let below = self.open_below(name)?;
        below.names()?.iter().try_for_each(|name| below.remove_all(name.as_ref()))?;
        drop(below);
        self.remove_directory(name)
    }

    /// Makes a private directory, unless one of that name is there.
    pub(super) fn ensure_directory(&self, name: &Path) -> io::Result<()> {
        match self.create_directory(name, 0o700) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }
}

/// Opens a file that is to be sent, and looks at it; `None` where something else has taken its place: of that nothing is read.
pub(super) fn open_as_seen(
    path: &Path,
    follows: bool,
    seen: &Metadata,
) -> io::Result<Option<(File, Metadata)>> {
    let Some(open) = open_source(path, follows)? else { return Ok(None) };
    let now = metadata_of(&open)?;
    Ok(now.is_same_thing(seen).then_some((open, now)))
}

/// Brings the content of files of one file system to the disk.
pub(super) fn flush(files: &[File]) -> io::Result<()> {
    match files {
        [first, ..] if is_flushed_at_once(files.len()) => flush_at_once(first),
        _ => files.iter().try_for_each(File::sync_data),
    }
}

/// Each file that is flushed may cost the disk a turn: with more of them than this the whole file system is flushed, where the
/// system has a call for that.
pub(super) fn is_flushed_at_once(files: usize) -> bool {
    imp::FLUSHES_AT_ONCE && files > 16
}
