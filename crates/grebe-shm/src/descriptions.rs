//! Descriptions of the stream, one per chunk, in the payload's memory after the tables.
//!
//! ```text
//!   serial, serial, ... | bytes, frame ... | bytes, frame ... | ...
//!   one per chunk         of chunk 0         of chunk 1
//! ```
//!
//! A description belongs to its chunk. The producer writes it before it lends the chunk, so even a late
//! reader gets the description of these samples. The serial changes with the description; 0 means none. A
//! text costs memory only where it was written.

use crate::sync::{Ordering, Words};

/// One side's view of the descriptions.
#[derive(Debug)]
pub(crate) struct Descriptions {
    words: Words,
    chunks: usize,
}

impl Descriptions {
    /// Words for `chunks` chunks.
    pub(crate) fn words(chunks: u32) -> usize {
        chunks as usize * (1 + TEXT_WORDS)
    }

    /// Uses these words, which are zero at first.
    pub(crate) fn new(words: Words, chunks: u32) -> Self {
        Self { words, chunks: chunks as usize }
    }

    /// Serial of a chunk's description; equal serials mean equal descriptions.
    #[inline]
    pub(crate) fn serial(&self, chunk: u32) -> u64 {
        // Relaxed: published with the chunk's descriptor, like its text.
        self.words.at(chunk as usize).load(Ordering::Relaxed)
    }

    /// Writes a frame of at most [`FRAME_BYTES_MAX`] bytes for a chunk that is not lent yet. A longer frame
    /// is cut, and then invalid. Only for the producer.
    pub(crate) fn write(&self, chunk: u32, serial: u64, frame: &[u8]) {
        let text = self.text(chunk);
        let frame = &frame[..frame.len().min(FRAME_BYTES_MAX)];
        self.words.at(text).store(frame.len() as u64, Ordering::Relaxed);
        for (at, bytes) in frame.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.words.at(text + 1 + at).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        self.words.at(chunk as usize).store(serial, Ordering::Relaxed);
    }

    /// Copy of a lent chunk's description. It may be any bytes, because the producer is not trusted.
    pub(crate) fn read(&self, chunk: u32) -> Vec<u8> {
        let text = self.text(chunk);
        let bytes = (self.words.at(text).load(Ordering::Relaxed) as usize).min(FRAME_BYTES_MAX);
        let word = |at| self.words.at(text + 1 + at).load(Ordering::Relaxed).to_le_bytes();
        let mut frame: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(word).collect();
        frame.truncate(bytes);
        frame
    }

    fn text(&self, chunk: u32) -> usize {
        self.chunks + chunk as usize * TEXT_WORDS
    }
}

/// Header and longest text of a description.
pub(crate) const FRAME_BYTES_MAX: usize = 64 + 65_536;
const TEXT_WORDS: usize = 1 + FRAME_BYTES_MAX / 8;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn ends() -> (Descriptions, Descriptions) {
        let words = Descriptions::words(3);
        let memory = Words::alone(words).unwrap();
        let end = || Descriptions::new(memory.clone(), 3);
        (end(), end())
    }

    #[test]
    fn each_chunk_keeps_what_was_said_of_it() {
        let (producer, consumer) = ends();
        assert_eq!((consumer.serial(2), consumer.read(2)), (0, Vec::new()));
        for length in [0, 1, 7, 8, 9, 1_000, FRAME_BYTES_MAX] {
            let frame = |chunk: u32| (0..length).map(|at| (at + chunk as usize) as u8).collect::<Vec<u8>>();
            for chunk in 0..3 {
                producer.write(chunk, length as u64 + 1, &frame(chunk));
            }
            for chunk in 0..3 {
                assert_eq!(consumer.serial(chunk), length as u64 + 1);
                assert_eq!(consumer.read(chunk), frame(chunk));
            }
        }
    }

    #[test]
    fn garbage_is_read_within_bounds() {
        let (producer, consumer) = ends();
        for word in 0..Descriptions::words(3) {
            producer.words.at(word).store(u64::MAX - 1, Ordering::Relaxed);
        }
        assert_eq!(consumer.read(2).len(), FRAME_BYTES_MAX);
    }
}
