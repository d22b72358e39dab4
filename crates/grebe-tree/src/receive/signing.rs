//! Signs existing files that may share data with new ones. Incoming content refers to their chunks.

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
    file: File,
    /// Map of the part read so far.
    map: Mutex<BasisMap>,
    /// Early finer chunks.
    finer: Mutex<BasisMap>,
    /// Present from the end of the signature until the new file is started.
    laid: Mutex<Option<LaidFile>>,
    signature_bytes: AtomicUsize,
    /// Finer chunks of ranges are sent at most once.
    is_refined: AtomicBool,
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

/// Maximum early finer chunks of one file.
const FINER_MAX: usize = 1 << 20;

/// Maximum signature bytes that wait at the sender; a single one may exceed it.
const SIGNATURE_BYTES_MAX: usize = 64 << 20;

/// Runs until no more files arrive.
pub(super) fn sign_files(receiving: &Receiving, files: &Receiver<ToSign>) {
    for file in files {
        let is_told = match file.sizes {
            Some(_) if !receiving.bases.wait_for_room(|| receiving.is_stopped()) => return,
            Some(sizes) => tell_signature(receiving, &file, sizes).is_ok(),
            None => false,
        };
        // If it is unreadable, the whole new file is wanted.
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
    // A file elsewhere has no path in this tree.
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
    // One piece is held back, because the last one carries the end flag.
    let (mut held, mut signature_bytes, mut kept) = (Vec::new(), 0, Vec::new());
    let began = Instant::now();
    // An empty piece announces more, so that the sender knows to report shifts.
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

/// Sends a signature from an earlier run, without reading the file.
fn tell_known(receiving: &Receiving, id: EntryId, file: File, map: BasisMap, mut pieces: Vec<Vec<u8>>) {
    let signature_bytes = pieces.iter().map(Vec::len).sum();
    let last = pieces.pop().unwrap_or_default();
    receiving.bases.begin(id, &Arc::new(Basis::new(file, map)));
    receiving.bases.told(id, signature_bytes);
    pieces.into_iter().for_each(|piece| say(receiving, id, SignatureState::Begun, piece));
    say(receiving, id, SignatureState::Whole, last);
}

/// Request for finer chunks.
pub(super) enum Again {
    Look(Look),
    Refine(Refine),
}

/// Runs until no more requests arrive.
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
            // The sender continues with what it has.
            Err(_) => say(receiving, refine.id, SignatureState::Failed, Vec::new()),
        }
    }
}

/// Finer chunks of a range while the signature is in progress; empty if not available. `None`: invalid range.
fn look_at(receiving: &Receiving, look: &Look) -> Option<Vec<u8>> {
    // The sender may have given up on the file.
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

/// `None`: invalid ranges.
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

    fn cannot_be_told(&self, id: EntryId) {
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

    /// Reports whether a file could be made from its basis. Failed ranges are sent again.
    pub(super) fn made(&self, receiving: &Receiving, id: EntryId, word: MadeWord) {
        receiving.say(Kind::Made, Made { id, word }.encode());
    }

    /// Makes a basis available to incoming content.
    fn begin(&self, id: EntryId, basis: &Arc<Basis>) {
        let mut state = self.lock();
        if state.signing.remove(&id) != Some(true) {
            state.open.insert(id, basis.clone());
        }
    }

    /// Notes that a signature was sent completely.
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

/// Reads ranges of a file by offset until the copy is stopped.
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
