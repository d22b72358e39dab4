//! Chunks of memory that another process owns.

use std::fmt;
use std::ptr::NonNull;

use super::lease::Lease;
use super::shared::Shared;
use crate::memory::Memory;

/// Chunks of memory that another process owns and this one may only read.
///
/// The counterpart of [`Pool`](crate::Pool) at the other end of shared memory: whoever learns that chunk `i` has been lent to
/// this process calls [`lease`](Import::lease); when the last lease is gone, `home(i)` is called, on the thread that
/// dropped it.
pub struct Import<M> {
    shared: NonNull<Shared<M>>,
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
        let mut hold = Shared::take_lent(self.shared, index)?;
        // SAFETY: it is the only hold on the chunk.
        let (bytes, meta) = unsafe { hold.meta_mut() };
        describe(meta, bytes);
        Some(Lease::new(hold))
    }
}

impl<M> Drop for Import<M> {
    fn drop(&mut self) {
        Shared::close(self.shared);
    }
}

// SAFETY: as for `Pool`.
unsafe impl<M: Send + Sync> Send for Import<M> {}
// SAFETY: as for `Pool`.
unsafe impl<M: Send + Sync> Sync for Import<M> {}

impl<M> fmt::Debug for Import<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Import").finish_non_exhaustive()
    }
}
