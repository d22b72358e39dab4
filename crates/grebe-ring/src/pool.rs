//! A fixed pool of equal chunks, and the leases on them.
//!
//! ```text
//!   memory   | chunk 0 | chunk 1 | chunk 2 | ...        one allocation or one mapping, 64-byte aligned
//!   slots    | refs, next, meta | refs, next, meta |    private to this process; never in shared memory
//!   free  -> 2 -> 0 -> 1                                LIFO: one owner pops, any thread pushes
//! ```
//!
//! Only the pool's owner takes chunks, so the free list needs no tags against ABA: between the owner's two loads others can
//! only push, and a chunk that is on the list is not pushed again.
//!
//! Metadata (`M`: the table of frames) rides with the chunk and is reused with it, so that handing on a chunk and what is
//! known about it is one word, and nothing is allocated after the pool is made.

use std::fmt;
use std::ptr::NonNull;

use crate::memory::{ALIGN, Heap};
use crate::sync::{Apart, AtomicI64, AtomicU32, Ordering, UnsafeCell};
use crate::{Memory, Signal};

/// A fixed number of equal chunks, taken by one owner and given back by the last lease, from any thread.
///
/// The pool may be dropped while leases are out: the memory stays until the last of them is gone.
///
/// ```
/// use grebe_ring::Pool;
///
/// let mut pool = Pool::<Vec<u32>>::new(2, 65_536);
/// let mut chunk = pool.acquire().unwrap();
/// chunk.bytes_mut()[..3].copy_from_slice(b"GFH");
/// chunk.meta_mut().push(3);
///
/// let lease = chunk.freeze();
/// let reader = lease.clone();
/// assert_eq!((&reader.bytes()[..3], reader.meta()[0], pool.available()), (&b"GFH"[..], 3, 1));
/// drop((lease, reader));
/// assert_eq!(pool.available(), 2);
/// ```
pub struct Pool<M> {
    shared: NonNull<Shared<M>>,
}

/// A chunk with one owner, who may write to it.
pub struct ChunkMut<M> {
    held: Held<M>,
}

/// A share in a chunk that nobody writes to any more. Cloning it costs one atomic increment.
pub struct Lease<M> {
    held: Held<M>,
}

/// Chunks of memory that another process owns and this one may only read.
///
/// The counterpart of [`Pool`] at the other end of shared memory: who learns that chunk `i` has been lent to this process
/// calls [`lease`](Import::lease); when the last lease is gone, `home(i)` is called, on the thread that dropped it.
pub struct Import<M> {
    shared: NonNull<Shared<M>>,
}

impl<M: Default + Send + Sync> Pool<M> {
    /// `chunks` chunks of `chunk_bytes` (rounded up to 64) from the heap, zeroed; pages are touched on first use.
    ///
    /// # Panics
    /// Where there are no chunks, more than 2^32 - 3, or their size overflows.
    pub fn new(chunks: usize, chunk_bytes: usize) -> Self {
        Self::with_meta(chunks, chunk_bytes, M::default)
    }
}

impl<M: Send + Sync> Pool<M> {
    /// As [`Pool::new`], with each chunk's metadata made by `meta` (with the capacity it will ever need).
    pub fn with_meta(chunks: usize, chunk_bytes: usize, meta: impl FnMut() -> M) -> Self {
        let chunk_bytes = round_up(chunk_bytes);
        let memory = Box::new(Heap::zeroed(chunks.checked_mul(chunk_bytes).expect("pool size overflows")));
        Self::over(memory, chunk_bytes, meta)
    }

    /// As many chunks of `chunk_bytes` (a multiple of 64) as fit into writable `memory`.
    pub fn over(memory: Box<dyn Memory>, chunk_bytes: usize, meta: impl FnMut() -> M) -> Self {
        Self { shared: Shared::boxed(memory, chunk_bytes, meta, None) }
    }

    /// Takes the chunk that was given back last (it is still in cache), or `None` where all are lent.
    #[inline]
    pub fn acquire(&mut self) -> Option<ChunkMut<M>> {
        let index = self.shared().pop_free()?;
        self.shared().slots[index as usize].refs.store(1, Ordering::Relaxed);
        Some(ChunkMut { held: Held { shared: self.shared, index } })
    }

    /// Wakes `signal` whenever a chunk comes back, for an owner that waits for one.
    pub fn wake_on_return(&mut self, signal: std::sync::Arc<Signal>) {
        self.shared().owner.with_mut(|place| {
            assert_eq!(self.available(), self.chunks(), "set the signal before the first chunk is taken");
            // SAFETY: `owner` is read only by a thread that brings a chunk home, before it is on the free list (Release,
            // read by `available` above), so nobody reads it while all chunks are home, which was just checked.
            unsafe { *place = Some(signal) }
        });
    }

