//! What is read for a signature goes on into the new file, by a thread of its own.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded, select};

use crate::delta::{Block, Laid, Laying};
use crate::receive::partial::Temporary;
use crate::receive::shared::Receiving;
use crate::receive::signing::{Basis, ToSign};
use crate::system::{self, Directory};
use crate::wire::{EntryId, short};

/// A new file under a name of ours, with what lies in it.
#[derive(Debug)]
pub(super) struct LaidFile {
    /// Its length, as listed.
    bytes: u64,
    open: File,
    temporary: Temporary,
    pub(super) laid: Laid,
}

/// The file that is being laid, and what its sender says of it meanwhile.
#[derive(Debug, Default)]
pub(super) struct Along(Mutex<Option<Begun>>);

#[derive(Debug)]
struct Begun {
    id: EntryId,
    shift: Arc<AtomicI64>,
    early: Sender<Early>,
}

/// Content that came before the plan, and where it belongs.
#[derive(Debug)]
struct Early {
    body: Arc<Vec<u8>>,
    content: Range<usize>,
    at: u64,
}

/// A shorter one is copied sooner than a thread begins.
const LAID_BYTES_MIN: u64 = 4 << 20;

/// Where less was in common so far, most of what would be written is in vain.
const COMMON_SHARE_MIN: f64 = 0.5;

/// Zeros of this length stay holes.
const STEP_BYTES: usize = 64 << 10;

impl LaidFile {
    /// A new file to write along into; `None` where that is not worth it, or not possible.
    fn create(receiving: &Receiving, file: &ToSign) -> Option<Self> {
        if file.bytes < LAID_BYTES_MIN || receiving.bases.experience().share() < COMMON_SHARE_MIN {
            return None;
        }
        let into = receiving.directories.open(file.place).ok()?;
        let (open, temporary) = receiving.partial.create(&into, file.mode).ok()?;
        Some(Self { bytes: file.bytes, open, temporary, laid: Laid::default() })
    }

    /// Under the name that it has.
    pub(super) fn take(self) -> (File, Temporary) {
        (self.open, self.temporary)
    }

    /// Under another name, which nothing has.
    pub(super) fn rename(mut self, to: &Directory, name: &[u8]) -> io::Result<File> {
        self.temporary.rename(to, name)?;
        Ok(self.open)
    }

    /// Lays content that came before the plan.
    pub(super) fn add(&mut self, at: u64, content: &[u8]) -> io::Result<()> {
        // What lies behind its end is of no use.
        if at.saturating_add(content.len() as u64) > self.bytes {
            return Ok(());
        }
        write_early(&self.open, &mut self.laid, at, content)
    }
}

/// Has a signature made by `sign`, which is given what writes along. The file that came of it is left with the basis, if all could be
/// written.
pub(super) fn lay<E>(
    receiving: &Receiving,
    file: &ToSign,
    basis: &Basis,
    begun: impl FnOnce(),
    sign: impl FnOnce(Option<&mut Laying<'_>>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(mut new) = LaidFile::create(receiving, file) else { return sign(None) };
    let (blocks_in, blocks) = bounded(BLOCKS_MAX);
    let (spare, spare_out) = bounded(BLOCKS_MAX);
    let (early_in, early) = bounded(EARLY_MAX);
    let shift = receiving.along.begin(file.id, early_in);
    begun();
    std::thread::scope(|scope| {
        let open = &new.open;
        let writing = scope.spawn(move || write_all(open, &blocks, &spare, &early));
        let mut laying = Laying::new(&shift, file.bytes, blocks_in, spare_out);
        let signed = sign(Some(&mut laying));
        // The writer ends with the last block, and with what came early until then.
        drop(laying);
        let mut along = receiving.along.lock();
        *along = None;
        let laid = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        signed.map(|()| laid.map(|laid| (laid, along)))
    })
    .map(|laid| {
        // What could not be written is copied later, or fails then. What comes early goes there from now on.
        if let Ok((laid, _along)) = laid {
            new.laid = laid;
            basis.leave(new);
        }
    })
}

fn write_all(
    open: &File,
    blocks: &Receiver<Block>,
    spare: &Sender<Vec<u8>>,
    early: &Receiver<Early>,
) -> io::Result<Laid> {
    for _ in 0..BLOCKS_MAX {
        let _ = spare.send(Vec::new());
    }
    let mut laid = Laid::default();
    loop {
        select! {
            recv(blocks) -> block => match block {
                Ok(block) => {
                    write_block(open, &mut laid, &block)?;
                    let _ = spare.send(block.buffer);
                }
                Err(_) => break,
            },
            recv(early) -> piece => match piece {
                Ok(piece) => write_early(open, &mut laid, piece.at, &piece.body[piece.content])?,
                Err(_) => break,
            },
        }
    }
    for block in blocks {
        write_block(open, &mut laid, &block)?;
        let _ = spare.send(block.buffer);
    }
    for piece in early {
        write_early(open, &mut laid, piece.at, &piece.body[piece.content])?;
    }
    Ok(laid)
}

fn write_block(open: &File, laid: &mut Laid, block: &Block) -> io::Result<()> {
    let bytes: usize = block.chunks.iter().map(|chunk| chunk.len as usize).sum();
    write(open, block.at, &block.buffer[..bytes], laid.end())?;
    let mut at = block.at;
    for chunk in &block.chunks {
        let end = at + u64::from(chunk.len);
        laid.add(at..end, chunk.hash);
        at = end;
    }
    Ok(())
}

fn write_early(open: &File, laid: &mut Laid, at: u64, content: &[u8]) -> io::Result<()> {
    write(open, at, content, laid.end())?;
    laid.add(at..at + content.len() as u64, short(&blake3::hash(content)));
    Ok(())
}

/// From `end` on nothing was written: a hole reads as zeros do.
fn write(open: &File, mut at: u64, bytes: &[u8], end: u64) -> io::Result<()> {
    for bytes in bytes.chunks(STEP_BYTES) {
        if at < end || bytes.iter().any(|byte| *byte != 0) {
            system::write_all_at(open, bytes, at)?;
        }
        at += bytes.len() as u64;
    }
    Ok(())
}

/// One is written while the next one is read.
const BLOCKS_MAX: usize = 2;

/// Pieces that came early and are not written.
const EARLY_MAX: usize = 16;

impl Along {
    fn begin(&self, id: EntryId, early: Sender<Early>) -> Arc<AtomicI64> {
        let shift = Arc::new(AtomicI64::new(0));
        *self.lock() = Some(Begun { id, shift: shift.clone(), early });
        shift
    }

    /// The sender has said where things have moved; of a file that is no longer written along it comes too late.
    pub(super) fn shift(&self, id: EntryId, bytes: i64) {
        if let Some(begun) = self.lock().as_ref().filter(|begun| begun.id == id) {
            begun.shift.store(bytes, Ordering::Relaxed);
        }
    }

    /// Content came before the plan; `false`: the file is not written along any more.
    pub(super) fn early(&self, id: EntryId, body: &Arc<Vec<u8>>, content: Range<usize>, at: u64) -> bool {
        let along = self.lock();
        let Some(begun) = along.as_ref().filter(|begun| begun.id == id) else { return false };
        // A writer that has given up loses it: it comes again.
        let _ = begun.early.send(Early { body: body.clone(), content, at });
        true
    }

    fn lock(&self) -> MutexGuard<'_, Option<Begun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
