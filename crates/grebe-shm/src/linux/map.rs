//! Memory mapped by several processes. The only `unsafe` of this crate.

use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use grebe_ring::{Memory, MemoryMut};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::process::Uid;

/// Makes a zeroed memfd of this length, without a name in any file system. It is gone with its last
/// descriptor and mapping.
pub(crate) fn memfd(name: &str, bytes: usize) -> rustix::io::Result<OwnedFd> {
    let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&fd, bytes as u64)?;
    Ok(fd)
}

/// Fixes the size and the seals. With `read_only`, only existing mappings can write from now on.
pub(crate) fn seal(fd: impl AsFd, read_only: bool) -> rustix::io::Result<()> {
    let mut seals = SIZE_SEALS;
    seals.set(SealFlags::FUTURE_WRITE, read_only);
    rustix::fs::fcntl_add_seals(fd, seals)
}

/// Whether the memory behind a foreign descriptor has this size permanently. A mapping of shrinking memory
/// would kill its reader.
pub(crate) fn is_sealed_at(fd: impl AsFd, bytes: usize) -> rustix::io::Result<bool> {
    let seals = rustix::fs::fcntl_get_seals(&fd)?;
    Ok(seals.contains(SIZE_SEALS) && rustix::fs::fstat(fd)?.st_size == bytes as i64)
}

/// User who made the memory.
pub(crate) fn maker(fd: impl AsFd) -> rustix::io::Result<Uid> {
    Ok(Uid::from_raw(rustix::fs::fstat(fd)?.st_uid))
}

/// A quarter of a second of most streams, and small even for a small machine.
const POPULATED_BYTES_MAX: usize = 64 << 20;

const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Shared mapping of a memfd. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Mapping(Arc<Mapped>);

#[derive(Debug)]
struct Mapped {
    base: NonNull<u8>,
    len: usize,
    writable: bool,
}

impl Mapping {
    /// Maps the first `len` bytes. The descriptor must have them permanently: sealed, or this process's own.
    pub(crate) fn new(fd: impl AsFd, len: usize, writable: bool) -> rustix::io::Result<Self> {
        let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let base =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, fd, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        let mapping = Self(Arc::new(Mapped { base, len, writable }));
        let populate = if writable { Advice::LinuxPopulateWrite } else { Advice::LinuxPopulateRead };
        // Populated in advance, so that a stream with fast readers has no page faults: returned chunks are
        // used first. The rest is touched when a reader falls behind. An old kernel lacks this call and
        // faults.
        let populated = len.min(POPULATED_BYTES_MAX);
        // SAFETY: populating changes no content; the range is the mapping just made.
        let _ = unsafe { rustix::mm::madvise(base.as_ptr().cast(), populated, populate) };
        Ok(mapping)
    }

    /// `count` words from byte `offset` on.
    ///
    /// # Panics
    /// If they are unaligned or out of range.
    pub(crate) fn words(&self, offset: usize, count: usize) -> Words {
        assert!(offset.is_multiple_of(8) && offset + count * 8 <= self.0.len, "words within the mapping");
        Words { mapping: self.clone(), offset, count }
    }

    /// First `len` bytes, lent by a process that is trusted not to write to lent chunks.
    pub(crate) fn trusted(&self, len: usize) -> Box<dyn Memory> {
        assert!(len <= self.0.len, "chunks within the mapping");
        Box::new(Chunks { mapping: self.clone(), len })
    }

    /// First `len` bytes, as memory for a pool.
    ///
    /// # Panics
    /// If the mapping is not writable.
    pub(crate) fn own(&self, len: usize) -> Box<dyn MemoryMut> {
        assert!(len <= self.0.len && self.0.writable, "writable chunks within the mapping");
        Box::new(OwnChunks(Chunks { mapping: self.clone(), len }))
    }

    /// Offset of an address in the mapping; `None` if it is elsewhere.
    pub(crate) fn offset_of(&self, place: *const u8) -> Option<usize> {
        place.addr().checked_sub(self.0.base.addr().get()).filter(|&offset| offset < self.0.len)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by `Mapping::new`; all pointers into it hold the `Arc`.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

// SAFETY: plain memory; shared words are accessed as atomics, chunks through the pool.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

/// Part of a mapping that chunks are cut from.
struct Chunks {
    mapping: Mapping,
    len: usize,
}

// SAFETY: page-aligned, mapped until dropped, zeroed before it is written. Only the process of the pool can
// write to it, because the other descriptors are sealed. A reader relies on that process not to write to lent
// chunks, and only if it trusts it (`Trust`). A producer of this crate keeps each lease until its reader has
// hung up.
unsafe impl Memory for Chunks {
    fn base(&self) -> NonNull<u8> {
        self.mapping.0.base
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// The same in the pool's own process.
struct OwnChunks(Chunks);

// SAFETY: as for `Chunks`; here the pool itself protects lent chunks from writes.
unsafe impl Memory for OwnChunks {
    fn base(&self) -> NonNull<u8> {
        self.0.base()
    }

    fn len(&self) -> usize {
        self.0.len
    }
}

// SAFETY: the mapping is writable (`Mapping::own`), and a publisher makes one pool over it.
unsafe impl MemoryMut for OwnChunks {}

/// Words in shared memory, only ever accessed as atomics.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    mapping: Mapping,
    offset: usize,
    count: usize,
}

impl Words {
    #[inline]
    pub(crate) fn at(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.count, "a word of the lane");
        // SAFETY: aligned and within the mapping (`Mapping::words`), which `self` keeps; only accessed as
        // atomics. A read-only mapping is only loaded from, with plain 8-byte loads.
        unsafe { self.mapping.0.base.add(self.offset).cast::<AtomicU64>().add(index).as_ref() }
    }

    /// Copies bytes from byte `offset` on. Loads each word once, so a concurrent write is either visible or
    /// not.
    ///
    /// # Panics
    /// If they are out of range.
    pub(crate) fn copy(&self, offset: usize, to: &mut [u8]) {
        let load = |word: usize| self.at(word).load(Ordering::Relaxed).to_ne_bytes();
        let lead = offset.wrapping_neg() % WORD;
        let (first, rest) = to.split_at_mut(lead.min(to.len()));
        if !first.is_empty() {
            first.copy_from_slice(&load(offset / WORD)[offset % WORD..][..first.len()]);
        }
        for (word, bytes) in (offset.div_ceil(WORD)..).zip(rest.chunks_mut(WORD)) {
            bytes.copy_from_slice(&load(word)[..bytes.len()]);
        }
    }

    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Makes `count` zeroed words in separate memory.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn alone(count: usize) -> std::io::Result<Self> {
        Ok(Mapping::new(memfd("words", count * 8)?, count * 8, true)?.words(0, count))
    }
}

const WORD: usize = size_of::<u64>();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_bytes_asked_for_and_no_others() {
        let words = Words::alone(8).unwrap();
        let all: Vec<u8> = (1..=64).collect();
        for (word, bytes) in all.chunks(WORD).enumerate() {
            words.at(word).store(u64::from_ne_bytes(bytes.try_into().unwrap()), Ordering::Relaxed);
        }
        for from in 0..=64 {
            for len in 0..=64 - from {
                let mut to = [0xEE; 66];
                words.copy(from, &mut to[1..1 + len]);
                assert_eq!(to[1..1 + len], all[from..from + len], "{from}, {len}");
                assert_eq!((to[0], to[1 + len]), (0xEE, 0xEE), "{from}, {len}");
            }
        }
    }
}
