//! Signature of an existing file: its wire format, and the copies that both ends keep.

use std::ops::Range;

use grebe_packet::Reader;

use super::chunks::{CHUNKS_MAX, Chunk, ChunkSizes};
use crate::wire::put_varint;

/// Maximum length of a piece. Pieces leave while the rest is still read.
pub(crate) const PIECE_BYTES_MAX: usize = 64 << 10;

/// Encodes chunks in file order into pieces; each piece is a message.
///
/// ```text
///  chunk    length (LEB128), the first 4 bytes of its hash, or 8 for older peers
///  again    0, count (LEB128): repeats of the previous chunk
/// ```
/// Holes and other runs of equal bytes form equal chunks, so a sparse file has a short signature.
pub(crate) struct SignatureWriter {
    sizes: ChunkSizes,
    piece: Vec<u8>,
    last: Option<Chunk>,
    again: u64,
    chunks: usize,
}

impl SignatureWriter {
    pub(crate) fn new(sizes: ChunkSizes) -> Self {
        Self { sizes, piece: Vec::with_capacity(PIECE_BYTES_MAX), last: None, again: 0, chunks: 0 }
    }

    /// Adds the next chunk. `true`: a piece is full and must be [taken](Self::take).
    ///
    /// Ignores chunks beyond the first [`CHUNKS_MAX`]; their data is sent as it is.
    pub(crate) fn push(&mut self, chunk: Chunk) -> bool {
        if self.chunks == CHUNKS_MAX {
            return false;
        }
        self.chunks += 1;
        if self.last == Some(chunk) {
            self.again += 1;
            return false;
        }
        self.end_run();
        put_varint(&mut self.piece, chunk.len.into());
        self.piece.extend_from_slice(&chunk.hash[..self.sizes.told_hash_bytes()]);
        self.last = Some(chunk);
        self.piece.len() + ENTRY_BYTES_MAX > PIECE_BYTES_MAX
    }

    /// Returns a piece with the chunks since the last one; empty if there are none. It is decodable on its
    /// own.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.end_run();
        self.last = None;
        std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE_BYTES_MAX))
    }

    fn end_run(&mut self) {
        if self.again > 0 {
            put_varint(&mut self.piece, 0);
            put_varint(&mut self.piece, self.again);
            self.again = 0;
        }
    }
}

/// The sender's knowledge of the basis.
#[derive(Debug)]
pub(crate) struct Signature {
    sizes: ChunkSizes,
    /// [Short hash](ChunkSizes::told_hash) and length of each chunk, in file order.
    chunks: Vec<(u64, u32)>,
}

impl Signature {
    pub(crate) fn new(sizes: ChunkSizes) -> Self {
        Self { sizes, chunks: Vec::new() }
    }

    /// Adds the next piece. `None` if no honest peer sends such a piece.
    #[must_use]
    pub(crate) fn add(&mut self, piece: &[u8]) -> Option<()> {
        self.extend(read_piece(piece, self.sizes, self.chunks.len())?);
        Some(())
    }

    /// Adds chunks [read](read_piece) from a piece.
    pub(super) fn extend(&mut self, chunks: Vec<(u64, u32)>) {
        self.chunks.extend(chunks);
    }

    /// Number of chunks.
    pub(crate) fn len(&self) -> u32 {
        self.chunks.len() as u32
    }

    pub(super) fn chunks(&self) -> &[(u64, u32)] {
        &self.chunks
    }

    /// Form of a chunk in this signature.
    pub(super) fn told(&self, chunk: &Chunk) -> (u64, u32) {
        (self.sizes.told_hash(&chunk.hash), chunk.len)
    }
}

/// Decodes a piece that follows `before` chunks: short hash and length of each chunk. `None` if no honest
/// peer sends such a piece.
pub(crate) fn read_piece(piece: &[u8], sizes: ChunkSizes, before: usize) -> Option<Vec<(u64, u32)>> {
    let (mut reader, mut chunks) = (Reader::new(piece), Vec::new());
    while !reader.is_empty() {
        let number = reader.varint().ok()?;
        let (chunk, times) = if number == 0 {
            (*chunks.last()?, reader.varint().ok()?)
        } else {
            let len = u32::try_from(number).ok().filter(|len| *len as usize <= sizes.max())?;
            let mut hash = [0; 8];
            let told = sizes.told_hash_bytes();
            hash[..told].copy_from_slice(reader.take(told).ok()?);
            ((u64::from_le_bytes(hash), len), 1)
        };
        if times > CHUNKS_MAX.saturating_sub(before + chunks.len()) as u64 {
            return None;
        }
        chunks.extend(std::iter::repeat_n(chunk, times as usize));
    }
    Some(chunks)
}

