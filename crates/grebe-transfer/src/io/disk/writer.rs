//! Gathers what arrives into groups, and has each written when it is whole.
//!
//! ```text
//!  [ receive thread ] --groups--> [ group_store: BLAKE3, write ] --every second--> [ journal_thread: flush, note ]
//! ```
//!
//! The store is on a thread of its own only where that is faster, or where the disk is slow.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use super::group_store::GroupStore;
use super::groups;
use super::{Named, Patience, Place, has_cores_to_spare};
use crate::error::{Error, Result};
use crate::proto::index::INDEX_BYTES_MAX;
use crate::proto::ranges::RangeSet;
use crate::proto::wire::Offer;

/// Gathers groups, and writes each when it is whole: while it lies in this core's cache, or on a thread.
pub(in crate::io) struct Writer {
    /// Where groups are written: here or on the thread.
    store: Option<GroupStore>,
    thread: Option<WriterThread>,
    patience: Patience,
    /// Groups that are not whole yet, and the one of them that was last written to.
    open: HashMap<u64, Vec<u8>>,
    newest: Option<(u64, Vec<u8>)>,
    empties: Vec<Vec<u8>>,
    stream_bytes: u64,
    /// What an earlier session left, as ranges of the stream.
    pub(in crate::io) held: RangeSet,
    /// Groups that turn out not to be needed.
    spared: Receiver<RangeSet>,
}

impl Writer {
    /// Goes on with what an earlier session left, or begins anew.
    pub(in crate::io) fn start(place: &Place, offer: &Offer) -> Result<Self> {
        if groups::content_bytes(offer.total_bytes).is_none_or(|bytes| bytes < offer.index_bytes)
            || offer.index_bytes > INDEX_BYTES_MAX as u64
        {
            return Err(Error::Index { name: "the offer".into(), why: "it does not fit together" });
        }
        let (tell, spared) = channel();
        let store = GroupStore::open(place.clone(), *offer, tell)?;
        let mut writer = Self {
            held: store.held_stream(),
            store: None,
            thread: None,
            patience: Patience::new(),
            open: HashMap::new(),
            newest: None,
            empties: Vec::new(),
            stream_bytes: offer.total_bytes,
            spared,
        };
        // Creating many files takes long too, and so does a person who is asked.
        let is_slow = offer.index_bytes > SHORT_INDEX_BYTES || place.asks;
        if has_cores_to_spare() || is_slow || store.is_whole() {
            writer.thread = Some(WriterThread::start(store, Ok(()))?);
        } else {
            writer.store = Some(store);
        }
        Ok(writer)
    }

    /// Takes bytes of the stream. `has` answers whether all of a range has arrived.
    pub(in crate::io) fn put(
        &mut self,
        mut at: u64,
        mut bytes: &[u8],
        has: impl Fn(&Range<u64>) -> bool,
    ) -> Result<()> {
        while !bytes.is_empty() {
            let group = groups::group_of(at);
            let range = groups::group_range(group, self.stream_bytes);
            let take = (range.end - at).min(bytes.len() as u64) as usize;
            let from = (at - range.start) as usize;
            self.buffer(group, (range.end - range.start) as usize)[from..from + take]
                .copy_from_slice(&bytes[..take]);
            if has(&range)
                && let Some((group, buffer)) = self.newest.take()
            {
                self.hand_over(group, buffer)?;
            }
            (at, bytes) = (at + take as u64, &bytes[take..]);
        }
        Ok(())
    }

    /// What need not come, as ranges of the stream, once that is known.
    pub(in crate::io) fn take_spared(&mut self) -> Option<RangeSet> {
        self.spared.try_recv().ok()
    }

    /// Hands over what is whole because the rest of it is not needed.
    pub(in crate::io) fn on_spared(&mut self, has: impl Fn(&Range<u64>) -> bool) -> Result<()> {
        let (open, newest) = (std::mem::take(&mut self.open), self.newest.take());
        for (group, buffer) in open.into_iter().chain(newest) {
            if has(&groups::group_range(group, self.stream_bytes)) {
                self.hand_over(group, buffer)?;
            } else {
                self.open.insert(group, buffer);
            }
        }
        Ok(())
    }

    /// Bytes that are whole and not written yet.
    pub(in crate::io) fn backlog_bytes(&self) -> u64 {
        self.thread.as_ref().map_or(0, WriterThread::backlog_bytes)
    }

