//! Files that are there and that a new one may have much of: their signatures are told, and what comes refers to their chunks.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;

use crate::delta::{
    BasisMap, ChunkSizes, Chunks, EARLY_FIRST, Experience, GAP_BYTES_MAX, Known, Run, SignatureWriter, sign,
};
use crate::directories::Place;
use crate::error::Error;
use crate::receive::adopting;
use crate::receive::laying::{LaidFile, lay};
use crate::receive::shared::Receiving;
use crate::system::{self, read_at};
use crate::wire::{EntryId, Kind, Look, Made, MadeWord, Refine, SignaturePart, SignatureState};

/// A file whose signature is to be told.
pub(super) struct ToSign {
    pub(super) id: EntryId,
    pub(super) place: Place,
    pub(super) name: Box<[u8]>,
    /// Where it has another name.
    pub(super) elsewhere: Option<PathBuf>,
    /// Those of the new file, as listed.
    pub(super) bytes: u64,
    pub(super) mode: u16,
    /// `None`: all of it is wanted, and the sender waits for that word.
    pub(super) sizes: Option<ChunkSizes>,
}

/// A file that is there, and where its chunks are.
#[derive(Debug)]
pub(super) struct Basis {
    file: File,
    /// As far as it was read.
    map: Mutex<BasisMap>,
    /// Chunks that were told again early.
    finer: Mutex<BasisMap>,
    /// From when all was read until the new file is begun.
    laid: Mutex<Option<LaidFile>>,
    signature_bytes: AtomicUsize,
    /// Stretches of it are told again once at most.
    is_refined: AtomicBool,
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
    /// Files whose signature is not told yet, and whether they came without it.
    signing: HashMap<EntryId, bool>,
    /// No more comes.
    is_closed: bool,
    experience: Experience,
}

/// Each is an open file. More than a path holds in a round trip, where each costs a signature.
const BASES_MAX: usize = 64;

/// Chunks of one file that are told early.
const FINER_MAX: usize = 1 << 20;

/// As many bytes of signatures wait at the sender at most; one alone may have more.
const SIGNATURE_BYTES_MAX: usize = 64 << 20;

/// Until no more come.
pub(super) fn sign_files(receiving: &Receiving, files: &Receiver<ToSign>) {
    for file in files {
        let is_told = match file.sizes {
            Some(_) if !receiving.bases.wait_for_room(|| receiving.is_stopped()) => return,
            Some(sizes) => tell_signature(receiving, &file, sizes).is_ok(),
            None => false,
        };
        // Where it cannot be read, all of the new one is wanted.
        if !is_told {
            receiving.bases.cannot_be_told(file.id);
            say(receiving, file.id, SignatureState::Failed, Vec::new());
        }
    }
}

fn tell_signature(receiving: &Receiving, file: &ToSign, sizes: ChunkSizes) -> io::Result<()> {
    let open = match &file.elsewhere {
        Some(path) => adopting::open(path)?,
        None => receiving.directories.open(file.place)?.read_file(&file.name, false)?,
    };
    // What lies elsewhere has no path in this tree.
    let path = receiving.directories.path_of(file.place, &file.name);
    let is_kept = receiving.index.is_open() && file.elsewhere.is_none();
    let before = system::metadata(&open)?;
    if is_kept
        && let Some(known) = receiving.index.known(&path, &before)
        && let Some((_, pieces)) = known.signature.filter(|(known, _)| *known == sizes)
        && let Some(map) = BasisMap::of_pieces(sizes, &pieces)
    {
        tell_known(receiving, file.id, open, map, pieces);
        return Ok(());
    }
    // One piece is kept back: the last one says so.
    let (mut held, mut signature_bytes, mut kept) = (Vec::new(), 0, Vec::new());
    let began = Instant::now();
    // Nothing of a signature, and that more follows: so the sender knows that it is to say where things have moved.
    let writes_along = || say(receiving, file.id, SignatureState::Begun, Vec::new());
    let basis = Arc::new(Basis::new(open, BasisMap::default()));
    receiving.bases.begin(file.id, &basis);
    lay(receiving, file, &basis, writes_along, |laying| {
        sign(basis.reader(receiving), sizes, laying, &basis.map, |piece| {
            signature_bytes += piece.len();
            if is_kept {
                kept.push(piece.clone());
            }
            let before = std::mem::replace(&mut held, piece);
            if !before.is_empty() {
                say(receiving, file.id, SignatureState::Begun, before);
            }
            io::Result::Ok(())
        })
    })?;
    receiving.measured.signed(before.bytes, began.elapsed());
    if is_kept && system::metadata(&basis.file)?.is_same_content(&before) {
        let known = Known { hash: None, signature: Some((sizes, kept)) };
        receiving.index.note(&path, &before, known);
    }
    receiving.bases.told(file.id, signature_bytes);
    say(receiving, file.id, SignatureState::Whole, held);
    Ok(())
}

