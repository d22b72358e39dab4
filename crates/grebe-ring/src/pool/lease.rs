//! The two handles on a chunk: one to write it, any number to read it.

use std::fmt;

use super::shared::Hold;

/// A chunk with one owner, who may write to it.
pub struct ChunkMut<M> {
    hold: Hold<M>,
}

/// A share in a chunk that nobody writes to any more. Cloning it costs one atomic increment.
pub struct Lease<M> {
    hold: Hold<M>,
}

impl<M> ChunkMut<M> {
    /// The chunk of a pool that was just taken: `hold` is the only one.
    pub(super) fn new(hold: Hold<M>) -> Self {
        Self { hold }
    }

    /// The whole chunk; what was never written reads as zero or as what the chunk held before.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.hold.bytes()
    }

    /// The whole chunk, to write.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.parts_mut().0
    }

    /// What rides with the chunk.
    #[inline]
    pub fn meta(&self) -> &M {
        self.hold.meta()
    }

    /// What rides with the chunk, to write. It still holds what the last user left there.
    #[inline]
    pub fn meta_mut(&mut self) -> &mut M {
        self.parts_mut().1
    }

    /// Bytes and metadata, both to write.
    #[inline]
    pub fn parts_mut(&mut self) -> (&mut [u8], &mut M) {
        // SAFETY: a ChunkMut has the only hold on its chunk (it is no clone and cannot be cloned), and no chunk of an import
        // becomes a ChunkMut.
        unsafe { self.hold.parts_mut() }
    }

    /// Which chunk of the pool this is.
    pub fn index(&self) -> u32 {
        self.hold.index()
    }

    /// Ends writing; from here on the chunk can be shared.
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

    /// What rides with the chunk.
    #[inline]
    pub fn meta(&self) -> &M {
        self.hold.meta()
    }

    /// Which chunk of the pool this is.
    pub fn index(&self) -> u32 {
        self.hold.index()
    }

    /// The chunk to write again, where this is its only lease and its memory is this process's own.
    ///
    /// # Errors
    /// The lease itself, where someone else holds one too.
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
