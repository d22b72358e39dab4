//! Where batches come from: a pool of this process, or memory that another process lends.

use std::sync::Arc;

use grebe_ring::{Memory, MemoryMut, Pool, Signal, TrustedImport};

use crate::batch::{Batch, BatchMut};
use crate::description::Description;
use crate::header::Header;
use crate::table::Table;

/// A fixed number of chunks to build batches in. Nothing is allocated after it is made.
#[derive(Debug)]
pub struct BatchPool {
    pool: Pool<Table>,
    /// Whether it was settled who is woken.
    has_owner: bool,
    description: Option<Arc<Description>>,
}

/// Batches that another process lends to this one, read in place: for a process that is trusted.
///
/// A [`Batch`] of it lies in memory that the other process can still write to. Its frames are validated as they come, and every offset is
/// checked against this process's own table, but headers and samples can change after that: [`TrustedImport`] says what follows.
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

    /// As many chunks as fit into memory that another crate mapped.
    pub fn over(memory: Box<dyn MemoryMut>, chunk_bytes: usize) -> Self {
        Self {
            pool: Pool::over(memory, chunk_bytes, || Table::for_chunk(chunk_bytes)),
            has_owner: false,
            description: None,
        }
    }

    /// Wakes `signal` whenever a chunk comes back. To be set before the first batch is taken.
    pub fn wake_on_return(&mut self, signal: Arc<Signal>) {
        self.pool.wake_on_return(signal);
        self.has_owner = true;
    }

    /// As [`wake_on_return`](Self::wake_on_return), where nobody was named before the first batch was taken; else nothing
    /// changes.
    #[inline]
    pub fn wake_by_default(&mut self, signal: &Arc<Signal>) {
        if !std::mem::replace(&mut self.has_owner, true) && self.available() == self.chunks() {
            self.pool.wake_on_return(signal.clone());
        }
    }

    /// An empty batch in the chunk that came back last, or `None` where all chunks are lent.
    #[inline]
    pub fn acquire(&mut self) -> Option<BatchMut> {
        let mut batch = self.pool.acquire().map(BatchMut::new)?;
        batch.describe(self.description.as_ref());
        Some(batch)
    }

    /// Says what the stream is that batches of this pool carry from now on.
    pub fn describe(&mut self, description: Option<Arc<Description>>) {
        self.description = description;
    }

    /// The description for batches of this pool.
    pub fn description(&self) -> Option<&Arc<Description>> {
        self.description.as_ref()
    }

    /// Whether a batch can be taken now.
    pub fn has_free(&self) -> bool {
        self.pool.has_free()
    }

    /// Chunks that are free now.
    pub fn available(&self) -> usize {
        self.pool.available()
    }

    /// Chunks in all.
    pub fn chunks(&self) -> usize {
        self.pool.chunks()
    }

    /// Bytes in one chunk.
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

    /// Says what the stream is, or that nobody says so any more: in batches from here on.
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
