//! Windows: by paths, each checked before use.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{Kind, Metadata, Name};
use crate::name::bytes_of;
use crate::wire::{Attribute, Owner};

/// A checked directory.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// Follows links, because a user named it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(if path.as_os_str().is_empty() { Path::new(".") } else { path })?;
        if !path.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self(path))
    }

    pub(crate) fn open_below(&self, name: &[u8]) -> io::Result<Self> {
        let path = self.path(name)?;
        if !fs::symlink_metadata(&path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self(path))
    }

    /// All names in the directory.
    pub(crate) fn names(&self) -> io::Result<Vec<Name>> {
        fs::read_dir(&self.0)?
            .map(|entry| Ok(Name { bytes: bytes_of(&entry?.file_name()).into(), inode: 0 }))
            .collect()
    }

    pub(crate) fn metadata(&self, name: &[u8]) -> io::Result<Metadata> {
        Ok(from_std(&fs::symlink_metadata(self.path(name)?)?))
    }

    /// Metadata of a link's target.
    pub(crate) fn metadata_following(&self, name: &[u8]) -> io::Result<Metadata> {
        Ok(from_std(&fs::metadata(self.path(name)?)?))
    }

    pub(crate) fn own_metadata(&self) -> io::Result<Metadata> {
        Ok(from_std(&fs::metadata(&self.0)?))
    }

    /// The file system is not available here.
    pub(crate) fn device(&self) -> io::Result<u64> {
        Ok(0)
    }

    /// Opens a file for reading.
    pub(crate) fn read_file(&self, name: &[u8], follows: bool) -> io::Result<File> {
        if !follows {
            self.refuse_link(name)?;
        }
        File::open(self.path(name)?)
    }

    /// Creates a file that does not exist.
    pub(crate) fn create_file(&self, name: &[u8], _: u16) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(self.path(name)?)
    }

    /// Opens a file of ours for writing.
    pub(crate) fn write_file(&self, name: &[u8]) -> io::Result<File> {
        self.refuse_link(name)?;
        OpenOptions::new().read(true).write(true).open(self.path(name)?)
    }

    pub(crate) fn create_directory(&self, name: &[u8], _: u16) -> io::Result<()> {
        fs::create_dir(self.path(name)?)
    }

    pub(crate) fn symlink(&self, target: &[u8], name: &[u8]) -> io::Result<()> {
        let target = text(target)?;
        #[cfg(windows)]
        return std::os::windows::fs::symlink_file(target, self.path(name)?);
        #[cfg(not(windows))]
        {
            let _ = (target, name);
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    pub(crate) fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        Ok(bytes_of(fs::read_link(self.path(name)?)?.as_os_str()).into_owned())
    }

    /// Gives the file `name` of `from` another name in this directory.
    pub(crate) fn hard_link(&self, from: &Self, name: &[u8], new: &[u8]) -> io::Result<()> {
        from.refuse_link(name)?;
        fs::hard_link(from.path(name)?, self.path(new)?)
    }

    /// Replaces an existing file, but not a directory.
    pub(crate) fn rename(&self, name: &[u8], to: &Self, new: &[u8]) -> io::Result<()> {
        fs::rename(self.path(name)?, to.path(new)?)
    }

    /// Fails if the name exists.
    pub(crate) fn rename_to_free(&self, name: &[u8], to: &Self, new: &[u8]) -> io::Result<()> {
        match to.hard_link(self, name, new) {
            Ok(()) => self.remove_file(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // Not atomic here: only a name created at this moment can be in the way.
            Err(_) if to.metadata(new).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => self.rename(name, to, new),
        }
    }

    pub(crate) fn free_bytes(&self) -> Option<u64> {
        None
    }

    pub(crate) fn remove_file(&self, name: &[u8]) -> io::Result<()> {
        fs::remove_file(self.path(name)?)
    }

    pub(crate) fn remove_directory(&self, name: &[u8]) -> io::Result<()> {
        fs::remove_dir(self.path(name)?)
    }

    pub(crate) fn set_link_modified(&self, _: &[u8], _: i64) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn set_link_owner(&self, _: &[u8], _: Owner) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn set_own_mode(&self, _: u16) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn set_own_modified(&self, modified_ns: i64) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true);
        // FILE_FLAG_BACKUP_SEMANTICS, which opening a directory requires.
        #[cfg(windows)]
        std::os::windows::fs::OpenOptionsExt::custom_flags(&mut options, 0x0200_0000);
        set_modified(&options.open(&self.0)?, modified_ns)
    }

    pub(crate) fn set_own_both_times(&self, modified_ns: i64) -> io::Result<()> {
        self.set_own_modified(modified_ns)
    }

    pub(crate) fn set_own_owner(&self, _: Owner) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn own_attributes(&self) -> io::Result<Vec<Attribute>> {
        Ok(Vec::new())
    }

    pub(crate) fn set_own_attributes(&self, _: &[Attribute]) -> io::Result<()> {
        Ok(())
    }

    /// Windows cannot flush a directory; its journal keeps the order of names.
    pub(crate) fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    /// Windows has no such call for ordinary users.
    pub(crate) fn flush_system(&self) -> io::Result<()> {
        Ok(())
    }

    fn path(&self, name: &[u8]) -> io::Result<PathBuf> {
        let text = text(name)?;
        can_hold(name).map_err(|why| io::Error::new(io::ErrorKind::InvalidFilename, why))?;
        Ok(self.0.join(text))
    }

    fn refuse_link(&self, name: &[u8]) -> io::Result<()> {
        if fs::symlink_metadata(self.path(name)?)?.is_symlink() {
            return Err(io::Error::other("a link stands there"));
        }
        Ok(())
    }
}

