//! The directory of a run, with a file that cannot be compressed.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use rand_mt::Mt64;
use tempfile::TempDir;

use super::options::{Options, TransferTask};
use crate::error::{Error, Result};
use crate::peer::Peer;

/// Goes with everything in it, even where this process is killed.
pub(super) struct Room {
    directory: TempDir,
    file_bytes: u64,
    seed: u64,
    _guard: Peer,
}

impl Room {
    /// Finds space for the file twice: for the source, and for the copy.
    pub(super) fn new(options: &Options, file_bytes: u64) -> Result<Self> {
        let needed = 2 * file_bytes + file_bytes / 20;
        let memory = Path::new("/dev/shm");
        let parent = match &options.dir {
            Some(directory) => directory.clone(),
            None if free_bytes(memory).is_some_and(|free| free > needed) => memory.to_owned(),
            None => std::env::temp_dir(),
        };
        if let Some(free) = free_bytes(&parent).filter(|&free| free < needed) {
            return Err(Error::Failed(format!(
                "{} has {} free, and the file needs {}: give another --dir or a smaller --file-size",
                parent.display(),
                size_words(free),
                size_words(needed)
            )));
        }
        let made = tempfile::Builder::new().prefix("grebe-bench-").tempdir_in(&parent);
        let directory = made.map_err(|error| {
            Error::Failed(format!("cannot make a directory in {}: {error}", parent.display()))
        })?;
        let guard = TransferTask::Guard { directory: directory.path().to_owned() };
        let guard = options.start("guard", guard)?;
        let room = Self { directory, file_bytes, seed: options.seed, _guard: guard };
        std::fs::create_dir(room.arrivals()).map_err(Error::io("make a directory for received files"))?;
        fill(&room.file(), file_bytes, options.seed)?;
        Ok(room)
    }

    /// The file to send.
    pub(super) fn file(&self) -> PathBuf {
        self.directory.path().join(FILE)
    }

    /// Directory of the copy.
    pub(super) fn arrivals(&self) -> PathBuf {
        self.directory.path().join("came")
    }

    /// Path of the complete copy.
    pub(super) fn arrived(&self) -> PathBuf {
        self.arrivals().join(FILE)
    }

    /// Compares the received files with the originals, and removes them.
    pub(super) fn check_arrived(&self, program: &str) -> Result<()> {
        let came = self.arrived();
        compare(program, &came, self.file_bytes, self.seed)?;
        std::fs::remove_file(&came).map_err(Error::io("remove a file that was compared"))
    }

    /// Where keys are made.
    pub(super) fn keys(&self) -> PathBuf {
        self.directory.path().join("keys")
    }

    /// Where that is, for people.
    pub(super) fn words(&self) -> String {
        self.directory.path().parent().map_or(String::new(), |parent| parent.display().to_string())
    }
}

/// The name of the file, at the source and at the copy.
const FILE: &str = "random.bin";

/// Writes a file of `bytes` random bytes.
fn fill(path: &Path, bytes: u64, seed: u64) -> Result<()> {
    let mut file = File::create(path).map_err(Error::io("make the file to send"))?;
    blocks(bytes, seed, |_, block| file.write_all(block).map_err(Error::io("write the file to send")))
}

/// Compares every byte with the data of this seed.
fn compare(program: &str, came: &Path, bytes: u64, seed: u64) -> Result<()> {
    let mut file = File::open(came).map_err(Error::io("open a file to compare"))?;
    let mut got = Vec::new();
    let differs =
        |at| Error::wrong("transfer", format!("{program}: what came is not what was sent, after {at} bytes"));
    blocks(bytes, seed, |at, block| {
        got.clear();
        let read = (&mut file).take(block.len() as u64).read_to_end(&mut got);
        read.map_err(Error::io("read a file to compare"))?;
        if got == block { Ok(()) } else { Err(differs(at)) }
    })?;
    let more = file.read(&mut [0]).map_err(Error::io("read a file to compare"))?;
    if more == 0 { Ok(()) } else { Err(differs(bytes)) }
}

/// The random bytes of a seed, and where each block of them begins.
fn blocks(bytes: u64, seed: u64, mut each: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
    let (mut random, mut block) = (Mt64::new(seed), vec![0; 1 << 20]);
    for at in (0..bytes).step_by(block.len()) {
        random.fill_bytes(&mut block);
        let count = (bytes - at).min(block.len() as u64);
        each(at, &block[..count as usize])?;
    }
    Ok(())
}

#[cfg(unix)]
fn free_bytes(directory: &Path) -> Option<u64> {
    let of = rustix::fs::statvfs(directory).ok()?;
    Some(of.f_bavail.saturating_mul(of.f_frsize))
}

/// Unknown here: a write fails if the space is too small.
#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// Bytes for people, in the multiples that the command line takes.
pub(super) fn size_words(bytes: u64) -> String {
    let unit = [("GiB", 30), ("MiB", 20), ("KiB", 10)].into_iter().find(|(_, shift)| bytes >= 1 << shift);
    unit.map_or(format!("{bytes} bytes"), |(unit, shift)| {
        format!("{} {unit}", (10.0 * bytes as f64 / (1_u64 << shift) as f64).round() / 10.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_differs_in_a_byte_or_its_length_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("came");
        let check = || compare("this", &path, 2_500_000, 1);
        fill(&path, 2_500_000, 1).unwrap();
        check().unwrap();
        let good = std::fs::read(&path).unwrap();
        assert_eq!(good.len(), 2_500_000);
        let mut bytes = good.clone();
        bytes[2_400_000] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let error = check().unwrap_err().to_string();
        assert!(error.contains("this: what came is not what was sent"), "{error}");
        std::fs::write(&path, &good[..2_499_999]).unwrap();
        assert!(check().is_err());
        std::fs::write(&path, [&good[..], b"x"].concat()).unwrap();
        assert!(check().is_err());
    }
}
