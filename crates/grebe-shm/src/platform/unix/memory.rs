//! Memory by file descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::Uid;

/// Memory without a name in any file system. It is gone with its last descriptor and mapping.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(super) fd: OwnedFd,
    /// Descriptor for others, which cannot write.
    pub(super) read_only: Option<OwnedFd>,
}

impl Memory {
    /// User who made the memory.
    pub(super) fn maker(&self) -> io::Result<Uid> {
        Ok(Uid::from_raw(rustix::fs::fstat(&self.fd)?.st_uid))
    }

    /// Descriptor for another process.
    pub(super) fn for_others(&self) -> BorrowedFd<'_> {
        self.read_only.as_ref().unwrap_or(&self.fd).as_fd()
    }

    /// Maps the first `len` bytes. The memory must have them permanently: fixed, or this process's own.
    pub(crate) fn map(&self, len: usize, writable: bool) -> io::Result<NonNull<u8>> {
        let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let base = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, &self.fd, 0)
        }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the mapping just made.
        unsafe { populate(base, len, writable) };
        Ok(base)
    }

    /// # Safety
    /// `base` and `len` are of [`map`](Self::map), and nothing points into the mapping any more.
    pub(crate) unsafe fn unmap(base: NonNull<u8>, len: usize) {
        // SAFETY: as the caller promises.
        let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast(), len) };
    }
}

impl From<OwnedFd> for Memory {
    fn from(fd: OwnedFd) -> Self {
        Self { fd, read_only: None }
    }
}

/// Populates in advance, so that a stream with fast readers has no page faults: returned chunks are used first.
/// The rest is touched when a reader falls behind. An old kernel lacks this call and faults.
///
/// # Safety
/// The range is mapped.
#[cfg(target_os = "linux")]
unsafe fn populate(base: NonNull<u8>, len: usize, writable: bool) {
    use rustix::mm::Advice;
    let populate = if writable { Advice::LinuxPopulateWrite } else { Advice::LinuxPopulateRead };
    // SAFETY: populating changes no content; the caller promises the range.
    let _ = unsafe { rustix::mm::madvise(base.as_ptr().cast(), len.min(POPULATED_BYTES_MAX), populate) };
}

#[cfg(not(target_os = "linux"))]
unsafe fn populate(_: NonNull<u8>, _: usize, _: bool) {}

/// A quarter of a second of most streams, and small even for a small machine.
#[cfg(target_os = "linux")]
const POPULATED_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
impl AsFd for Memory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