/// The receiver's map of its chunks.
#[derive(Debug, Default)]
pub(crate) struct BasisMap {
    /// End of each chunk.
    ends: Vec<u64>,
    /// Chunks that do not begin at the end of their predecessor, in order, and their starts: the finer chunks
    /// of ranges.
    jumps: Vec<(u32, u64)>,
}

impl BasisMap {
    /// Makes a map from an earlier signature; `None` if it is invalid.
    pub(crate) fn of_pieces(sizes: ChunkSizes, pieces: &[Vec<u8>]) -> Option<Self> {
        let mut signature = Signature::new(sizes);
        pieces.iter().try_for_each(|piece| signature.add(piece))?;
        let ends = signature.chunks.iter().scan(0, |end, (_, len)| {
            *end += u64::from(*len);
            Some(*end)
        });
        Some(Self { ends: ends.collect(), jumps: Vec::new() })
    }

    /// Adds the next chunk in file order.
    pub(crate) fn push(&mut self, chunk: Chunk) {
        // The same number again for finer chunks.
        let most = if self.jumps.is_empty() { CHUNKS_MAX } else { 2 * CHUNKS_MAX };
        if self.ends.len() < most {
            self.ends.push(self.start(self.ends.len() as u32) + u64::from(chunk.len));
        }
    }

    /// Number of chunks.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Sets the start of the next chunk.
    pub(crate) fn jump(&mut self, start: u64) {
        let next = self.ends.len() as u32;
        self.jumps.retain(|(chunk, _)| *chunk < next);
        self.jumps.push((next, start));
    }

    /// Byte range of `chunks` chunks from number `first` on. `None` if the map lacks some of them, if
    /// `chunks` is 0, or if they are not contiguous.
    pub(crate) fn stretch(&self, first: u32, chunks: u32) -> Option<Range<u64>> {
        let last = first.checked_add(chunks.checked_sub(1)?)?;
        let end = *self.ends.get(last as usize)?;
        let next_jump = self.jumps.partition_point(|(chunk, _)| *chunk <= first);
        let is_one = self.jumps.get(next_jump).is_none_or(|(chunk, _)| *chunk > last);
        is_one.then(|| self.start(first)..end)
    }

    /// Length of each of them.
    pub(super) fn lens(&self, first: u32, chunks: u32) -> impl Iterator<Item = usize> {
        (first..first + chunks).map(|chunk| (self.ends[chunk as usize] - self.start(chunk)) as usize)
    }

    fn start(&self, chunk: u32) -> u64 {
        match self.jumps.binary_search_by_key(&chunk, |(chunk, _)| *chunk) {
            Ok(jump) => self.jumps[jump].1,
            Err(_) => chunk.checked_sub(1).map_or(0, |before| self.ends[before as usize]),
        }
    }
}

