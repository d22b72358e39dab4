//! Index of a tree for several threads; inactive unless requested.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::index::{FileIdentity, Index, Known};
use crate::system::Metadata;

/// Knows and keeps nothing until it is [opened](Self::open).
#[derive(Debug, Default)]
pub(crate) struct SharedIndex(Mutex<Option<Index>>);

impl SharedIndex {
    /// Opens the index of a tree.
    ///
    /// # Errors
    /// As those of [`Index::of_tree`]. The index then stays inactive.
    pub(crate) fn open(&self, tree: &Path) -> io::Result<()> {
        let index = Index::of_tree(tree)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(index);
        Ok(())
    }

    /// Returns the record of a file with this `metadata`.
    pub(crate) fn known(&self, path: &[u8], metadata: &Metadata) -> Option<Known> {
        let mut index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        index.as_mut()?.known(path, &FileIdentity::of(metadata))
    }

    /// Keeps results for a file whose metadata were `metadata` before and after reading.
    pub(crate) fn note(&self, path: &[u8], metadata: &Metadata, known: Known) {
        if let Some(index) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            index.note(path, &FileIdentity::of(metadata), known);
        }
    }

    /// Whether signatures and hashes are kept.
    pub(crate) fn is_open(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Writes the index to the disk.
    ///
    /// # Errors
    /// The first error that kept a record from being written.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let index = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        index.map_or(Ok(()), Index::finish)
    }
}
