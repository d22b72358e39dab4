//! Sources of batches: a pool of this process, or memory that another process lends.

use std::sync::Arc;

use grebe_ring::{Memory, MemoryMut, Pool, Signal, TrustedImport};

use crate::batch::{Batch, BatchMut};
use crate::description::Description;
use crate::header::Header;
use crate::table::Table;

/// A fixed number of chunks for batches. Nothing is allocated after its creation.
#[derive(Debug)]
pub struct BatchPool {
    pool: Pool<Table>,
    /// Whether the waker is set.
    has_owner: bool,
    description: Option<Arc<Description>>,
}

/// Batches that a trusted process lends to this one, read in place.
///
/// The other process can still write to the memory of such a [`Batch`]. Frames are validated on arrival, and offsets
/// are checked against this process's table, but headers and samples can change afterwards: see [`TrustedImport`].
#[derive(Debug)]
pub struct TrustedBatchImport {
    import: TrustedImport<Table>,
    description: Option<Arc<Description>>,
}

impl BatchPool {
    /// `chunks` chunks of `chunk_bytes` each (rounded up to 64), from the heap.
    pub fn new(chunks: usize, chunk_bytes: usize) -> Self {
        Self {
            pool: Pool::new(chunks, chunk_bytes, || Table::for_chunk(chunk_bytes)),
            has_owner: false,
            description: None,
        }
    }

    /// As many chunks as fit into memory mapped by another crate.
    pub fn over(memory: Box<dyn MemoryMut>, chunk_bytes: usize) -> Self {
        Self {
            pool: Pool::over(memory, chunk_bytes, || Table::for_chunk(chunk_bytes)),
            has_owner: false,
            description: None,
        }
    }

    /// Wakes `signal` when a chunk returns. Call it before the first batch is taken.
    pub fn wake_on_return(&mut self, signal: Arc<Signal>) {
        self.pool.wake_on_return(signal);
        self.has_owner = true;
    }

    /// Sets the default for [`wake_on_return`](Self::wake_on_return); no effect after the first batch.
    #[inline]
    pub fn wake_by_default(&mut self, signal: &Arc<Signal>) {
        if !std::mem::replace(&mut self.has_owner, true) && self.available() == self.chunks() {
            self.pool.wake_on_return(signal.clone());
        }
    }

    /// An empty batch in the chunk that returned last, or `None` if all chunks are lent.
    #[inline]
    pub fn acquire(&mut self) -> Option<BatchMut> {
        let mut batch = self.pool.acquire().map(BatchMut::new)?;
        batch.describe(self.description.as_ref());
        Some(batch)
    }

    /// Sets the description for the next batches of this pool.
    pub fn describe(&mut self, description: Option<Arc<Description>>) {
        self.description = description;
    }

    /// The description for batches of this pool.
    pub fn description(&self) -> Option<&Arc<Description>> {
        self.description.as_ref()
    }

    /// Whether a chunk is free.
    pub fn has_free(&self) -> bool {
        self.pool.has_free()
    }

    /// Number of free chunks.
    pub fn available(&self) -> usize {
        self.pool.available()
    }

    /// Total number of chunks.
    pub fn chunks(&self) -> usize {
        self.pool.chunks()
    }

    /// Bytes of a chunk.
    pub fn chunk_bytes(&self) -> usize {
        self.pool.chunk_bytes()
    }
}

impl TrustedBatchImport {
    /// Reads `memory` in chunks of `chunk_bytes`. `home` receives each chunk that has no reader left here.
    pub fn new(
        memory: Box<dyn Memory>,
        chunk_bytes: usize,
        home: impl Fn(u32) + Send + Sync + 'static,
    ) -> Self {
        Self {
            import: TrustedImport::new(memory, chunk_bytes, || Table::for_chunk(chunk_bytes), home),
            description: None,
        }
    }

    /// Sets or removes the description for the next batches.
    pub fn describe(&mut self, description: Option<Arc<Description>>) {
        self.description = description;
    }

    /// The batch in chunk `index`, with frames at `offsets`, each of which is validated here again.
    ///
    /// Returns `None` if the chunk does not exist or is held already. Skips invalid frames, and counts them in the
    /// second value.
    pub fn batch(&mut self, index: u32, offsets: impl Iterator<Item = u32>) -> Option<(Batch, usize)> {
        let mut refused = 0;
        let description = self.description.as_ref();
        let lease = self.import.lease(index, |table, bytes| {
            table.clear();
            table.describe(description);
            for offset in offsets {
                let rest = bytes.get(offset as usize..).unwrap_or_default();
                match Header::parse(rest) {
                    Ok(header) if header.frame_bytes() <= rest.len() && table.has_room() => {
                        table.add(offset as usize, &header);
                    }
                    _ => refused += 1,
                }
            }
        })?;
        Some((Batch::new(lease), refused))
    }
}
