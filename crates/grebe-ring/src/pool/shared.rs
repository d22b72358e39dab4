//! Shared state of a pool's handles: reference counts and the free list.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::memory::{ALIGN, Memory};
use crate::signal::Signal;
use crate::sync::{AtomicI64, AtomicU32, CachePadded, Ordering, UnsafeCell};

/// Called with each chunk that this process no longer reads.
type Home = Box<dyn Fn(u32) + Send + Sync>;

/// Target of all handles of a pool or an import. The last handle frees it.
pub(super) struct Shared<M> {
    /// Cached `memory.base()`.
    base: NonNull<u8>,
    pub(super) chunk_bytes: usize,
    slots: Box<[Slot<M>]>,
    /// Head of the free list; `CLOSED` after the owner is gone.
    free: CachePadded<AtomicU32>,
    /// For a pool, the lent chunks once it is closed; earlier returns count below zero. For an import, the
    /// held chunks at any time, plus one for the import itself.
    out: AtomicI64,
    owner: UnsafeCell<Option<Arc<Signal>>>,
    /// Present in an import, whose free list stays empty.
    home: Option<Home>,
    /// Keeps `base` valid.
    _memory: Box<dyn Memory>,
}

/// On its own pair of cache lines, so that counts of neighbouring chunks do not interfere.
#[repr(align(128))]
struct Slot<M> {
    refs: AtomicU32,
    next: AtomicU32,
    meta: UnsafeCell<M>,
}

impl<M> Shared<M> {
    pub(super) fn boxed(
        memory: Box<dyn Memory>,
        chunk_bytes: usize,
        mut meta: impl FnMut() -> M,
        home: Option<Home>,
    ) -> NonNull<Self> {
        assert!(chunk_bytes > 0 && chunk_bytes.is_multiple_of(ALIGN), "chunks are multiples of 64 bytes");
        assert_eq!(memory.base().as_ptr() as usize % ALIGN, 0, "memory is aligned to 64 bytes");
        let count = memory.len() / chunk_bytes;
        assert!(count > 0 && count < CLOSED as usize, "a pool has 1 to 2^32 - 3 chunks");
        let next = |index: usize| if index + 1 == count { NONE } else { index as u32 + 1 };
        let slots = (0..count)
            .map(|index| Slot {
                refs: AtomicU32::new(0),
                next: AtomicU32::new(next(index)),
                meta: UnsafeCell::new(meta()),
            })
            .collect();
        NonNull::from(Box::leak(Box::new(Self {
            base: memory.base(),
            chunk_bytes,
            slots,
            free: CachePadded(AtomicU32::new(if home.is_some() { NONE } else { 0 })),
            out: AtomicI64::new(i64::from(home.is_some())),
            owner: UnsafeCell::new(None),
            home,
            _memory: memory,
        })))
    }

