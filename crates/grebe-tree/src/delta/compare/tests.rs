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

fn told(basis: &[u8]) -> Vec<ArrivedPart> {
    let (mut told, mut before) = (Vec::new(), 0);
    sign(basis, sizes(), None, &Mutex::default(), |piece| {
        let chunks = read_piece(&piece, sizes(), before).ok_or_else(|| io::Error::other("piece"))?;
        before += chunks.len();
        told.push(ArrivedPart::Chunks(chunks));
        io::Result::Ok(())
    })
    .unwrap();
    told.push(ArrivedPart::Whole);
    told
}

/// Compares with a signature of which `before` messages have arrived; the rest follows slowly.
fn compared(new: &[u8], basis: &[u8], before: usize) -> Vec<Piece> {
    let (tell, heard) = unbounded();
    let mut told = told(basis).into_iter();
    told.by_ref().take(before).for_each(|told| tell.send(told).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for told in told {
                std::thread::yield_now();
                // The comparison may have ended.
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

/// No early comparisons.
fn no_early() -> Option<EarlyComparisons<'static, Open>> {
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
fn bytes_inserted_at_the_front_are_all_that_is_sent() {
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
fn moved_content_is_found_whenever_the_signature_arrives() {
    let basis = noise(1, 5_000_000);
    let mut new = basis.clone();
    let moved: Vec<u8> = new.drain(2_000_000..2_500_000).collect();
    new.extend(moved);
    let all = told(&basis).len();
    for before in 0..=all {
        // The last chunk ends with the file. A sender that keeps pace also finds it in the middle, and
        // expects the next chunk after it.
        let data = data_bytes(&compared(&new, &basis, before));
        assert!((1_000..40_000).contains(&data), "{data}, {before} of {all} came before");
    }
}

#[test]
fn a_range_sent_with_the_signature_is_cut_only_at_differences() {
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
    // Without the last message it keeps pace to the end.
    let chunks_only = told(&basis).into_iter().filter(|told| matches!(told, ArrivedPart::Chunks(_)));
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
fn ranges_of_the_basis_are_placed_before_the_whole_signature_has_arrived() {
    let basis = noise(1, 3_000_000);
    let mut new = basis.clone();
    new.drain(1_000_000..1_000_100);
    new.splice(0..0, noise(2, 777));
    let (tell, heard) = unbounded();
    let chunks_only = told(&basis).into_iter().filter(|told| matches!(told, ArrivedPart::Chunks(_)));
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

/// Signs and writes ahead a basis, with these shifts of the sender after the given numbers of blocks. Returns
/// the result.
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
                words.iter().filter(|word| word.0 == number).for_each(|word| shift.store(word.1, Relaxed));
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
fn bytes_read_for_the_signature_are_placed_where_the_sender_says() {
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
        // A jump there and back loses the data written between.
        assert!(bytes >= if words.len() < 2 { 5_000_000 } else { 2_000_000 }, "{words:?} {bytes}");
    }
    // Nothing is written beyond the end of the new file.
    let (laid, _) = lay(&basis, 2_000_000, &[]);
    assert!((1_000_000..=2_000_000).contains(&laid.end()), "{}", laid.end());
}

#[test]
fn a_signature_is_sent_to_its_end_if_nothing_can_be_placed() {
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
fn overwritten_ranges_are_compared_again_and_sent_before_the_plan() {
    let coarse = ChunkSizes::from_byte(16).unwrap();
    let finer = coarse.finer().unwrap();
    let (basis, map) = (noise(1, 20_000_000), Mutex::new(BasisMap::default()));
    let mut new = basis.clone();
    for (number, at) in [3_000_000, 9_000_000, 15_000_000].into_iter().enumerate() {
        new[at..at + 100_000].copy_from_slice(&noise(number as u64 + 5, 100_000));
    }
    // Moved data is not in place, and waits for the plan.
    let moved: Vec<u8> = new.drain(17_000_000..17_500_000).collect();
    new.extend(moved);
    let (tell, heard) = unbounded();
    tell.send(ArrivedPart::WritesAlong).unwrap();
    let mut before = 0;
    sign(&basis[..], coarse, None, &map, |piece| {
        let chunks = read_piece(&piece, coarse, before).unwrap();
        before += chunks.len();
        tell.send(ArrivedPart::Chunks(chunks)).unwrap();
        io::Result::Ok(())
    })
    .unwrap();
    let unsent = AtomicUsize::new(0);
    let stretch = |bytes: Range<u64>| Ok(&new[bytes.start as usize..bytes.end as usize]);
    let early = Some(EarlyComparisons::new(finer, &unsent, stretch));
    let (mut pieces, mut looks, mut sent) = (Vec::new(), 0, Vec::new());
    let compared = compare(&new[..], coarse, &heard, early, |finding| {
        match finding {
            Finding::FinerRange { first, chunks } => {
                looks += 1;
                let bytes = map.lock().unwrap().stretch(first, chunks).unwrap();
                let mut cut = Chunks::new(&basis[bytes.start as usize..bytes.end as usize], finer);
                let mut again = Vec::new();
                while let Some((chunk, _)) = cut.next().unwrap() {
                    again.push((finer.told_hash(&chunk.hash), chunk.len));
                }
                tell.send(ArrivedPart::Finer(again)).unwrap();
                if looks == 3 {
                    tell.send(ArrivedPart::Whole).unwrap();
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
    let early_runs = plan
        .iter()
        .filter(|piece| matches!(piece, Piece::Copy { run, .. } if run.first >= crate::delta::EARLY_FIRST));
    assert!(early_runs.count() >= 3, "what did not change around them");
    assert!(data_bytes(&plan) < 300_000, "where something moved: {}", data_bytes(&plan));
}

#[test]
fn a_signature_that_does_not_come_any_more_is_an_error() {
    for len in [0, 100, 3_000_000] {
        let (sender, receiver) = unbounded::<ArrivedPart>();
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
