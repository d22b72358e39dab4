//! The writer's thread: for a machine with idle cores, and for a slow disk.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

use super::group_store::GroupStore;
use crate::error::{Error, Result};

/// A thread that checks, writes and notes groups.
pub(super) struct WriterThread {
    full: SyncSender<(u64, Vec<u8>)>,
    empties: Receiver<Vec<u8>>,
    done: Receiver<Result<Vec<PathBuf>>>,
    thread: Option<JoinHandle<()>>,
    /// Bytes handed over, and those of them that are written.
    handed_over: u64,
    written: Arc<AtomicU64>,
}

impl WriterThread {
    /// Goes on with a store; `begun` is how its work went so far.
    pub(super) fn start(mut store: GroupStore, begun: Result<()>) -> Result<Self> {
        // This never fills: the backlog holds the sender back.
        let (full, groups) = sync_channel(1 << 14);
        let (give_back, empties) = channel();
        let (tell, done) = sync_channel(1);
        let written = Arc::new(AtomicU64::new(0));
        let counter = written.clone();
        let directory = store.directory().to_path_buf();
        let thread = Builder::new()
            .name("grebe-write".into())
            .spawn(move || {
                let outcome = begun.and_then(|()| take_all(&mut store, &groups, &give_back, &counter));
                let _ = tell.send(store.end(outcome));
            })
            .map_err(|source| Error::File { action: "start a thread to write", path: directory, source })?;
        Ok(Self { full, empties, done, thread: Some(thread), handed_over: 0, written })
    }

    pub(super) fn hand_over(&mut self, group: u64, buffer: Vec<u8>) {
        self.handed_over += buffer.len() as u64;
        // A thread that has ended says why in `outcome`.
        let _ = self.full.send((group, buffer));
    }

    /// A buffer that is free again.
    pub(super) fn take_empty(&self) -> Option<Vec<u8>> {
        self.empties.try_recv().ok()
    }

    /// Bytes handed over and not written yet.
    pub(super) fn backlog_bytes(&self) -> u64 {
        self.handed_over.saturating_sub(self.written.load(Ordering::Relaxed))
    }

    /// How the writing ended, once it has: the files.
    pub(super) fn outcome(&self) -> Option<Result<Vec<PathBuf>>> {
        self.done.try_recv().ok()
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        // The channel closed, the thread writes what it has, notes it, and ends.
        self.full = sync_channel(0).0;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Takes groups until everything is whole and has its name, or until the other end is gone.
fn take_all(
    store: &mut GroupStore,
    groups: &Receiver<(u64, Vec<u8>)>,
    give_back: &Sender<Vec<u8>>,
    written: &AtomicU64,
) -> Result<Vec<PathBuf>> {
    while !store.is_whole() {
        let Ok((group, bytes)) = groups.recv() else { return Ok(Vec::new()) };
        store.take(group, bytes, |buffer, bytes| {
            written.fetch_add(bytes, Ordering::Relaxed);
            // The other end may be gone: then nobody needs the buffer.
            let _ = give_back.send(buffer);
        })?;
    }
    store.finish()
}
