//! Each end's pass over its file: the receiver's over the basis, the sender's over the new file, both at the same time.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crossbeam_channel::Receiver;

use super::chunks::{Chunk, ChunkSizes, Chunks};
use super::early::{EarlyBytes, EarlyLooks, InPlace, Settled};
use super::laying::Laying;
use super::matcher::{Matcher, Piece};
use super::signature::{BasisMap, Signature, SignatureWriter};

/// The receiver's pass: tells the pieces of the basis's signature while it reads, and notes in the `map` where its chunks are, before they
/// are told. What it reads goes on into the new file, where there is a `laying`.
///
/// # Errors
/// Of reading, and those of `tell`.
pub(crate) fn sign<E: From<io::Error>>(
    basis: impl Read,
    sizes: ChunkSizes,
    mut laying: Option<&mut Laying<'_>>,
    map: &Mutex<BasisMap>,
    mut tell: impl FnMut(Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let mut writer = SignatureWriter::new(sizes);
    let mut chunks = Chunks::new(basis, sizes);
    let (told_every, mut untold) = ((NEAR_CHUNKS * sizes.average()).max(TOLD_BYTES_MIN), 0);
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

/// What has come of a signature.
#[derive(Debug)]
pub(crate) enum Told {
    /// The receiver writes along, and tells again what it is asked for.
    WritesAlong,
    /// Its next chunks, as they were [read](super::read_piece).
    Chunks(Vec<(u64, u32)>),
    /// The finer chunks of what was asked for first and not told yet; none where they cannot be had.
    Finer(Vec<(u64, u32)>),
    /// That was all of it.
    Whole,
}

/// A file of which more has moved is one whose signature must be whole before anything is known.
const SHIFTS_MAX: usize = 1_000;

/// What is read of a file between two messages, at least: the sender goes along, and small files are one message.
const TOLD_BYTES_MIN: usize = 1 << 20;

/// What is known of a new file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// From here on the basis is probably found so much further on in the new file; 0 until this is said. There are [`SHIFTS_MAX`] at most,
    /// all before the first piece.
    Shift(i64),
    /// These chunks of the basis are to be told again, in finer ones.
    Look {
        first: u32,
        chunks: u32,
    },
    /// Is new, and may be sent before the plan.
    Early(EarlyBytes),
    Piece(Piece),
}

/// What the plan was made with.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) signature: Signature,
    pub(crate) settled: Vec<Settled>,
}

/// The sender's pass over the new file. It goes along with the signature while that comes: where the two are the same, hashing shows
/// it, and nothing is cut. Tells everything as soon as it is known.
///
/// Until all of the signature is there it keeps the chunks, 20 bytes each. Where the receiver writes along, gaps are looked at again meanwhile
/// by the `early` ones, if there are such.
///
/// # Errors
/// Of reading, and those of `tell`; [`io::ErrorKind::UnexpectedEof`] where no signature comes any more.
pub(crate) fn compare<E, R, S>(
    new: impl Read,
    sizes: ChunkSizes,
    told: &Receiver<Told>,
    mut early: Option<EarlyLooks<'_, S>>,
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
                tell(Finding::Look { first, chunks })?;
            }
        }
    }
    // Each was to be told again anyway, and all of them take one round trip.
    while let Some(early) = early.as_mut().filter(|early| early.is_waiting()) {
        let finer = along.next_finer()?;
        early.came(finer, |bytes| tell(Finding::Early(bytes)))?;
    }
    let settled = early.map_or_else(Vec::new, EarlyLooks::finish);
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

/// The new file beside a signature of which not all has come.
struct Along<'a> {
    told: &'a Receiver<Told>,
    signature: Signature,
    is_whole: bool,
    writes_along: bool,
    /// What was told again and is not looked at yet.
    finer: VecDeque<Vec<(u64, u32)>>,
    /// What was written over in place, and ends where the last chunk begins.
    gap: Option<InPlace>,
    /// Those of the new file.
    chunks: Vec<Chunk>,
    /// The chunk of the basis behind the last one that was found, and where it begins there.
    next: usize,
    next_at: u64,
    /// Where the next chunk of the new file begins.
    at: u64,
    /// The new file up to here ends with a chunk that was found.
    found_until: u64,
    /// How much further on than in the basis the last one was found.
    shift: i64,
    is_in_step: bool,
}

/// So many chunks of the basis are looked through for one of the new file, and told before it is cut: chunks that are there are not
/// missed because they come later.
const NEAR_CHUNKS: usize = 64;

impl<'a> Along<'a> {
    fn with(told: &'a Receiver<Told>, sizes: ChunkSizes) -> Self {
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

    /// The chunk that is probably the next one, if there is such a one; nothing at all once the whole signature is there.
    ///
    /// Waits for the receiver where it has not told so much yet. It has begun to read before, and everybody waits for it in the end.
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

    /// The next chunk of the new file; how much further on than in the basis it was found, where that is news.
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
            // Both end there.
            self.shift = end.wrapping_sub(self.next_at) as i64;
        }
        self.at = end;
        self.chunks.push(chunk);
        (self.shift != before).then_some(self.shift)
    }

    fn take_in(&mut self) -> io::Result<()> {
        match self.told.recv() {
            Ok(Told::WritesAlong) => self.writes_along = true,
            Ok(Told::Chunks(chunks)) => self.signature.extend(chunks),
            Ok(Told::Finer(chunks)) => self.finer.push_back(chunks),
            Ok(Told::Whole) => self.is_whole = true,
            Err(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
    }

    /// The next of what was told again.
    fn next_finer(&mut self) -> io::Result<Vec<(u64, u32)>> {
        loop {
            match self.finer.pop_front() {
                Some(finer) => return Ok(finer),
                None => self.take_in()?,
            }
        }
    }

    /// All of the signature, and the chunks so far.
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
