//! Simultaneous passes of both ends: the receiver reads the basis, the sender the new file.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crossbeam_channel::Receiver;

use super::chunks::{Chunk, ChunkSizes, Chunks};
use super::early::{EarlyBytes, EarlyComparisons, InPlace, Settled};
use super::laying::Laying;
use super::matcher::{Matcher, Piece};
use super::signature::{BasisMap, Signature, SignatureWriter};

/// The receiver's pass: sends the pieces of the basis's signature as it reads. Notes the places of its chunks
/// in the `map` before it sends them. With a `laying`, the data also goes into the new file.
///
/// # Errors
/// Errors of reading and of `tell`.
pub(crate) fn sign<E: From<io::Error>>(
    basis: impl Read,
    sizes: ChunkSizes,
    mut laying: Option<&mut Laying<'_>>,
    map: &Mutex<BasisMap>,
    mut tell: impl FnMut(Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let mut writer = SignatureWriter::new(sizes);
    let mut chunks = Chunks::new(basis, sizes);
    let (told_every, mut untold) = ((NEAR_CHUNKS * sizes.average()).max(MESSAGE_BYTES_MIN), 0);
    loop {
        if let Some(laying) = laying.as_mut().filter(|_| chunks.reads_next()) {
            laying.hand_on(&mut chunks);
        }
        let Some((chunk, _)) = chunks.next()? else { break };
        map.lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
        if let Some(laying) = &mut laying {
            laying.push(chunk);
        }
        untold += chunk.len as usize;
        if writer.push(chunk) || untold >= told_every {
            untold = 0;
            tell(writer.take())?;
        }
    }
    if let Some(laying) = laying {
        laying.hand_on(&mut chunks);
    }
    let rest = writer.take();
    if !rest.is_empty() {
        tell(rest)?;
    }
    Ok(())
}

/// Part of a signature that arrived.
#[derive(Debug)]
pub(crate) enum ArrivedPart {
    /// The receiver writes ahead, and answers requests for finer chunks.
    WritesAlong,
    /// The next chunks, as [read](super::read_piece).
    Chunks(Vec<(u64, u32)>),
    /// Finer chunks of the oldest open request; empty if they are not available.
    Finer(Vec<(u64, u32)>),
    /// End of the signature.
    Whole,
}

/// Maximum shifts. A file with more moves needs its whole signature anyway.
const SHIFTS_MAX: usize = 1_000;

/// Minimum bytes to read between messages. The sender keeps up, and small files are one message.
const MESSAGE_BYTES_MIN: usize = 1 << 20;

/// Finding about a new file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Probable offset of the basis in the new file from here on; 0 at first. At most [`SHIFTS_MAX`], all
    /// before the first piece.
    Shift(i64),
    /// Request for finer chunks of these chunks of the basis.
    FinerRange {
        first: u32,
        chunks: u32,
    },
    /// New data, to be sent before the plan.
    Early(EarlyBytes),
    Piece(Piece),
}

/// Result of the comparison, with its signature.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) signature: Signature,
    pub(crate) settled: Vec<Settled>,
}

/// The sender's pass over the new file. It keeps pace with the signature. Where both are equal, hashing
/// proves it and nothing needs cutting. Reports every finding at once.
///
/// Keeps the chunks, 20 bytes each, until the whole signature has arrived. If the receiver writes ahead,
/// `early` compares gaps again meanwhile.
///
/// # Errors
/// Errors of reading and of `tell`; [`io::ErrorKind::UnexpectedEof`] if the signature breaks off.
pub(crate) fn compare<E, R, S>(
    new: impl Read,
    sizes: ChunkSizes,
    told: &Receiver<ArrivedPart>,
    mut early: Option<EarlyComparisons<'_, S>>,
    mut tell: impl FnMut(Finding) -> Result<(), E>,
) -> Result<Compared, E>
where
    E: From<io::Error>,
    R: Read,
    S: FnMut(Range<u64>) -> io::Result<R>,
{
    let mut chunks = Chunks::new(new, sizes);
    let (mut along, mut shifts) = (Along::with(told, sizes), 0);
    while let Some(expected) = along.expected()? {
        while let (Some(early), Some(finer)) = (&mut early, along.finer.pop_front()) {
            early.came(finer, |bytes| tell(Finding::Early(bytes)))?;
        }
        let Some((chunk, _)) = chunks.next_like(expected)? else { break };
        let shift = along.push(chunk);
        if let Some(shift) = shift.filter(|_| shifts < SHIFTS_MAX) {
            shifts += 1;
            tell(Finding::Shift(shift))?;
        }
        if let (Some(gap), Some(early), true) = (along.gap.take(), &mut early, along.writes_along) {
            let (first, chunks) = (gap.first, gap.chunks);
            if early.ask(gap) {
                tell(Finding::FinerRange { first, chunks })?;
            }
        }
    }
    // These gaps need a second comparison anyway, and all answers together take one round trip.
    while let Some(early) = early.as_mut().filter(|early| early.is_waiting()) {
        let finer = along.next_finer()?;
        early.came(finer, |bytes| tell(Finding::Early(bytes)))?;
    }
    let settled = early.map_or_else(Vec::new, EarlyComparisons::finish);
    let (signature, came) = along.finish()?;
    let mut matcher = Matcher::new(signature);
    came.into_iter().try_for_each(|chunk| tell_next(&mut matcher, chunk, &mut tell))?;
    while let Some((chunk, _)) = chunks.next_like(matcher.expected())? {
        tell_next(&mut matcher, chunk, &mut tell)?;
    }
    let (last, signature) = matcher.finish();
    last.map(Finding::Piece).map_or(Ok(()), tell)?;
    Ok(Compared { signature, settled })
}

