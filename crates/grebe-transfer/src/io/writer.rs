//! Writes a file in the order in which it arrives, hashes it in its own order, and gives it its name when it is whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

use crate::io::CHUNK_BYTES;
use crate::wire::Verdict;
use crate::{Error, RangeSet, Result};

/// The writer's thread, with a bounded number of chunks between it and who fills them.
pub(super) struct Writer {
    full: SyncSender<Write>,
    free: Receiver<Vec<u8>>,
    done: Receiver<Result<Verdict>>,
    thread: Option<JoinHandle<()>>,
    staged: Vec<u8>,
    staged_at: u64,
    path: PathBuf,
}

enum Write {
    At(u64, Vec<u8>),
    /// Everything was handed over: this is its hash.
    Finish([u8; 32]),
}

impl Writer {
    /// Creates the file `name` in `directory`, under a name of its own until it is whole.
    ///
    /// # Errors
    /// [`Error::File`] where the name is taken or no name for a file, or the file cannot be created.
    pub fn create(directory: &Path, name: &str, total_bytes: u64) -> Result<Self> {
        let path = directory.join(name);
        let refuse = |source| Error::File { action: "create", path: path.clone(), source };
        if !is_plain_name(name) {
            return Err(refuse(io::Error::other("not the name of a file in this directory")));
        }
        if fs::symlink_metadata(&path).is_ok() {
            return Err(refuse(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "it exists; move it away first",
            )));
        }
        let part = directory.join(format!("{name}.part"));
        let _ = fs::remove_file(&part);
        // `create_new` does not follow a link that somebody put there.
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&part).map_err(refuse)?;
        file.set_len(total_bytes).map_err(refuse)?;
        let (full, writes) = sync_channel(CHUNKS);
        let (empties, free) = channel();
        for _ in 0..CHUNKS {
            let _ = empties.send(Vec::with_capacity(CHUNK_BYTES));
        }
        let (tell, done) = sync_channel(1);
        let mut job = Job {
            file,
            part,
            path: path.clone(),
            hasher: blake3::Hasher::new(),
            hashed: 0,
            written: RangeSet::default(),
        };
        let thread = Builder::new()
            .name("grebe-write".into())
            .spawn(move || {
                let _ = tell.send(job.run(total_bytes, &writes, &empties));
            })
            .map_err(refuse)?;
        Ok(Self { full, free, done, thread: Some(thread), staged: Vec::new(), staged_at: 0, path })
    }

    /// The file's name once it is whole.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes bytes in; waits for the disk where it is far behind. What follows each other goes out in one write.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let follows = self.staged_at + self.staged.len() as u64 == offset;
        if !follows || self.staged.len() + bytes.len() > CHUNK_BYTES {
            self.flush();
        }
        if self.staged.is_empty() {
            self.staged_at = offset;
            if self.staged.capacity() == 0
                && let Ok(chunk) = self.free.recv()
            {
                self.staged = chunk;
            }
        }
        self.staged.extend_from_slice(bytes);
    }

    /// Hands over what was gathered.
    pub fn flush(&mut self) {
        if !self.staged.is_empty() {
            // A writer that has failed says so in `outcome`.
            let _ = self.full.send(Write::At(self.staged_at, std::mem::take(&mut self.staged)));
        }
    }

    /// Says that all bytes were handed over.
    pub fn finish(&mut self, hash: [u8; 32]) {
        self.flush();
        let _ = self.full.send(Write::Finish(hash));
    }

    /// How it ended, once it has.
    pub fn outcome(&self) -> Option<Result<Verdict>> {
        self.done.try_recv().ok()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The channel closed, the thread ends after what it has.
        self.full = sync_channel(0).0;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Job {
    file: File,
    part: PathBuf,
    path: PathBuf,
    hasher: blake3::Hasher,
    hashed: u64,
    written: RangeSet,
}

impl Job {
    fn run(
        &mut self,
        total_bytes: u64,
        writes: &Receiver<Write>,
        empties: &Sender<Vec<u8>>,
    ) -> Result<Verdict> {
        for write in writes {
            match write {
                Write::At(offset, mut chunk) => {
                    let wrote = self.write(offset, &chunk);
                    wrote.map_err(|source| self.failed("write", source))?;
                    chunk.clear();
                    let _ = empties.send(chunk);
                }
                Write::Finish(hash) => {
                    self.catch_up(total_bytes).map_err(|source| self.failed("read back", source))?;
                    if *self.hasher.finalize().as_bytes() != hash {
                        return Ok(Verdict::HashDiffers);
                    }
                    // Not over a file that came there meanwhile, as a rename would.
                    fs::hard_link(&self.part, &self.path)
                        .and_then(|()| fs::remove_file(&self.part))
                        .map_err(|source| self.failed("give its name to", source))?;
                    return Ok(Verdict::Whole);
                }
            }
        }
        Ok(Verdict::CannotWrite)
    }

    fn write(&mut self, offset: u64, chunk: &[u8]) -> io::Result<()> {
        write_all_at(&self.file, chunk, offset)?;
        self.written.insert(offset..offset + chunk.len() as u64);
        if offset == self.hashed {
            self.hasher.update(chunk);
            self.hashed += chunk.len() as u64;
        }
        self.catch_up(self.written.prefix_end())
    }

    /// What came before a hole was filled is read back: it is still in the page cache.
    fn catch_up(&mut self, end: u64) -> io::Result<()> {
        let mut bytes = Vec::new();
        while self.hashed < end {
            bytes.resize((end - self.hashed).min(CHUNK_BYTES as u64) as usize, 0);
            read_exact_at(&self.file, &mut bytes, self.hashed)?;
            self.hasher.update(&bytes);
            self.hashed += bytes.len() as u64;
        }
        Ok(())
    }

    fn failed(&self, action: &'static str, source: io::Error) -> Error {
        Error::File { action, path: self.part.clone(), source }
    }
}

/// Chunks between the receiving thread and the disk.
const CHUNKS: usize = 32;

/// One component that no system takes for a path, a device or a stream.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name != "."
        && name != ".."
        && !name.chars().any(|letter| letter.is_control() || matches!(letter, '/' | '\\' | ':'))
}