    /// How it ended, once it has: the files.
    pub(in crate::io) fn outcome(&self) -> Option<Result<Named>> {
        self.thread.as_ref()?.outcome()
    }

    fn buffer(&mut self, group: u64, bytes: usize) -> &mut [u8] {
        let found = match self.newest.take() {
            Some((newest, buffer)) if newest == group => buffer,
            other => {
                if let Some((number, buffer)) = other {
                    self.open.insert(number, buffer);
                }
                let mut buffer = match self.open.remove(&group) {
                    Some(buffer) => buffer,
                    None => self.empty(),
                };
                buffer.resize(bytes, 0);
                buffer
            }
        };
        &mut self.newest.insert((group, found)).1
    }

    fn empty(&mut self) -> Vec<u8> {
        let used = self.thread.as_ref().and_then(|thread| thread.take_empty());
        used.or_else(|| self.empties.pop()).unwrap_or_default()
    }

    fn hand_over(&mut self, group: u64, buffer: Vec<u8>) -> Result<()> {
        if let Some(store) = &mut self.store {
            let start = Instant::now();
            let taken = store.take(group, buffer, |buffer, _| self.empties.push(buffer));
            // The end may take long as well: the last flush, and the files' names.
            if (taken.is_err() || store.is_whole() || self.patience.is_over(start.elapsed()))
                && let Some(store) = self.store.take()
            {
                self.thread = Some(WriterThread::start(store, taken)?);
            }
        } else if let Some(thread) = &mut self.thread {
            thread.hand_over(group, buffer);
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(mut store) = self.store.take() {
            store.keep();
        }
    }
}

/// Where the list of files is longer, a thread creates them: that takes a while.
const SHORT_INDEX_BYTES: u64 = 4 << 10;

/// A thread that checks, writes and notes groups, for a machine with idle cores and for a slow disk.
struct WriterThread {
    full: SyncSender<(u64, Vec<u8>)>,
    empties: Receiver<Vec<u8>>,
    done: Receiver<Result<Named>>,
    thread: Option<JoinHandle<()>>,
    /// Bytes handed over, and those of them that are written.
    handed_over: u64,
    written: Arc<AtomicU64>,
}

impl WriterThread {
    /// Goes on with a store; `begun` is how its work went so far.
    fn start(mut store: GroupStore, begun: Result<()>) -> Result<Self> {
        // This never fills: the backlog holds the sender back.
        let (full, groups) = sync_channel(1 << 14);
        let (give_back, empties) = channel();
        let (tell, done) = sync_channel(1);
        let written = Arc::new(AtomicU64::new(0));
        let counter = written.clone();
        let directory = store.place.directory.clone();
        let thread = Builder::new()
            .name("grebe-write".into())
            .spawn(move || {
                let outcome = begun.and_then(|()| take_all(&mut store, &groups, &give_back, &counter));
                let _ = tell.send(store.end(outcome));
            })
            .map_err(|source| Error::File { action: "start a thread to write", path: directory, source })?;
        Ok(Self { full, empties, done, thread: Some(thread), handed_over: 0, written })
    }

    fn hand_over(&mut self, group: u64, buffer: Vec<u8>) {
        self.handed_over += buffer.len() as u64;
        // A thread that has ended says why in `outcome`.
        let _ = self.full.send((group, buffer));
    }

    /// A buffer that is free again.
    fn take_empty(&self) -> Option<Vec<u8>> {
        self.empties.try_recv().ok()
    }

    /// Bytes handed over and not written yet.
    fn backlog_bytes(&self) -> u64 {
        self.handed_over.saturating_sub(self.written.load(Ordering::Relaxed))
    }

    /// How the writing ended, once it has: the files.
    fn outcome(&self) -> Option<Result<Named>> {
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
) -> Result<Named> {
    while !store.is_whole() {
        let Ok((group, bytes)) = groups.recv() else { return Ok(Named::default()) };
        store.take(group, bytes, |buffer, bytes| {
            written.fetch_add(bytes, Ordering::Relaxed);
            // The other end may be gone: then nobody needs the buffer.
            let _ = give_back.send(buffer);
        })?;
    }
    store.finish()
}

#[cfg(test)]
mod tests;