/// The new file beside an incomplete signature.
struct Along<'a> {
    told: &'a Receiver<ArrivedPart>,
    signature: Signature,
    is_whole: bool,
    writes_along: bool,
    /// Finer chunks that have not been compared yet.
    finer: VecDeque<Vec<(u64, u32)>>,
    /// Region overwritten in place that ends where the last chunk begins.
    gap: Option<InPlace>,
    /// Chunks of the new file.
    chunks: Vec<Chunk>,
    /// Chunk of the basis after the last match, and its start in the basis.
    next: usize,
    next_at: u64,
    /// Start of the next chunk of the new file.
    at: u64,
    /// End of the last match in the new file.
    found_until: u64,
    /// Offset of the last match between new file and basis.
    shift: i64,
    is_in_step: bool,
}

/// Window of basis chunks to search for a new chunk, and to receive before cutting. Without the wait, chunks
/// that arrive later would be missed.
const NEAR_CHUNKS: usize = 64;

impl<'a> Along<'a> {
    fn with(told: &'a Receiver<ArrivedPart>, sizes: ChunkSizes) -> Self {
        let signature = Signature::new(sizes);
        Self {
            told,
            signature,
            is_whole: false,
            writes_along: false,
            finer: VecDeque::new(),
            gap: None,
            chunks: Vec::new(),
            next: 0,
            next_at: 0,
            at: 0,
            found_until: 0,
            shift: 0,
            is_in_step: true,
        }
    }

    /// Probable next chunk, if any; nothing once the whole signature has arrived.
    ///
    /// Waits for the receiver if it has not sent enough. It started reading earlier, and everybody waits for
    /// it in the end.
    #[allow(clippy::option_option, reason = "whether to go on, and whether one is known")]
    fn expected(&mut self) -> io::Result<Option<Option<(u64, u32)>>> {
        let near = self.next + if self.is_in_step { 1 } else { NEAR_CHUNKS };
        while !self.is_whole && (self.signature.chunks().len() < near || !self.told.is_empty()) {
            self.take_in()?;
        }
        if self.is_whole {
            return Ok(None);
        }
        Ok(Some(self.signature.chunks().get(self.next).copied().filter(|_| self.is_in_step)))
    }

    /// Takes the next chunk of the new file. Returns the offset of its match in the basis if that changed.
    fn push(&mut self, chunk: Chunk) -> Option<i64> {
        let wanted = self.signature.told(&chunk);
        let near = self.signature.chunks().iter().skip(self.next).take(NEAR_CHUNKS);
        let found = near.clone().position(|told| *told == wanted);
        let end = self.at + u64::from(chunk.len);
        self.is_in_step = found.is_some();
        let before = self.shift;
        if let Some(found) = found {
            let passed: u64 = near.clone().take(found).map(|(_, len)| u64::from(*len)).sum();
            let new = self.found_until..self.at;
            if passed > 0 && passed == new.end - new.start {
                self.gap = Some(InPlace { new, first: self.next as u32, chunks: found as u32 });
            }
            self.found_until = end;
            self.next_at += near.take(found + 1).map(|(_, len)| u64::from(*len)).sum::<u64>();
            self.next += found + 1;
            // The match ends there in both files.
            self.shift = end.wrapping_sub(self.next_at) as i64;
        }
        self.at = end;
        self.chunks.push(chunk);
        (self.shift != before).then_some(self.shift)
    }

    fn take_in(&mut self) -> io::Result<()> {
        match self.told.recv() {
            Ok(ArrivedPart::WritesAlong) => self.writes_along = true,
            Ok(ArrivedPart::Chunks(chunks)) => self.signature.extend(chunks),
            Ok(ArrivedPart::Finer(chunks)) => self.finer.push_back(chunks),
            Ok(ArrivedPart::Whole) => self.is_whole = true,
            Err(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
    }

    /// Returns the next finer chunks.
    fn next_finer(&mut self) -> io::Result<Vec<(u64, u32)>> {
        loop {
            match self.finer.pop_front() {
                Some(finer) => return Ok(finer),
                None => self.take_in()?,
            }
        }
    }

    /// Returns the whole signature, and the chunks so far.
    fn finish(mut self) -> io::Result<(Signature, Vec<Chunk>)> {
        while !self.is_whole {
            self.take_in()?;
        }
        Ok((self.signature, self.chunks))
    }
}

fn tell_next<E>(
    matcher: &mut Matcher,
    chunk: Chunk,
    tell: &mut impl FnMut(Finding) -> Result<(), E>,
) -> Result<(), E> {
    matcher.push(chunk).map(Finding::Piece).map_or(Ok(()), tell)
}

#[cfg(test)]
mod tests;
