//! Linux and macOS: the parts that they share.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::fstatvfs;

/// Nothing: the flag is the file's.
#[derive(Debug)]
pub(in crate::disk) struct Direct;

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
