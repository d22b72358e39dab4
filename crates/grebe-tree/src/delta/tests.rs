//! Tests both ends of a comparison, without messages between them.

use std::io::Cursor;
use std::ops::Range;

use proptest::prelude::*;
use proptest::sample::Index;

use super::matcher::Matcher;
use super::*;

/// The signature as the sender gets it, and the receiver's map.
pub(super) struct Signed {
    sizes: ChunkSizes,
    pieces: Vec<Vec<u8>>,
    pub(super) map: BasisMap,
}

pub(super) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    grebe_testing::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

pub(super) fn tell(basis: &[u8], sizes: ChunkSizes) -> Signed {
    let (mut writer, mut pieces, mut map) = (SignatureWriter::new(sizes), Vec::new(), BasisMap::default());
    let mut chunks = Chunks::new(basis, sizes);
    while let Some((chunk, _)) = chunks.next().unwrap() {
        map.push(chunk);
        if writer.push(chunk) {
            pieces.push(writer.take());
        }
    }
    pieces.push(writer.take());
    Signed { sizes, pieces, map }
}

pub(super) fn plan(told: &Signed, new: &[u8]) -> Vec<Piece> {
    let mut signature = Signature::new(told.sizes);
    told.pieces.iter().for_each(|piece| signature.add(piece).unwrap());
    let mut matcher = Matcher::new(signature);
    let mut chunks = Chunks::new(new, told.sizes);
    let mut pieces = Vec::new();
    while let Some((chunk, _)) = chunks.next().unwrap() {
        pieces.extend(matcher.push(chunk));
    }
    pieces.extend(matcher.finish().0);
    pieces
}

/// A second comparison in the finest chunks. The receiver's map grows by them.
fn refined(basis: &[u8], told: &mut Signed, new: &[u8]) -> Vec<Piece> {
    let finer = ChunkSizes::from_byte(11).unwrap();
    let mut signature = Signature::new(told.sizes);
    told.pieces.iter().for_each(|piece| signature.add(piece).unwrap());
    let pieces = plan(told, new);
    let gaps = gaps(&pieces, &signature, &[], finer);
    let (mut writer, mut again) = (SignatureWriter::new(finer), Signature::new(finer));
    for gap in &gaps {
        let stretch = told.map.stretch(gap.first, gap.chunks).unwrap();
        told.map.jump(stretch.start);
        let mut chunks = Chunks::new(&basis[stretch.start as usize..stretch.end as usize], finer);
        while let Some((chunk, _)) = chunks.next().unwrap() {
            told.map.push(chunk);
            if writer.push(chunk) {
                again.add(&writer.take()).unwrap();
            }
        }
    }
    again.add(&writer.take()).unwrap();
    let stretch = |stretch: Range<u64>| Ok(&new[stretch.start as usize..stretch.end as usize]);
    refine(&pieces, &gaps, finer, again, signature.len(), stretch).unwrap().unwrap()
}

/// The receiver's result, and the ranges that failed their check, which stay zero.
fn rebuild(basis: &[u8], told: &Signed, pieces: &[Piece], new: &[u8]) -> (Vec<u8>, Vec<Range<usize>>) {
    let (mut made, mut again, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        let begin = made.len();
        match piece {
            Piece::Laid { .. } => panic!("nothing was sent early"),
            Piece::Data { from, len } => {
                assert_eq!(*from, begin as u64);
                made.extend_from_slice(&new[begin..][..*len as usize]);
            }
            Piece::Copy { run, len } => {
                let (laid, offset) = (Laid::default(), begin as u64);
                let good =
                    copy_run(Cursor::new(basis), &told.map, &laid, run, offset, &mut buffer, |_, bytes| {
                        made.extend_from_slice(bytes);
                        Ok(())
                    });
                let end = begin + *len as usize;
                if !good.unwrap() {
                    made.truncate(begin);
                    made.resize(end, 0);
                    again.push(begin..end);
                }
                assert_eq!(made.len(), end, "both ends know the same length");
            }
        }
    }
    (made, again)
}

fn data_bytes(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| if let Piece::Data { len, .. } = piece { *len } else { 0 }).sum()
}

