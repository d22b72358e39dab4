use std::io::Write;

use proptest::prelude::*;

use super::*;

/// A file whose bytes are known by their place.
fn made(bytes: usize) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&(0..bytes).map(byte).collect::<Vec<u8>>()).unwrap();
    file
}

fn byte(at: usize) -> u8 {
    (at ^ at >> 8 ^ at >> 16) as u8
}

fn is_right(bytes: &[u8], at: u64) -> bool {
    bytes.iter().enumerate().all(|(place, &got)| got == byte(at as usize + place))
}

proptest! {
    #[test]
    fn the_pieces_of_all_threads_are_the_stretch_and_then_the_other_again_and_again(
        start in 0u64..5_000, length in 1u64..5_000, again in prop::option::of((0u64..3_000, 1u64..3_000)),
        piece_bytes in prop::sample::select(vec![64u64, 1_000, 4_096]), threads in 1usize..5,
    ) {
        let again = again.map(|(start, length)| start..start + length);
        let plan = Plan { first: start..start + length, again: again.clone(), piece_bytes };
        let mut parts: Vec<_> =
            (0..threads).map(|number| plan.clone().pieces(number, threads)).collect();
        let mut expected = (start..start + length).chain(again.into_iter().flat_map(|it| it.clone().chain(it)));
        for turn in 0.. {
            let Some(piece) = parts[turn % threads].next() else { break };
            prop_assert!(piece.end - piece.start <= piece_bytes && !piece.is_empty());
            for at in piece {
                match expected.next() {
                    Some(next) => prop_assert_eq!(at, next),
                    None => return Ok(()),
                }
            }
        }
        prop_assert_eq!(expected.next(), None);
    }
}

#[test]
fn sequential_reads_use_threads_and_return_the_right_bytes() {
    let bytes = (24 << 20) + 333;
    let mut reader = FileReader::new(made(bytes));
    let mut out = vec![0; 700_001];
    let mut at = 0;
    while at < bytes {
        let count = out.len().min(bytes - at);
        reader.read_exact_at(at as u64, &mut out[..count]).unwrap();
        assert!(is_right(&out[..count], at as u64), "{at}");
        at += count;
        assert_eq!(reader.ahead.is_some(), at as u64 > STREAK_BYTES + 700_001, "{at}");
    }
    assert!(reader.read_exact_at(bytes as u64, &mut out[..1]).is_err());
    // A jump is not in order.
    reader.read_exact_at(77, &mut out).unwrap();
    assert!(is_right(&out, 77) && reader.ahead.is_none());
}

#[test]
fn a_repeated_range_is_read_across_its_end() {
    let stretch = 4_097..(21 << 20) + 5u64;
    let mut reader = FileReader::new(made(22 << 20));
    reader.expect(stretch.clone(), true, 0);
    let mut out = vec![0; 1 << 20];
    let (mut at, mut rounds) = (stretch.start, 0);
    while rounds < 3 {
        let count = out.len().min((stretch.end - at) as usize);
        reader.read_exact_at(at, &mut out[..count]).unwrap();
        assert!(is_right(&out[..count], at), "{at} in round {rounds}");
        at += count as u64;
        if at == stretch.end {
            assert!(reader.ahead.is_some(), "the threads read on");
            (at, rounds) = (stretch.start, rounds + 1);
        }
    }
}

#[test]
fn a_file_that_was_truncated_meanwhile_is_an_error() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(96 << 20).unwrap();
    let mut reader = FileReader::new(file.try_clone().unwrap());
    let mut out = vec![0; 1 << 20];
    for place in 0..6 {
        reader.read_exact_at(place << 20, &mut out).unwrap();
    }
    // More of it is read already, but not all.
    file.set_len(20 << 20).unwrap();
    let read: Vec<bool> = (6..96).map(|place| reader.read_exact_at(place << 20, &mut out).is_ok()).collect();
    assert!(!read[89], "{read:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_no_cache_holds_is_read_once() {
    use rustix::fs::{Advice, fadvise};
    // Of this thread alone; `None` if the kernel does not count.
    let read_bytes = || -> Option<u64> {
        let counted = std::fs::read_to_string("/proc/thread-self/io").ok()?;
        counted.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse().ok()
    };
    let bytes = 32 << 20;
    let file = made(bytes);
    for _ in 0..2 {
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let Some(before) = read_bytes() else { return };
        let mut source = Source::of(&file).unwrap();
        let mut memory = Aligned::new(PIECE_BYTES);
        for offset in (0..bytes as u64).step_by(PIECE_BYTES) {
            let read = source.read(offset, memory.bytes_mut(), PIECE_BYTES).unwrap();
            assert!(read == PIECE_BYTES && is_right(memory.bytes(), offset), "{offset}");
        }
        let read = read_bytes().unwrap() - before;
        // Beside other tests, the kernel may keep the probed page and then reads its piece as well.
        assert!(read < bytes as u64 * 3 / 2, "{read} bytes read of a file of {bytes}");
    }
}
