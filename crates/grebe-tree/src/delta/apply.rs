//! Copies what the new file has in common with the basis, and checks it on the way.

use std::io::{self, Read, Seek, SeekFrom};
use std::thread;

use super::chunks::Chunk;
use super::matcher::Run;
use super::signature::BasisMap;
use crate::wire::short;

/// Reads a run from the basis and hands its chunks on, in their order. `true` where all of it is what the sender has.
///
/// Chunks are handed on before the check is known, since it is over all of them: where this returns `false`, the stretch is to be
/// asked for again, and until it has come the file must not get its name. That happens where the basis is not any more as it was when its
/// signature was made, or cannot be read. The run's length is [`BasisMap::stretch`]; a run that is not in the map copies nothing.
///
/// A long run is hashed by another thread while it is written. `buffer` is kept from call to call; it has 8 MiB, and one of the
/// longest chunks.
///
/// # Errors
/// Those of `write` alone.
pub(crate) fn copy_run(
    mut basis: impl Read + Seek,
    map: &BasisMap,
    run: &Run,
    buffer: &mut Vec<u8>,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    let Some(stretch) = map.stretch(run.first, run.chunks) else { return Ok(false) };
    if basis.seek(SeekFrom::Start(stretch.start)).is_err() {
        return Ok(false);
    }
    let (mut check, mut at_once) = (blake3::Hasher::new(), Vec::new());
    let mut lens = map.lens(run.first, run.chunks).peekable();
    while lens.peek().is_some() {
        let mut bytes = 0;
        at_once.clear();
        while let Some(len) = lens.next_if(|len| at_once.is_empty() || bytes + len <= AT_ONCE_BYTES_MAX) {
            bytes += len;
            at_once.push(len);
        }
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        if basis.read_exact(&mut buffer[..bytes]).is_err() {
            return Ok(false);
        }
        hash_and_write(&buffer[..bytes], &at_once, &mut check, &mut write)?;
    }
    Ok(short(&check.finalize()) == run.check)
}

fn hash_and_write(
    bytes: &[u8],
    lens: &[usize],
    check: &mut blake3::Hasher,
    write: &mut impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut hash = || {
        for chunk in chunks(bytes, lens) {
            check.update(&Chunk::of(chunk).hash);
        }
    };
    let (is_hashed, written) = thread::scope(|scope| {
        let is_long = bytes.len() >= HASHED_ASIDE_BYTES_MIN;
        // Where there is no thread to be had, it is hashed here.
        let is_hashed = is_long && thread::Builder::new().spawn_scoped(scope, &mut hash).is_ok();
        (is_hashed, chunks(bytes, lens).try_for_each(write))
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

/// So much is read before it is written. As much as an honest sender's run has, and a chunk of any length alone.
const AT_ONCE_BYTES_MAX: usize = 8 << 20;
/// Less is hashed sooner than a thread begins.
const HASHED_ASIDE_BYTES_MIN: usize = 512 << 10;

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::delta::tests::{Told, noise, plan, tell};
    use crate::delta::{ChunkSizes, Piece};

    fn only_run(told: &Told, new: &[u8]) -> Run {
        match plan(told, new)[..] {
            [Piece::Copy { run, len }] if len == new.len() as u64 => run,
            ref pieces => panic!("{pieces:?}"),
        }
    }

    fn copied(basis: &[u8], told: &Told, run: &Run) -> (bool, Vec<u8>) {
        let mut out = Vec::new();
        let good = copy_run(Cursor::new(basis), &told.map, run, &mut Vec::new(), |bytes| {
            out.extend_from_slice(bytes);
            Ok(())
        });
        (good.unwrap(), out)
    }

    #[test]
    fn a_basis_that_is_not_as_it_was_is_noticed_wherever_it_changed() {
        let basis = noise(1, 40_000);
        let told = tell(&basis, ChunkSizes::from_average_log2(12).unwrap());
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
    fn a_run_that_is_not_there_copies_nothing() {
        let basis = noise(1, 40_000);
        let told = tell(&basis, ChunkSizes::from_average_log2(12).unwrap());
        let run = only_run(&told, &basis);
        for (first, chunks) in [(1, run.chunks), (0, 0), (u32::MAX, 1), (0, u32::MAX)] {
            assert_eq!(copied(&basis, &told, &Run { first, chunks, ..run }), (false, vec![]));
        }
    }

    #[test]
    fn a_disk_that_is_full_is_an_error() {
        let basis = noise(1, 40_000);
        let told = tell(&basis, ChunkSizes::from_average_log2(12).unwrap());
        let run = only_run(&told, &basis);
        let full = |_: &[u8]| Err(io::ErrorKind::StorageFull.into());
        let failed = copy_run(Cursor::new(&basis), &told.map, &run, &mut Vec::new(), full);
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