/// Of an earlier run: the file is not read for it.
fn tell_known(receiving: &Receiving, id: EntryId, file: File, map: BasisMap, mut pieces: Vec<Vec<u8>>) {
    let signature_bytes = pieces.iter().map(Vec::len).sum();
    let last = pieces.pop().unwrap_or_default();
    receiving.bases.begin(id, &Arc::new(Basis::new(file, map)));
    receiving.bases.told(id, signature_bytes);
    pieces.into_iter().for_each(|piece| say(receiving, id, SignatureState::Begun, piece));
    say(receiving, id, SignatureState::Whole, last);
}

/// What is to be told again.
pub(super) enum Again {
    Look(Look),
    Refine(Refine),
}

/// Until no more come.
pub(super) fn tell_again(receiving: &Receiving, asked: &Receiver<Again>) {
    for asked in asked {
        let refine = match asked {
            Again::Refine(refine) => refine,
            Again::Look(look) => {
                match look_at(receiving, &look) {
                    Some(piece) => say(receiving, look.id, SignatureState::Finer, piece),
                    None => {
                        return receiving
                            .fail(Error::Malformed { what: "a stretch that the file there does not have" });
                    }
                }
                continue;
            }
        };
        let Some(basis) = receiving.bases.get(refine.id) else {
            return receiving.fail(Error::Malformed { what: "stretches of a file that was not told" });
        };
        if basis.is_refined.swap(true, Ordering::Relaxed) {
            return receiving.fail(Error::Malformed { what: "stretches that were asked for twice" });
        }
        match tell_stretches(receiving, &basis, &refine) {
            Ok(Some(())) => {}
            Ok(None) => {
                return receiving
                    .fail(Error::Malformed { what: "stretches that the file there does not have" });
            }
            // The sender goes by what it knows.
            Err(_) => say(receiving, refine.id, SignatureState::Failed, Vec::new()),
        }
    }
}

/// The finer chunks of a stretch, while the signature still comes; empty where they cannot be had. `None`: there is no such stretch.
fn look_at(receiving: &Receiving, look: &Look) -> Option<Vec<u8>> {
    // The sender may have given the file up.
    let Some(basis) = receiving.bases.get(look.id) else { return Some(Vec::new()) };
    let stretch = basis.map().stretch(look.first, look.chunks)?;
    if stretch.end - stretch.start > GAP_BYTES_MAX {
        return None;
    }
    let reader = Stoppable { at: stretch.start, end: stretch.end, file: &basis.file, receiving };
    let (mut writer, mut lens, mut chunks) =
        (SignatureWriter::new(look.sizes), Vec::new(), Chunks::new(reader, look.sizes));
    loop {
        match chunks.next() {
            Ok(Some((chunk, _))) => {
                lens.push(chunk);
                if writer.push(chunk) {
                    return Some(Vec::new());
                }
            }
            Ok(None) => break,
            Err(_) => return Some(Vec::new()),
        }
    }
    let mut finer = basis.finer.lock().unwrap_or_else(PoisonError::into_inner);
    if finer.len() + lens.len() > FINER_MAX {
        return Some(Vec::new());
    }
    finer.jump(stretch.start);
    lens.into_iter().for_each(|chunk| finer.push(chunk));
    Some(writer.take())
}

/// `None`: there are no such stretches.
fn tell_stretches(receiving: &Receiving, basis: &Basis, refine: &Refine) -> io::Result<Option<()>> {
    let (mut writer, mut lens) = (SignatureWriter::new(refine.sizes), Vec::new());
    for (first, chunks) in &refine.stretches {
        let Some(stretch) = basis.map().stretch(*first, *chunks) else { return Ok(None) };
        let reader = Stoppable { at: stretch.start, end: stretch.end, file: &basis.file, receiving };
        let mut chunks = Chunks::new(reader, refine.sizes);
        while let Some((chunk, _)) = chunks.next()? {
            lens.push(chunk);
            if writer.push(chunk) {
                say(receiving, refine.id, SignatureState::Begun, writer.take());
            }
        }
        let mut map = basis.map();
        map.jump(stretch.start);
        lens.drain(..).for_each(|chunk| map.push(chunk));
    }
    say(receiving, refine.id, SignatureState::Whole, writer.take());
    Ok(Some(()))
}

