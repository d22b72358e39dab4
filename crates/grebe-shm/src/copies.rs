//! Batches of an untrusted producer, copied before anything looks at them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use grebe_frame::{Batch, BatchMut, BatchPool, Description, HEADER_BYTES, Header};
use grebe_ring::Signal;

use crate::map::Mapping;
use crate::message::Welcome;
use crate::platform::Memory;
use crate::sync::Words;

/// Copies a producer's chunks into a pool of this process.
#[derive(Debug)]
pub(crate) struct Copies {
    /// Producer's chunks, read as atomic words, because it may write to them meanwhile.
    chunks: Words,
    chunk_bytes: usize,
    pool: BatchPool,
    came_back: Arc<Signal>,
}

impl Copies {
    /// Makes a pool with as many copies as chunks may be out, within [`POOL_BYTES`].
    pub(crate) fn new(payload: &Mapping, welcome: &Welcome) -> io::Result<Self> {
        let chunk_bytes = welcome.chunk_bytes as usize;
        let copies = (POOL_BYTES / chunk_bytes).clamp(COPIES_MIN, COPIES_MAX);
        let bytes = copies.min(welcome.quota_chunks as usize) * chunk_bytes;
        let memory = Mapping::new(&Memory::make("grebe:copies", bytes)?, bytes, true)?;
        let mut pool = BatchPool::over(memory.own(bytes), chunk_bytes);
        let came_back = Arc::new(Signal::new());
        pool.wake_on_return(came_back.clone());
        Ok(Self { chunks: payload.words(0, welcome.tables_at() / 8), chunk_bytes, pool, came_back })
    }

    /// Maximum copies that may be out.
    pub(crate) fn count(&self) -> usize {
        self.pool.chunks()
    }

    /// Sets the description of later copies.
    pub(crate) fn describe(&mut self, description: Option<Arc<Description>>) {
        self.pool.describe(description);
    }

    pub(crate) fn has_room(&self) -> bool {
        self.pool.has_free()
    }

    /// Waits for a returned copy if all are out. Returns whether there is room.
    pub(crate) fn wait_for_room(&self, timeout: Duration) -> bool {
        self.came_back.wait(timeout, || self.pool.has_free())
    }

    /// Copies the frames of a chunk and validates each copy. Returns the batch and the number of refused
    /// frames; `None` without room.
    pub(crate) fn batch(&mut self, chunk: u32, offsets: impl Iterator<Item = u32>) -> Option<(Batch, usize)> {
        let from = chunk as usize * self.chunk_bytes;
        let mut copy = self.pool.acquire()?;
        let mut refused = 0;
        for offset in offsets {
            refused += usize::from(copy_frame(&self.chunks, from, offset as usize, &mut copy).is_none());
        }
        Some((copy.freeze(), refused))
    }
}

/// Copies a frame to the same place in the copy's chunk, so that all frames fit. It must follow the earlier
/// ones, or it would overwrite validated data.
fn copy_frame(chunks: &Words, from: usize, at: usize, copy: &mut BatchMut) -> Option<()> {
    if at < copy.filled_bytes() {
        return None;
    }
    let (head, rest) = copy.chunk().get_mut(at..)?.split_first_chunk_mut::<HEADER_BYTES>()?;
    chunks.copy(from + at, head);
    let header = Header::parse(head).ok()?;
    let payload = rest.get_mut(..header.frame_bytes() - HEADER_BYTES)?;
    chunks.copy(from + at + HEADER_BYTES, payload);
    copy.adopt(at, &header).ok()
}

/// Fits everything that a default stream lends to one reader: 244 chunks of 256 KiB.
const POOL_BYTES: usize = 64 << 20;
const COPIES_MIN: usize = 8;
const COPIES_MAX: usize = 1024;
