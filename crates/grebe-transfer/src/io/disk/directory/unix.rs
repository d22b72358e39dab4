//! Linux, macOS and their like.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;

use super::{Kind, Metadata};

/// A directory that is open.
#[derive(Debug)]
pub(in crate::io::disk) struct Directory(File);

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

impl Directory {
    /// Follows links: a person named it.
    pub(in crate::io::disk) fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(Self(rustix::fs::open(path, DIRECTORY, Mode::empty())?.into()))
    }

    pub(in crate::io::disk) fn open_below(&self, name: &Path) -> io::Result<Self> {
        let below = rustix::fs::openat(&self.0, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Self(below.into()))
    }

    /// Opens a directory that is to be sent; `None` where something else has taken its place.
    pub(in crate::io::disk) fn open_as_seen(
        path: &Path,
        follows: bool,
        seen: &Metadata,
    ) -> io::Result<Option<Self>> {
        let nofollow = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
        match rustix::fs::open(path, DIRECTORY | nofollow, Mode::empty()) {
            Ok(open) if metadata_of(&open)?.is_same_thing(seen) => Ok(Some(Self(open.into()))),
            Ok(_) | Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// All names in it.
    pub(in crate::io::disk) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    pub(in crate::io::disk) fn metadata(&self, name: &Path) -> io::Result<Metadata> {
        Ok(from_stat(&rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Opens a file for reading, or a directory for what is set of it.
    pub(in crate::io::disk) fn read_file(&self, name: &Path) -> io::Result<File> {
        Ok(File::from(rustix::fs::openat(&self.0, name, OFlags::RDONLY | FILE, Mode::empty())?))
    }

    /// Opens a file of ours for reading and writing.
    pub(in crate::io::disk) fn write_file(&self, name: &Path) -> io::Result<File> {
        Ok(File::from(rustix::fs::openat(&self.0, name, OFlags::RDWR | FILE, Mode::empty())?))
    }

    /// Makes a file that is not there. The system takes its mask off the mode.
    pub(in crate::io::disk) fn create_file(&self, name: &Path, mode: u16) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | FILE;
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, mode_of(mode))?))
    }

    /// The system takes its mask off the mode.
    pub(in crate::io::disk) fn create_directory(&self, name: &Path, mode: u16) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, mode_of(mode))?)
    }

    /// Replaces what has the new name.
    pub(in crate::io::disk) fn rename(&self, name: &Path, to: &Self, new: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, name, &to.0, new)?)
    }

    /// Replaces nothing; `None` where the file system cannot do it in one step.
    pub(super) fn rename_exclusively(&self, name: &Path, to: &Self, new: &Path) -> Option<io::Result<()>> {
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        {
            let flags = rustix::fs::RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(&self.0, name, &to.0, new, flags) {
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => None,
                renamed => Some(renamed.map_err(Into::into)),
            }
        }
        #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
        {
            let _ = (name, to, new);
            None
        }
    }

    pub(in crate::io::disk) fn remove_file(&self, name: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    pub(in crate::io::disk) fn remove_directory(&self, name: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Sets the mode and the time of a file or a directory; `is_flushed`: and brings it to the disk.
    pub(in crate::io::disk) fn dress(
        &self,
        name: &Path,
        mode: u16,
        modified: std::time::SystemTime,
        is_flushed: bool,
    ) -> io::Result<()> {
        Self(self.read_file(name)?).dress_itself(mode, modified, is_flushed)
    }

    /// The same of what is open.
    pub(in crate::io::disk) fn dress_itself(
        &self,
        mode: u16,
        modified: std::time::SystemTime,
        is_flushed: bool,
    ) -> io::Result<()> {
        self.0.set_modified(modified)?;
        rustix::fs::fchmod(&self.0, mode_of(mode))?;
        if is_flushed { self.flush() } else { Ok(()) }
    }

    /// Brings its names to the disk. Some file systems flush no directory.
    pub(in crate::io::disk) fn flush(&self) -> io::Result<()> {
        use io::ErrorKind::{InvalidInput, Unsupported};
        match self.0.sync_all() {
            Err(error) if matches!(error.kind(), InvalidInput | Unsupported) => Ok(()),
            flushed => flushed,
        }
    }

    /// Brings all of its file system to the disk.
    pub(in crate::io::disk) fn flush_at_once(&self) -> io::Result<()> {
        flush_at_once(&self.0)
    }

    /// Whether it is this user's, and nobody else can enter it. `above` is the directory that it is in.
    ///
    /// Where a volume keeps no owners or no modes, it is this user's if a file is that this user makes beside it: there is none there
    /// that others could not change as well.
    pub(in crate::io::disk) fn is_private(&self, above: &Self) -> io::Result<bool> {
        let is_closed = |stat: &Stat| stat.st_mode & 0o077 == 0;
        let stat = rustix::fs::fstat(&self.0)?;
        if stat.st_uid == rustix::process::geteuid().as_raw() && is_closed(&stat) {
            return Ok(true);
        }
        // Another file system in this place somebody else has mounted.
        if stat.st_dev != rustix::fs::fstat(&above.0)?.st_dev {
            return Ok(false);
        }
        let name = format!(".grebe-probe-{}", std::process::id());
        let probe = rustix::fs::fstat(above.create_file(name.as_ref(), 0o600)?);
        above.remove_file(name.as_ref())?;
        let probe = probe?;
        Ok(stat.st_uid == probe.st_uid && (is_closed(&stat) || !is_closed(&probe)))
    }
}

/// What a path leads to.
pub(in crate::io::disk) fn metadata(path: &Path, follows: bool) -> io::Result<Metadata> {
    let stat = if follows { rustix::fs::stat(path) } else { rustix::fs::lstat(path) };
    Ok(from_stat(&stat?))
}

pub(in crate::io::disk) fn metadata_of(file: &impl AsFd) -> io::Result<Metadata> {
    Ok(from_stat(&rustix::fs::fstat(file)?))
}

/// Opens a file or a directory to be sent. What has taken its place meanwhile makes nobody wait; `None` where that is a link.
pub(in crate::io::disk) fn open_source(path: &Path, follows: bool) -> io::Result<Option<File>> {
    let flags = if follows { FILE.difference(OFlags::NOFOLLOW) } else { FILE };
    match rustix::fs::open(path, OFlags::RDONLY | flags, Mode::empty()) {
        Ok(open) => Ok(Some(File::from(open))),
        Err(Errno::LOOP | Errno::MLINK) if !follows => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a whole file system can be flushed at once.
pub(in crate::io::disk) const FLUSHES_AT_ONCE: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// Brings all of the file system to the disk that a file is on.
pub(in crate::io::disk) fn flush_at_once(file: &File) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return Ok(rustix::fs::syncfs(file)?);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    file.sync_all()
}

fn mode_of(mode: u16) -> Mode {
    Mode::from_raw_mode(RawMode::from(mode & 0o777))
}

#[allow(clippy::unnecessary_cast, reason = "the fields have other widths on other systems")]
fn from_stat(stat: &Stat) -> Metadata {
    let nanoseconds = |s: i64, ns: i64| s.saturating_mul(1_000_000_000).saturating_add(ns);
    Metadata {
        kind: match FileType::from_raw_mode(stat.st_mode as RawMode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            _ => Kind::Special,
        },
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        modified_unix_ns: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        mode: (stat.st_mode & 0o777) as u16,
        identity: [stat.st_dev as u64, stat.st_ino as u64],
        touched: [stat.st_ctime as u64, stat.st_ctime_nsec as u64],
    }
}
