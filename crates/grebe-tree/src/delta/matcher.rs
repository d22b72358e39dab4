//! Plan: which parts of a new file the basis contains, and which must be sent.

use super::chunks::Chunk;
use super::signature::Signature;
use crate::wire::{ShortHash, short};

/// A range of the new file. Pieces are contiguous and in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Contained in the basis.
    Copy { run: Run, len: u64 },
    /// To be read at `from` and sent.
    Data { from: u64, len: u64 },
    /// Already sent before the plan; `check` is part of its BLAKE3 hash.
    Laid { from: u64, len: u64, check: ShortHash },
}

#[cfg(test)]
impl Piece {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Copy { len, .. } | Self::Data { len, .. } | Self::Laid { len, .. } => *len,
        }
    }
}

/// Chunks that are consecutive in both basis and new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Number of the first chunk in the signature.
    pub(crate) first: u32,
    pub(crate) chunks: u32,
    /// BLAKE3 over the 16-byte hashes of all chunks.
    pub(crate) check: ShortHash,
}

/// Turns chunks of the new file into pieces as they arrive. It reads nothing twice: a match has the same
/// short hash and length, and the check of the [`Run`] verifies it later.
pub(crate) struct Matcher {
    signature: Signature,
    /// Number of the signature's first chunk at the receiver.
    first: u32,
    /// Chunks that do not follow their predecessor, in order.
    apart: Vec<u32>,
    /// Chunk numbers of the basis, by hash and length, then by place.
    by_hash: Vec<u32>,
    pending: Option<Pending>,
    /// Start of the next chunk of the new file.
    at: u64,
}

impl Matcher {
    /// Matches against a whole signature.
    pub(crate) fn new(signature: Signature) -> Self {
        Self::of_stretches(signature, 0, Vec::new())
    }

    /// Matches against a signature of ranges. Its chunks have numbers from `first` on, and those in `apart`
    /// begin a range.
    pub(crate) fn of_stretches(signature: Signature, first: u32, apart: Vec<u32>) -> Self {
        let chunks = signature.chunks();
        let mut by_hash: Vec<u32> = (0..chunks.len() as u32).collect();
        by_hash.sort_unstable_by_key(|number| (chunks[*number as usize], *number));
        Self { signature, first, apart, by_hash, pending: None, at: 0 }
    }

    /// Takes the next chunk. Returns a piece once the following one has begun.
    pub(crate) fn push(&mut self, chunk: Chunk) -> Option<Piece> {
        let len = u64::from(chunk.len);
        let found = self.find(&chunk);
        let from = self.at;
        self.at += len;
        match (&mut self.pending, found) {
            (Some(Pending::Copy(copy)), Some(number))
                if copy.next() == number
                    && copy.has_room(len)
                    && self.apart.binary_search(&number).is_err() =>
            {
                copy.add(&chunk);
                None
            }
            (Some(Pending::Data { len: pending, .. }), None) if *pending + len <= STRETCH_BYTES_MAX => {
                *pending += len;
                None
            }
            (_, Some(number)) => self.begin(Pending::Copy(PendingCopy::new(number, &chunk))),
            (_, None) => self.begin(Pending::Data { from, len }),
        }
    }

    /// Chunk of the basis that follows the last match, by short hash and length; at first, the first chunk.
    /// The next chunk is probably this one.
    pub(crate) fn expected(&self) -> Option<(u64, u32)> {
        let Some(Pending::Copy(copy)) = &self.pending else {
            let is_first = self.pending.is_none() && self.at == 0;
            return self.signature.chunks().first().copied().filter(|_| is_first);
        };
        let next = copy.next();
        let is_apart = self.apart.binary_search(&next).is_ok();
        self.signature.chunks().get(next as usize).copied().filter(|_| !is_apart)
    }

    /// Moves to `at` of the new file for the next chunk. Returns the piece that ended before.
    pub(crate) fn go_to(&mut self, at: u64) -> Option<Piece> {
        self.at = at;
        self.pending.take().map(|pending| pending.piece(self.first))
    }

    /// Returns the last piece, `None` for an empty file, and the signature.
    pub(crate) fn finish(mut self) -> (Option<Piece>, Signature) {
        let last = self.pending.take().map(|pending| pending.piece(self.first));
        (last, self.signature)
    }

    fn begin(&mut self, pending: Pending) -> Option<Piece> {
        self.pending.replace(pending).map(|pending| pending.piece(self.first))
    }

    /// Chunk of the basis with this content. Prefers the one after the last match, to make runs long.
    fn find(&self, chunk: &Chunk) -> Option<u32> {
        let chunks = self.signature.chunks();
        let wanted = self.signature.told(chunk);
        if let Some(Pending::Copy(copy)) = &self.pending
            && self.expected() == Some(wanted)
        {
            return Some(copy.next());
        }
        let first = self.by_hash.partition_point(|number| chunks[*number as usize] < wanted);
        self.by_hash.get(first).copied().filter(|number| chunks[*number as usize] == wanted)
    }
}