    /// Whether a chunk can be taken now.
    #[inline]
    pub fn has_free(&self) -> bool {
        self.shared().free.0.load(Ordering::Acquire) != NONE
    }

    /// How many chunks are free (a walk of the list: for counters, not for the data path).
    pub fn available(&self) -> usize {
        let shared = self.shared();
        let (mut index, mut count) = (shared.free.0.load(Ordering::Acquire), 0);
        while index != NONE {
            count += 1;
            index = shared.slots[index as usize].next.load(Ordering::Relaxed);
        }
        count
    }

    /// How many chunks there are.
    pub fn chunks(&self) -> usize {
        self.shared().slots.len()
    }

    /// Bytes in one chunk.
    pub fn chunk_bytes(&self) -> usize {
        self.shared().chunk_bytes
    }

    #[inline]
    fn shared(&self) -> &Shared<M> {
        // SAFETY: freed only by `close`, or by the last chunk to come home after it.
        unsafe { self.shared.as_ref() }
    }
}

impl<M> ChunkMut<M> {
    /// The whole chunk; what was never written reads as zero or as what the chunk held before.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.held.bytes()
    }

    /// The whole chunk, to write.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let (base, len) = self.held.range();
        // SAFETY: a ChunkMut is the only handle to its chunk (refs = 1, not cloneable), and the pool's memory is writable.
        unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), len) }
    }

    /// What rides with the chunk.
    #[inline]
    pub fn meta(&self) -> &M {
        self.held.meta()
    }

    /// What rides with the chunk, to write. It still holds what the last user left there.
    #[inline]
    pub fn meta_mut(&mut self) -> &mut M {
        // SAFETY: the only handle, as for `bytes_mut`.
        self.held.slot().meta.with_mut(|meta| unsafe { &mut *meta })
    }

    /// Bytes and metadata, both to write.
    #[inline]
    pub fn parts_mut(&mut self) -> (&mut [u8], &mut M) {
        let (base, len) = self.held.range();
        // SAFETY: the only handle, and the two do not overlap.
        let bytes = unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), len) };
        (bytes, self.meta_mut())
    }

    /// Which chunk of the pool this is.
    pub fn index(&self) -> u32 {
        self.held.index
    }

    /// Ends writing; from here on the chunk can be shared.
    #[inline]
    pub fn freeze(self) -> Lease<M> {
        Lease { held: self.held }
    }
}

impl<M> Lease<M> {
    /// The whole chunk.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.held.bytes()
    }

    /// What rides with the chunk.
    #[inline]
    pub fn meta(&self) -> &M {
        self.held.meta()
    }

    /// Which chunk of the pool this is.
    pub fn index(&self) -> u32 {
        self.held.index
    }

    /// The chunk to write again, where this is its only lease and its memory is this process's own.
    ///
    /// # Errors
    /// The lease itself, where someone else holds one too.
    #[inline]
    pub fn try_unique(self) -> Result<ChunkMut<M>, Self> {
        let writable = self.held.shared().home.is_none();
        // Acquire: the other holders' reads are over before this one writes.
        if writable && self.held.slot().refs.load(Ordering::Acquire) == 1 {
            Ok(ChunkMut { held: self.held })
        } else {
            Err(self)
        }
    }
}

impl<M> Clone for Lease<M> {
    #[inline]
    fn clone(&self) -> Self {
        let before = self.held.slot().refs.fetch_add(1, Ordering::Relaxed);
        assert!(before < MAX_REFS, "a chunk has more leases than anything could use");
        Self { held: Held { shared: self.held.shared, index: self.held.index } }
    }
}

impl<M: Send + Sync> Import<M> {
    /// Reads `memory`, cut into chunks of `chunk_bytes`; `home` is told each chunk that is no longer read.
    pub fn new(
        memory: Box<dyn Memory>,
        chunk_bytes: usize,
        meta: impl FnMut() -> M,
        home: impl Fn(u32) + Send + Sync + 'static,
    ) -> Self {
        Self { shared: Shared::boxed(memory, chunk_bytes, meta, Some(Box::new(home))) }
    }

