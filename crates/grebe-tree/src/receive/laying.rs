//! What is read for a signature goes on into the new file, by a thread of its own.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::delta::{BasisMap, Block, Laid, Laying};
use crate::receive::partial::Temporary;
use crate::receive::shared::Receiving;
use crate::receive::signing::ToSign;
use crate::system::{self, Directory};
use crate::wire::EntryId;

/// A new file under a name of ours, with what lies in it.
#[derive(Debug)]
pub(super) struct LaidFile {
    open: File,
    temporary: Temporary,
    pub(super) laid: Laid,
    /// It is a part now.
    is_taken: bool,
}

/// The file that is being laid, and what its sender says of where things have moved.
#[derive(Debug, Default)]
pub(super) struct Shifts(Mutex<Option<(EntryId, Arc<AtomicI64>)>>);

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
        Some(Self { open, temporary, laid: Laid::default(), is_taken: false })
    }

    /// Under the name that it has.
    pub(super) fn take(mut self) -> io::Result<(File, Temporary)> {
        let open = self.open.try_clone()?;
        self.is_taken = true;
        let Temporary { directory, name } = &self.temporary;
        Ok((open, Temporary { directory: directory.clone(), name: name.clone() }))
    }

    /// Under another name, which nothing has.
    pub(super) fn rename(mut self, to: &Directory, name: &[u8]) -> io::Result<File> {
        let open = self.open.try_clone()?;
        self.temporary.directory.rename(&self.temporary.name, to, name)?;
        self.is_taken = true;
        Ok(open)
    }
}

impl Drop for LaidFile {
    fn drop(&mut self) {
        if !self.is_taken {
            let _ = self.temporary.directory.remove_file(&self.temporary.name);
        }
    }
}

/// Has a signature made by `sign`, which is given what writes along. The file that came of it, if all could be written.
pub(super) fn lay<E>(
    receiving: &Receiving,
    file: &ToSign,
    begun: impl FnOnce(),
    sign: impl FnOnce(Option<&mut Laying<'_>>) -> Result<BasisMap, E>,
) -> Result<(BasisMap, Option<LaidFile>), E> {
    let Some(mut new) = LaidFile::create(receiving, file) else {
        return sign(None).map(|map| (map, None));
    };
    begun();
    let shift = receiving.shifts.begin(file.id);
    let (blocks_in, blocks) = bounded(BLOCKS_MAX);
    let (spare, spare_out) = bounded(BLOCKS_MAX);
    let signed: Result<_, E> = std::thread::scope(|scope| {
        let open = &new.open;
        let writing = scope.spawn(move || write_blocks(open, &blocks, &spare));
        let mut laying = Laying::new(&shift, file.bytes, blocks_in, spare_out);
        let map = sign(Some(&mut laying))?;
        // The writer ends with the last block.
        drop(laying);
        let laid = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((map, laid.ok()))
    });
    receiving.shifts.end();
    let (map, laid) = signed?;
    // What could not be written is copied later, or fails then.
    let Some(laid) = laid else { return Ok((map, None)) };
    new.laid = laid;
    Ok((map, Some(new)))
}

fn write_blocks(open: &File, blocks: &Receiver<Block>, spare: &Sender<Vec<u8>>) -> io::Result<Laid> {
    for _ in 0..BLOCKS_MAX {
        let _ = spare.send(Vec::new());
    }
    let mut laid = Laid::default();
    for Block { buffer, chunks, mut at } in blocks {
        let bytes: usize = chunks.iter().map(|chunk| chunk.len as usize).sum();
        write(open, at, &buffer[..bytes], laid.end())?;
        for chunk in chunks {
            let end = at + u64::from(chunk.len);
            laid.add(at..end, chunk.hash);
            at = end;
        }
        let _ = spare.send(buffer);
    }
    Ok(laid)
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

impl Shifts {
    fn begin(&self, id: EntryId) -> Arc<AtomicI64> {
        let shift = Arc::new(AtomicI64::new(0));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((id, shift.clone()));
        shift
    }

    fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The sender has said so; of a file that is no longer written along it comes too late.
    pub(super) fn say(&self, id: EntryId, bytes: i64) {
        let laying = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shift)) = laying.as_ref().filter(|(laid, _)| *laid == id) {
            shift.store(bytes, Ordering::Relaxed);
        }
    }
}