    pub(super) fn chunks(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(super) fn has_free(&self) -> bool {
        self.free.0.load(Ordering::Acquire) != NONE
    }

    pub(super) fn available(&self) -> usize {
        let (mut index, mut count) = (self.free.0.load(Ordering::Acquire), 0);
        while index != NONE {
            count += 1;
            index = self.slots[index as usize].next.load(Ordering::Relaxed);
        }
        count
    }

    /// Called by the pool's owner before a chunk is taken.
    pub(super) fn set_owner(&self, signal: Arc<Signal>) {
        self.owner.with_mut(|owner| {
            assert_eq!(self.available(), self.chunks(), "set the signal before the first chunk is taken");
            // SAFETY: `owner` is read only by a thread that returns a chunk, before it is on the free list
            // (Release, read by `available` above). So nobody reads it while all chunks are home, which was
            // just checked.
            unsafe { *owner = Some(signal) }
        });
    }

    /// Takes the most recently returned chunk, with its only hold. Called by the pool's owner.
    #[inline]
    pub(super) fn take_free(this: NonNull<Self>) -> Option<Hold<M>> {
        // SAFETY: the owner has not closed the pool.
        let shared = unsafe { this.as_ref() };
        let index = shared.pop_free()?;
        shared.slots[index as usize].refs.store(1, Ordering::Relaxed);
        Some(Hold { shared: this, index })
    }

    #[inline]
    fn pop_free(&self) -> Option<u32> {
        let mut head = self.free.0.load(Ordering::Acquire);
        while head != NONE {
            let next = self.slots[head as usize].next.load(Ordering::Relaxed);
            match self.free.0.compare_exchange_weak(head, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(head),
                Err(now) => head = now,
            }
        }
        None
    }

    /// Takes the only hold on chunk `index` of an import; `None` if the chunk does not exist or is held.
    /// Called by the import's owner.
    pub(super) fn take_lent(this: NonNull<Self>, index: u32) -> Option<Hold<M>> {
        // SAFETY: freed only after the import and every lease are gone.
        let shared = unsafe { this.as_ref() };
        let slot = shared.slots.get(index as usize)?;
        // Acquire: the last reader of the metadata is done.
        if slot.refs.load(Ordering::Acquire) != 0 {
            return None;
        }
        slot.refs.store(1, Ordering::Relaxed);
        shared.out.fetch_add(1, Ordering::Relaxed);
        Some(Hold { shared: this, index })
    }

    /// Returns a chunk after its last hold.
    fn go_home(this: NonNull<Self>, index: u32) {
        // SAFETY: this chunk is counted as out, so the memory still exists; no reference is kept past
        // `settle`.
        let shared = unsafe { this.as_ref() };
        if let Some(home) = &shared.home {
            home(index);
            Self::settle(this, -1);
            return;
        }
        let owner = shared.owner.with(|owner| {
            // SAFETY: written only while every chunk is home (`set_owner`), and this one was not.
            unsafe { (*owner).clone() }
        });
        let mut head = shared.free.0.load(Ordering::Relaxed);
        loop {
            if head == CLOSED {
                Self::settle(this, -1);
                return;
            }
            shared.slots[index as usize].next.store(head, Ordering::Relaxed);
            match shared.free.0.compare_exchange_weak(head, index, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        // The pool may be gone from here on, so the signal is held separately.
        if let Some(owner) = owner {
            owner.notify();
        }
    }

    /// Closes the pool. The thread that brings the count of lent chunks to zero frees the memory.
    pub(super) fn close(this: NonNull<Self>) {
        // SAFETY: the owner's own hold; no reference is kept past `settle`.
        let shared = unsafe { this.as_ref() };
        if shared.home.is_some() {
            Self::settle(this, -1);
            return;
        }
        let mut index = shared.free.0.swap(CLOSED, Ordering::AcqRel);
        let mut out = shared.slots.len() as i64;
        while index != NONE {
            out -= 1;
            index = shared.slots[index as usize].next.load(Ordering::Relaxed);
        }
        Self::settle(this, out);
    }

    fn settle(this: NonNull<Self>, change: i64) {
        // SAFETY: not freed yet, because the caller's part of the count is outstanding until this addition.
        let before = unsafe { this.as_ref() }.out.fetch_add(change, Ordering::AcqRel);
        if before + change == 0 {
            // SAFETY: the sum is zero exactly once: below zero before the owner's part is added, and
            // decreasing by ones after it.
            drop(unsafe { Box::from_raw(this.as_ptr()) });
        }
    }
}

/// Counted hold on a chunk. Chunks are returned only in its drop.
pub(super) struct Hold<M> {
    shared: NonNull<Shared<M>>,
    index: u32,
}

impl<M> Hold<M> {
    #[inline]
    fn shared(&self) -> &Shared<M> {
        // SAFETY: the memory outlives every hold (see `Shared::close`).
        unsafe { self.shared.as_ref() }
    }

    #[inline]
    fn slot(&self) -> &Slot<M> {
        &self.shared().slots[self.index as usize]
    }

    #[inline]
    fn range(&self) -> (NonNull<u8>, usize) {
        let shared = self.shared();
        // SAFETY: index < slots.len(), and slots x chunk_bytes fit into the memory.
        (unsafe { shared.base.add(self.index as usize * shared.chunk_bytes) }, shared.chunk_bytes)
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        let (base, len) = self.range();
        // SAFETY: mapped and initialised (`Memory`). A pool's writer needs the only hold, and this is one.
        // Nobody in this process writes to an import, and its maker promises that the owner does not while
        // the chunk is lent.
        unsafe { std::slice::from_raw_parts(base.as_ptr(), len) }
    }

    #[inline]
    pub(super) fn meta(&self) -> &M {
        // SAFETY: writers need the only hold, and this is one.
        self.slot().meta.with(|meta| unsafe { &*meta })
    }

    /// Bytes, and writable metadata.
    ///
    /// # Safety
    /// This is the only hold on the chunk.
    #[inline]
    pub(super) unsafe fn meta_mut(&mut self) -> (&[u8], &mut M) {
        // SAFETY: nobody else has a reference to the metadata, by the caller's promise.
        let meta = self.slot().meta.with_mut(|meta| unsafe { &mut *meta });
        (self.bytes(), meta)
    }

    /// Bytes and metadata, both writable.
    ///
    /// # Safety
    /// This is the only hold on the chunk, and the chunk does not belong to an import.
    #[inline]
    pub(super) unsafe fn parts_mut(&mut self) -> (&mut [u8], &mut M) {
        let (base, len) = self.range();
        // SAFETY: a pool's memory is writable, nobody else has a reference into the chunk, and bytes and
        // metadata do not overlap.
        let bytes = unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), len) };
        // SAFETY: as for the bytes.
        let meta = self.slot().meta.with_mut(|meta| unsafe { &mut *meta });
        (bytes, meta)
    }

