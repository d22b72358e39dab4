//! Windows: by paths, each looked at before it is used.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Kind, Metadata};

/// A directory that was looked at.
#[derive(Debug)]
pub(in crate::io::disk) struct Directory(PathBuf);

impl Directory {
    /// Follows links: a person named it.
    pub(in crate::io::disk) fn open(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(if path.as_os_str().is_empty() { Path::new(".") } else { path })?;
        if path.is_dir() { Ok(Self(path)) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    pub(in crate::io::disk) fn open_below(&self, name: &Path) -> io::Result<Self> {
        let is_directory = self.metadata(name)?.kind == Kind::Directory;
        if is_directory { Ok(Self(self.0.join(name))) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    /// Opens a directory that is to be sent; `None` where something else has taken its place.
    pub(in crate::io::disk) fn open_as_seen(
        path: &Path,
        follows: bool,
        seen: &Metadata,
    ) -> io::Result<Option<Self>> {
        let is_same = metadata(path, follows)?.is_same_thing(seen);
        Ok(is_same.then(|| Self(path.to_path_buf())))
    }

    /// All names in it.
    pub(in crate::io::disk) fn names(&self) -> io::Result<Vec<OsString>> {
        fs::read_dir(&self.0)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    pub(in crate::io::disk) fn metadata(&self, name: &Path) -> io::Result<Metadata> {
        metadata(&self.0.join(name), false)
    }

    pub(in crate::io::disk) fn read_file(&self, name: &Path) -> io::Result<File> {
        self.refuse_link(name)?;
        File::open(self.0.join(name))
    }

    /// Opens a file of ours for reading and writing.
    pub(in crate::io::disk) fn write_file(&self, name: &Path) -> io::Result<File> {
        self.refuse_link(name)?;
        OpenOptions::new().read(true).write(true).open(self.0.join(name))
    }

    /// Makes a file that is not there.
    pub(in crate::io::disk) fn create_file(&self, name: &Path, _: u16) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(self.0.join(name))
    }

    pub(in crate::io::disk) fn create_directory(&self, name: &Path, _: u16) -> io::Result<()> {
        fs::create_dir(self.0.join(name))
    }

    /// Replaces what has the new name, but a directory.
    pub(in crate::io::disk) fn rename(&self, name: &Path, to: &Self, new: &Path) -> io::Result<()> {
        fs::rename(self.0.join(name), to.0.join(new))
    }

    /// Replaces nothing. Files are linked; `None` where the file system has no links.
    pub(super) fn rename_exclusively(&self, name: &Path, to: &Self, new: &Path) -> Option<io::Result<()>> {
        let (from, to) = (self.0.join(name), to.0.join(new));
        if from.is_dir() {
            // Windows replaces no directory by one.
            return Some(if to.exists() {
                Err(io::ErrorKind::AlreadyExists.into())
            } else {
                fs::rename(from, to)
            });
        }
        match fs::hard_link(&from, to) {
            Ok(()) => Some(fs::remove_file(from)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Some(Err(error)),
            Err(_) => None,
        }
    }

    pub(in crate::io::disk) fn remove_file(&self, name: &Path) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    pub(in crate::io::disk) fn remove_directory(&self, name: &Path) -> io::Result<()> {
        fs::remove_dir(self.0.join(name))
    }

    /// Sets the time of a file. Directories keep that of their arrival.
    pub(in crate::io::disk) fn dress(
        &self,
        name: &Path,
        _: u16,
        modified: SystemTime,
        is_flushed: bool,
    ) -> io::Result<()> {
        if self.metadata(name)?.kind == Kind::Directory {
            return Ok(());
        }
        let open = self.write_file(name)?;
        open.set_modified(modified)?;
        if is_flushed { open.sync_all() } else { Ok(()) }
    }

    /// Directories keep the time of their arrival.
    pub(in crate::io::disk) fn dress_itself(&self, _: u16, _: SystemTime, _: bool) -> io::Result<()> {
        Ok(())
    }

    /// Windows flushes no directory.
    pub(in crate::io::disk) fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    pub(in crate::io::disk) fn flush_at_once(&self) -> io::Result<()> {
        Ok(())
    }

    /// What a user makes in a directory of their own, others cannot write to there.
    pub(in crate::io::disk) fn is_private(&self, _: &Self) -> io::Result<bool> {
        Ok(true)
    }

    fn refuse_link(&self, name: &Path) -> io::Result<()> {
        if self.metadata(name)?.kind == Kind::Symlink {
            return Err(io::Error::other("a link stands there"));
        }
        Ok(())
    }
}

/// What a path leads to.
pub(in crate::io::disk) fn metadata(path: &Path, follows: bool) -> io::Result<Metadata> {
    Ok(from_std(&if follows { fs::metadata(path)? } else { fs::symlink_metadata(path)? }))
}

pub(in crate::io::disk) fn metadata_of(file: &File) -> io::Result<Metadata> {
    Ok(from_std(&file.metadata()?))
}

/// Opens a file to be sent; `None` where a link has taken its place.
pub(in crate::io::disk) fn open_source(path: &Path, follows: bool) -> io::Result<Option<File>> {
    if metadata(path, follows)?.kind == Kind::Symlink {
        return Ok(None);
    }
    File::open(path).map(Some)
}

/// Whether a whole file system can be flushed at once.
pub(in crate::io::disk) const FLUSHES_AT_ONCE: bool = false;

pub(in crate::io::disk) fn flush_at_once(file: &File) -> io::Result<()> {
    file.sync_all()
}

fn from_std(metadata: &fs::Metadata) -> Metadata {
    let kind = metadata.file_type();
    let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
    Metadata {
        kind: if kind.is_symlink() {
            Kind::Symlink
        } else if kind.is_dir() {
            Kind::Directory
        } else if kind.is_file() {
            Kind::File
        } else {
            Kind::Special
        },
        bytes: metadata.len(),
        modified_unix_ns: match modified.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_nanos()).unwrap_or(i64::MAX),
        },
        mode: if kind.is_dir() { 0o755 } else { 0o644 },
        identity: [0; 2],
        touched: [0; 2],
    }
}
