//! Files that are there and that a new one may have much of: their signatures are told, and what comes refers to their chunks.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_channel::Receiver;

use crate::delta::{BasisMap, ChunkSizes, Experience, sign};
use crate::directories::Place;
use crate::receive::adopting;
use crate::receive::shared::Receiving;
use crate::wire::{EntryId, Kind, Made, SignaturePart, SignatureState};

/// A file whose signature is to be told.
pub(super) struct ToSign {
    pub(super) id: EntryId,
    pub(super) place: Place,
    pub(super) name: Box<[u8]>,
    /// Where it has another name.
    pub(super) elsewhere: Option<PathBuf>,
    pub(super) sizes: ChunkSizes,
}

/// A file that is there, and where its chunks are.
#[derive(Debug)]
pub(super) struct Basis {
    pub(super) file: File,
    pub(super) map: BasisMap,
    signature_bytes: usize,
}

/// What was told and is not used up.
#[derive(Debug, Default)]
pub(super) struct Bases {
    state: Mutex<State>,
    fewer: Condvar,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<EntryId, Arc<Basis>>,
    signature_bytes: usize,
    /// Files of which all is to come again.
    again: HashSet<EntryId>,
    experience: Experience,
}

/// Each is an open file. More than a path holds in a round trip, where each costs a signature.
const BASES_MAX: usize = 64;

/// As many bytes of signatures wait at the sender at most; one alone may have more.
const SIGNATURE_BYTES_MAX: usize = 64 << 20;

/// Until no more come.
pub(super) fn sign_files(receiving: &Receiving, files: &Receiver<ToSign>) {
    for file in files {
        if !receiving.bases.wait_for_room(|| receiving.is_stopped()) {
            return;
        }
        // Where it cannot be read, all of the new one is wanted.
        if tell_signature(receiving, &file).is_err() {
            say(receiving, file.id, SignatureState::Failed, Vec::new());
        }
    }
}

fn tell_signature(receiving: &Receiving, file: &ToSign) -> io::Result<()> {
    let open = match &file.elsewhere {
        Some(path) => adopting::open(path)?,
        None => receiving.directories.open(file.place)?.read_file(&file.name, false)?,
    };
    // One piece is kept back: the last one says so.
    let (mut held, mut signature_bytes) = (Vec::new(), 0);
    let map = sign(Stoppable { file: &open, receiving }, file.sizes, |piece| {
        signature_bytes += piece.len();
        let before = std::mem::replace(&mut held, piece);
        if !before.is_empty() {
            say(receiving, file.id, SignatureState::Begun, before);
        }
        io::Result::Ok(())
    })?;
    receiving.bases.add(file.id, Basis { file: open, map, signature_bytes });
    say(receiving, file.id, SignatureState::Whole, held);
    Ok(())
}

fn say(receiving: &Receiving, id: EntryId, state: SignatureState, piece: Vec<u8>) {
    receiving.say(Kind::Signature, SignaturePart { id, state, piece }.encode());
}

impl Bases {
    pub(super) fn get(&self, id: EntryId) -> Option<Arc<Basis>> {
        self.lock().open.get(&id).cloned()
    }

    /// Nothing more refers to a file.
    pub(super) fn done(&self, id: EntryId) {
        let mut state = self.lock();
        if let Some(basis) = state.open.remove(&id) {
            state.signature_bytes -= basis.signature_bytes;
            self.fewer.notify_all();
        }
    }

    /// What a file was made of teaches whether to compare the next one.
    pub(super) fn learn(&self, bytes: u64, copied_bytes: u64) {
        self.lock().experience.add(bytes, copied_bytes);
    }

    pub(super) fn experience(&self) -> Experience {
        self.lock().experience
    }

    /// Says whether a file could be made of what was there; if not, all of it comes again.
    pub(super) fn made(&self, receiving: &Receiving, id: EntryId, is_good: bool) {
        if !is_good {
            self.lock().again.insert(id);
        }
        receiving.say(Kind::Made, Made { id, is_good }.encode());
    }

    /// Whether a file is to come again; asked once, when it does.
    pub(super) fn comes_again(&self, id: EntryId) -> bool {
        self.lock().again.remove(&id)
    }

    fn add(&self, id: EntryId, basis: Basis) {
        let mut state = self.lock();
        state.signature_bytes += basis.signature_bytes;
        state.open.insert(id, Arc::new(basis));
    }

    /// `false`: the copy is over.
    fn wait_for_room(&self, is_stopped: impl Fn() -> bool) -> bool {
        let mut state = self.lock();
        while state.open.len() >= BASES_MAX || state.signature_bytes >= SIGNATURE_BYTES_MAX {
            if is_stopped() {
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

struct Stoppable<'a> {
    file: &'a File,
    receiving: &'a Receiving,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.receiving.is_stopped() {
            return Err(io::Error::other("stopped"));
        }
        self.file.read(out)
    }
}