#[derive(Debug, Clone)]
enum Edit {
    Insert { at: Index, seed: u64, len: usize },
    Remove { at: Index, len: usize },
    Overwrite { at: Index, seed: u64, len: usize },
    Move { from: Index, len: usize, to: Index },
    Repeat { at: Index, len: usize },
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let stretch = |at: &Index, len: usize, bytes: &[u8]| {
            let at = at.index(bytes.len() + 1);
            at..(at + len).min(bytes.len())
        };
        match self {
            Self::Insert { at, seed, len } => {
                let at = at.index(bytes.len() + 1);
                bytes.splice(at..at, noise(*seed, *len));
            }
            Self::Remove { at, len } => drop(bytes.drain(stretch(at, *len, bytes))),
            Self::Overwrite { at, seed, len } => {
                let stretch = stretch(at, *len, bytes);
                let new = noise(*seed, stretch.len());
                bytes[stretch].copy_from_slice(&new);
            }
            Self::Move { from, len, to } => {
                let moved: Vec<_> = bytes.drain(stretch(from, *len, bytes)).collect();
                let to = to.index(bytes.len() + 1);
                bytes.splice(to..to, moved);
            }
            Self::Repeat { at, len } => {
                let again = bytes[stretch(at, *len, bytes)].to_vec();
                let at = at.index(bytes.len() + 1);
                bytes.splice(at..at, again);
            }
        }
    }

    /// Number of bytes that no earlier file has.
    fn new_bytes(&self) -> usize {
        match self {
            Self::Insert { len, .. } | Self::Overwrite { len, .. } => *len,
            Self::Remove { .. } | Self::Move { .. } | Self::Repeat { .. } => 0,
        }
    }
}

fn edits() -> impl Strategy<Value = Edit> {
    let (at, len) = (any::<Index>(), 1..30_000_usize);
    prop_oneof![
        (at.clone(), any::<u64>(), len.clone()).prop_map(|(at, seed, len)| Edit::Insert { at, seed, len }),
        (at.clone(), len.clone()).prop_map(|(at, len)| Edit::Remove { at, len }),
        (at.clone(), any::<u64>(), len.clone()).prop_map(|(at, seed, len)| Edit::Overwrite { at, seed, len }),
        (at.clone(), len.clone(), any::<Index>()).prop_map(|(from, len, to)| Edit::Move { from, len, to }),
        (at, len).prop_map(|(at, len)| Edit::Repeat { at, len }),
    ]
}

/// With short hashes, as between two ends of this version.
const AVERAGE_BYTE: u8 = 0x80 | AVERAGE_LOG2;
const AVERAGE_LOG2: u8 = 11;
const AVERAGE: u64 = 1 << AVERAGE_LOG2;

fn sizes() -> ChunkSizes {
    ChunkSizes::from_byte(AVERAGE_BYTE).unwrap()
}

#[test]
fn an_equal_file_sends_nothing() {
    for len in [0, 1, 500, 20_000, 3_000_000] {
        let file = noise(4, len);
        let told = tell(&file, sizes());
        let pieces = plan(&told, &file);
        assert_eq!((data_bytes(&pieces), rebuild(&file, &told, &pieces, &[])), (0, (file, vec![])));
    }
}

#[test]
fn bytes_inserted_at_the_front_cost_themselves_and_a_few_chunks() {
    let basis = noise(5, 1_000_000);
    for len in [1, 7, 100, 5_000] {
        let new = [noise(6, len), basis.clone()].concat();
        let told = tell(&basis, sizes());
        let pieces = plan(&told, &new);
        assert!(data_bytes(&pieces) <= len as u64 + 6 * AVERAGE, "{} for {len}", data_bytes(&pieces));
        assert_eq!(rebuild(&basis, &told, &pieces, &new), (new.clone(), vec![]));
    }
}

#[test]
fn a_hash_collision_costs_one_repeated_range() {
    // Each file is one chunk. Among 2^18 files, about two share 4 bytes of their hashes.
    let mut seen = std::collections::HashMap::new();
    let (basis, new) = (0_u64..)
        .find_map(|number| {
            let file = noise(number, 100);
            let hash: [u8; 4] = std::array::from_fn(|at| blake3::hash(&file).as_bytes()[at]);
            seen.insert(hash, number).map(|other| (noise(other, 100), file))
        })
        .unwrap();
    let told = tell(&basis, sizes());
    let pieces = plan(&told, &new);
    assert_eq!(data_bytes(&pieces), 0, "the colliding chunk counts as equal");
    let (made, again) = rebuild(&basis, &told, &pieces, &new);
    assert_eq!((made, again.len(), again[0].clone()), (vec![0; 100], 1, 0..100), "and is not");
    let told = tell(&basis, ChunkSizes::from_byte(AVERAGE_LOG2).unwrap());
    assert_eq!(data_bytes(&plan(&told, &new)), 100, "more of the hash tells them apart");
}

#[test]
fn a_file_without_anything_in_common_is_sent_whole() {
    let (basis, new) = (noise(7, 200_000), noise(8, 200_000));
    let pieces = plan(&tell(&basis, sizes()), &new);
    assert_eq!(pieces, [Piece::Data { from: 0, len: 200_000 }]);
}

