//! Writes the data read for a signature ahead into the new file, on its own thread.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded, select};

use crate::delta::{Block, Experience, Laid, Laying};
use crate::receive::basis::{Basis, ToSign};
use crate::receive::laid_file::{LaidFile, write, write_early};
use crate::receive::session::Session;
use crate::wire::EntryId;

/// The file being written ahead, and the sender's messages about it.
#[derive(Debug, Default)]
pub(super) struct Along(Mutex<Option<Begun>>);

#[derive(Debug)]
struct Begun {
    id: EntryId,
    shift: Arc<AtomicI64>,
    early: Sender<Early>,
}

/// Data that arrived before the plan, and its place.
#[derive(Debug)]
struct Early {
    body: Arc<Vec<u8>>,
    content: Range<usize>,
    at: u64,
}

/// Minimum length; a shorter file is copied before a thread starts.
const LAID_BYTES_MIN: u64 = 4 << 20;

/// Minimum common share of earlier files; below it, most writes would be useless.
const COMMON_SHARE_MIN: f64 = 0.5;

/// Runs `sign` with a writer for its data. Leaves the new file with the basis, if all writes succeeded.
pub(super) fn lay<E>(
    session: &Session,
    (along, experience): (&Along, Experience),
    file: &ToSign,
    basis: &Basis,
    begun: impl FnOnce(),
    sign: impl FnOnce(Option<&mut Laying<'_>>) -> Result<(), E>,
) -> Result<(), E> {
    let pays = file.bytes >= LAID_BYTES_MIN && experience.share() >= COMMON_SHARE_MIN;
    let new = pays.then(|| LaidFile::create(session, file.place, file.mode, file.bytes).ok()).flatten();
    let Some(mut new) = new else { return sign(None) };
    let (blocks_in, blocks) = bounded(BLOCKS_MAX);
    let (spare, spare_out) = bounded(BLOCKS_MAX);
    let (early_in, early) = bounded(EARLY_MAX);
    let shift = along.begin(file.id, early_in);
    begun();
    std::thread::scope(|scope| {
        let open = &new.open;
        let writing = scope.spawn(move || write_all(open, &blocks, &spare, &early));
        let mut laying = Laying::new(&shift, file.bytes, blocks_in, spare_out);
        let signed = sign(Some(&mut laying));
        // The writer ends with the last block, and with early data until then.
        drop(laying);
        let mut along = along.lock();
        *along = None;
        let laid = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        signed.map(|()| laid.map(|laid| (laid, along)))
    })
    .map(|laid| {
        // Failed writes are repeated later by a copy, or fail then. From now on, early data goes to the
        // basis.
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

/// One is written while the next one is read.
const BLOCKS_MAX: usize = 2;

/// Maximum unwritten early pieces.
const EARLY_MAX: usize = 16;

impl Along {
    fn begin(&self, id: EntryId, early: Sender<Early>) -> Arc<AtomicI64> {
        let shift = Arc::new(AtomicI64::new(0));
        *self.lock() = Some(Begun { id, shift: shift.clone(), early });
        shift
    }

    /// Passes on a shift of the sender. Ignored if the file is no longer written ahead.
    pub(super) fn shift(&self, id: EntryId, bytes: i64) {
        if let Some(begun) = self.lock().as_ref().filter(|begun| begun.id == id) {
            begun.shift.store(bytes, Ordering::Relaxed);
        }
    }

    /// Takes data that arrived before the plan. `false`: the file is no longer written ahead.
    pub(super) fn early(&self, id: EntryId, body: &Arc<Vec<u8>>, content: Range<usize>, at: u64) -> bool {
        let along = self.lock();
        let Some(begun) = along.as_ref().filter(|begun| begun.id == id) else { return false };
        // A writer that has given up loses the data, which is then sent again.
        let _ = begun.early.send(Early { body: body.clone(), content, at });
        true
    }

    fn lock(&self) -> MutexGuard<'_, Option<Begun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
