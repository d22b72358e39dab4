//! Linux: O_DIRECT, fallocate, and an eventfd that wakes a thread waiting for io_uring.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{
    AtFlags, FallocateFlags, OFlags, StatxFlags, fallocate, fcntl_getfl, fcntl_setfl, fstatfs, statx,
};

use super::ALIGNMENT;
use super::unix::Direct;

/// Makes writes to a file bypass the page cache; `None` if the file does not support it.
pub(in crate::disk) fn go_direct(file: &File) -> Option<Direct> {
    // tmpfs accepts the flag, and has nothing but the page cache.
    if fstatfs(file).is_ok_and(|system| system.f_type == TMPFS_MAGIC) {
        return None;
    }
    let asked = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    let told =
        asked.ok().filter(|it| StatxFlags::from_bits_retain(it.stx_mask).contains(StatxFlags::DIOALIGN));
    let alignment = told.map_or(ALIGNMENT, |it| it.stx_dio_offset_align.max(it.stx_dio_mem_align) as usize);
    // Zero: the file system says that it cannot.
    if alignment == 0 || !ALIGNMENT.is_multiple_of(alignment) {
        return None;
    }
    fcntl_setfl(file, fcntl_getfl(file).ok()? | OFlags::DIRECT).ok()?;
    Some(Direct)
}

pub(in crate::disk) fn go_buffered(file: &File) {
    if let Ok(flags) = fcntl_getfl(file) {
        let _ = fcntl_setfl(file, flags - OFlags::DIRECT);
    }
}

/// Takes room on the disk for these bytes of a file, without making it longer.
pub(in crate::disk) fn reserve(file: &File, begin: u64, end: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::KEEP_SIZE, begin, end - begin)?)
}

/// Wakes a thread that waits for it to become readable.
#[derive(Debug)]
pub(in crate::disk) struct Bell(OwnedFd);

impl Bell {
    pub(in crate::disk) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(in crate::disk) fn ring(&self) {
        // Full: it has not been heard yet.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Makes it silent again.
    pub(in crate::disk) fn hear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;
