//! Each end's pass over its file: the receiver's over the basis, the sender's over the new file, both at the same time.

use std::io::{self, Read};

use crossbeam_channel::Receiver;

use super::chunks::{Chunk, ChunkSizes, Chunks};
use super::matcher::{Matcher, Piece};
use super::signature::{BasisMap, Signature, SignatureWriter, short_hash};

/// The receiver's pass: tells the pieces of the basis's signature while it reads, and returns where its chunks are.
///
/// # Errors
/// Of reading, and those of `tell`.
pub(crate) fn sign<E: From<io::Error>>(
    basis: impl Read,
    sizes: ChunkSizes,
    mut tell: impl FnMut(Vec<u8>) -> Result<(), E>,
) -> Result<BasisMap, E> {
    let (mut writer, mut map) = (SignatureWriter::new(), BasisMap::default());
    let mut chunks = Chunks::new(basis, sizes);
    let (told_every, mut untold) = ((NEAR_CHUNKS * sizes.average()).max(TOLD_BYTES_MIN), 0);
    while let Some((chunk, _)) = chunks.next()? {
        map.push(chunk);
        untold += chunk.len as usize;
        if writer.push(chunk) || untold >= told_every {
            untold = 0;
            tell(writer.take())?;
        }
    }
    let rest = writer.take();
    if !rest.is_empty() {
        tell(rest)?;
    }
    Ok(map)
}

/// What has come of a signature.
#[derive(Debug)]
pub(crate) enum Told {
    /// Its next chunks, as they were [read](super::read_piece).
    Chunks(Vec<(u64, u32)>),
    /// That was all of it.
    Whole,
}

/// What is read of a file between two messages, at least: the sender goes along, and small files are one message.
const TOLD_BYTES_MIN: usize = 1 << 20;

/// The sender's pass over the new file. It goes along with the signature while that comes: where the two are the same, hashing shows
/// it, and nothing is cut. Tells each piece as soon as it is known.
///
/// Until all of the signature is there it keeps the chunks, 20 bytes each. Returns the signature.
///
/// # Errors
/// Of reading, and those of `tell`; [`io::ErrorKind::UnexpectedEof`] where no signature comes any more.
pub(crate) fn compare<E: From<io::Error>>(
    new: impl Read,
    sizes: ChunkSizes,
    told: &Receiver<Told>,
    mut tell: impl FnMut(Piece) -> Result<(), E>,
) -> Result<Signature, E> {
    let mut chunks = Chunks::new(new, sizes);
    let mut along = Along::with(told, sizes);
    while let Some(expected) = along.expected()? {
        match chunks.next_like(expected)? {
            Some((chunk, _)) => along.push(chunk),
            None => break,
        }
    }
    let (signature, came) = along.finish()?;
    let mut matcher = Matcher::new(signature);
    came.into_iter().try_for_each(|chunk| tell_next(&mut matcher, chunk, &mut tell))?;
    while let Some((chunk, _)) = chunks.next_like(matcher.expected())? {
        tell_next(&mut matcher, chunk, &mut tell)?;
    }
    let (last, signature) = matcher.finish();
    last.map_or(Ok(()), tell)?;
    Ok(signature)
}

/// The new file beside a signature of which not all has come.
struct Along<'a> {
    told: &'a Receiver<Told>,
    signature: Signature,
    is_whole: bool,
    /// Those of the new file.
    chunks: Vec<Chunk>,
    /// The chunk of the basis behind the last one that was found.
    next: usize,
    is_in_step: bool,
}

/// So many chunks of the basis are looked through for one of the new file, and told before it is cut: chunks that are there are not
/// missed because they come later.
const NEAR_CHUNKS: usize = 64;

impl<'a> Along<'a> {
    fn with(told: &'a Receiver<Told>, sizes: ChunkSizes) -> Self {
        let signature = Signature::new(sizes);
        Self { told, signature, is_whole: false, chunks: Vec::new(), next: 0, is_in_step: true }
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

    fn push(&mut self, chunk: Chunk) {
        let wanted = (short_hash(&chunk.hash), chunk.len);
        let near = self.signature.chunks().iter().skip(self.next).take(NEAR_CHUNKS);
        let found = near.copied().position(|told| told == wanted);
        self.is_in_step = found.is_some();
        self.next += found.map_or(0, |at| at + 1);
        self.chunks.push(chunk);
    }

    fn take_in(&mut self) -> io::Result<()> {
        match self.told.recv() {
            Ok(Told::Chunks(chunks)) => self.signature.extend(chunks),
            Ok(Told::Whole) => self.is_whole = true,
            Err(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
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
    tell: &mut impl FnMut(Piece) -> Result<(), E>,
) -> Result<(), E> {
    matcher.push(chunk).map_or(Ok(()), tell)
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::unbounded;

    use super::*;
    use crate::delta::signature::read_piece;
    use crate::delta::tests::noise;

    fn sizes() -> ChunkSizes {
        ChunkSizes::from_average_log2(11).unwrap()
    }

    fn told(basis: &[u8]) -> Vec<Told> {
        let (mut told, mut before) = (Vec::new(), 0);
        sign(basis, sizes(), |piece| {
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
            compare(new, sizes(), &heard, |piece| {
                pieces.push(piece);
                io::Result::Ok(())
            })
            .unwrap();
            pieces
        })
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
            foretold += usize::from(expected == Some((short_hash(&chunk.hash), chunk.len)));
            along.push(chunk);
        }
        assert_eq!(along.chunks, chunks(&new));
        assert!(foretold + 4 >= along.chunks.len(), "{foretold} of {}", along.chunks.len());
    }

    #[test]
    fn a_signature_that_does_not_come_any_more_is_an_error() {
        for len in [0, 100, 3_000_000] {
            let (sender, receiver) = unbounded::<Told>();
            drop(sender);
            let failed: io::Result<Signature> = compare(&noise(1, len)[..], sizes(), &receiver, |_| Ok(()));
            assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{len}");
        }
    }

    #[test]
    fn an_empty_basis_has_no_pieces() {
        let mut told = 0;
        let map: io::Result<BasisMap> = sign(&[][..], sizes(), |_| {
            told += 1;
            Ok(())
        });
        assert_eq!((map.unwrap().stretch(0, 1), told), (None, 0));
    }
}
