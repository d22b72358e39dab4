//! Fixed pool of equal chunks, lent and returned without allocation.
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
//! **Ownership.** A chunk has one writer, then any number of readers. The reference count belongs to the
//! chunk, so passing a chunk on costs one contended counter, whatever its content. Only a sole owner may
//! change it in place ([`Lease::try_unique`]).
//!
//! **The free list** needs no tags against ABA. Only the pool's owner pops, so between its two loads others
//! can only push, and a chunk on the list is not pushed again. The list is LIFO, so that the chunk still in
//! cache comes first.
//!
//! **Metadata** (`M`, for batches the table of frames) belongs to the chunk and is reused with it. So chunk
//! and metadata travel as one word, and nothing is allocated after the pool is made.
//!
//! **The end.** Leases outlive their pool. `close` adds the number of lent chunks to a counter, and each
//! chunk returned afterwards subtracts one. The thread that brings the counter to zero frees the memory.
//!
//! **Memory of another process.** A [`Pool`] can cut its chunks from any [`Memory`](crate::Memory). A
//! [`TrustedImport`] gives out leases at the reading end of another process's memory. Reference counts are
//! private to each process. So the lender finds everything that a killed reader held in its own list.

mod lease;
mod shared;

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

pub use lease::{ChunkMut, Lease};
use shared::Shared;

use crate::memory::{ALIGN, Heap, Memory, MemoryMut};
use crate::signal::Signal;

/// Fixed number of equal chunks. One owner takes them, and the last lease returns them from any thread.
///
/// The pool may be dropped before its leases. The memory stays until the last lease is gone.
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

/// Chunks in memory of another, trusted process, read in place.
///
/// The counterpart of [`Pool`] at the other end of shared memory. Call [`lease`](TrustedImport::lease) when
/// chunk `i` has been lent to this process. After the last lease, `home(i)` is called on the thread that
/// dropped it.
///
/// A lease is a `&[u8]` into memory that the other process can write to at any time; only its promise
/// prevents that. A process that breaks the promise changes bytes between two reads: a length after its
/// check, an index after its comparison. That is a data race, so the reader's behaviour is undefined, up to
/// reads and writes outside the chunk. Copy the memory of an untrusted process before anything looks at it.
pub struct TrustedImport<M> {
    shared: NonNull<Shared<M>>,
}

impl<M: Send + Sync> Pool<M> {
    /// Makes a pool of `chunks` chunks with `chunk_bytes` each (rounded up to 64) from the heap, zeroed.
    /// Pages are touched at the first use. `meta` makes each chunk's metadata with its final capacity.
    ///
    /// # Panics
    /// If `chunks` is 0 or above 2^32 - 3, or if the size overflows.
    pub fn new(chunks: usize, chunk_bytes: usize, meta: impl FnMut() -> M) -> Self {
        let chunk_bytes = round_up(chunk_bytes);
        let memory = Box::new(Heap::zeroed(chunks.checked_mul(chunk_bytes).expect("pool size overflows")));
        Self::over(memory, chunk_bytes, meta)
    }

    /// Makes a pool with as many chunks of `chunk_bytes` (a multiple of 64) as fit into `memory`.
    pub fn over(memory: Box<dyn MemoryMut>, chunk_bytes: usize, meta: impl FnMut() -> M) -> Self {
        Self { shared: Shared::boxed(memory, chunk_bytes, meta, None) }
    }

    /// Takes the most recently returned chunk, which is still in cache. `None` while all are lent.
    #[inline]
    pub fn acquire(&mut self) -> Option<ChunkMut<M>> {
        Shared::take_free(self.shared).map(ChunkMut::new)
    }

    /// Notifies `signal` of each returned chunk, for an owner that waits for one.
    ///
    /// # Panics
    /// If a chunk was taken already.
    pub fn wake_on_return(&mut self, signal: Arc<Signal>) {
        self.shared().set_owner(signal);
    }

    /// Whether a chunk is free now.
    #[inline]
    pub fn has_free(&self) -> bool {
        self.shared().has_free()
    }

    /// Number of free chunks. Walks the list, so use it for counters and not on the data path.
    pub fn available(&self) -> usize {
        self.shared().available()
    }

    /// Number of chunks.
    pub fn chunks(&self) -> usize {
        self.shared().chunks()
    }

    /// Length of a chunk in bytes.
    pub fn chunk_bytes(&self) -> usize {
        self.shared().chunk_bytes
    }

    #[inline]
    fn shared(&self) -> &Shared<M> {
        // SAFETY: freed only by `close`, or by the last chunk returned after it.
        unsafe { self.shared.as_ref() }
    }
}

impl<M: Send + Sync> TrustedImport<M> {
    /// Reads `memory`, cut into chunks of `chunk_bytes`. Calls `home` for each chunk that is no longer read.
    pub fn new(
        memory: Box<dyn Memory>,
        chunk_bytes: usize,
        meta: impl FnMut() -> M,
        home: impl Fn(u32) + Send + Sync + 'static,
    ) -> Self {
        Self { shared: Shared::boxed(memory, chunk_bytes, meta, Some(Box::new(home))) }
    }

    /// Makes a lease on chunk `index`, which the other side has just lent; `describe` fills in its metadata.
    ///
    /// Returns `None` if the chunk does not exist or this process holds it already: the other side is in
    /// error.
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
