//! A fixed pool of equal chunks, lent and given back without an allocation.
//!
//! ```text
//!   Pool (one owner) --acquire--> ChunkMut --freeze--> Lease --clone--> Lease ...   last drop: back on the free list
//!                                 one writer           any number of readers, any thread
//!
//!   memory   | chunk 0 | chunk 1 | chunk 2 | ...        one allocation or one mapping, 64-byte aligned
//!   slots    | refs, next, meta | refs, next, meta |    private to this process; never in shared memory
//!   free  -> 2 -> 0 -> 1                                LIFO: one owner pops, any thread pushes
//! ```
//!
//! **Ownership.** A chunk has one writer, then any number of readers. The reference count belongs to the chunk, so handing a
//! chunk on costs one contended counter, whatever it holds. In-place change is for the sole owner ([`Lease::try_unique`]).
//!
//! **The free list** needs no tags against ABA: only the pool's owner pops, so between the owner's two loads others can
//! only push, and a chunk that is on the list is not pushed again. It is LIFO, so that the chunk still in cache comes first.
//!
//! **Metadata** (`M`, for batches the table of frames) rides with the chunk and is reused with it: a chunk and what is known
//! about it are handed on as one word, and nothing is allocated after the pool is made.
//!
//! **The end.** Leases outlive their pool. `close` adds the number of chunks that are out to a counter, each chunk that
//! comes home afterwards takes one away, and whoever brings the counter to zero frees the memory.
//!
//! **Memory of another process.** A [`Pool`] can cut its chunks from any [`Memory`](crate::Memory); a [`TrustedImport`] gives
//! out leases at the reading end of memory that another process owns. Reference counts stay private to each process, so that a
//! killed reader leaves nothing behind that the lender could not find in its own list.

mod lease;
mod shared;

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

pub use lease::{ChunkMut, Lease};
use shared::Shared;

use crate::memory::{ALIGN, Heap, Memory, MemoryMut};
use crate::signal::Signal;

/// A fixed number of equal chunks, taken by one owner and given back by the last lease, from any thread.
///
/// The pool may be dropped while leases are out: the memory stays until the last of them is gone.
///
/// ```
/// use grebe_ring::Pool;
///
/// let mut pool = Pool::new(2, 65_536, Vec::<u32>::new);
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

/// Chunks of memory that another process owns and this one may only read, in place: for a process that is trusted.
///
/// The counterpart of [`Pool`] at the other end of shared memory: whoever learns that chunk `i` has been lent to
/// this process calls [`lease`](TrustedImport::lease); when the last lease is gone, `home(i)` is called, on the thread that
/// dropped it.
///
/// A lease is a `&[u8]` into memory that the other process can write to at any time. Nothing enforces its promise not to. A process that
/// breaks it changes bytes between two reads of them: a length after it was checked, an index after it was compared. That is a data
/// race, so the reader's behaviour is undefined, up to reads and writes outside the chunk. Memory of a process that is not trusted has
/// to be copied before anything looks at it.
pub struct TrustedImport<M> {
    shared: NonNull<Shared<M>>,
}

impl<M: Send + Sync> Pool<M> {
    /// `chunks` chunks of `chunk_bytes` (rounded up to 64) from the heap, zeroed; pages are touched on first use. `meta` makes
    /// each chunk's metadata, with the capacity it will ever need.
    ///
    /// # Panics
    /// Where there are no chunks, more than 2^32 - 3, or their size overflows.
    pub fn new(chunks: usize, chunk_bytes: usize, meta: impl FnMut() -> M) -> Self {
        let chunk_bytes = round_up(chunk_bytes);
        let memory = Box::new(Heap::zeroed(chunks.checked_mul(chunk_bytes).expect("pool size overflows")));
        Self::over(memory, chunk_bytes, meta)
    }

    /// As many chunks of `chunk_bytes` (a multiple of 64) as fit into `memory`.
    pub fn over(memory: Box<dyn MemoryMut>, chunk_bytes: usize, meta: impl FnMut() -> M) -> Self {
        Self { shared: Shared::boxed(memory, chunk_bytes, meta, None) }
    }

    /// Takes the chunk that was given back last (it is still in cache), or `None` where all are lent.
    #[inline]
    pub fn acquire(&mut self) -> Option<ChunkMut<M>> {
        Shared::take_free(self.shared).map(ChunkMut::new)
    }

    /// Wakes `signal` whenever a chunk comes back, for an owner that waits for one.
    ///
    /// # Panics
    /// Where a chunk was taken already.
    pub fn wake_on_return(&mut self, signal: Arc<Signal>) {
        self.shared().set_owner(signal);
    }

    /// Whether a chunk can be taken now.
    #[inline]
    pub fn has_free(&self) -> bool {
        self.shared().has_free()
    }

    /// How many chunks are free (a walk of the list: for counters, not for the data path).
    pub fn available(&self) -> usize {
        self.shared().available()
    }

    /// How many chunks there are.
    pub fn chunks(&self) -> usize {
        self.shared().chunks()
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

impl<M: Send + Sync> TrustedImport<M> {
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
        let mut hold = Shared::take_lent(self.shared, index)?;
        // SAFETY: it is the only hold on the chunk.
        let (bytes, meta) = unsafe { hold.meta_mut() };
        describe(meta, bytes);
        Some(Lease::new(hold))
    }
}

impl<M> Drop for Pool<M> {
    fn drop(&mut self) {
        Shared::close(self.shared);
    }
}

impl<M> Drop for TrustedImport<M> {
    fn drop(&mut self) {
        Shared::close(self.shared);
    }
}

// SAFETY: taking needs `&mut`, and there is one owner.
unsafe impl<M: Send + Sync> Send for Pool<M> {}
// SAFETY: `&Pool` only reads atomics.
unsafe impl<M: Send + Sync> Sync for Pool<M> {}

// SAFETY: as for `Pool`.
unsafe impl<M: Send + Sync> Send for TrustedImport<M> {}
// SAFETY: as for `Pool`.
unsafe impl<M: Send + Sync> Sync for TrustedImport<M> {}

impl<M> fmt::Debug for Pool<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: as for `Pool::shared`.
        let shared = unsafe { self.shared.as_ref() };
        f.debug_struct("Pool")
            .field("chunks", &shared.chunks())
            .field("chunk_bytes", &shared.chunk_bytes)
            .finish()
    }
}

impl<M> fmt::Debug for TrustedImport<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustedImport").finish_non_exhaustive()
    }
}

fn round_up(bytes: usize) -> usize {
    bytes.max(1).checked_next_multiple_of(ALIGN).expect("chunk size overflows")
}

#[cfg(all(test, not(loom)))]
mod tests;
