//! Early second comparison of gaps while the signature is still arriving, so that new data leaves at once.
//!
//! A gap lies between matching chunks and has the same length in both files: it was overwritten in place.
//! Data in it without a match in finer chunks is almost certainly new. The receiver writes it to its place,
//! and the plan refers to it. So the path is busy while both ends still read.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::chunks::{CHUNKS_MAX, ChunkSizes, Chunks};
use super::matcher::{Matcher, Piece};
use super::signature::Signature;
use crate::wire::{GROUP_BYTES, short};

/// Region between two matching chunks, overwritten in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InPlace {
    /// Byte range of the new file; the basis has a range of the same length.
    pub(super) new: Range<u64>,
    /// Chunks of the basis: first and count.
    pub(crate) first: u32,
    pub(crate) chunks: u32,
}

/// A gap of the plan in finer pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settled {
    new: Range<u64>,
    pieces: Vec<Piece>,
}

/// Data to send before the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EarlyBytes {
    pub(crate) from: u64,
    pub(crate) content: Vec<u8>,
}

/// Early comparisons of one file. `stretch` opens a range of it.
pub(crate) struct EarlyComparisons<'a, S> {
    sizes: ChunkSizes,
    stretch: S,
    /// Bytes that wait to be sent, over all files.
    unsent: &'a AtomicUsize,
    asked: VecDeque<InPlace>,
    asked_bytes: u64,
    settled: Vec<Settled>,
    /// Number of finer chunks received.
    told: u32,
}

/// First number of early finer chunks, above all chunks of a signature.
pub(crate) const EARLY_FIRST: u32 = CHUNKS_MAX as u32;

/// Maximum length. A longer gap was moved rather than overwritten, and waits for the whole signature.
pub(crate) const GAP_BYTES_MAX: u64 = 1 << 20;

/// Allowance beyond a sixteenth of the compared bytes. If more changed, the file was not just edited in
/// place.
const ASKED_BYTES_MIN: u64 = 1 << 20;
const ASKED_SHARE: u64 = 16;
const LOOKS_MAX: usize = 50_000;

/// Maximum unsent bytes. On a slow path, the rest waits for the plan.
const UNSENT_BYTES_MAX: usize = 8 << 20;

impl<'a, R: Read, S: FnMut(Range<u64>) -> io::Result<R>> EarlyComparisons<'a, S> {
    pub(crate) fn new(sizes: ChunkSizes, unsent: &'a AtomicUsize, stretch: S) -> Self {
        let (asked, settled) = (VecDeque::new(), Vec::new());
        Self { sizes, stretch, unsent, asked, asked_bytes: 0, settled, told: 0 }
    }

