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
mod tests {
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::atomic::{AtomicI64, AtomicUsize};

    use crossbeam_channel::{bounded, unbounded};

    use super::*;
    use crate::delta::early::with_settled;
    use crate::delta::laid::Laid;
    use crate::delta::laying::Block;
    use crate::delta::signature::read_piece;
    use crate::delta::tests::noise;

    fn sizes() -> ChunkSizes {
        ChunkSizes::from_byte(11).unwrap()
    }

    fn told(basis: &[u8]) -> Vec<Told> {
        let (mut told, mut before) = (Vec::new(), 0);
        sign(basis, sizes(), None, &Mutex::default(), |piece| {
            let chunks = read_piece(&piece, sizes(), before).ok_or_else(|| io::Error::other("piece"))?;
            before += chunks.len();
            told.push(Told::Chunks(chunks));
            io::Result::Ok(())
        })
        .unwrap();
        told.push(Told::Whole);
        told
    }

    /// Compared with a signature of which so many messages have come before, and the others come now and then.
    fn compared(new: &[u8], basis: &[u8], before: usize) -> Vec<Piece> {
        let (tell, heard) = unbounded();
        let mut told = told(basis).into_iter();
        told.by_ref().take(before).for_each(|told| tell.send(told).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for told in told {
                    std::thread::yield_now();
                    // What is not needed any more, nobody takes.
                    let _ = tell.send(told);
                }
            });
            let mut pieces = Vec::new();
            compare(new, sizes(), &heard, no_early(), |finding| {
                pieces.extend(piece(finding));
                io::Result::Ok(())
            })
            .unwrap();
            pieces
        })
    }

    type Open = fn(Range<u64>) -> io::Result<&'static [u8]>;

    /// For whom nothing is told again.
    fn no_early() -> Option<EarlyLooks<'static, Open>> {
        None
    }

    fn piece(finding: Finding) -> Option<Piece> {
        if let Finding::Piece(piece) = finding { Some(piece) } else { None }
    }

    fn data_bytes(pieces: &[Piece]) -> u64 {
        pieces.iter().map(|piece| if let Piece::Data { len, .. } = piece { *len } else { 0 }).sum()
    }

    #[test]
    fn the_plan_is_the_same_whenever_the_signature_comes() {
        let basis = noise(1, 5_000_000);
        let mut new = basis.clone();
        new.splice(900_000..900_000, noise(2, 20_000));
        let all = told(&basis).len();
        assert!(all > 4, "{all} messages");
        let at_once = compared(&new, &basis, all);
        let copied = at_once.iter().filter(|piece| matches!(piece, Piece::Copy { .. })).count();
        assert_eq!(copied, 2, "{at_once:?}");
        assert!((20_000..40_000).contains(&data_bytes(&at_once)), "{at_once:?}");
        for before in 0..all {
            assert_eq!(compared(&new, &basis, before), at_once, "{before} of {all} came before");
        }
    }

    #[test]
    fn what_stands_in_front_of_all_that_was_there_is_all_that_is_sent() {
        let basis = noise(1, 3_000_000);
        let new = [b"a line more", &basis[..]].concat();
        let all = told(&basis).len();
        for before in [0, 1, all] {
            let plan = compared(&new, &basis, before);
            assert_eq!(plan[0], Piece::Data { from: 0, len: 11 }, "{before} of {all} came before");
            assert!(plan[1..].iter().all(|piece| matches!(piece, Piece::Copy { .. })), "{plan:?}");
        }
    }

    #[test]
    fn what_moved_is_found_whenever_the_signature_comes() {
        let basis = noise(1, 5_000_000);
        let mut new = basis.clone();
        let moved: Vec<u8> = new.drain(2_000_000..2_500_000).collect();
        new.extend(moved);
        let all = told(&basis).len();
        for before in 0..=all {
            // The last chunk ends with the file: who goes along finds it in the middle, too, and looks for the next one behind it.
            let data = data_bytes(&compared(&new, &basis, before));
            assert!((1_000..40_000).contains(&data), "{data}, {before} of {all} came before");
        }
    }

    #[test]
    fn what_goes_along_with_the_signature_is_cut_only_where_it_differs() {
        let basis = noise(1, 3_000_000);
        let mut new = basis.clone();
        new[1_500_000] ^= 1;
        let chunks = |bytes: &[u8]| {
            let (mut all, mut chunks) = (Vec::new(), Chunks::new(bytes, sizes()));
            while let Some((chunk, _)) = chunks.next().unwrap() {
                all.push(chunk);
            }
            all
        };
        let (tell, heard) = unbounded();
        // Without the last word it goes along to the end.
        let chunks_only = told(&basis).into_iter().filter(|told| matches!(told, Told::Chunks(_)));
        chunks_only.for_each(|told| tell.send(told).unwrap());
        drop(tell);
        let mut along = Along::with(&heard, sizes());
        let (mut cut, mut foretold) = (Chunks::new(&new[..], sizes()), 0);
        while let Ok(Some(expected)) = along.expected() {
            let Some((chunk, _)) = cut.next_like(expected).unwrap() else { break };
            foretold += usize::from(expected == Some(along.signature.told(&chunk)));
            assert_eq!(along.push(chunk), None, "it is where it was");
        }
        assert_eq!(along.chunks, chunks(&new));
        assert!(foretold + 4 >= along.chunks.len(), "{foretold} of {}", along.chunks.len());
    }

    #[test]
    fn where_the_basis_lies_in_the_new_file_is_said_before_all_of_the_signature_has_come() {
        let basis = noise(1, 3_000_000);
        let mut new = basis.clone();
        new.drain(1_000_000..1_000_100);
        new.splice(0..0, noise(2, 777));
        let (tell, heard) = unbounded();
        let chunks_only = told(&basis).into_iter().filter(|told| matches!(told, Told::Chunks(_)));
        chunks_only.for_each(|told| tell.send(told).unwrap());
        drop(tell);
        let mut shifts = Vec::new();
        let failed: io::Result<Compared> = compare(&new[..], sizes(), &heard, no_early(), |finding| {
            shifts.push(finding);
            Ok(())
        });
        assert!(failed.is_err(), "the last word is missing");
        assert_eq!(shifts, [Finding::Shift(777), Finding::Shift(677)]);
    }

    /// What came of a basis that was told and laid, with these words of the sender after so many blocks.
    fn lay(basis: &[u8], new_bytes: u64, words: &[(usize, i64)]) -> (Laid, Vec<u8>) {
        let (blocks_in, blocks) = bounded::<Block>(2);
        let (spare, spare_out) = bounded(2);
        (0..2).for_each(|_| spare.send(Vec::new()).unwrap());
        let shift = AtomicI64::new(0);
        let mut laying = Laying::new(&shift, new_bytes, blocks_in, spare_out);
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                let (mut file, mut laid) = (vec![0; new_bytes as usize], Laid::default());
                for (number, Block { buffer, chunks, mut at }) in blocks.iter().enumerate() {
                    let mut rest = &buffer[..];
                    for chunk in chunks {
                        let (bytes, behind) = rest.split_at(chunk.len as usize);
                        assert_eq!(chunk, Chunk::of(bytes));
                        file[at as usize..][..bytes.len()].copy_from_slice(bytes);
                        laid.add(at..at + bytes.len() as u64, chunk.hash);
                        (rest, at) = (behind, at + bytes.len() as u64);
                    }
                    words
                        .iter()
                        .filter(|word| word.0 == number)
                        .for_each(|word| shift.store(word.1, Relaxed));
                    let _ = spare.send(buffer);
                }
                (laid, file)
            });
            sign(basis, sizes(), Some(&mut laying), &Mutex::default(), |_| io::Result::Ok(())).unwrap();
            drop(laying);
            writing.join().unwrap()
        })
    }

    #[test]
    fn what_is_read_for_the_signature_is_laid_where_the_sender_says() {
        let basis = noise(1, 5_000_000);
        let mut chunks = Chunks::new(&basis[..], sizes());
        let (mut cut, mut at) = (Vec::new(), 0_u64);
        while let Some((chunk, _)) = chunks.next().unwrap() {
            cut.push((at..at + u64::from(chunk.len), chunk.hash));
            at += u64::from(chunk.len);
        }
        for words in [&[][..], &[(0, 777)], &[(2, -5_000), (3, 900_000)], &[(0, 900_000), (1, 0)]] {
            let (laid, file) = lay(&basis, 6_000_000, words);
            let mut bytes = 0;
            for (stretch, hash) in &cut {
                for shift in words.iter().map(|word| word.1).chain([0]) {
                    let place = [stretch.start, stretch.end].map(|at| at.wrapping_add_signed(shift));
                    if laid.hash(&(place[0]..place[1])) == Some(hash) {
                        assert_eq!(*hash, Chunk::of(&file[place[0] as usize..place[1] as usize]).hash);
                        bytes += place[1] - place[0];
                    }
                }
            }
            // A jump to and fro costs what was laid between.
            assert!(bytes >= if words.len() < 2 { 5_000_000 } else { 2_000_000 }, "{words:?} {bytes}");
        }
        // Nothing is laid behind the end of the new file.
        let (laid, _) = lay(&basis, 2_000_000, &[]);
        assert!((1_000_000..=2_000_000).contains(&laid.end()), "{}", laid.end());
    }

    #[test]
    fn a_signature_is_told_to_its_end_where_nothing_can_be_laid() {
        let basis = noise(1, 5_000_000);
        let (blocks_in, blocks) = bounded::<Block>(2);
        let (spare, spare_out) = bounded(2);
        spare.send(Vec::new()).unwrap();
        drop((blocks, spare));
        let shift = AtomicI64::new(0);
        let mut laying = Laying::new(&shift, 5_000_000, blocks_in, spare_out);
        let map = Mutex::new(BasisMap::default());
        sign(&basis[..], sizes(), Some(&mut laying), &map, |_| io::Result::Ok(())).unwrap();
        assert_eq!(map.into_inner().unwrap().stretch(0, 1).map(|first| first.start), Some(0));
    }

    #[test]
    fn what_was_written_over_in_place_is_told_again_and_sent_before_the_plan() {
        let coarse = ChunkSizes::from_byte(16).unwrap();
        let finer = coarse.finer().unwrap();
        let (basis, map) = (noise(1, 20_000_000), Mutex::new(BasisMap::default()));
        let mut new = basis.clone();
        for (number, at) in [3_000_000, 9_000_000, 15_000_000].into_iter().enumerate() {
            new[at..at + 100_000].copy_from_slice(&noise(number as u64 + 5, 100_000));
        }
        // What moves is not in place, and waits for the plan.
        let moved: Vec<u8> = new.drain(17_000_000..17_500_000).collect();
        new.extend(moved);
        let (tell, heard) = unbounded();
        tell.send(Told::WritesAlong).unwrap();
        let mut before = 0;
        sign(&basis[..], coarse, None, &map, |piece| {
            let chunks = read_piece(&piece, coarse, before).unwrap();
            before += chunks.len();
            tell.send(Told::Chunks(chunks)).unwrap();
            io::Result::Ok(())
        })
        .unwrap();
        let unsent = AtomicUsize::new(0);
        let stretch = |bytes: Range<u64>| Ok(&new[bytes.start as usize..bytes.end as usize]);
        let early = Some(EarlyLooks::new(finer, &unsent, stretch));
        let (mut pieces, mut looks, mut sent) = (Vec::new(), 0, Vec::new());
        let compared = compare(&new[..], coarse, &heard, early, |finding| {
            match finding {
                Finding::Look { first, chunks } => {
                    looks += 1;
                    let bytes = map.lock().unwrap().stretch(first, chunks).unwrap();
                    let mut cut = Chunks::new(&basis[bytes.start as usize..bytes.end as usize], finer);
                    let mut again = Vec::new();
                    while let Some((chunk, _)) = cut.next().unwrap() {
                        again.push((finer.told_hash(&chunk.hash), chunk.len));
                    }
                    tell.send(Told::Finer(again)).unwrap();
                    if looks == 3 {
                        tell.send(Told::Whole).unwrap();
                    }
                }
                Finding::Early(bytes) => {
                    assert!(pieces.is_empty(), "before the plan");
                    let [from, len] = [bytes.from as usize, bytes.content.len()];
                    assert!(bytes.content == new[from..from + len]);
                    sent.push((bytes.from, len as u64));
                }
                Finding::Piece(piece) => pieces.push(piece),
                Finding::Shift(_) => {}
            }
            io::Result::Ok(())
        })
        .unwrap();
        assert_eq!((looks, unsent.into_inner() as u64), (3, sent.iter().map(|sent| sent.1).sum()));
        let early: u64 = sent.iter().map(|sent| sent.1).sum();
        assert!((300_000..330_000).contains(&early), "{early}");
        let plan = with_settled(pieces.clone(), &compared.settled);
        let total = |plan: &[Piece]| plan.iter().map(Piece::len).sum::<u64>();
        assert_eq!((total(&plan), total(&pieces)), (new.len() as u64, new.len() as u64));
        let laid: Vec<_> = plan
            .iter()
            .filter_map(
                |piece| if let Piece::Laid { from, len, .. } = piece { Some((*from, *len)) } else { None },
            )
            .collect();
        assert_eq!(laid, sent);
        let early_runs = plan.iter().filter(
            |piece| matches!(piece, Piece::Copy { run, .. } if run.first >= crate::delta::EARLY_FIRST),
        );
        assert!(early_runs.count() >= 3, "what did not change around them");
        assert!(data_bytes(&plan) < 300_000, "where something moved: {}", data_bytes(&plan));
    }

    #[test]
    fn a_signature_that_does_not_come_any_more_is_an_error() {
        for len in [0, 100, 3_000_000] {
            let (sender, receiver) = unbounded::<Told>();
            drop(sender);
            let failed: io::Result<Compared> =
                compare(&noise(1, len)[..], sizes(), &receiver, no_early(), |_| Ok(()));
            assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{len}");
        }
    }

    #[test]
    fn an_empty_basis_has_no_pieces() {
        let mut told = 0;
        let map = Mutex::new(BasisMap::default());
        let signed: io::Result<()> = sign(&[][..], sizes(), None, &map, |_| {
            told += 1;
            Ok(())
        });
        signed.unwrap();
        assert_eq!((map.into_inner().unwrap().stretch(0, 1), told), (None, 0));
    }
}
