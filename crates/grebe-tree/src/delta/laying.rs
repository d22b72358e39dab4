//! Writes the basis ahead into the new file while it is read for its signature. Most of a file with scattered
//! edits or insertions is then in place before the plan arrives, and was read and hashed only once.
//!
//! ```text
//!  reads, cuts, hashes --- cut blocks --> writes, on its own thread, and notes the places
//!        ^                                 |
//!        +------------ buffers ------------+
//!  shift: offset of the basis in the sender's file; 0 at first
//! ```

use std::io::Read;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};

use crossbeam_channel::{Receiver, Sender};

use super::chunks::{Chunk, Chunks};

/// Consecutive chunks and their place in the new file. The buffer returns for reuse.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) buffer: Vec<u8>,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) at: u64,
}

/// Hands the data that [`sign`](super::sign) reads to a writer.
pub(crate) struct Laying<'a> {
    shift: &'a AtomicI64,
    /// Length of the new file.
    end: u64,
    blocks: Sender<Block>,
    spare: Receiver<Vec<u8>>,
    /// Chunks not handed on yet, and their start in the basis.
    chunks: Vec<Chunk>,
    at: u64,
    /// The writer has given up.
    is_over: bool,
}

impl<'a> Laying<'a> {
    /// Prepares for a new file of `end` bytes. The writer returns the buffers of the blocks; it starts with
    /// two.
    pub(crate) fn new(
        shift: &'a AtomicI64,
        end: u64,
        blocks: Sender<Block>,
        spare: Receiver<Vec<u8>>,
    ) -> Self {
        Self { shift, end, blocks, spare, chunks: Vec::new(), at: 0, is_over: false }
    }

    pub(super) fn push(&mut self, chunk: Chunk) {
        self.chunks.push(chunk);
    }

    /// Hands on the chunks cut since the last call.
    pub(super) fn hand_on<R: Read>(&mut self, reader: &mut Chunks<R>) {
        let chunks = std::mem::take(&mut self.chunks);
        let bytes: u64 = chunks.iter().map(|chunk| u64::from(chunk.len)).sum();
        let stretch = self.at..self.at + bytes;
        self.at = stretch.end;
        let place = shifted(&stretch, self.shift.load(Ordering::Relaxed));
        let place = place.filter(|place| !place.is_empty() && place.end <= self.end);
        let Some(place) = place.filter(|_| !self.is_over) else { return };
        // Waits for the disk. Data not written now would have to be read again.
        let Ok(spare) = self.spare.recv() else {
            self.is_over = true;
            return;
        };
        let (buffer, cut) = reader.take_cut(spare);
        debug_assert_eq!(cut as u64, bytes);
        self.is_over = self.blocks.send(Block { buffer, chunks, at: place.start }).is_err();
    }
}

/// Shifts a range; `None` if the result cannot lie in a file.
fn shifted(stretch: &Range<u64>, shift: i64) -> Option<Range<u64>> {
    let place = stretch.start.checked_add_signed(shift)?..stretch.end.checked_add_signed(shift)?;
    (place.end <= i64::MAX as u64).then_some(place)
}
