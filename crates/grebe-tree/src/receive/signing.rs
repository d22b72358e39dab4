//! Signs existing files that may share data with new ones. Incoming content refers to their chunks.

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender};

use crate::delta::{BasisMap, ChunkSizes, Chunks, GAP_BYTES_MAX, Known, SignatureWriter, sign};
use crate::error::{Error, Result};
use crate::receive::adopting;
use crate::receive::basis::{Basis, ToSign};
use crate::receive::laying::lay;
use crate::receive::pending::PENDING_MAX;
use crate::receive::shared::Receiving;
use crate::stretch::Stretch;
use crate::system;
use crate::wire::{EntryId, FinerRange, Kind, Refine, SignaturePart, SignatureState};

/// Maximum early finer chunks of one file.
const FINER_MAX: usize = 1 << 20;

/// Adds a file to sign. An honest sender lists no more than it awaits content of.
pub(super) fn queue(to_sign: &Sender<ToSign>, file: ToSign) -> Result<()> {
    if to_sign.len() >= PENDING_MAX {
        return Err(Error::Malformed { what: "more names than it sends content for" });
    }
    // The thread is gone only after a failure.
    let _ = to_sign.send(file);
    Ok(())
}

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
    let along = (&receiving.along, receiving.bases.experience());
    lay(receiving, along, file, &basis, writes_along, |laying| {
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
pub(super) enum FinerRequest {
    FinerRange(FinerRange),
    Refine(Refine),
}

/// Runs until no more requests arrive.
pub(super) fn tell_again(receiving: &Receiving, asked: &Receiver<FinerRequest>) {
    for asked in asked {
        let refine = match asked {
            FinerRequest::Refine(refine) => refine,
            FinerRequest::FinerRange(look) => {
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
            return receiving.fail(Error::Malformed { what: "stretches of an unknown file" });
        };
        if basis.is_refined.swap(true, Ordering::Relaxed) {
            return receiving.fail(Error::Malformed { what: "stretches that were requested twice" });
        }
        match tell_stretches(receiving, &basis, &refine) {
            Ok(Some(())) => {}
            Ok(None) => {
                return receiving
                    .fail(Error::Malformed { what: "stretches that the file there does not have" });
            }
            // The sender continues with the part that it has.
            Err(_) => say(receiving, refine.id, SignatureState::Failed, Vec::new()),
        }
    }
}

/// Finer chunks of a range while the signature is in progress; empty if not available. `None`: invalid range.
fn look_at(receiving: &Receiving, look: &FinerRange) -> Option<Vec<u8>> {
    // The sender may have given up on the file.
    let Some(basis) = receiving.bases.get(look.id) else { return Some(Vec::new()) };
    let stretch = basis.map().stretch(look.first, look.chunks)?;
    if stretch.end - stretch.start > GAP_BYTES_MAX {
        return None;
    }
    let reader = Stretch::of(&basis.file, stretch.clone(), || receiving.is_stopped());
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
        let reader = Stretch::of(&basis.file, stretch.clone(), || receiving.is_stopped());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_wait_for_a_signature_are_limited() {
        let file = || ToSign {
            id: 7,
            place: 0,
            name: Box::default(),
            elsewhere: None,
            bytes: 1,
            mode: 0,
            sizes: None,
        };
        let (to_sign, waiting) = crossbeam_channel::unbounded();
        assert!((0..PENDING_MAX).all(|_| queue(&to_sign, file()).is_ok()));
        assert!(queue(&to_sign, file()).is_err());
        waiting.recv().unwrap();
        assert!(queue(&to_sign, file()).is_ok());
    }
}
