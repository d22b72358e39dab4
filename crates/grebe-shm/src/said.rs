//! What the stream is, as its producer wrote it for each chunk: behind the tables, in the payload's memory.
//!
//! ```text
//!   serial, serial, ... | bytes, frame ... | bytes, frame ... | ...
//!   one a chunk           of chunk 0         of chunk 1
//! ```
//!
//! It belongs to the chunk: the producer writes it before it lends the chunk, and whoever has the chunk reads what was said of these
//! samples, however far behind. The serial is another wherever something else is said; 0 is nothing. A text costs memory only where it
//! was written.

use crate::sync::{Ordering, Words};

/// One side's view of it.
#[derive(Debug)]
pub(crate) struct Said {
    words: Words,
    chunks: usize,
}

impl Said {
    /// Words for so many chunks.
    pub(crate) fn words(chunks: u32) -> usize {
        chunks as usize * (1 + TEXT_WORDS)
    }

    /// These words, which are zero at first.
    pub(crate) fn new(words: Words, chunks: u32) -> Self {
        Self { words, chunks: chunks as usize }
    }

    /// What was said of a chunk: the same number where it was the same.
    #[inline]
    pub(crate) fn serial(&self, chunk: u32) -> u64 {
        // Relaxed: published with the chunk's descriptor, as its text is.
        self.words.at(chunk as usize).load(Ordering::Relaxed)
    }

    /// Says a frame of at most [`FRAME_BYTES_MAX`] bytes of a chunk that nobody has yet; what is longer is cut, and then no frame. By the
    /// producer alone.
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

    /// A copy of what was said of a chunk that was lent. The producer is not trusted: the copy may be any bytes.
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

/// A header and the longest text of a description.
pub(crate) const FRAME_BYTES_MAX: usize = 64 + 65_536;
const TEXT_WORDS: usize = 1 + FRAME_BYTES_MAX / 8;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::linux::map::{Mapping, memfd};

    fn ends() -> (Said, Said) {
        let words = Said::words(3);
        let memory = Mapping::new(memfd("grebe said", words * 8).unwrap(), words * 8, true).unwrap();
        let end = || Said::new(memory.words(0, words), 3);
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
        for word in 0..Said::words(3) {
            producer.words.at(word).store(u64::MAX - 1, Ordering::Relaxed);
        }
        assert_eq!(consumer.read(2).len(), FRAME_BYTES_MAX);
    }
}
