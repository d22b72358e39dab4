//! macOS: F_NOCACHE. Other Unix systems have no such flag.
//!
//! No room is reserved. `F_PREALLOCATE` is unsafe to call, and the safe function around it makes the file longer: after
//! a kill, up to 1 GiB of zeros would follow the samples.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::fstatvfs;

/// Nothing: the flag is the file's.
#[derive(Debug)]
pub(in crate::disk) struct Direct;

/// Makes writes to a file bypass the page cache; `None` if the file system does not support it.
pub(in crate::disk) fn go_direct(file: &File) -> Option<Direct> {
    set_nocache(file, true).ok().map(|()| Direct)
}

pub(in crate::disk) fn go_buffered(file: &File) {
    let _ = set_nocache(file, false);
}

#[cfg(target_vendor = "apple")]
fn set_nocache(file: &File, is_on: bool) -> io::Result<()> {
    Ok(rustix::fs::fcntl_nocache(file, is_on)?)
}

#[cfg(not(target_vendor = "apple"))]
fn set_nocache(_: &File, _: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(in crate::disk) fn reserve(_: &File, _: u64, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Bytes that this user may still write to the file system of a file or folder.
pub(in crate::disk) fn free_bytes(file: &File) -> Option<u64> {
    let system = fstatvfs(file).ok()?;
    system.f_bavail.checked_mul(system.f_frsize)
}

/// Opens a folder to ask for free bytes.
pub(in crate::disk) fn open_folder(folder: &Path) -> io::Result<File> {
    File::open(folder)
}

/// One write; how much of it was taken.
pub(in crate::disk) fn write_at(
    file: &File,
    _: Option<&Direct>,
    bytes: &[u8],
    offset: u64,
) -> io::Result<usize> {
    file.write_at(bytes, offset)
}

/// Whether several writes to a file are under way at a time.
pub(in crate::disk) const WRITES_IN_PARALLEL: bool = true;