#[cfg(unix)]
pub(super) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
pub(super) fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[read..];
        offset += read as u64;
    }
    Ok(())
}

#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(writer: &Writer) -> Result<Verdict> {
        loop {
            if let Some(outcome) = writer.outcome() {
                return outcome;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn pieces_in_any_order_make_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..2_000_000_u32).map(|at| (at / 7) as u8).collect();
        let mut writer = Writer::create(directory.path(), "f", bytes.len() as u64).unwrap();
        let pieces: Vec<_> = bytes.chunks(900).enumerate().collect();
        for (index, piece) in
            pieces.iter().filter(|(index, _)| index % 5 != 0).chain(pieces.iter().step_by(5))
        {
            writer.write(*index as u64 * 900, piece);
        }
        assert!(!writer.path().exists(), "not before it is whole");
        writer.finish(*blake3::hash(&bytes).as_bytes());
        assert_eq!(outcome(&writer).unwrap(), Verdict::Whole);
        assert!(fs::read(writer.path()).unwrap() == bytes);
    }

    #[test]
    fn a_wrong_byte_is_found_and_the_file_gets_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(directory.path(), "f", 3).unwrap();
        writer.write(0, b"abd");
        writer.finish(*blake3::hash(b"abc").as_bytes());
        assert_eq!(outcome(&writer).unwrap(), Verdict::HashDiffers);
        assert!(!writer.path().exists());
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["", ".", "..", "../f", "/etc/f", "a/b", "a\\b", "c:f", "a\nb"] {
            assert!(matches!(Writer::create(directory.path(), name, 1), Err(Error::File { .. })), "{name:?}");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
