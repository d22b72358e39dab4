//! Other systems: through the page cache.

use std::fs::File;
use std::io;

pub(in crate::file::disk) fn go_direct(_: &File) -> Option<usize> {
    None
}

pub(in crate::file::disk) fn go_buffered(_: &File) {}

pub(in crate::file::disk) fn reserve(_: &File, _: u64, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Nothing is known.
pub(in crate::file::disk) fn free_bytes(_: &File) -> Option<u64> {
    None
}

/// One write; how much of it was taken.
#[cfg(unix)]
pub(in crate::file::disk) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, offset)
}

/// One write; how much of it was taken.
#[cfg(windows)]
pub(in crate::file::disk) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, offset)
}

/// Nobody here waits but for messages.
#[derive(Debug)]
pub(in crate::file::disk) enum Bell {}

impl Bell {
    pub(in crate::file::disk) fn ring(&self) {
        match *self {}
    }
}