fn text(name: &[u8]) -> io::Result<&str> {
    str::from_utf8(name)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidFilename, "a name that this system cannot hold"))
}

pub(crate) const FLUSHES_AT_ONCE: bool = false;

/// Flushes a file to the disk. Windows requires a file open for writing.
pub(crate) fn flush(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        flushed => flushed,
    }
}

pub(crate) fn metadata(file: &File) -> io::Result<Metadata> {
    Ok(from_std(&file.metadata()?))
}

pub(crate) fn set_modified(file: &File, modified_ns: i64) -> io::Result<()> {
    let since = Duration::from_nanos(modified_ns.unsigned_abs());
    let time = if modified_ns < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(since)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(since)
    };
    file.set_modified(time.ok_or(io::ErrorKind::InvalidInput)?)
}

pub(crate) fn set_both_times(file: &File, modified_ns: i64) -> io::Result<()> {
    set_modified(file, modified_ns)
}

pub(crate) fn set_mode(_: &File, _: u16) -> io::Result<()> {
    Ok(())
}

pub(crate) fn set_owner(_: &File, _: Owner) -> io::Result<()> {
    Ok(())
}

pub(crate) fn attributes(_: &File) -> io::Result<Vec<Attribute>> {
    Ok(Vec::new())
}

pub(crate) fn set_attributes(_: &File, _: &[Attribute]) -> io::Result<()> {
    Ok(())
}

/// Does not look for holes.
pub(crate) fn next_data(_: &File, offset: u64, end: u64) -> io::Result<Option<Range<u64>>> {
    Ok((offset < end).then_some(offset..end))
}

#[cfg(windows)]
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, offset)
}

#[cfg(windows)]
pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}

pub(crate) fn clear(file: &File, stretch: Range<u64>) -> io::Result<()> {
    super::write_zeros(file, stretch)
}

pub(crate) fn clone_content(_: &File, _: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn copy_range(_: &File, _: &File, _: u64, _: u64) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Owners are not available here.
pub(crate) fn user() -> u32 {
    0
}

pub(crate) fn is_root() -> bool {
    false
}

/// Whether the system accepts such a name: some mean a path, a stream, a pattern or a device.
pub(crate) fn can_hold(name: &[u8]) -> Result<(), &'static str> {
    const WHY: &str = "a name that this system cannot hold";
    let name = str::from_utf8(name).map_err(|_| WHY)?;
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_lowercase();
    let is_device = matches!(&*stem, "con" | "prn" | "aux" | "nul")
        || matches!(stem.split_at_checked(3), Some(("com" | "lpt", rest)) if rest.chars().count() == 1);
    let is_bad = is_device
        || name.ends_with(['.', ' '])
        || name.chars().any(|letter| letter.is_control() || r#"<>:"/\|?*"#.contains(letter));
    if is_bad { Err(WHY) } else { Ok(()) }
}

fn from_std(metadata: &fs::Metadata) -> Metadata {
    let kind = metadata.file_type();
    let kind = if kind.is_symlink() {
        Kind::Symlink
    } else if kind.is_dir() {
        Kind::Directory
    } else if kind.is_file() {
        Kind::File
    } else {
        Kind::Special
    };
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let modified_ns = match modified.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    };
    Metadata {
        kind,
        bytes: metadata.len(),
        modified_ns,
        changed_ns: modified_ns,
        mode: match (kind, metadata.permissions().readonly()) {
            (Kind::Directory, _) => 0o755,
            (_, true) => 0o444,
            (_, false) => 0o644,
        },
        owner: Owner::default(),
        device: 0,
        inode: 0,
        links: 1,
        is_sparse: false,
    }
}