    /// A lease on chunk `index`, which the other side has just lent; `describe` fills in its metadata.
    ///
    /// Answers `None` where there is no such chunk or this process holds it already: the other side is wrong.
    pub fn lease(&mut self, index: u32, describe: impl FnOnce(&mut M, &[u8])) -> Option<Lease<M>> {
        // SAFETY: freed only after the import and every lease are gone.
        let slot = unsafe { self.shared.as_ref() }.slots.get(index as usize)?;
        // Acquire: the last reader of the metadata is done.
        if slot.refs.load(Ordering::Acquire) != 0 {
            return None;
        }
        slot.refs.store(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { self.shared.as_ref() }.out.fetch_add(1, Ordering::Relaxed);
        let mut chunk = ChunkMut { held: Held { shared: self.shared, index } };
        let (base, len) = chunk.held.range();
        // SAFETY: mapped and readable (Memory); the slice is read-only, as the mapping is.
        let bytes = unsafe { std::slice::from_raw_parts(base.as_ptr(), len) };
        describe(chunk.meta_mut(), bytes);
        Some(chunk.freeze())
    }
}

impl<M> Drop for Pool<M> {
    fn drop(&mut self) {
        Shared::close(self.shared);
    }
}

impl<M> Drop for Import<M> {
    fn drop(&mut self) {
        Shared::close(self.shared);
    }
}

/// One counted hold on a chunk; its drop is the only place where chunks go home.
struct Held<M> {
    shared: NonNull<Shared<M>>,
    index: u32,
}

impl<M> Held<M> {
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

    #[inline]
    fn bytes(&self) -> &[u8] {
        let (base, len) = self.range();
        // SAFETY: mapped and initialised (Memory); writers need the only hold, and this is one.
        unsafe { std::slice::from_raw_parts(base.as_ptr(), len) }
    }

    #[inline]
    fn meta(&self) -> &M {
        // SAFETY: as for `bytes`.
        self.slot().meta.with(|meta| unsafe { &*meta })
    }
}

impl<M> Drop for Held<M> {
    #[inline]
    fn drop(&mut self) {
        // AcqRel: all reads of the chunk are over before the next owner writes it.
        if self.slot().refs.fetch_sub(1, Ordering::AcqRel) == 1 {
            Shared::go_home(self.shared, self.index);
        }
    }
}

// SAFETY: a hold gives out shared references to bytes and metadata, a ChunkMut exclusive ones; both may move and be shared
// between threads where the metadata may. The counters are atomic.
unsafe impl<M: Send + Sync> Send for Held<M> {}
// SAFETY: as above.
unsafe impl<M: Send + Sync> Sync for Held<M> {}
// SAFETY: taking needs `&mut`, and there is one owner.
unsafe impl<M: Send + Sync> Send for Pool<M> {}
// SAFETY: `&Pool` only reads atomics.
unsafe impl<M: Send + Sync> Sync for Pool<M> {}
// SAFETY: as for `Pool`.
unsafe impl<M: Send + Sync> Send for Import<M> {}
// SAFETY: as for `Pool`.
unsafe impl<M: Send + Sync> Sync for Import<M> {}

type Home = Box<dyn Fn(u32) + Send + Sync>;

struct Shared<M> {
    /// `memory.base()`, once.
    base: NonNull<u8>,
    chunk_bytes: usize,
    slots: Box<[Slot<M>]>,
    /// Head of the free list; `CLOSED` once the owner is gone.
    free: Apart<AtomicU32>,
    /// A pool's chunks still out, once it is closed (those that came home first count below zero); an import's at any
    /// time, and one for the import itself.
    out: AtomicI64,
    owner: UnsafeCell<Option<std::sync::Arc<Signal>>>,
    /// Set in an import, whose free list stays empty.
    home: Option<Home>,
    /// Keeps `base` valid.
    _memory: Box<dyn Memory>,
}

/// A line pair of its own: the count of one chunk is not slowed by its neighbour's.
#[repr(align(128))]
struct Slot<M> {
    refs: AtomicU32,
    next: AtomicU32,
    meta: UnsafeCell<M>,
}

impl<M> Shared<M> {
    fn boxed(
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
            free: Apart(AtomicU32::new(if home.is_some() { NONE } else { 0 })),
            out: AtomicI64::new(i64::from(home.is_some())),
            owner: UnsafeCell::new(None),
            home,
            _memory: memory,
        })))
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

    /// The last hold on a chunk is gone.
    fn go_home(this: NonNull<Self>, index: u32) {
        // SAFETY: this chunk is counted as out, so the memory is still there; no reference is kept past `settle`.
        let shared = unsafe { this.as_ref() };
        if let Some(home) = &shared.home {
            home(index);
            Self::settle(this, -1);
            return;
        }
        let owner = shared.owner.with(|owner| {
            // SAFETY: written only while every chunk is home (`wake_on_return`), and this one was not.
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
        // The pool may be gone from here on: the signal is held on its own.
        if let Some(owner) = owner {
            owner.notify();
        }
    }

    /// The owner is gone: whoever brings the count of chunks out to zero frees the memory.
    fn close(this: NonNull<Self>) {
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
        // SAFETY: not freed yet: the caller's own part of the count is outstanding until this addition.
        let before = unsafe { this.as_ref() }.out.fetch_add(change, Ordering::AcqRel);
        if before + change == 0 {
            // SAFETY: the sum is zero exactly once: below zero before the owner's part is added, falling by ones after it.
            drop(unsafe { Box::from_raw(this.as_ptr()) });
        }
    }
}

impl<M> fmt::Debug for Pool<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: as for `Pool::shared`.
        let shared = unsafe { self.shared.as_ref() };
        f.debug_struct("Pool")
            .field("chunks", &shared.slots.len())
            .field("chunk_bytes", &shared.chunk_bytes)
            .finish()
    }
}