/// End of a run (0, count) and a chunk (length, hash).
const ENTRY_BYTES_MAX: usize = (1 + 4) + (4 + 8);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sizes() -> ChunkSizes {
        ChunkSizes::from_byte(14).unwrap()
    }

    fn chunk(len: u32, seed: u8) -> Chunk {
        Chunk { len, ..Chunk::of(&[seed]) }
    }

    fn short_sizes() -> ChunkSizes {
        ChunkSizes::from_byte(0x80 | 14).unwrap()
    }

    fn pieces(chunks: &[Chunk], sizes: ChunkSizes) -> Vec<Vec<u8>> {
        let (mut writer, mut pieces) = (SignatureWriter::new(sizes), Vec::new());
        for chunk in chunks {
            if writer.push(*chunk) {
                pieces.push(writer.take());
            }
        }
        pieces.push(writer.take());
        pieces
    }

    #[test]
    fn a_chunk_takes_six_or_ten_bytes_and_a_run_of_equal_ones_hardly_more() {
        let chunks: Vec<_> = (0..100_000).map(|n: u32| chunk(4_096 + n % 8_192, n as u8)).collect();
        for (sizes, hash_bytes) in [(short_sizes(), 4), (sizes(), 8)] {
            let told = pieces(&chunks, sizes);
            assert!(told.len() > 5 && told.iter().all(|piece| piece.len() <= PIECE_BYTES_MAX));
            assert_eq!(told.iter().map(Vec::len).sum::<usize>(), 100_000 * (2 + hash_bytes));
            let holes = pieces(&vec![chunk(65_536, 1); 1_000_000], sizes);
            assert_eq!((holes.len(), holes[0].len()), (1, 3 + hash_bytes + 1 + 3));
        }
    }

    #[test]
    fn a_signature_ends_at_the_most_chunks_that_it_may_have() {
        let mut signature = Signature::new(sizes());
        let mut map = BasisMap::default();
        let mut writer = SignatureWriter::new(sizes());
        let chunk = chunk(100, 1);
        for _ in 0..CHUNKS_MAX + 10 {
            assert!(!writer.push(chunk));
            map.push(chunk);
        }
        signature.add(&writer.take()).unwrap();
        assert_eq!(signature.chunks().len(), CHUNKS_MAX);
        assert_eq!(map.stretch(0, CHUNKS_MAX as u32), Some(0..100 * CHUNKS_MAX as u64));
        assert_eq!(map.stretch(1, CHUNKS_MAX as u32), None);
    }

    #[test]
    fn impossible_signatures_are_refused() {
        let refused = |piece: &[u8]| Signature::new(sizes()).add(piece).is_none();
        let whole = &pieces(&[chunk(5_000, 1)], sizes())[0];
        assert!(!refused(whole));
        let short = &pieces(&[chunk(5_000, 1)], short_sizes())[0];
        assert!(Signature::new(short_sizes()).add(&short[..short.len() - 1]).is_none(), "cut short");
        assert!(refused(&whole[..whole.len() - 1]), "cut short");
        assert!(refused(&[0, 5]), "nothing to repeat");
        let repeated = |times| {
            let mut piece = whole.clone();
            put_varint(&mut piece, 0);
            put_varint(&mut piece, times);
            piece
        };
        assert!(!refused(&repeated(CHUNKS_MAX as u64 - 1)));
        assert!(refused(&repeated(CHUNKS_MAX as u64)), "too many");
        assert!(refused(&repeated(u64::MAX)), "too many");
        let mut long = Vec::new();
        put_varint(&mut long, 65_537);
        long.extend([0; 8]);
        assert!(refused(&long), "longer than a chunk is");
    }

    #[test]
    fn missing_ranges_are_empty() {
        let mut map = BasisMap::default();
        assert_eq!(map.stretch(0, 1), None);
        [10, 20, 30].into_iter().for_each(|len| map.push(chunk(len, 0)));
        assert_eq!(map.stretch(0, 3), Some(0..60));
        assert_eq!(map.stretch(1, 1), Some(10..30));
        assert_eq!(map.lens(1, 2).collect::<Vec<_>>(), [20, 30]);
        for (first, chunks) in [(0, 0), (0, 4), (3, 1), (u32::MAX, 1), (1, u32::MAX), (u32::MAX, u32::MAX)] {
            assert_eq!(map.stretch(first, chunks), None, "{first} {chunks}");
        }
    }

    #[test]
    fn repeated_ranges_are_distinct() {
        let mut map = BasisMap::default();
        [10, 20, 30].into_iter().for_each(|len| map.push(chunk(len, 0)));
        for start in [10, 40] {
            map.jump(99);
            map.jump(start);
            [5, 7].into_iter().for_each(|len| map.push(chunk(len, 0)));
        }
        assert_eq!(map.stretch(0, 3), Some(0..60));
        assert_eq!((map.stretch(3, 1), map.stretch(3, 2)), (Some(10..15), Some(10..22)));
        assert_eq!((map.stretch(4, 1), map.stretch(5, 2)), (Some(15..22), Some(40..52)));
        assert_eq!(map.lens(5, 2).collect::<Vec<_>>(), [5, 7]);
        for (first, chunks) in [(2, 2), (4, 2), (0, 7), (6, 2)] {
            assert_eq!(map.stretch(first, chunks), None, "{first} {chunks}");
        }
    }

    proptest! {
        #[test]
        fn the_signature_describes_the_file(
            runs in prop::collection::vec((1..=65_536_u32, 0..3_u8, 1..50_usize), 0..200),
        ) {
            let chunks: Vec<_> =
                runs.iter().flat_map(|(len, seed, times)| std::iter::repeat_n(chunk(*len, *seed), *times)).collect();
            for sizes in [sizes(), short_sizes()] {
                let mut signature = Signature::new(sizes);
                for piece in pieces(&chunks, sizes) {
                    prop_assert_eq!(signature.add(&piece), Some(()));
                }
                let expected: Vec<_> = chunks.iter().map(|chunk| signature.told(chunk)).collect();
                prop_assert_eq!(signature.chunks(), expected);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(piece in prop::collection::vec(any::<u8>(), 0..200)) {
            for sizes in [sizes(), short_sizes()] {
                let mut signature = Signature::new(sizes);
                let _ = signature.add(&piece);
                prop_assert!(signature.chunks().len() <= CHUNKS_MAX);
            }
        }
    }
}
