//! Existing files that share data with new ones, while both ends need them.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::delta::{BasisMap, ChunkSizes, EARLY_FIRST, Experience, Run};
use crate::directories::Place;
use crate::receive::laid_file::LaidFile;
use crate::receive::session::Session;
use crate::stretch::Stretch;
use crate::wire::EntryId;

/// A file to sign.
pub(super) struct ToSign {
    pub(super) id: EntryId,
    pub(super) place: Place,
    pub(super) name: Box<[u8]>,
    /// Path of the basis, if it has another name.
    pub(super) elsewhere: Option<PathBuf>,
    /// Fields of the new file, as listed.
    pub(super) bytes: u64,
    pub(super) mode: u16,
    /// `None`: the whole file is wanted, and the sender waits for that message.
    pub(super) sizes: Option<ChunkSizes>,
}

/// An existing file, and the places of its chunks.
#[derive(Debug)]
pub(super) struct Basis {
    pub(super) file: File,
    /// Map of the part read so far.
    pub(super) map: Mutex<BasisMap>,
    /// Early finer chunks.
    pub(super) finer: Mutex<BasisMap>,
    /// Present from the end of the signature until the new file is started.
    laid: Mutex<Option<LaidFile>>,
    signature_bytes: AtomicUsize,
    /// Finer chunks of ranges are sent at most once.
    pub(super) is_refined: AtomicBool,
}

/// Signed files that are still in use.
#[derive(Debug, Default)]
pub(super) struct Bases {
    state: Mutex<State>,
    fewer: Condvar,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<EntryId, Arc<Basis>>,
    signature_bytes: usize,
    /// Files whose signature is not complete, and whether their content arrived without it.
    signing: HashMap<EntryId, bool>,
    /// The sender has sent everything.
    is_closed: bool,
    experience: Experience,
}

/// Maximum open files. More than a path holds in a round trip, because each costs a signature.
const BASES_MAX: usize = 64;

/// Maximum signature bytes that wait at the sender; a single one may exceed it.
const SIGNATURE_BYTES_MAX: usize = 64 << 20;

impl Basis {
    pub(super) fn new(file: File, map: BasisMap) -> Self {
        let (finer, laid) = (Mutex::default(), Mutex::default());
        let signature_bytes = AtomicUsize::new(0);
        Self { file, map: Mutex::new(map), finer, laid, signature_bytes, is_refined: AtomicBool::new(false) }
    }

    /// Map that contains a run's chunks, and the run in the numbers of that map.
    pub(super) fn place_of(&self, run: &Run) -> (MutexGuard<'_, BasisMap>, Run) {
        match run.first.checked_sub(EARLY_FIRST) {
            Some(first) => (self.finer.lock().unwrap_or_else(PoisonError::into_inner), Run { first, ..*run }),
            None => (self.map(), *run),
        }
    }

    /// Leaves the new file with the data written ahead.
    pub(super) fn leave(&self, laid: LaidFile) {
        *self.laid.lock().unwrap_or_else(PoisonError::into_inner) = Some(laid);
    }

    /// Takes data that arrived before the plan. If the write fails, the data is sent again later.
    pub(super) fn early(&self, at: u64, content: &[u8]) {
        if let Some(laid) = &mut *self.laid.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = laid.add(at, content);
        }
    }

    /// Takes the new file with the data written ahead, once.
    pub(super) fn take_laid(&self) -> Option<LaidFile> {
        self.laid.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn map(&self) -> MutexGuard<'_, BasisMap> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn reader<'a>(&'a self, session: &'a Session) -> Stretch<'a, impl Fn() -> bool + 'a> {
        Stretch::whole(&self.file, || session.is_stopped())
    }
}

impl Bases {
    pub(super) fn get(&self, id: EntryId) -> Option<Arc<Basis>> {
        self.lock().open.get(&id).cloned()
    }

    /// Ends the use of a file.
    pub(super) fn done(&self, id: EntryId) {
        let mut state = self.lock();
        if let Some(basis) = state.open.remove(&id) {
            state.signature_bytes -= basis.signature_bytes.load(Ordering::Relaxed);
            self.fewer.notify_all();
        } else if let Some(came) = state.signing.get_mut(&id) {
            // The sender gave up before it had the signature.
            *came = true;
        }
    }

    /// Announces a signature.
    pub(super) fn will_be_told(&self, id: EntryId) {
        self.lock().signing.insert(id, false);
    }

    pub(super) fn cannot_be_told(&self, id: EntryId) {
        let mut state = self.lock();
        state.signing.remove(&id);
        state.open.remove(&id);
    }

    /// Notes that the sender has sent everything, so nobody waits for room.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.fewer.notify_all();
    }

    /// Learns from the common share of a file.
    pub(super) fn learn(&self, bytes: u64, copied_bytes: u64) {
        self.lock().experience.add(bytes, copied_bytes);
    }

    pub(super) fn experience(&self) -> Experience {
        self.lock().experience
    }

    /// Makes a basis available to incoming content.
    pub(super) fn begin(&self, id: EntryId, basis: &Arc<Basis>) {
        let mut state = self.lock();
        if state.signing.remove(&id) != Some(true) {
            state.open.insert(id, basis.clone());
        }
    }

    /// Notes that a signature was sent completely.
    pub(super) fn told(&self, id: EntryId, signature_bytes: usize) {
        let state = &mut *self.lock();
        if let Some(basis) = state.open.get(&id) {
            basis.signature_bytes.store(signature_bytes, Ordering::Relaxed);
            state.signature_bytes += signature_bytes;
        }
    }

    /// `false`: the copy is over.
    pub(super) fn wait_for_room(&self, is_stopped: impl Fn() -> bool) -> bool {
        let mut state = self.lock();
        while state.open.len() >= BASES_MAX || state.signature_bytes >= SIGNATURE_BYTES_MAX {
            if is_stopped() || state.is_closed {
                return false;
            }
            let waited = self.fewer.wait_timeout(state, Duration::from_millis(100));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
