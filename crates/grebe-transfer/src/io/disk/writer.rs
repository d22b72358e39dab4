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

/// For a machine with idle cores, and for a slow disk.
/// A thread that checks, writes and notes groups.
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
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::io::disk::journal::Journal;
    use crate::io::disk::reader::{Read, Reader};
    use crate::io::disk::source::{Content, Source};
    use crate::io::disk::target::Target;

    struct Sample {
        from: tempfile::TempDir,
        source: Arc<Source>,
        offer: Offer,
    }

    impl Sample {
        fn of(bytes: usize) -> Self {
            let from = tempfile::tempdir().unwrap();
            let path = from.path().join("sample");
            fs::write(&path, (0..bytes).map(|at| (at / 777) as u8).collect::<Vec<_>>()).unwrap();
            let source = Arc::new(Source::open(&[path]).unwrap());
            let offer = Offer {
                total_bytes: source.stream_bytes(),
                index_bytes: source.index_bytes(),
                content: source.content(),
                touched: source.touched(),
            };
            Self { from, source, offer }
        }

        fn groups(&self) -> Vec<(u64, Vec<u8>)> {
            let mut reader = Reader::start(Arc::new(Content::new(self.source.clone())));
            let count = groups::count(self.offer.total_bytes);
            let mut next = || match reader.wait(Duration::from_secs(60)) {
                Some(Read::Group(start, bytes)) => (start, bytes),
                _ => panic!("the file is there"),
            };
            (0..count).map(|_| next()).collect()
        }

        fn is_in(&self, directory: &Path) -> bool {
            let names = fs::read_dir(directory).unwrap().count();
            let read = |directory: &Path| fs::read(directory.join("sample")).ok();
            names == 1 && read(directory) == read(self.from.path())
        }
    }

    fn place(directory: &Path) -> Place {
        Place {
            directory: directory.to_path_buf(),
            key: [5; 32],
            overwrite: false,
            accept: None,
            asks: false,
        }
    }

    fn wait(writer: &Writer) -> Result<Named> {
        let began = Instant::now();
        loop {
            if let Some(outcome) = writer.outcome() {
                return outcome;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "it does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_slow_disk_gets_a_thread_on_the_way() {
        let sample = Sample::of(2_000_000);
        for slow_after in [0, 3, usize::MAX] {
            let into = tempfile::tempdir().unwrap();
            let mut writer = Writer::start(&place(into.path()), &sample.offer).unwrap();
            // The last one first: the index comes late, and what came before it waits.
            for (number, (start, bytes)) in sample.groups().iter().rev().enumerate() {
                if number == slow_after {
                    writer.patience = Patience::none();
                }
                writer.put(*start, bytes, |_| true).unwrap();
            }
            assert_eq!(wait(&writer).unwrap().paths, [into.path().join("sample")]);
            assert!(sample.is_in(into.path()), "slow after {slow_after}");
        }
    }

    #[test]
    fn a_changed_byte_is_found_and_nothing_gets_its_name() {
        let sample = Sample::of(1_000_000);
        for changed in [0, 1, 3] {
            let into = tempfile::tempdir().unwrap();
            let mut writer = Writer::start(&place(into.path()), &sample.offer).unwrap();
            for (number, (start, mut bytes)) in sample.groups().into_iter().enumerate() {
                bytes[1_000] ^= u8::from(number == changed);
                writer.put(start, &bytes, |_| true).unwrap();
            }
            match wait(&writer) {
                Ok(named) => assert_eq!((changed, named.paths.len(), named.left_out.len()), (1, 0, 1)),
                Err(error) => assert!(matches!(error, Error::HashDiffers), "{error}"),
            }
            drop(writer);
            assert!(!into.path().join("sample").exists());
        }
    }

    #[test]
    fn what_is_dropped_half_way_is_held_the_next_time() {
        let sample = Sample::of(2_000_000);
        for slow in [false, true] {
            let into = tempfile::tempdir().unwrap();
            let mut writer = Writer::start(&place(into.path()), &sample.offer).unwrap();
            if slow {
                writer.patience = Patience::none();
            }
            let groups = sample.groups();
            let (half, rest) = groups.split_at(4);
            half.iter().for_each(|(start, bytes)| writer.put(*start, bytes, |_| true).unwrap());
            drop(writer);
            let mut writer = Writer::start(&place(into.path()), &sample.offer).unwrap();
            assert_eq!(
                (writer.held.iter().count(), writer.held.prefix_end()),
                (1, rest[0].0),
                "slow: {slow}"
            );
            rest.iter().for_each(|(start, bytes)| writer.put(*start, bytes, |_| true).unwrap());
            wait(&writer).unwrap();
            assert!(sample.is_in(into.path()));
        }
    }

    #[test]
    fn a_kill_while_names_were_given_is_made_good() {
        let sample = Sample::of(600_000);
        let into = tempfile::tempdir().unwrap();
        let mut writer = Writer::start(&place(into.path()), &sample.offer).unwrap();
        sample.groups().iter().for_each(|(start, bytes)| writer.put(*start, bytes, |_| true).unwrap());
        wait(&writer).unwrap();
        // As if the process had been killed before it removed what it needs no more.
        let index = sample.groups()[0].1[..sample.offer.index_bytes as usize].to_vec();
        let folder = Target::folder(into.path(), &sample.offer.content, true).unwrap();
        fs::create_dir(folder.join("tree")).unwrap();
        fs::write(folder.join("status"), [0]).unwrap();
        Journal::create(&folder, [5; 32], &sample.offer, &index).unwrap().add_whole().unwrap();
        let writer = Writer::start(&place(into.path()), &sample.offer).unwrap();
        if cfg!(target_os = "linux") {
            assert_eq!(writer.held.covered(), sample.offer.total_bytes);
            assert_eq!(wait(&writer).unwrap().paths, [into.path().join("sample")]);
        }
        drop(writer);
        assert!(sample.is_in(into.path()));
    }

    #[test]
    fn what_somebody_may_have_changed_is_compared_and_not_sent_again() {
        let sample = Sample::of(2_000_000);
        let touched = Offer { touched: [9; 8], ..sample.offer };
        for is_changed in [false, true] {
            let into = tempfile::tempdir().unwrap();
            let mut writer = Writer::start(&place(into.path()), &sample.offer).unwrap();
            let groups = sample.groups();
            groups[..5].iter().for_each(|(start, bytes)| writer.put(*start, bytes, |_| true).unwrap());
            drop(writer);
            let mut writer = Writer::start(&place(into.path()), &touched).unwrap();
            let held = writer.held.clone();
            assert_eq!(held.covered(), 4 * groups::GROUP_BYTES, "the first has the list of files");
            for (number, (start, bytes)) in groups.iter().enumerate() {
                let mut missing = Vec::new();
                let range = *start..*start + bytes.len() as u64;
                held.missing(range, |part| missing.push(part));
                for part in missing {
                    let mut bytes =
                        bytes[(part.start - start) as usize..(part.end - start) as usize].to_vec();
                    if is_changed && number == 3 {
                        bytes[0] ^= 1;
                    }
                    writer.put(part.start, &bytes, |_| true).unwrap();
                }
            }
            let named = wait(&writer).unwrap();
            drop(writer);
            assert_eq!(named.left_out.len(), usize::from(is_changed));
            assert_eq!(sample.is_in(into.path()), !is_changed);
        }
    }
}
