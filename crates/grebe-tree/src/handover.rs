//! Files that pass from one end to the other in one process.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::directories::{Directories, Place};
use crate::wire::EntryId;

/// Files that the sender hands over to the receiver.
#[derive(Debug, Clone, Default)]
pub(crate) struct Handover {
    directories: Arc<Directories>,
    files: Arc<Mutex<HashMap<EntryId, Handed>>>,
}

#[derive(Debug)]
struct Handed {
    place: Place,
    name: Box<[u8]>,
    follows: bool,
}

impl Handover {
    pub(crate) fn directories(&self) -> Arc<Directories> {
        self.directories.clone()
    }

    pub(crate) fn put(&self, id: EntryId, place: Place, name: &[u8], follows: bool) {
        let handed = Handed { place, name: name.into(), follows };
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(id, handed);
    }

    /// Opens a file that was handed over.
    pub(crate) fn take(&self, id: EntryId) -> io::Result<File> {
        let handed = self.files.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        let handed = handed.ok_or(io::ErrorKind::NotFound)?;
        self.directories.open(handed.place)?.read_file(&handed.name, handed.follows)
    }
}
