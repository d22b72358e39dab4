//! Linux, macOS and other Unix systems.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, RawMode, SeekFrom, Stat, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::{Errno, retry_on_intr};

use super::{Kind, Metadata, Name};
use crate::wire::{ATTRIBUTE_BYTES_MAX, Attribute, Owner};

/// An open directory, and its device number once it was requested.
#[derive(Debug)]
pub(crate) struct Directory(OwnedFd, OnceLock<u64>);

const OPEN_DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Directory {
    /// Follows links, because a user named it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(Self(rustix::fs::open(path, OPEN_DIRECTORY, Mode::empty())?, OnceLock::new()))
    }

    pub(crate) fn open_below(&self, name: &[u8]) -> io::Result<Self> {
        let below = rustix::fs::openat(&self.0, name, OPEN_DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Self(below, OnceLock::new()))
    }

    /// All names except `.` and `..`, in the order of the file system.
    pub(crate) fn names(&self) -> io::Result<Vec<Name>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let bytes = entry.file_name().to_bytes();
            if bytes != b"." && bytes != b".." {
                names.push(Name { bytes: bytes.into(), inode: entry.ino() });
            }
        }
        Ok(names)
    }

    pub(crate) fn metadata(&self, name: &[u8]) -> io::Result<Metadata> {
        Ok(from_stat(&rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Metadata of a link's target.
    pub(crate) fn metadata_following(&self, name: &[u8]) -> io::Result<Metadata> {
        Ok(from_stat(&rustix::fs::statat(&self.0, name, AtFlags::empty())?))
    }

    pub(crate) fn own_metadata(&self) -> io::Result<Metadata> {
        Ok(from_stat(&rustix::fs::fstat(&self.0)?))
    }

    /// Its file system, which cannot change while the directory is open.
    pub(crate) fn device(&self) -> io::Result<u64> {
        if let Some(device) = self.1.get() {
            return Ok(*device);
        }
        let device = self.own_metadata()?.device;
        Ok(*self.1.get_or_init(|| device))
    }

    /// Opens a file for reading. Does not block if it has become something else meanwhile.
    pub(crate) fn read_file(&self, name: &[u8], follows: bool) -> io::Result<File> {
        let nofollow = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | nofollow;
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, Mode::empty())?))
    }

    /// Creates a file that does not exist. The system applies its umask.
    pub(crate) fn create_file(&self, name: &[u8], mode: u16) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, mode_of(mode & 0o777))?))
    }

    /// Opens a file of ours for writing.
    pub(crate) fn write_file(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, Mode::empty())?))
    }

    /// The system applies its umask.
    pub(crate) fn create_directory(&self, name: &[u8], mode: u16) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, mode_of(mode & 0o777))?)
    }

    pub(crate) fn symlink(&self, target: &[u8], name: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.0, name)?)
    }

    pub(crate) fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        Ok(rustix::fs::readlinkat(&self.0, name, Vec::new())?.into_bytes())
    }

    /// Gives the file `name` of `from` another name in this directory.
    pub(crate) fn hard_link(&self, from: &Self, name: &[u8], new: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::linkat(&from.0, name, &self.0, new, AtFlags::empty())?)
    }

    /// Replaces an existing file, but not a directory.
    pub(crate) fn rename(&self, name: &[u8], to: &Self, new: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, name, &to.0, new)?)
    }

    /// Fails if the name exists.
    pub(crate) fn rename_to_free(&self, name: &[u8], to: &Self, new: &[u8]) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        match rustix::fs::renameat_with(&self.0, name, &to.0, new, rustix::fs::RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            renamed => return renamed.map_err(Into::into),
        }
        match to.hard_link(self, name, new) {
            Ok(()) => self.remove_file(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // Neither is atomic here: only a name created at this moment can be in the way.
            Err(_) if to.metadata(new).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => self.rename(name, to, new),
        }
    }

    /// Bytes that this user may still write to its file system.
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        let system = rustix::fs::fstatvfs(&self.0).ok()?;
        system.f_bavail.checked_mul(system.f_frsize)
    }

    pub(crate) fn remove_file(&self, name: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    pub(crate) fn remove_directory(&self, name: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    pub(crate) fn set_link_modified(&self, name: &[u8], modified_ns: i64) -> io::Result<()> {
        Ok(rustix::fs::utimensat(&self.0, name, &times(modified_ns), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    pub(crate) fn set_link_owner(&self, name: &[u8], owner: Owner) -> io::Result<()> {
        let (user, group) = ids(owner);
        Ok(rustix::fs::chownat(&self.0, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    pub(crate) fn set_own_mode(&self, mode: u16) -> io::Result<()> {
        Ok(rustix::fs::fchmod(&self.0, mode_of(mode))?)
    }

    pub(crate) fn set_own_modified(&self, modified_ns: i64) -> io::Result<()> {
        Ok(rustix::fs::futimens(&self.0, &times(modified_ns))?)
    }

    pub(crate) fn set_own_both_times(&self, modified_ns: i64) -> io::Result<()> {
        Ok(rustix::fs::futimens(&self.0, &both_times(modified_ns))?)
    }

    pub(crate) fn set_own_owner(&self, owner: Owner) -> io::Result<()> {
        let (user, group) = ids(owner);
        Ok(rustix::fs::fchown(&self.0, user, group)?)
    }

    pub(crate) fn own_attributes(&self) -> io::Result<Vec<Attribute>> {
        attributes_of(&self.0)
    }

    pub(crate) fn set_own_attributes(&self, attributes: &[Attribute]) -> io::Result<()> {
        set_attributes_of(&self.0, attributes)
    }

    /// Flushes its names, mode and times to the disk.
    pub(crate) fn flush(&self) -> io::Result<()> {
        flush_open(&self.0)
    }

    /// Flushes its whole file system to the disk.
    pub(crate) fn flush_system(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        return Ok(retry_on_intr(|| rustix::fs::syncfs(&self.0))?);
        #[cfg(not(target_os = "linux"))]
        {
            rustix::fs::sync();
            self.flush()
        }
    }
}

/// Whether one call flushes a whole file system.
pub(crate) const FLUSHES_AT_ONCE: bool = cfg!(target_os = "linux");

/// Flushes a file to the disk.
pub(crate) fn flush(file: &File) -> io::Result<()> {
    flush_open(file)
}

/// Some file systems cannot flush directories, or anything. Data there is as safe as possible.
fn flush_open(open: &impl AsFd) -> io::Result<()> {
    // Without this the data may stay in the drive's cache.
    #[cfg(target_vendor = "apple")]
    match retry_on_intr(|| rustix::fs::fcntl_fullfsync(open)) {
        Err(Errno::INVAL | Errno::NOTSUP | Errno::NOTTY) => {}
        flushed => return Ok(flushed?),
    }
    match retry_on_intr(|| rustix::fs::fsync(open)) {
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        flushed => Ok(flushed?),
    }
}

pub(crate) fn metadata(file: &File) -> io::Result<Metadata> {
    Ok(from_stat(&rustix::fs::fstat(file)?))
}

pub(crate) fn set_modified(file: &File, modified_ns: i64) -> io::Result<()> {
    Ok(rustix::fs::futimens(file, &times(modified_ns))?)
}

/// Also sets the access time, because some file systems ignore a single time.
pub(crate) fn set_both_times(file: &File, modified_ns: i64) -> io::Result<()> {
    Ok(rustix::fs::futimens(file, &both_times(modified_ns))?)
}

pub(crate) fn set_mode(file: &File, mode: u16) -> io::Result<()> {
    Ok(rustix::fs::fchmod(file, mode_of(mode))?)
}

pub(crate) fn set_owner(file: &File, owner: Owner) -> io::Result<()> {
    let (user, group) = ids(owner);
    Ok(rustix::fs::fchown(file, user, group)?)
}

pub(crate) fn attributes(file: &File) -> io::Result<Vec<Attribute>> {
    attributes_of(file)
}

pub(crate) fn set_attributes(file: &File, attributes: &[Attribute]) -> io::Result<()> {
    set_attributes_of(file, attributes)
}

/// Next data at or after `offset`; `None` if only a hole follows. A file system without holes has one range.
pub(crate) fn next_data(file: &File, offset: u64, end: u64) -> io::Result<Option<Range<u64>>> {
    let start = match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL | Errno::NOTSUP) => return Ok((offset < end).then_some(offset..end)),
        Err(error) => return Err(error.into()),
    };
    if start >= end {
        return Ok(None);
    }
    Ok(Some(start..rustix::fs::seek(file, SeekFrom::Hole(start))?.min(end)))
}

pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(bytes, offset)
}

pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

/// Replaces a range with a hole, or with zeros.
pub(crate) fn clear(file: &File, stretch: Range<u64>) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::FallocateFlags as Flags;
        let (begin, bytes) = (stretch.start, stretch.end - stretch.start);
        if rustix::fs::fallocate(file, Flags::PUNCH_HOLE | Flags::KEEP_SIZE, begin, bytes).is_ok() {
            return Ok(());
        }
    }
    super::write_zeros(file, stretch)
}

/// Shares the content of `from` through the file system, or fails.
pub(crate) fn clone_content(from: &File, to: &File) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return Ok(rustix::fs::ioctl_ficlone(to, from)?);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Copies bytes between equal offsets of two files inside the system. Returns the number; 0 at the end of
/// `from`.
pub(crate) fn copy_range(from: &File, to: &File, offset: u64, bytes: u64) -> io::Result<u64> {
    #[cfg(target_os = "linux")]
    {
        let (mut at, mut into) = (offset, offset);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(1 << 30);
        Ok(rustix::fs::copy_file_range(from, Some(&mut at), to, Some(&mut into), bytes)? as u64)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (from, to, offset, bytes);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// This user's number as a file owner.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether the system accepts such a name; the file system may refuse more.
pub(crate) fn can_hold(_: &[u8]) -> Result<(), &'static str> {
    Ok(())
}

#[allow(clippy::unnecessary_cast, reason = "the fields have other widths on other systems")]
fn from_stat(stat: &Stat) -> Metadata {
    let kind = match FileType::from_raw_mode(stat.st_mode as RawMode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        _ => Kind::Special,
    };
    let nanoseconds = |s: i64, ns: i64| s.saturating_mul(1_000_000_000).saturating_add(ns);
    let bytes = u64::try_from(stat.st_size).unwrap_or(0);
    Metadata {
        kind,
        bytes,
        modified_ns: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        changed_ns: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        mode: stat.st_mode as u16 & 0o7777,
        owner: Owner { user: stat.st_uid, group: stat.st_gid },
        device: stat.st_dev as u64,
        inode: stat.st_ino as u64,
        links: stat.st_nlink as u64,
        is_sparse: kind == Kind::File && (stat.st_blocks as u64).saturating_mul(512) < bytes,
    }
}

fn mode_of(mode: u16) -> Mode {
    Mode::from_raw_mode(RawMode::from(mode))
}

fn times(modified_ns: i64) -> Timestamps {
    const BILLION: i64 = 1_000_000_000;
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: modified_ns.div_euclid(BILLION),
            tv_nsec: modified_ns.rem_euclid(BILLION) as _,
        },
    }
}

fn both_times(modified_ns: i64) -> Timestamps {
    let last_modification = times(modified_ns).last_modification;
    Timestamps { last_access: last_modification, last_modification }
}

/// `-1` would mean "unchanged", and nobody has that number.
fn ids(owner: Owner) -> (Option<Uid>, Option<Gid>) {
    let known = |id: u32| (id != u32::MAX).then_some(id);
    (known(owner.user).map(Uid::from_raw), known(owner.group).map(Gid::from_raw))
}

/// All attributes of the owner and, as root, of the system's security.
fn attributes_of(file: &impl AsFd) -> io::Result<Vec<Attribute>> {
    let mut names = vec![0; 4_096];
    let length = loop {
        match rustix::fs::flistxattr(file, &mut names[..]) {
            Ok(length) => break length,
            Err(Errno::RANGE) if names.len() < 1 << 20 => names.resize(names.len() * 4, 0),
            Err(Errno::NOTSUP) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
    };
    let mut attributes = Vec::new();
    let mut value = vec![0; ATTRIBUTE_BYTES_MAX];
    for name in names[..length].split(|byte| *byte == 0).filter(|name| is_copied(name)) {
        match rustix::fs::fgetxattr(file, name, &mut value[..]) {
            Ok(length) => attributes.push(Attribute { name: name.to_vec(), value: value[..length].to_vec() }),
            // Removed meanwhile.
            Err(error) if error.raw_os_error() == NO_ATTRIBUTE => {}
            Err(error) => return Err(error.into()),
        }
    }
    attributes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(attributes)
}

/// `ENODATA` on Linux, `ENOATTR` on macOS.
const NO_ATTRIBUTE: i32 = if cfg!(target_os = "linux") { 61 } else { 93 };

/// System attributes only repeat other metadata, except for access lists (ACLs). The SELinux label is the
/// other host's decision.
fn is_copied(name: &[u8]) -> bool {
    if cfg!(target_os = "linux") {
        name.starts_with(b"user.")
            || matches!(name, b"system.posix_acl_access" | b"system.posix_acl_default")
            || is_root() && !name.is_empty() && !name.starts_with(b"system.") && name != b"security.selinux"
    } else {
        !name.is_empty()
    }
}

fn set_attributes_of(file: &impl AsFd, attributes: &[Attribute]) -> io::Result<()> {
    let wanted = attributes.iter().filter(|attribute| is_copied(&attribute.name));
    for attribute in wanted {
        rustix::fs::fsetxattr(file, &attribute.name[..], &attribute.value, XattrFlags::empty())?;
    }
    // Attributes that the source lacks are removed.
    for old in attributes_of(file)? {
        if attributes.iter().all(|attribute| attribute.name != old.name) {
            rustix::fs::fremovexattr(file, &old.name[..])?;
        }
    }
    Ok(())
}
