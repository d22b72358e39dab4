//! Copies the common parts of basis and new file, and verifies them.

use std::io::{self, Read, Seek, SeekFrom};
use std::thread;

use super::chunks::Chunk;
use super::laid::Laid;
use super::matcher::Run;
use super::signature::BasisMap;
use crate::wire::short;

/// Reads the part of a run that is not yet at `offset` of the new file. Passes its chunks on in order, each
/// with its place. `true` if the whole run is what the sender has.
///
/// The check covers all chunks, so chunks are passed on before the result is known. If this returns `false`,
/// request the range again, and keep the file from its final name until that has arrived. The cause is a
/// basis that changed since its signature was made, or that cannot be read. The run's length is
/// [`BasisMap::stretch`]; a run outside the map copies nothing.
///
/// Another thread hashes a long run while it is written. `buffer` is reused between calls; it has 8 MiB plus
/// one of the longest chunks.
///
/// # Errors
/// Only those of `write`.
pub(crate) fn copy_run(
    mut basis: impl Read + Seek,
    map: &BasisMap,
    laid: &Laid,
    run: &Run,
    offset: u64,
    buffer: &mut Vec<u8>,
    mut write: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    let Some(stretch) = map.stretch(run.first, run.chunks) else { return Ok(false) };
    let (mut check, mut at_once, mut place) = (blake3::Hasher::new(), Vec::new(), offset);
    let mut lens = map.lens(run.first, run.chunks).peekable();
    while let Some(len) = lens.peek() {
        if let Some(hash) = laid.hash(&(place..place + *len as u64)) {
            check.update(hash);
            place += *len as u64;
            lens.next();
            continue;
        }
        let mut bytes = 0;
        at_once.clear();
        while let Some(len) = lens.next_if(|len| {
            let begin = place + bytes as u64;
            let lies = laid.hash(&(begin..begin + *len as u64)).is_some();
            at_once.is_empty() || bytes + len <= AT_ONCE_BYTES_MAX && !lies
        }) {
            bytes += len;
            at_once.push(len);
        }
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        let from = SeekFrom::Start(stretch.start + (place - offset));
        if basis.seek(from).and_then(|_| basis.read_exact(&mut buffer[..bytes])).is_err() {
            return Ok(false);
        }
        hash_and_write(&buffer[..bytes], place, &at_once, &mut check, &mut write)?;
        place += bytes as u64;
    }
    Ok(short(&check.finalize()) == run.check)
}

fn hash_and_write(
    bytes: &[u8],
    mut place: u64,
    lens: &[usize],
    check: &mut blake3::Hasher,
    write: &mut impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut write = |chunk: &[u8]| {
        let at = place;
        place += chunk.len() as u64;
        write(at, chunk)
    };
    let mut hash = || {
        for chunk in chunks(bytes, lens) {
            check.update(&Chunk::of(chunk).hash);
        }
    };
    let (is_hashed, written) = thread::scope(|scope| {
        let is_long = bytes.len() >= HASHED_ASIDE_BYTES_MIN;
        // Without another thread, this one hashes.
        let is_hashed = is_long && thread::Builder::new().spawn_scoped(scope, &mut hash).is_ok();
        (is_hashed, chunks(bytes, lens).try_for_each(&mut write))
    });
    if !is_hashed {
        hash();
    }
    written
}

fn chunks<'a>(bytes: &'a [u8], lens: &[usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = bytes;
    lens.iter().map_while(move |len| {
        let (chunk, behind) = rest.split_at_checked(*len)?;
        rest = behind;
        Some(chunk)
    })
}

