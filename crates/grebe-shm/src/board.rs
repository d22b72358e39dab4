//! What the stream is, as its producer wrote it where every consumer reads it: behind the tables, in the payload's memory.
//!
//! ```text
//!   serial | bytes, frame ...  | bytes, frame ...  | ...
//!            slot 0              slot 1
//! ```
//!
//! The serial counts what was written; 0 is nothing yet. It is stored before the first batch is queued that is meant, so who took
//! that batch sees it. A slot is written again once eight more have been: a reader that finds fewer after it has read has read a
//! whole frame.

use crate::sync::{Ordering, Words, fence};

/// One side's view of the board.
#[derive(Debug)]
pub(crate) struct Board {
    words: Words,
    /// Up to which the board was read.
    seen: u64,
}

impl Board {
    /// Words of a board.
    pub(crate) const WORDS: usize = 1 + SLOTS as usize * SLOT_WORDS;

    /// The board in these words, which are zero at first.
    pub(crate) fn new(words: Words) -> Self {
        Self { words, seen: 0 }
    }

    /// Puts up a frame of at most [`FRAME_BYTES_MAX`] bytes; what is longer is cut, and then no frame. By the producer alone.
    pub(crate) fn write(&self, frame: &[u8]) {
        // Relaxed: nobody else writes it.
        let serial = self.words.at(0).load(Ordering::Relaxed) + 1;
        let slot = slot(serial);
        let frame = &frame[..frame.len().min(FRAME_BYTES_MAX)];
        // A reader that sees a word of this slot sees the serial before it, too.
        fence(Ordering::Release);
        self.words.at(slot).store(frame.len() as u64, Ordering::Relaxed);
        for (at, bytes) in frame.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.words.at(slot + 1 + at).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        self.words.at(0).store(serial, Ordering::Release);
    }

    /// Whether something is up that was not read.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.words.at(0).load(Ordering::Acquire) != self.seen
    }

    /// A copy of the next frame that was not read before, of those that are still up. The producer is not trusted: the copy may be
    /// any bytes.
    pub(crate) fn read(&mut self) -> Option<Vec<u8>> {
        for _ in 0..TRIES {
            let newest = self.words.at(0).load(Ordering::Acquire);
            if newest == self.seen {
                return None;
            }
            // The slot after the newest may be being written.
            let serial = self.seen.wrapping_add(1).max(newest.saturating_sub(SLOTS - 2));
            let slot = slot(serial);
            let bytes = (self.words.at(slot).load(Ordering::Relaxed) as usize).min(FRAME_BYTES_MAX);
            let word = |at| self.words.at(slot + 1 + at).load(Ordering::Relaxed).to_le_bytes();
            let mut frame: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(word).collect();
            frame.truncate(bytes);
            fence(Ordering::Acquire);
            if self.words.at(0).load(Ordering::Relaxed).wrapping_sub(serial) < SLOTS - 1 {
                self.seen = serial;
                return Some(frame);
            }
        }
        // It changes faster than it can be read: with the next batch, then.
        None
    }
}

fn slot(serial: u64) -> usize {
    1 + (serial % SLOTS) as usize * SLOT_WORDS
}

/// A header and the longest text of a description.
pub(crate) const FRAME_BYTES_MAX: usize = 64 + 65_536;
const SLOT_WORDS: usize = 1 + FRAME_BYTES_MAX / 8;
const SLOTS: u64 = 8;
const TRIES: u32 = 4;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::linux::map::{Mapping, memfd};

    fn boards() -> (Board, Board) {
        let bytes = Board::WORDS * 8;
        let memory = Mapping::new(memfd("grebe board", bytes).unwrap(), bytes, true).unwrap();
        let board = || Board::new(memory.words(0, Board::WORDS));
        (board(), board())
    }

    #[test]
    fn what_is_put_up_is_read_once() {
        let (producer, mut consumer) = boards();
        assert_eq!(consumer.read(), None);
        for length in [0, 1, 7, 8, 9, 1_000, FRAME_BYTES_MAX] {
            let frame: Vec<u8> = (0..length).map(|at| at as u8).collect();
            producer.write(&frame);
            assert_eq!(consumer.read(), Some(frame));
            assert_eq!(consumer.read(), None);
        }
        for byte in 0..20 {
            producer.write(&[byte]);
        }
        let late = Board::new(producer.words.clone());
        for mut reader in [consumer, late] {
            assert!(reader.has_more());
            let read: Vec<_> = std::iter::from_fn(|| reader.read()).flatten().collect();
            assert_eq!(read, [13, 14, 15, 16, 17, 18, 19], "the last that are up, in order");
            assert!(!reader.has_more());
        }
    }

    #[test]
    fn garbage_is_read_within_bounds() {
        let (producer, mut consumer) = boards();
        for word in 0..Board::WORDS {
            producer.words.at(word).store(u64::MAX - 1, Ordering::Relaxed);
        }
        assert_eq!(consumer.read().map(|frame| frame.len()), Some(FRAME_BYTES_MAX));
        producer.words.at(0).store(3, Ordering::Relaxed);
        let mut rounds = 0;
        while consumer.read().is_some() {
            rounds += 1;
            assert!(rounds < 100, "a serial that goes back");
        }
    }

    #[test]
    fn a_frame_is_never_torn() {
        let (producer, mut consumer) = boards();
        let writer = std::thread::spawn(move || {
            for round in 1..=20_000u32 {
                producer.write(&[round as u8; 300]);
            }
        });
        while !writer.is_finished() {
            if let Some(frame) = consumer.read() {
                assert!(frame.iter().all(|&byte| byte == frame[0]), "{frame:?}");
            }
        }
        writer.join().unwrap();
    }
}
