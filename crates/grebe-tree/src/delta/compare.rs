//! Each end's pass over its file: the receiver's over the basis, the sender's over the new file, both at the same time.

use std::io::{self, Read};

use crossbeam_channel::{Receiver, TryRecvError};

use super::chunks::{Chunk, ChunkSizes, Chunks};
use super::matcher::{Matcher, Piece};
use super::signature::{BasisMap, Signature, SignatureWriter};

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
    while let Some((chunk, _)) = chunks.next()? {
        map.push(chunk);
        if writer.push(chunk) {
            tell(writer.take())?;
        }
    }
    let rest = writer.take();
    if !rest.is_empty() {
        tell(rest)?;
    }
    Ok(map)
}

/// The sender's pass: cuts the new file while the signature is still on its way, and tells each piece as soon as it is known.
///
/// Until the signature is there it keeps the chunks, 20 bytes each. Returns the signature.
///
/// # Errors
/// Of reading, and those of `tell`; [`io::ErrorKind::UnexpectedEof`] where no signature comes any more.
pub(crate) fn compare<E: From<io::Error>>(
    new: impl Read,
    sizes: ChunkSizes,
    signature: &Receiver<Signature>,
    mut tell: impl FnMut(Piece) -> Result<(), E>,
) -> Result<Signature, E> {
    let mut chunks = Chunks::new(new, sizes);
    let mut early: Vec<Chunk> = Vec::new();
    let mut matcher = None;
    while let Some((chunk, _)) = chunks.next()? {
        match &mut matcher {
            Some(matcher) => tell_next(matcher, chunk, &mut tell)?,
            None => {
                early.push(chunk);
                match signature.try_recv() {
                    Ok(signature) => matcher = Some(with_early(signature, &mut early, &mut tell)?),
                    Err(TryRecvError::Empty) => {}
                    Err(TryRecvError::Disconnected) => return Err(no_signature().into()),
                }
            }
        }
    }
    let matcher = match matcher {
        Some(matcher) => matcher,
        None => with_early(signature.recv().map_err(|_| no_signature())?, &mut early, &mut tell)?,
    };
    let (last, signature) = matcher.finish();
    last.map_or(Ok(()), tell)?;
    Ok(signature)
}

fn with_early<E>(
    signature: Signature,
    early: &mut Vec<Chunk>,
    tell: &mut impl FnMut(Piece) -> Result<(), E>,
) -> Result<Matcher, E> {
    let mut matcher = Matcher::new(signature);
    std::mem::take(early).into_iter().try_for_each(|chunk| tell_next(&mut matcher, chunk, tell))?;
    Ok(matcher)
}

fn tell_next<E>(
    matcher: &mut Matcher,
    chunk: Chunk,
    tell: &mut impl FnMut(Piece) -> Result<(), E>,
) -> Result<(), E> {
    matcher.push(chunk).map_or(Ok(()), tell)
}

fn no_signature() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crossbeam_channel::bounded;

    use super::*;
    use crate::delta::tests::noise;

    fn sizes() -> ChunkSizes {
        ChunkSizes::from_average_log2(11).unwrap()
    }

    fn signature(basis: &[u8]) -> Signature {
        let mut signature = Signature::new(sizes());
        sign(basis, sizes(), |piece| signature.add(&piece).ok_or_else(|| io::Error::other("piece"))).unwrap();
        signature
    }

    /// A reader that hands the signature over once so many bytes were read.
    struct Handing<'a, F: FnMut()> {
        rest: &'a [u8],
        after: usize,
        hand: F,
    }

    impl<F: FnMut()> Read for Handing<'_, F> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let len = out.len().min(100_000);
            let read = self.rest.read(&mut out[..len])?;
            match self.after.checked_sub(read) {
                Some(after) => self.after = after,
                None => (self.hand)(),
            }
            Ok(read)
        }
    }

    fn compared(new: &[u8], basis: &[u8], after: usize) -> Vec<Piece> {
        let (sender, receiver) = bounded(1);
        let left = Cell::new(Some((sender, signature(basis))));
        let hand = || {
            if let Some((sender, signature)) = left.take() {
                sender.send(signature).unwrap();
            }
        };
        let mut pieces = Vec::new();
        let reader = Handing { rest: new, after, hand };
        compare(reader, sizes(), &receiver, |piece| {
            pieces.push(piece);
            io::Result::Ok(())
        })
        .unwrap();
        pieces
    }

    #[test]
    fn the_plan_is_the_same_whenever_the_signature_comes() {
        let basis = noise(1, 2_000_000);
        let mut new = basis.clone();
        new.splice(900_000..900_000, noise(2, 20_000));
        let at_once = compared(&new, &basis, 0);
        let copied = at_once.iter().filter(|piece| matches!(piece, Piece::Copy { .. })).count();
        let data: u64 =
            at_once.iter().map(|piece| if let Piece::Data { len, .. } = piece { *len } else { 0 }).sum();
        assert_eq!(copied, 2, "{at_once:?}");
        assert!((20_000..40_000).contains(&data), "{data}");
        for after in [700_000, 1_500_000, new.len() - 1] {
            assert_eq!(compared(&new, &basis, after), at_once, "after {after}");
        }
    }

    #[test]
    fn a_signature_that_does_not_come_any_more_is_an_error() {
        for len in [0, 100, 3_000_000] {
            let (sender, receiver) = bounded::<Signature>(1);
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
