//! Handles of a chunk: one for writing, any number for reading.

use std::fmt;

use super::shared::Hold;

/// Chunk with a single owner, who may write to it.
pub struct ChunkMut<M> {
    hold: Hold<M>,
}

/// Shared, read-only handle of a chunk. Cloning costs one atomic increment.
pub struct Lease<M> {
    hold: Hold<M>,
}

impl<M> ChunkMut<M> {
    /// Wraps a newly taken chunk; `hold` is its only hold.
    pub(super) fn new(hold: Hold<M>) -> Self {
        Self { hold }
    }

    /// The whole chunk. Unwritten bytes are zero, or left from its last use.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.hold.bytes()
    }

    /// The whole chunk, writable.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.parts_mut().0
    }

    /// Metadata of the chunk.
    #[inline]
    pub fn meta(&self) -> &M {
        self.hold.meta()
    }

    /// Metadata, writable. Still has the content of its last use.
    #[inline]
    pub fn meta_mut(&mut self) -> &mut M {
        self.parts_mut().1
    }

    /// Bytes and metadata, both writable.
    #[inline]
    pub fn parts_mut(&mut self) -> (&mut [u8], &mut M) {
        // SAFETY: a ChunkMut has the only hold on its chunk (it is not a clone and cannot be cloned), and no
        // chunk of an import becomes a ChunkMut.
        unsafe { self.hold.parts_mut() }
    }

    /// Index of the chunk in the pool.
    pub fn index(&self) -> u32 {
        self.hold.index()
    }

    /// Ends writing. The chunk can be shared from now on.
    #[inline]
    pub fn freeze(self) -> Lease<M> {
        Lease { hold: self.hold }
    }
}

impl<M> Lease<M> {
    pub(super) fn new(hold: Hold<M>) -> Self {
        Self { hold }
    }

    /// The whole chunk.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.hold.bytes()
    }

    /// Metadata of the chunk.
    #[inline]
    pub fn meta(&self) -> &M {
        self.hold.meta()
    }

    /// Index of the chunk in the pool.
    pub fn index(&self) -> u32 {
        self.hold.index()
    }

    /// Makes the chunk writable again, if this is its only lease and its memory belongs to this process.
    ///
    /// # Errors
    /// The lease itself, if other holders exist.
    #[inline]
    pub fn try_unique(self) -> Result<ChunkMut<M>, Self> {
        if self.hold.is_writable() { Ok(ChunkMut { hold: self.hold }) } else { Err(self) }
    }
}

impl<M> Clone for Lease<M> {
    #[inline]
    fn clone(&self) -> Self {
        Self { hold: self.hold.share() }
    }
}

impl<M> fmt::Debug for ChunkMut<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkMut").field("index", &self.hold.index()).finish_non_exhaustive()
    }
}

impl<M> fmt::Debug for Lease<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("index", &self.hold.index()).finish_non_exhaustive()
    }
}