enum Pending {
    Copy(PendingCopy),
    Data { from: u64, len: u64 },
}

impl Pending {
    fn piece(self, first_number: u32) -> Piece {
        match self {
            Self::Copy(PendingCopy { first, chunks, len, check }) => {
                let run = Run { first: first_number + first, chunks, check: short(&check.finalize()) };
                Piece::Copy { run, len }
            }
            Self::Data { from, len } => Piece::Data { from, len },
        }
    }
}

struct PendingCopy {
    first: u32,
    chunks: u32,
    len: u64,
    /// Boxed, because it is large and other pieces lack it.
    check: Box<blake3::Hasher>,
}

impl PendingCopy {
    fn new(first: u32, chunk: &Chunk) -> Self {
        let mut copy = Self { first, chunks: 0, len: 0, check: Box::default() };
        copy.add(chunk);
        copy
    }

    fn add(&mut self, chunk: &Chunk) {
        self.chunks += 1;
        self.len += u64::from(chunk.len);
        self.check.update(&chunk.hash);
    }

    /// Chunk that would extend the run.
    fn next(&self) -> u32 {
        self.first + self.chunks
    }

    fn has_room(&self, len: u64) -> bool {
        self.len + len <= STRETCH_BYTES_MAX
    }
}

/// Maximum length of a piece, except for one long chunk. A failed check costs one piece, and data to send is
/// still in the page cache.
const STRETCH_BYTES_MAX: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::ChunkSizes;
    use crate::delta::signature::SignatureWriter;

    /// Chunks named by letters, 1 MiB long or as long as the number after the letter says.
    fn chunks(letters: &str) -> Vec<Chunk> {
        letters.bytes().map(|letter| Chunk { len: 1 << 20, ..Chunk::of(&[letter]) }).collect()
    }

    fn plan(basis: &str, new: &str) -> Vec<Piece> {
        let sizes = ChunkSizes::from_byte(20).unwrap();
        let (mut signature, mut writer) = (Signature::new(sizes), SignatureWriter::new(sizes));
        chunks(basis).into_iter().for_each(|chunk| assert!(!writer.push(chunk)));
        signature.add(&writer.take()).unwrap();
        let mut matcher = Matcher::new(signature);
        let mut pieces: Vec<_> = chunks(new).into_iter().filter_map(|chunk| matcher.push(chunk)).collect();
        pieces.extend(matcher.finish().0);
        pieces
    }

    fn copy(first: u32, letters: &str) -> Piece {
        let hashes: Vec<u8> = chunks(letters).iter().flat_map(|chunk| chunk.hash).collect();
        let check = short(&blake3::hash(&hashes));
        Piece::Copy {
            run: Run { first, chunks: letters.len() as u32, check },
            len: (letters.len() as u64) << 20,
        }
    }

    fn data(from: u64, len: u64) -> Piece {
        Piece::Data { from: from << 20, len: len << 20 }
    }

    #[test]
    fn neighbours_are_one_piece() {
        assert_eq!(plan("abcdef", "abcdef"), [copy(0, "abcdef")]);
        assert_eq!(plan("abcdef", "xabcdef"), [data(0, 1), copy(0, "abcdef")]);
        assert_eq!(plan("abcdef", "abxyef"), [copy(0, "ab"), data(2, 2), copy(4, "ef")]);
        assert_eq!(plan("abcdef", "defabc"), [copy(3, "def"), copy(0, "abc")]);
        assert_eq!(plan("abc", "xyz"), [data(0, 3)]);
        assert_eq!(plan("", "xyz"), [data(0, 3)]);
        assert_eq!(plan("abc", ""), []);
    }

    #[test]
    fn repeated_chunks_continue_after_the_last_match() {
        assert_eq!(plan("0a000b", "0a000b"), [copy(0, "0a000b")]);
        assert_eq!(plan("a00b", "00b"), [copy(1, "00b")]);
        assert_eq!(plan("a0b0c", "b0c"), [copy(2, "b0c")]);
    }

    #[test]
    fn long_stretches_are_several_pieces() {
        assert_eq!(plan("abcdefghijk", "abcdefghijk"), [copy(0, "abcdefgh"), copy(8, "ijk")]);
        assert_eq!(plan("a", "0123456789"), [data(0, 8), data(8, 2)]);
    }

    #[test]
    fn the_same_hash_with_another_length_is_no_match() {
        let sizes = ChunkSizes::from_byte(20).unwrap();
        let (mut signature, mut writer) = (Signature::new(sizes), SignatureWriter::new(sizes));
        let chunk = Chunk::of(b"a");
        writer.push(Chunk { len: 2, ..chunk });
        signature.add(&writer.take()).unwrap();
        let mut matcher = Matcher::new(signature);
        assert_eq!(matcher.push(chunk), None);
        assert_eq!(matcher.finish().0, Some(Piece::Data { from: 0, len: 1 }));
    }
}
