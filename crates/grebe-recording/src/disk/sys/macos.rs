//! macOS: F_NOCACHE. Other Unix systems have no such flag.
//!
//! No room is reserved. `F_PREALLOCATE` is unsafe to call, and the safe function around it makes the file longer: after
//! a kill, up to 1 GiB of zeros would follow the samples.

use std::fs::File;
use std::io;

use super::unix::Direct;

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
