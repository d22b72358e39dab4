//! Memory mapped by several processes.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use grebe_ring::{Memory, MemoryMut};

use crate::platform;

/// Shared mapping. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Mapping(Arc<Mapped>);

#[derive(Debug)]
struct Mapped {
    base: NonNull<u8>,
    len: usize,
    writable: bool,
}

impl Mapping {
    /// Maps the first `len` bytes. The memory must have them permanently: fixed, or this process's own.
    pub(crate) fn new(memory: &platform::Memory, len: usize, writable: bool) -> io::Result<Self> {
        let base = memory.map(len, writable)?;
        Ok(Self(Arc::new(Mapped { base, len, writable })))
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
        unsafe { platform::Memory::unmap(self.base, self.len) };
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
// write to it, because others got it read-only. A reader relies on that process not to write to lent
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
    pub(crate) fn alone(count: usize) -> io::Result<Self> {
        Ok(Mapping::new(&platform::Memory::make("words", count * 8)?, count * 8, true)?.words(0, count))
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