    /// Whether the chunk may be written: this is its only hold, and its memory belongs to this process.
    #[inline]
    pub(super) fn is_writable(&self) -> bool {
        // Acquire: the other holders' reads are over before this one writes.
        self.shared().home.is_none() && self.slot().refs.load(Ordering::Acquire) == 1
    }

    /// Adds a hold on the chunk.
    #[inline]
    pub(super) fn share(&self) -> Self {
        if self.slot().refs.fetch_add(1, Ordering::Relaxed) > MAX_REFS {
            // Aborts like `Arc`: a caught panic could be repeated until the count wraps to zero.
            std::process::abort();
        }
        Self { shared: self.shared, index: self.index }
    }
}

impl<M> Drop for Hold<M> {
    #[inline]
    fn drop(&mut self) {
        // AcqRel: all reads of the chunk are over before the next owner writes it.
        if self.slot().refs.fetch_sub(1, Ordering::AcqRel) == 1 {
            Shared::go_home(self.shared, self.index);
        }
    }
}

// SAFETY: a hold gives out shared references to bytes and metadata, a ChunkMut exclusive ones. Both may move
// and be shared between threads if the metadata may. The counters are atomic.
unsafe impl<M: Send + Sync> Send for Hold<M> {}
// SAFETY: as above.
unsafe impl<M: Send + Sync> Sync for Hold<M> {}

/// End of the free list.
const NONE: u32 = u32::MAX;
/// Head of the free list of a dropped pool.
const CLOSED: u32 = u32::MAX - 1;
/// Maximum leases of a chunk: far above any use, and half of the counter's range.
const MAX_REFS: u32 = u32::MAX / 2;

#[cfg(all(test, not(loom)))]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::memory::Heap;

    /// Variable for the child process, which must abort at the second clone.
    const CHILD: &str = "GREBE_RING_CLONES_PAST_THE_LIMIT";

    #[test]
    fn more_clones_than_can_be_counted_end_the_process() {
        if std::env::var_os(CHILD).is_some() {
            clone_past_the_limit();
        }
        let name = "pool::shared::tests::more_clones_than_can_be_counted_end_the_process";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        if child.status.code() == Some(127) {
            eprintln!(
                "skipped: this system cannot start the program again that runs here (an emulator does)"
            );
            return;
        }
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(said.contains("the last that is counted"), "{child:?}");
        assert!(!said.contains("one too many"), "{child:?}");
        assert!(!child.status.success());
        // A panic could be caught, and the count could wrap to zero.
        #[cfg(unix)]
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&child.status),
            Some(6),
            "SIGABRT: {child:?}"
        );
    }

    fn clone_past_the_limit() -> ! {
        let shared = Shared::boxed(Box::new(Heap::zeroed(64)), 64, || (), None);
        let hold = Shared::take_free(shared).unwrap();
        // Simulates the clones, because making them takes half a minute.
        hold.slot().refs.store(MAX_REFS, Ordering::Relaxed);
        std::mem::forget(hold.share());
        println!("the last that is counted");
        std::mem::forget(hold.share());
        println!("one too many");
        std::process::exit(1);
    }
}
