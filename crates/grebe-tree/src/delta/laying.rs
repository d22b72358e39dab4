//! Writes the basis into the new file while it is read for its signature: most of what changed in places, or behind what was inserted,
//! then is where it belongs before the sender's plan comes, and was read and hashed once.
//!
//! ```text
//!  reads, cuts, hashes --- blocks that were cut --> writes, on a thread of its own, and notes what lies where
//!        ^                                             |
//!        +--------------- buffers ---------------------+
//!  shift: how much further on the sender finds the basis in its file; 0 until it says so
//! ```

use std::io::Read;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};

use crossbeam_channel::{Receiver, Sender};

use super::chunks::{Chunk, Chunks};

/// Chunks that follow one another, and where in the new file they are to be written. The buffer comes back.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) buffer: Vec<u8>,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) at: u64,
}

/// What [`sign`](super::sign) hands on of what it reads.
pub(crate) struct Laying<'a> {
    shift: &'a AtomicI64,
    /// No more than the new file has.
    end: u64,
    blocks: Sender<Block>,
    spare: Receiver<Vec<u8>>,
    /// Chunks that were not handed on, and where in the basis they begin.
    chunks: Vec<Chunk>,
    at: u64,
    /// Whoever writes has given up.
    is_over: bool,
}

impl<'a> Laying<'a> {
    /// For a new file of `end` bytes. Whoever takes the blocks gives their buffers back, two of them at first.
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

    /// Hands on what was cut since the last time.
    pub(super) fn hand_on<R: Read>(&mut self, reader: &mut Chunks<R>) {
        let chunks = std::mem::take(&mut self.chunks);
        let bytes: u64 = chunks.iter().map(|chunk| u64::from(chunk.len)).sum();
        let stretch = self.at..self.at + bytes;
        self.at = stretch.end;
        let place = shifted(&stretch, self.shift.load(Ordering::Relaxed));
        let place = place.filter(|place| !place.is_empty() && place.end <= self.end);
        let Some(place) = place.filter(|_| !self.is_over) else { return };
        // Waits for the disk: what is not written now would be read again.
        let Ok(spare) = self.spare.recv() else {
            self.is_over = true;
            return;
        };
        let (buffer, cut) = reader.take_cut(spare);
        debug_assert_eq!(cut as u64, bytes);
        self.is_over = self.blocks.send(Block { buffer, chunks, at: place.start }).is_err();
    }
}

/// A stretch so much further on; `None` where no file has that.
fn shifted(stretch: &Range<u64>, shift: i64) -> Option<Range<u64>> {
    let place = stretch.start.checked_add_signed(shift)?..stretch.end.checked_add_signed(shift)?;
    (place.end <= i64::MAX as u64).then_some(place)
}
