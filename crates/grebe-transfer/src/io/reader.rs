//! Reads a file once, in order, and hashes it on the way.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

use crate::io::CHUNK_BYTES;
use crate::{Error, Result};

/// What the reader hands over, in the order of the file.
pub(super) enum FromFile {
    /// The next bytes.
    Chunk(Vec<u8>),
    /// All were read.
    Hash([u8; 32]),
    /// It went wrong.
    Failed(Error),
}

/// The reader's thread, at most [`CHUNKS`] chunks ahead of who takes them.
pub(super) struct Reader {
    chunks: Receiver<FromFile>,
    empties: Sender<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    pub fn start(mut file: File, path: &Path, total_bytes: u64) -> Result<Self> {
        let (full, chunks) = sync_channel(CHUNKS);
        let (empties, free) = channel();
        for _ in 0..CHUNKS {
            // The other end is in hand.
            let _ = empties.send(Vec::with_capacity(CHUNK_BYTES));
        }
        let path = path.to_path_buf();
        let failed = path.clone();
        let thread = Builder::new()
            .name("grebe-read".into())
            .spawn(move || {
                if let Err(error) = read(&mut file, &path, total_bytes, &free, &full) {
                    let _ = full.send(FromFile::Failed(error));
                }
            })
            .map_err(|source| Error::File { action: "start a thread to read", path: failed, source })?;
        Ok(Self { chunks, empties, thread: Some(thread) })
    }

    /// The next, if it is there.
    pub fn take(&self) -> Option<FromFile> {
        self.chunks.try_recv().ok()
    }

    /// Gives a chunk back to be filled again.
    pub fn give_back(&self, chunk: Vec<u8>) {
        // The reader may be done: then nobody needs it.
        let _ = self.empties.send(chunk);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Both channels closed, the thread ends at its next chunk.
        (self.chunks, self.empties) = (sync_channel(0).1, channel().0);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

const CHUNKS: usize = 16;

fn read(
    file: &mut File,
    path: &Path,
    total_bytes: u64,
    free: &Receiver<Vec<u8>>,
    full: &SyncSender<FromFile>,
) -> Result<()> {
    let failed = |source| Error::File { action: "read", path: PathBuf::from(path), source };
    let mut hasher = blake3::Hasher::new();
    let mut left = total_bytes;
    while left > 0 {
        let Ok(mut chunk) = free.recv() else { return Ok(()) };
        chunk.resize(left.min(CHUNK_BYTES as u64) as usize, 0);
        file.read_exact(&mut chunk).map_err(failed)?;
        hasher.update(&chunk);
        left -= chunk.len() as u64;
        if full.send(FromFile::Chunk(chunk)).is_err() {
            return Ok(());
        }
    }
    let _ = full.send(FromFile::Hash(*hasher.finalize().as_bytes()));
    Ok(())
}