/// Maximum read before a write: the run of an honest sender, or a single chunk of any length.
const AT_ONCE_BYTES_MAX: usize = 8 << 20;
/// Minimum length for a hashing thread; less is hashed before a thread starts.
const HASHED_ASIDE_BYTES_MIN: usize = 512 << 10;

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::delta::tests::{Signed, noise, plan, tell};
    use crate::delta::{ChunkSizes, Piece};

    fn only_run(told: &Signed, new: &[u8]) -> Run {
        match plan(told, new)[..] {
            [Piece::Copy { run, len }] if len == new.len() as u64 => run,
            ref pieces => panic!("{pieces:?}"),
        }
    }

    fn copied(basis: &[u8], told: &Signed, run: &Run) -> (bool, Vec<u8>) {
        copied_beside(basis, told, &Laid::default(), run)
    }

    /// Copies a run to offset 1,000 of the new file.
    fn copied_beside(basis: &[u8], told: &Signed, laid: &Laid, run: &Run) -> (bool, Vec<u8>) {
        let mut out = Vec::new();
        let good = copy_run(Cursor::new(basis), &told.map, laid, run, 1_000, &mut Vec::new(), |at, bytes| {
            assert!(at >= 1_000 + out.len() as u64);
            out.extend_from_slice(bytes);
            Ok(())
        });
        (good.unwrap(), out)
    }

    #[test]
    fn a_basis_that_changed_anywhere_is_noticed() {
        let basis = noise(1, 40_000);
        let told = tell(&basis, ChunkSizes::from_byte(12).unwrap());
        let run = only_run(&told, &basis);
        assert_eq!(copied(&basis, &told, &run), (true, basis.clone()));
        for at in (0..basis.len()).step_by(997) {
            let mut changed = basis.clone();
            changed[at] ^= 1;
            assert!(!copied(&changed, &told, &run).0, "byte {at}");
        }
        assert!(!copied(&basis[..39_999], &told, &run).0, "cut short");
        assert!(!copied(&[], &told, &run).0, "emptied");
    }

    #[test]
    fn bytes_in_place_are_not_read_again_and_count_as_written() {
        let basis = noise(1, 40_000);
        let told = tell(&basis, ChunkSizes::from_byte(12).unwrap());
        let run = only_run(&told, &basis);
        let hash = |chunk| {
            let stretch = told.map.stretch(chunk, 1).unwrap();
            Chunk::of(&basis[stretch.start as usize..stretch.end as usize]).hash
        };
        let second = told.map.stretch(1, 1).unwrap();
        let [begin, end] = [second.start, second.end].map(|at| at as usize);
        let without = [&basis[..begin], &basis[end..]].concat();
        let mut laid = Laid::default();
        laid.add(1_000 + second.start..1_000 + second.end, hash(1));
        assert_eq!(copied_beside(&basis, &told, &laid, &run), (true, without));
        // At another place it does not help, and a wrong hash is noticed.
        let mut laid = Laid::default();
        laid.add(999 + second.start..999 + second.end, hash(1));
        assert_eq!(copied_beside(&basis, &told, &laid, &run), (true, basis.clone()));
        let mut laid = Laid::default();
        laid.add(1_000 + second.start..1_000 + second.end, hash(2));
        assert!(!copied_beside(&basis, &told, &laid, &run).0);
    }

    #[test]
    fn an_absent_run_copies_nothing() {
        let basis = noise(1, 40_000);
        let told = tell(&basis, ChunkSizes::from_byte(12).unwrap());
        let run = only_run(&told, &basis);
        for (first, chunks) in [(1, run.chunks), (0, 0), (u32::MAX, 1), (0, u32::MAX)] {
            assert_eq!(copied(&basis, &told, &Run { first, chunks, ..run }), (false, vec![]));
        }
    }

    #[test]
    fn a_disk_that_is_full_is_an_error() {
        let basis = noise(1, 40_000);
        let told = tell(&basis, ChunkSizes::from_byte(12).unwrap());
        let run = only_run(&told, &basis);
        let full = |_, _: &[u8]| Err(io::ErrorKind::StorageFull.into());
        let nothing = Laid::default();
        let failed = copy_run(Cursor::new(&basis), &told.map, &nothing, &run, 0, &mut Vec::new(), full);
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
