//! Content-defined chunks of a file, each with its hash.

use std::io::{self, Read};

use fastcdc::v2020::{FastCDC, Normalization};

use crate::wire::{ShortHash, short};

/// Maximum chunks of a signature, which bounds the memory of both ends.
pub(crate) const CHUNKS_MAX: usize = 4 << 20;

/// Longest file to compare by chunks. With the longest chunks it has half of [`CHUNKS_MAX`].
pub(crate) const FILE_BYTES_MAX: u64 = (CHUNKS_MAX as u64 / 2) << AVERAGE_LOG2_MAX;

/// Chunk lengths: at least a quarter of the average, except for the last chunk, and at most four times the
/// average.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkSizes {
    average_log2: u8,
    /// Length of the hashes in a signature.
    hash: HashLength,
}

/// Length of a chunk's hash in a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HashLength {
    /// 4 bytes. With `n` old chunks and `m` new ones, `n * m / 2^32` chunks match a wrong one of the same
    /// length. Each costs a range that is sent again, at most 8 MiB, in a file with that much new data.
    Short,
    /// 8 bytes, for peers without short hashes.
    Long,
}

impl ChunkSizes {
    /// Suitable sizes for a file of this length. `None` if it is too long, or so short that comparing costs
    /// as much as sending.
    ///
    /// A signature costs 7 bytes per chunk with short hashes and 11 without. Each change costs two and a half
    /// chunks, or a few [finer](Self::finer) ones. Twice the square root of the length keeps the signature
    /// small: 1 GB has chunks of 64 KiB and a signature of 0.011 %. Above 4 TiB the average number of chunks
    /// is at most half of [`CHUNKS_MAX`].
    pub(crate) fn for_file(bytes: u64, short_hashes: bool) -> Option<Self> {
        if !(FILE_BYTES_MIN..=FILE_BYTES_MAX).contains(&bytes) {
            return None;
        }
        let root = (bytes.ilog2() - 1) / 2 + 2;
        let few = (2 * bytes).div_ceil(CHUNKS_MAX as u64).next_power_of_two().ilog2();
        let average_log2 = root.min(AVERAGE_LOG2_MAX.into()).max(few).max(AVERAGE_LOG2_MIN.into());
        let hash = if short_hashes { HashLength::Short } else { HashLength::Long };
        Some(Self { average_log2: average_log2 as u8, hash })
    }

    /// Sizes for a second comparison of changed ranges; `None` if these are fine enough.
    pub(crate) fn finer(self) -> Option<Self> {
        let average_log2 = self.average_log2.saturating_sub(FINER_LOG2).max(AVERAGE_LOG2_MIN);
        (average_log2 < self.average_log2).then_some(Self { average_log2, ..self })
    }

    /// Decodes the byte of a peer or a cache.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        let average_log2 = byte & !SHORT_HASHES;
        let hash = if byte & SHORT_HASHES == 0 { HashLength::Long } else { HashLength::Short };
        let is_known = (AVERAGE_LOG2_MIN..=AVERAGE_LOG2_MAX).contains(&average_log2);
        is_known.then_some(Self { average_log2, hash })
    }

    /// Encodes the sizes for peers and caches.
    pub(crate) fn to_byte(self) -> u8 {
        self.average_log2 | if self.hash == HashLength::Short { SHORT_HASHES } else { 0 }
    }

    /// Hash of a chunk as a signature carries it.
    pub(super) fn told_hash(self, hash: &ShortHash) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = *hash;
        match self.hash {
            HashLength::Short => u32::from_le_bytes([a, b, c, d]).into(),
            HashLength::Long => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        }
    }

    /// Length of such a hash in bytes.
    pub(super) fn told_hash_bytes(self) -> usize {
        match self.hash {
            HashLength::Short => 4,
            HashLength::Long => 8,
        }
    }

    /// Average length as a power of two: 11 to 22.
    pub(crate) fn average_log2(self) -> u8 {
        self.average_log2
    }

    /// Maximum length in bytes.
    pub(crate) fn max(self) -> usize {
        4 << self.average_log2
    }

    pub(super) fn average(self) -> usize {
        1 << self.average_log2
    }

    fn min(self) -> usize {
        self.average() / 4
    }
}

/// A range of a file and its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// At most [`ChunkSizes::max`], never 0.
    pub(crate) len: u32,
    pub(crate) hash: ShortHash,
}

