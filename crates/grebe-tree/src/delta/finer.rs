//! Second comparison of changed regions in finer chunks. Only the signatures around changes are sent again.

use std::io::{self, Read};
use std::ops::Range;

use super::chunks::{CHUNKS_MAX, ChunkSizes, Chunks};
use super::early::{Settled, is_settled};
use super::matcher::{Matcher, Piece};
use super::signature::Signature;

/// Data between two matching chunks, with the chunks of the basis between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Pieces of the plan.
    pieces: Range<usize>,
    /// Bytes of the new file.
    new: Range<u64>,
    /// Chunks of the basis: the first, and how many.
    pub(crate) first: u32,
    pub(crate) chunks: u32,
    /// Length of these chunks in bytes.
    basis_bytes: u64,
}

/// Gaps for which a second comparison pays. It costs a round trip, and a signature of about half a percent of
/// the ranges.
///
/// Empty if there is little to send, or if most of the file changed. Settled gaps are skipped.
pub(crate) fn gaps(
    pieces: &[Piece],
    signature: &Signature,
    settled: &[Settled],
    finer: ChunkSizes,
) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let (mut at, mut next_chunk, mut data) = (0, 0, 0);
    let mut open: Option<(usize, u64)> = None;
    let total_chunks = signature.len();
    let mut close = |open: &mut Option<(usize, u64)>, end: usize, at: u64, chunks: Range<u32>| {
        let Some((begin, from)) = open.take() else { return };
        if chunks.is_empty() {
            return;
        }
        let lens = signature.chunks()[chunks.start as usize..chunks.end as usize].iter();
        let basis_bytes = lens.map(|(_, len)| u64::from(*len)).sum();
        let (first, chunks) = (chunks.start, chunks.end - chunks.start);
        gaps.push(Gap { pieces: begin..end, new: from..at, first, chunks, basis_bytes });
    };
    for (number, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Data { len, .. } | Piece::Laid { len, .. } => {
                open.get_or_insert((number, at));
                data += len;
                at += len;
            }
            Piece::Copy { run, len } => {
                close(&mut open, number, at, next_chunk..run.first.max(next_chunk));
                next_chunk = run.first + run.chunks;
                at += len;
            }
        }
    }
    close(&mut open, pieces.len(), at, next_chunk..total_chunks.max(next_chunk));
    gaps.retain(|gap| !is_settled(settled, &gap.new));
    let data = data.saturating_sub(settled.iter().map(Settled::bytes).sum());
    let basis_bytes: u64 = gaps.iter().map(|gap| gap.basis_bytes).sum();
    let chunks = basis_bytes >> finer.average_log2();
    let is_bounded = chunks <= CHUNKS_MAX as u64 / 4 && gaps.len() <= GAPS_MAX;
    let pays = is_bounded && data >= DATA_BYTES_MIN && basis_bytes <= at / 2;
    if pays { gaps } else { Vec::new() }
}

/// Refines the plan with gaps compared in finer chunks; `None` if the signature does not cover these gaps.
///
/// `first` is the number of the first finer chunk. `stretch` opens a range of the new file.
///
/// # Errors
/// Of reading.
pub(crate) fn refine<R: Read>(
    pieces: &[Piece],
    gaps: &[Gap],
    sizes: ChunkSizes,
    signature: Signature,
    first: u32,
    mut stretch: impl FnMut(Range<u64>) -> io::Result<R>,
) -> io::Result<Option<Vec<Piece>>> {
    let Some(apart) = begins(gaps, &signature) else { return Ok(None) };
    let mut matcher = Matcher::of_stretches(signature, first, apart);
    let (mut refined, mut kept) = (Vec::with_capacity(pieces.len()), 0);
    for gap in gaps {
        refined.extend_from_slice(&pieces[kept..gap.pieces.start]);
        kept = gap.pieces.end;
        matcher.go_to(gap.new.start);
        let mut chunks = Chunks::new(stretch(gap.new.clone())?, sizes);
        let mut bytes = 0;
        while let Some((chunk, _)) = chunks.next_like(matcher.expected())? {
            bytes += u64::from(chunk.len);
            refined.extend(matcher.push(chunk));
        }
        if bytes != gap.new.end - gap.new.start {
            return Ok(None);
        }
        refined.extend(matcher.go_to(gap.new.end));
    }
    refined.extend_from_slice(&pieces[kept..]);
    Ok(Some(refined))
}

/// First chunk of each gap; `None` if the lengths of chunks and gaps differ.
fn begins(gaps: &[Gap], signature: &Signature) -> Option<Vec<u32>> {
    let mut lens = signature.chunks().iter().map(|(_, len)| u64::from(*len));
    let (mut begins, mut number) = (Vec::with_capacity(gaps.len()), 0);
    for gap in gaps {
        begins.push(number);
        let mut left = gap.basis_bytes;
        while left > 0 {
            left = left.checked_sub(lens.next()?)?;
            number += 1;
        }
    }
    lens.next().is_none().then_some(begins)
}

/// Minimum data in gaps; less is sent sooner than compared again.
const DATA_BYTES_MIN: u64 = 256 << 10;
/// Maximum gaps, as one message holds.
pub(crate) const GAPS_MAX: usize = 50_000;
