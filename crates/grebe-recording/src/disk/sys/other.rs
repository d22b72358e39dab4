//! Other systems: through the page cache.

use std::fs::File;
use std::io;

pub(in crate::disk) fn go_direct(_: &File) -> Option<usize> {
    None
}

pub(in crate::disk) fn go_buffered(_: &File) {}

pub(in crate::disk) fn reserve(_: &File, _: u64, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Nothing is known.
pub(in crate::disk) fn free_bytes(_: &File) -> Option<u64> {
    None
}

/// One write; how much of it was taken.
#[cfg(unix)]
pub(in crate::disk) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, offset)
}

/// One write; how much of it was taken.
#[cfg(windows)]
pub(in crate::disk) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, offset)
}

/// Never used here: this system waits only for messages.
#[derive(Debug)]
pub(in crate::disk) enum Bell {}

impl Bell {
    pub(in crate::disk) fn ring(&self) {
        match *self {}
    }
}