impl Chunk {
    /// Hashes these bytes: at least one, at most a chunk.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { len: bytes.len() as u32, hash: short(&blake3::hash(bytes)) }
    }
}

/// Cuts its input into chunks. Memory: two of the longest chunks, at least 512 KiB.
pub(crate) struct Chunks<R> {
    reader: R,
    sizes: ChunkSizes,
    buffer: Vec<u8>,
    /// Start of the data that is read but not cut yet.
    from: usize,
    to: usize,
    is_at_end: bool,
}

impl<R: Read> Chunks<R> {
    pub(crate) fn new(reader: R, sizes: ChunkSizes) -> Self {
        let buffer = vec![0; (2 * sizes.max()).max(BUFFER_BYTES_MIN)];
        Self { reader, sizes, buffer, from: 0, to: 0, is_at_end: false }
    }

    /// Returns the next chunk and its bytes in file order; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<(Chunk, &[u8])>> {
        self.next_like(None)
    }

    /// Like `next`, with an expected [hash](ChunkSizes::told_hash) and length. A match needs no cutting,
    /// because the same bytes are cut the same way elsewhere. If only the end matches, just the data before
    /// it is cut.
    pub(crate) fn next_like(&mut self, expected: Option<(u64, u32)>) -> io::Result<Option<(Chunk, &[u8])>> {
        // A cut depends on the bytes up to the end of the longest chunk, so these must be available.
        if self.reads_next() {
            self.fill()?;
        }
        let rest = &self.buffer[self.from..self.to];
        if rest.is_empty() {
            return Ok(None);
        }
        if let Some((hash, len)) = expected
            && let Some(bytes) = rest.get(..len as usize)
        {
            let chunk = Chunk::of(bytes);
            if self.sizes.told_hash(&chunk.hash) == hash {
                self.from += bytes.len();
                return Ok(Some((chunk, bytes)));
            }
        }
        let sizes = self.sizes;
        let cutter =
            FastCDC::with_level(rest, sizes.min(), sizes.average(), sizes.max(), Normalization::Level2);
        let (_, mut end) = cutter.cut(0, rest.len());
        // Inserted bytes end where the expected chunk begins, so the cut is there and the expected chunk
        // comes next.
        if let Some((hash, len)) = expected
            && let Some(before) = end.checked_sub(len as usize).filter(|before| *before > 0)
            && self.sizes.told_hash(&Chunk::of(&rest[before..end]).hash) == hash
        {
            end = before;
        }
        let bytes = &rest[..end];
        self.from += end;
        Ok(Some((Chunk::of(bytes), bytes)))
    }

    /// Whether the next chunk needs a read. The chunks cut so far can then be [taken](Self::take_cut)
    /// cheaply.
    pub(super) fn reads_next(&self) -> bool {
        self.to - self.from < self.sizes.max() && !self.is_at_end
    }

    /// Takes the buffer with the number of cut bytes at its front. `spare` replaces it and gets the uncut
    /// rest.
    pub(super) fn take_cut(&mut self, mut spare: Vec<u8>) -> (Vec<u8>, usize) {
        spare.resize(self.buffer.len(), 0);
        let left = self.to - self.from;
        spare[..left].copy_from_slice(&self.buffer[self.from..self.to]);
        self.to = left;
        (std::mem::replace(&mut self.buffer, spare), std::mem::take(&mut self.from))
    }

    /// Moves the rest to the front and reads until the buffer is full or the file ends.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        while self.to < self.buffer.len() {
            match self.reader.read(&mut self.buffer[self.to..]) {
                Ok(0) => {
                    self.is_at_end = true;
                    break;
                }
                Ok(bytes) => self.to += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

const AVERAGE_LOG2_MIN: u8 = 11;
/// Flag in the byte of the average length.
const SHORT_HASHES: u8 = 0x80;
const FINER_LOG2: u8 = 5;
/// Maximum of the crate `fastcdc`.
const AVERAGE_LOG2_MAX: u8 = 22;
/// Minimum file length. Below it, a signature and a whole chunk are a large part of the file.
const FILE_BYTES_MIN: u64 = 16 << 10;
/// Long reads, so that a hard disk reaches its full rate.
const BUFFER_BYTES_MIN: usize = 512 << 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::delta::tests::noise;

    /// Reader with short reads of arbitrary length.
    struct Torn<'a> {
        rest: &'a [u8],
        lens: std::iter::Cycle<std::vec::IntoIter<usize>>,
    }

    impl Read for Torn<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let len = self.lens.next().unwrap().min(self.rest.len()).min(out.len());
            let (head, rest) = self.rest.split_at(len);
            out[..len].copy_from_slice(head);
            self.rest = rest;
            Ok(len)
        }
    }

    fn cut(mut chunks: Chunks<impl Read>) -> (Vec<Chunk>, Vec<u8>) {
        let (mut all, mut bytes) = (Vec::new(), Vec::new());
        while let Some((chunk, content)) = chunks.next().unwrap() {
            assert_eq!(chunk, Chunk::of(content));
            all.push(chunk);
            bytes.extend_from_slice(content);
        }
        (all, bytes)
    }

    #[test]
    fn chunks_grow_with_the_file_and_stay_few() {
        let average = |bytes| ChunkSizes::for_file(bytes, true).map(|sizes| sizes.average());
        assert_eq!(average(0), None);
        assert_eq!(average(FILE_BYTES_MIN - 1), None);
        assert_eq!(average(FILE_BYTES_MIN), Some(2 << 10));
        assert_eq!(average(1_000_000), Some(2 << 10));
        assert_eq!(average(1_000_000_000), Some(64 << 10));
        assert_eq!(average(1 << 40), Some(2 << 20));
        assert_eq!(average(FILE_BYTES_MAX), Some(4 << 20));
        assert_eq!(average(FILE_BYTES_MAX + 1), None);
        for log2 in 14..43 {
            for bytes in [1_u64 << log2, (2 << log2) - 1] {
                let sizes = ChunkSizes::for_file(bytes, true).unwrap();
                assert_eq!(ChunkSizes::from_byte(sizes.to_byte()), Some(sizes));
                let long = ChunkSizes::for_file(bytes, false).unwrap();
                assert_eq!((long.average(), long.to_byte()), (sizes.average(), sizes.average_log2()));
                assert_eq!(sizes.finer().map(|finer| finer.to_byte() >> 7), sizes.finer().map(|_| 1));
                assert!(bytes / sizes.average() as u64 <= CHUNKS_MAX as u64 / 2, "{bytes} bytes");
            }
        }
        assert!([10, 23, 0x40 | 16, 0x80 | 10, 0x80 | 23].map(ChunkSizes::from_byte) == [None; 5]);
    }

    /// If another version of the crate cut elsewhere, every file of an older peer would look changed.
    #[test]
    fn the_cuts_are_those_of_every_version() {
        let sizes = ChunkSizes::from_byte(12).unwrap();
        let (chunks, bytes) = cut(Chunks::new(&noise(1, 60_000)[..], sizes));
        assert_eq!(bytes.len(), 60_000);
        let lens: Vec<_> = chunks.iter().map(|chunk| chunk.len).collect();
        assert_eq!(lens, GOLDEN);
    }
    const GOLDEN: [u32; 13] = [4376, 4189, 5823, 5488, 4123, 4068, 4708, 4626, 6333, 4196, 5295, 4132, 2643];

    #[test]
    fn chunks_are_about_as_long_as_they_should_be() {
        for average_log2 in [11, 14, 17] {
            let sizes = ChunkSizes::from_byte(average_log2).unwrap();
            let (chunks, bytes) = cut(Chunks::new(&noise(2, 8 << 20)[..], sizes));
            let average = bytes.len() / chunks.len();
            assert!((sizes.average() * 3 / 4..sizes.average() * 3 / 2).contains(&average), "{average}");
            let (last, before) = chunks.split_last().unwrap();
            assert!(before.iter().all(|chunk| (sizes.min()..=sizes.max()).contains(&(chunk.len as usize))));
            assert!((1..=sizes.max()).contains(&(last.len as usize)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn all_of_a_file_is_in_chunks_wherever_reads_end(
            seed: u64, len in 0..200_000_usize, lens in prop::collection::vec(1..70_000_usize, 1..8),
        ) {
            let bytes = noise(seed, len);
            let sizes = ChunkSizes::from_byte(11).unwrap();
            let (at_once, joined) = cut(Chunks::new(&bytes[..], sizes));
            prop_assert_eq!(joined, &bytes[..]);
            let torn = Torn { rest: &bytes, lens: lens.into_iter().cycle() };
            prop_assert_eq!(cut(Chunks::new(torn, sizes)).0, at_once);
        }
    }
}