impl<M> fmt::Debug for Import<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Import").finish_non_exhaustive()
    }
}

impl<M> fmt::Debug for ChunkMut<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkMut").field("index", &self.held.index).finish_non_exhaustive()
    }
}

impl<M> fmt::Debug for Lease<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("index", &self.held.index).finish_non_exhaustive()
    }
}

fn round_up(bytes: usize) -> usize {
    bytes.max(1).checked_next_multiple_of(ALIGN).expect("chunk size overflows")
}

const NONE: u32 = u32::MAX;
const CLOSED: u32 = u32::MAX - 1;
const MAX_REFS: u32 = 1 << 24;

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn the_chunk_given_back_last_is_taken_first() {
        let mut pool = Pool::<()>::new(4, 64);
        let chunks: Vec<_> = (0..4).map(|_| pool.acquire().unwrap()).collect();
        assert!(pool.acquire().is_none());
        let order: Vec<u32> = [2, 0, 3, 1].into_iter().collect();
        let mut chunks: Vec<Option<_>> = chunks.into_iter().map(Some).collect();
        for &index in &order {
            chunks[index as usize] = None;
        }
        let again: Vec<u32> =
            (0..4).map(|_| pool.acquire().unwrap()).map(|chunk| chunk.freeze().index()).collect();
        // Each was dropped at once, so the same chunk comes again and again: the hottest.
        assert_eq!(again, [1, 1, 1, 1]);
    }

    #[test]
    fn only_a_sole_lease_can_be_written_again() {
        let mut pool = Pool::<u8>::new(1, 64);
        let lease = pool.acquire().unwrap().freeze();
        let other = lease.clone();
        let lease = lease.try_unique().unwrap_err();
        drop(other);
        assert!(lease.try_unique().is_ok());
    }

    #[test]
    fn leases_outlive_their_pool_and_memory_is_freed_once() {
        let token = Arc::new(());
        let meta = token.clone();
        let mut pool = Pool::with_meta(3, 64, move || meta.clone());
        let mut chunk = pool.acquire().unwrap();
        chunk.bytes_mut()[0] = 7;
        let lease = chunk.freeze();
        let other = pool.acquire().unwrap().freeze();
        drop(pool);
        drop(other);
        assert_eq!(lease.bytes()[0], 7);
        drop(lease);
        assert_eq!(Arc::strong_count(&token), 1);
    }

    #[test]
    fn chunks_come_home_from_other_threads() {
        let mut pool = Pool::<()>::new(8, 64);
        let (tx, rx) = std::sync::mpsc::channel::<Lease<()>>();
        let reader =
            std::thread::spawn(move || rx.into_iter().map(|lease| lease.bytes()[0] as u64).sum::<u64>());
        let (mut sent, mut sum) = (0u64, 0);
        while sent < 100_000 {
            match pool.acquire() {
                None => std::thread::yield_now(),
                Some(mut chunk) => {
                    chunk.bytes_mut()[0] = sent as u8;
                    sum += u64::from(sent as u8);
                    tx.send(chunk.freeze()).unwrap();
                    sent += 1;
                }
            }
        }
        drop(tx);
        assert_eq!(reader.join().unwrap(), sum);
        assert_eq!(pool.available(), 8);
    }

    #[test]
    fn an_import_says_once_that_a_chunk_may_go_home_and_refuses_one_it_holds() {
        let home = Arc::new(Mutex::new(Vec::new()));
        let told = home.clone();
        let mut import = Import::<u32>::new(
            Box::new(Heap::zeroed(256)),
            64,
            || 0,
            move |index| told.lock().unwrap().push(index),
        );
        let lease = import.lease(2, |meta, bytes| *meta = bytes.len() as u32).unwrap();
        assert_eq!(*lease.meta(), 64);
        assert!(import.lease(2, |_, _| ()).is_none());
        assert!(import.lease(4, |_, _| ()).is_none());
        let clone = lease.clone();
        drop(lease);
        assert!(home.lock().unwrap().is_empty());
        // Memory of another process is never written, not even by a sole holder.
        drop(clone.try_unique().unwrap_err());
        assert_eq!(*home.lock().unwrap(), [2]);
    }
}