#[test]
fn holes_cost_nothing_wherever_they_are() {
    let (basis, new) = (vec![0; 1_000_000], vec![0; 3_000_000]);
    let told = tell(&basis, sizes());
    assert!(told.pieces.iter().map(Vec::len).sum::<usize>() < 40);
    let pieces = plan(&told, &new);
    assert!(data_bytes(&pieces) <= 4 * AVERAGE, "{pieces:?}");
    assert_eq!(rebuild(&basis, &told, &pieces, &new), (new.clone(), vec![]));
}

#[test]
fn a_second_comparison_sends_little_more_than_the_changes() {
    let basis = noise(1, 16_000_000);
    let mut new = basis.clone();
    for place in 0..20 {
        new[place * 700_000 + 12_345..][..10_000].copy_from_slice(&noise(place as u64, 10_000));
    }
    let mut told = tell(&basis, ChunkSizes::from_byte(16).unwrap());
    assert!(told.pieces.iter().map(Vec::len).sum::<usize>() < 4_000);
    let first = plan(&told, &new);
    let second = refined(&basis, &mut told, &new);
    assert!(data_bytes(&first) > 2_000_000, "{}", data_bytes(&first));
    assert!((200_000..400_000).contains(&data_bytes(&second)), "{}", data_bytes(&second));
    assert_eq!(rebuild(&basis, &told, &second, &new), (new, vec![]));
}

#[test]
fn a_signature_that_is_not_of_the_gaps_changes_nothing() {
    let basis = noise(1, 4_000_000);
    let mut new = basis.clone();
    new[2_000_000..2_300_000].copy_from_slice(&noise(2, 300_000));
    let told = tell(&basis, ChunkSizes::from_byte(14).unwrap());
    let finer = ChunkSizes::from_byte(11).unwrap();
    let mut signature = Signature::new(told.sizes);
    told.pieces.iter().for_each(|piece| signature.add(piece).unwrap());
    let pieces = plan(&told, &new);
    let gaps = gaps(&pieces, &signature, &[], finer);
    assert_eq!(gaps.len(), 1);
    for bytes in [&basis[..0], &basis[..100_000], &basis] {
        let mut again = Signature::new(finer);
        tell(bytes, finer).pieces.iter().for_each(|piece| again.add(piece).unwrap());
        let refined = refine(&pieces, &gaps, finer, again, signature.len(), |_| Ok(&new[..]));
        assert_eq!(refined.unwrap(), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_second_comparison_makes_the_same_file_from_fewer_bytes(
        seed: u64, len in 500_000..2_000_000_usize, edits in prop::collection::vec(edits(), 1..20),
    ) {
        let basis = noise(seed, len);
        let mut new = basis.clone();
        edits.iter().for_each(|edit| edit.apply(&mut new));
        let mut told = tell(&basis, ChunkSizes::from_byte(15).unwrap());
        let first = plan(&told, &new);
        let second = refined(&basis, &mut told, &new);
        prop_assert!(data_bytes(&second) <= data_bytes(&first));
        prop_assert_eq!(rebuild(&basis, &told, &second, &new), (new, vec![]));
    }

    #[test]
    fn any_edit_reproduces_the_new_file(
        seed: u64, len in 0..400_000_usize, edits in prop::collection::vec(edits(), 0..12),
    ) {
        let basis = noise(seed, len);
        let mut new = basis.clone();
        edits.iter().for_each(|edit| edit.apply(&mut new));
        let told = tell(&basis, sizes());
        let pieces = plan(&told, &new);
        let new_bytes: usize = edits.iter().map(Edit::new_bytes).sum();
        // An edit breaks the chunks at its ends, four of them for a move. The cuts meet again some chunks
        // later.
        let bound = new_bytes as u64 + edits.len() as u64 * 4 * 6 * AVERAGE;
        prop_assert!(data_bytes(&pieces) <= bound, "{} of {bound}", data_bytes(&pieces));
        prop_assert_eq!(rebuild(&basis, &told, &pieces, &new), (new, vec![]));
    }

    #[test]
    fn ranges_of_the_basis_that_change_are_requested_again(
        seed: u64, len in 1..200_000_usize, later in prop::collection::vec(edits(), 1..4),
    ) {
        let basis = noise(seed, len);
        let new = [noise(seed ^ 1, 3_000), basis.clone()].concat();
        let told = tell(&basis, sizes());
        let pieces = plan(&told, &new);
        let mut changed = basis;
        later.iter().for_each(|edit| edit.apply(&mut changed));
        let (mut made, again) = rebuild(&changed, &told, &pieces, &new);
        for stretch in again {
            made[stretch.clone()].copy_from_slice(&new[stretch]);
        }
        prop_assert_eq!(made, new);
    }
}
