//! Files that cannot be compressed, and whether the same came.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use crate::error::{Error, Result};

/// Writes a file of so many random bytes.
pub(super) fn fill(path: &Path, bytes: u64, seed: u64) -> Result<()> {
    let mut file = File::create(path).map_err(Error::io("make the file to send"))?;
    let (mut state, mut left) = (seed, bytes);
    let mut block = vec![0; BLOCK_BYTES];
    while left > 0 {
        for word in block.as_chunks_mut::<8>().0 {
            *word = split_mix(&mut state).to_le_bytes();
        }
        let now = left.min(BLOCK_BYTES as u64);
        file.write_all(&block[..now as usize]).map_err(Error::io("write the file to send"))?;
        left -= now;
    }
    Ok(())
}

/// Compares every byte; [`Error::Wrong`] where they differ.
pub(super) fn compare(program: &str, sent: &Path, came: &Path) -> Result<()> {
    let open = |path: &Path| File::open(path).map_err(Error::io("open a file to compare"));
    let (mut sent, mut came) = (open(sent)?, open(came)?);
    let (mut expected, mut got) = (vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]);
    let mut at = 0;
    loop {
        let now = fill_from(&mut sent, &mut expected)?;
        if fill_from(&mut came, &mut got)? != now || expected[..now] != got[..now] {
            let what = format!("{program}: what came is not what was sent, after {at} bytes");
            return Err(Error::Wrong { bench: "transfer", what });
        }
        if now == 0 {
            return Ok(());
        }
        at += now;
    }
}

/// Fills as much of `block` as the file has.
fn fill_from(file: &mut File, block: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match file.read(&mut block[filled..]).map_err(Error::io("read a file to compare"))? {
            0 => break,
            now => filled += now,
        }
    }
    Ok(filled)
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

const BLOCK_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_differs_in_a_byte_or_its_length_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        fill(&a, 2_500_000, 1).unwrap();
        std::fs::copy(&a, &b).unwrap();
        compare("this", &a, &b).unwrap();
        let mut bytes = std::fs::read(&a).unwrap();
        assert_eq!(bytes.len(), 2_500_000);
        bytes[2_400_000] ^= 1;
        std::fs::write(&b, &bytes).unwrap();
        let error = compare("this", &a, &b).unwrap_err().to_string();
        assert!(error.contains("this: what came is not what was sent"), "{error}");
        std::fs::write(&b, &std::fs::read(&a).unwrap()[..2_499_999]).unwrap();
        assert!(compare("this", &a, &b).is_err() && compare("this", &b, &a).is_err());
    }
}