    /// Whether to request finer chunks of a gap that ends at `gap.new.end` of the new file.
    pub(super) fn ask(&mut self, gap: InPlace) -> bool {
        let bytes = gap.new.end - gap.new.start;
        let is_asked = bytes <= GAP_BYTES_MAX
            && self.settled.len() + self.asked.len() < LOOKS_MAX
            && self.asked_bytes + bytes <= ASKED_BYTES_MIN + gap.new.end / ASKED_SHARE;
        if is_asked {
            self.asked_bytes += bytes;
            self.asked.push_back(gap);
        }
        is_asked
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Takes the finer chunks of the oldest request, which are empty if not available. Reports the data to
    /// send.
    pub(super) fn came<E: From<io::Error>>(
        &mut self,
        chunks: Vec<(u64, u32)>,
        mut tell: impl FnMut(EarlyBytes) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(gap) = self.asked.pop_front() else { return Ok(()) };
        let first = EARLY_FIRST.saturating_add(self.told);
        self.told = self.told.saturating_add(chunks.len() as u32);
        let told_bytes: u64 = chunks.iter().map(|(_, len)| u64::from(*len)).sum();
        if told_bytes != gap.new.end - gap.new.start {
            return Ok(());
        }
        let mut signature = Signature::new(self.sizes);
        signature.extend(chunks);
        let mut matcher = Matcher::of_stretches(signature, first, vec![0]);
        matcher.go_to(gap.new.start);
        let (mut found, mut bytes) = (Vec::new(), 0);
        let mut cut = Chunks::new((self.stretch)(gap.new.clone())?, self.sizes);
        while let Some((chunk, _)) = cut.next_like(matcher.expected())? {
            bytes += u64::from(chunk.len);
            found.extend(matcher.push(chunk));
        }
        found.extend(matcher.go_to(gap.new.end));
        if bytes != told_bytes {
            return Ok(());
        }
        let mut pieces = Vec::new();
        for piece in found {
            let Piece::Data { from, len } = piece else {
                pieces.push(piece);
                continue;
            };
            let (mut from, end) = (from, from + len);
            while from < end {
                let len = (end - from).min(GROUP_BYTES as u64);
                pieces.push(self.send(from, len, &mut tell)?);
                from += len;
            }
        }
        self.settled.push(Settled { new: gap.new, pieces });
        Ok(())
    }

    /// The settled gaps, in order.
    pub(super) fn finish(self) -> Vec<Settled> {
        self.settled
    }

    fn send<E: From<io::Error>>(
        &mut self,
        from: u64,
        len: u64,
        tell: &mut impl FnMut(EarlyBytes) -> Result<(), E>,
    ) -> Result<Piece, E> {
        if self.unsent.load(Ordering::Relaxed) >= UNSENT_BYTES_MAX {
            return Ok(Piece::Data { from, len });
        }
        let mut content = Vec::with_capacity(len as usize);
        (self.stretch)(from..from + len)?.read_to_end(&mut content)?;
        if content.len() as u64 != len {
            return Ok(Piece::Data { from, len });
        }
        let check = short(&blake3::hash(&content));
        self.unsent.fetch_add(content.len(), Ordering::Relaxed);
        tell(EarlyBytes { from, content })?;
        Ok(Piece::Laid { from, len, check })
    }
}

/// Whether any part of a range was settled.
pub(super) fn is_settled(settled: &[Settled], stretch: &Range<u64>) -> bool {
    let next = settled.partition_point(|settled| settled.new.start < stretch.start);
    settled.get(next).is_some_and(|settled| settled.is_in(stretch))
}

impl Settled {
    fn is_in(&self, stretch: &Range<u64>) -> bool {
        stretch.start <= self.new.start && self.new.end <= stretch.end
    }

    pub(super) fn bytes(&self) -> u64 {
        self.new.end - self.new.start
    }
}

/// Replaces data pieces of the plan with the settled pieces.
pub(crate) fn with_settled(pieces: Vec<Piece>, settled: &[Settled]) -> Vec<Piece> {
    let (mut all, mut left) = (Vec::with_capacity(pieces.len()), settled);
    for piece in pieces {
        let Piece::Data { mut from, len } = piece else {
            all.push(piece);
            continue;
        };
        let end = from + len;
        while let Some((first, rest)) = left.split_first().filter(|(first, _)| first.new.start < end) {
            left = rest;
            // If the plan found part of a gap elsewhere, that is better.
            if !first.is_in(&(from..end)) {
                continue;
            }
            if from < first.new.start {
                all.push(Piece::Data { from, len: first.new.start - from });
            }
            all.extend_from_slice(&first.pieces);
            from = first.new.end;
        }
        if from < end {
            all.push(Piece::Data { from, len: end - from });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(from: u64, len: u64) -> Piece {
        Piece::Data { from, len }
    }

    fn laid(from: u64, len: u64) -> Piece {
        Piece::Laid { from, len, check: [1; 16] }
    }

    #[test]
    fn early_ranges_replace_only_bytes_that_would_be_sent() {
        let run = crate::delta::Run { first: 0, chunks: 1, check: [0; 16] };
        let copy = Piece::Copy { run, len: 100 };
        let settled = |from: u64, pieces: &[Piece]| {
            let bytes: u64 = pieces.iter().map(Piece::len).sum();
            Settled { new: from..from + bytes, pieces: pieces.to_vec() }
        };
        let plan = vec![data(0, 50), copy, data(150, 100), copy, data(350, 30)];
        let all = [
            settled(0, &[laid(0, 20), data(20, 30)]),
            // The plan has a copy here.
            settled(40, &[laid(40, 60)]),
            settled(160, &[laid(160, 10)]),
            settled(200, &[laid(200, 50)]),
            settled(340, &[laid(340, 40)]),
        ];
        let expected = [
            laid(0, 20),
            data(20, 30),
            copy,
            data(150, 10),
            laid(160, 10),
            data(170, 30),
            laid(200, 50),
            copy,
            data(350, 30),
        ];
        assert_eq!(with_settled(plan.clone(), &all), expected);
        assert_eq!(with_settled(plan.clone(), &[]), plan);
    }
}