fn say(receiving: &Receiving, id: EntryId, state: SignatureState, piece: Vec<u8>) {
    receiving.say(Kind::Signature, SignaturePart { id, state, piece }.encode());
}

impl Basis {
    fn new(file: File, map: BasisMap) -> Self {
        let (finer, laid) = (Mutex::default(), Mutex::default());
        let signature_bytes = AtomicUsize::new(0);
        Self { file, map: Mutex::new(map), finer, laid, signature_bytes, is_refined: AtomicBool::new(false) }
    }

    /// Where a run's chunks are, and the run as that has it.
    pub(super) fn place_of(&self, run: &Run) -> (MutexGuard<'_, BasisMap>, Run) {
        match run.first.checked_sub(EARLY_FIRST) {
            Some(first) => (self.finer.lock().unwrap_or_else(PoisonError::into_inner), Run { first, ..*run }),
            None => (self.map(), *run),
        }
    }

    /// Leaves the new file, of which some is there.
    pub(super) fn leave(&self, laid: LaidFile) {
        *self.laid.lock().unwrap_or_else(PoisonError::into_inner) = Some(laid);
    }

    /// Content came before the plan. What cannot be written comes again, and fails then.
    pub(super) fn early(&self, at: u64, content: &[u8]) {
        if let Some(laid) = &mut *self.laid.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = laid.add(at, content);
        }
    }

    /// The new file with what lies in it; there is one of it.
    pub(super) fn take_laid(&self) -> Option<LaidFile> {
        self.laid.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn map(&self) -> MutexGuard<'_, BasisMap> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn reader<'a>(&'a self, receiving: &'a Receiving) -> Stoppable<'a> {
        Stoppable { file: &self.file, receiving, at: 0, end: u64::MAX }
    }
}

impl Bases {
    pub(super) fn get(&self, id: EntryId) -> Option<Arc<Basis>> {
        self.lock().open.get(&id).cloned()
    }

    /// Nothing more refers to a file.
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

    /// A signature will be told.
    pub(super) fn will_be_told(&self, id: EntryId) {
        self.lock().signing.insert(id, false);
    }

    fn cannot_be_told(&self, id: EntryId) {
        let mut state = self.lock();
        state.signing.remove(&id);
        state.open.remove(&id);
    }

    /// The sender has said everything: whoever waits for room waits in vain.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.fewer.notify_all();
    }

    /// What a file was made of teaches whether to compare the next one.
    pub(super) fn learn(&self, bytes: u64, copied_bytes: u64) {
        self.lock().experience.add(bytes, copied_bytes);
    }

    pub(super) fn experience(&self) -> Experience {
        self.lock().experience
    }

    /// Says whether a file could be made of what was there; what could not comes again.
    pub(super) fn made(&self, receiving: &Receiving, id: EntryId, word: MadeWord) {
        receiving.say(Kind::Made, Made { id, word }.encode());
    }

    /// What follows may refer to it.
    fn begin(&self, id: EntryId, basis: &Arc<Basis>) {
        let mut state = self.lock();
        if state.signing.remove(&id) != Some(true) {
            state.open.insert(id, basis.clone());
        }
    }

    /// All of its signature was told.
    fn told(&self, id: EntryId, signature_bytes: usize) {
        let state = &mut *self.lock();
        if let Some(basis) = state.open.get(&id) {
            basis.signature_bytes.store(signature_bytes, Ordering::Relaxed);
            state.signature_bytes += signature_bytes;
        }
    }

    /// `false`: the copy is over.
    fn wait_for_room(&self, is_stopped: impl Fn() -> bool) -> bool {
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

/// Reads some of a file, by places of its own, until the copy is stopped.
pub(super) struct Stoppable<'a> {
    file: &'a File,
    receiving: &'a Receiving,
    at: u64,
    end: u64,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.receiving.is_stopped() {
            return Err(io::Error::other("stopped"));
        }
        let room = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(out.len());
        let read = read_at(self.file, &mut out[..room], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Stoppable<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(at) = to else { return Err(io::ErrorKind::Unsupported.into()) };
        self.at = at;
        Ok(at)
    }
}
