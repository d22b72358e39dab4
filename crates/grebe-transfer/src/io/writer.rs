//! Checks, writes and remembers what comes, a group at a time.
//!
//! ```text
//!  [ receive's thread ] --groups--> [ writer: BLAKE3, write ] --every second--> [ journal: flush, note ]
//! ```
//!
//! The writer is a thread of its own only where that is faster, or where the disk is slow.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::io::journal::{Found, Journal, Note, Notes};
use crate::io::layout::{self, HASH_BYTES};
use crate::io::target::Target;
use crate::io::{Patience, has_cores_to_spare};
use crate::proto::index::{INDEX_BYTES_MAX, Index};
use crate::proto::wire::Offer;
use crate::{Error, RangeSet, Result};

/// Gathers groups, and writes each when it is whole: while it lies in the cache of this core, or on a thread.
pub(super) struct Writer {
    here: Option<Job>,
    elsewhere: Option<Elsewhere>,
    patience: Patience,
    /// Groups that are not whole yet, and the one of them that was last written to.
    open: HashMap<u64, Vec<u8>>,
    newest: Option<(u64, Vec<u8>)>,
    empties: Vec<Vec<u8>>,
    stream_bytes: u64,
    held: RangeSet,
}

/// The writer's thread.
struct Elsewhere {
    full: SyncSender<(u64, Vec<u8>)>,
    empties: Receiver<Vec<u8>>,
    done: Receiver<Result<Vec<PathBuf>>>,
    thread: Option<JoinHandle<()>>,
    /// Bytes handed over, and those of them that are written.
    handed_over: u64,
    written: Arc<AtomicU64>,
}

impl Writer {
    /// Goes on with what an earlier session left in `directory`, or begins anew.
    ///
    /// # Errors
    /// [`Error::Index`] for an offer that nobody makes, [`Error::File`].
    pub fn start(directory: &Path, offer: &Offer, overwrite: bool) -> Result<Self> {
        if layout::content_bytes(offer.total_bytes).is_none_or(|bytes| bytes < offer.index_bytes)
            || offer.index_bytes > INDEX_BYTES_MAX as u64
        {
            return Err(Error::Index { name: "the offer".into(), why: "it does not fit together" });
        }
        let mut job = Job::new(directory, *offer, overwrite);
        if let Some(found) = Journal::find(directory, offer)? {
            job.resume(found);
        }
        let mut writer = Self {
            held: job.held_stream(),
            here: None,
            elsewhere: None,
            patience: Patience::new(),
            open: HashMap::new(),
            newest: None,
            empties: Vec::new(),
            stream_bytes: offer.total_bytes,
        };
        // To make many files takes long too.
        if has_cores_to_spare() || offer.index_bytes > SHORT_INDEX_BYTES || job.is_whole() {
            writer.elsewhere = Some(Elsewhere::start(job, Ok(()))?);
        } else {
            writer.here = Some(job);
        }
        Ok(writer)
    }

    /// What an earlier session left, as ranges of the stream.
    pub fn held(&self) -> &RangeSet {
        &self.held
    }

    /// Takes bytes of the stream. `has` says whether all of a range has come.
    ///
    /// # Errors
    /// [`Error::File`] where the system has no thread left. How the writing goes is told by [`outcome`](Self::outcome).
    pub fn put(
        &mut self,
        mut at: u64,
        mut bytes: &[u8],
        has: impl Fn(&std::ops::Range<u64>) -> bool,
    ) -> Result<()> {
        while !bytes.is_empty() {
            let group = layout::group_of(at);
            let range = layout::group_range(group, self.stream_bytes);
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

    /// Bytes that are whole and not written yet.
    pub fn backlog_bytes(&self) -> u64 {
        self.elsewhere.as_ref().map_or(0, |elsewhere| {
            elsewhere.handed_over.saturating_sub(elsewhere.written.load(Ordering::Relaxed))
        })
    }

    /// How it ended, once it has: the files.
    pub fn outcome(&self) -> Option<Result<Vec<PathBuf>>> {
        self.elsewhere.as_ref()?.done.try_recv().ok()
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
        let used = self.elsewhere.as_ref().and_then(|elsewhere| elsewhere.empties.try_recv().ok());
        used.or_else(|| self.empties.pop()).unwrap_or_default()
    }

    fn hand_over(&mut self, group: u64, buffer: Vec<u8>) -> Result<()> {
        if let Some(job) = &mut self.here {
            let start = Instant::now();
            let taken = job.take(group, buffer, |buffer, _| self.empties.push(buffer));
            // What ends it may take long as well: the last flush, and the files' names.
            if (taken.is_err() || job.is_whole() || self.patience.is_over(start.elapsed()))
                && let Some(job) = self.here.take()
            {
                self.elsewhere = Some(Elsewhere::start(job, taken)?);
            }
        } else if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.handed_over += buffer.len() as u64;
            // A writer that has failed says so in `outcome`.
            let _ = elsewhere.full.send((group, buffer));
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(mut job) = self.here.take() {
            job.keep();
        }
    }
}

impl Elsewhere {
    /// Goes on with a job; `begun` is how it went so far.
    fn start(mut job: Job, begun: Result<()>) -> Result<Self> {
        // The sender is held back by what is handed over and not written: this never fills.
        let (full, groups) = sync_channel(1 << 14);
        let (give_back, empties) = channel();
        let (tell, done) = sync_channel(1);
        let written = Arc::new(AtomicU64::new(0));
        let counter = written.clone();
        let directory = job.directory.clone();
        let thread = Builder::new()
            .name("grebe-write".into())
            .spawn(move || {
                let outcome = begun.and_then(|()| job.take_all(&groups, &give_back, &counter));
                let _ = tell.send(job.end(outcome));
            })
            .map_err(|source| Error::File { action: "start a thread to write", path: directory, source })?;
        Ok(Self { full, empties, done, thread: Some(thread), handed_over: 0, written })
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // The channel closed, the thread writes what it has, notes it, and ends.
        self.full = sync_channel(0).0;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Job {
    directory: PathBuf,
    offer: Offer,
    overwrite: bool,
    index: Vec<u8>,
    index_left: u64,
    target: Option<Target>,
    /// Whole groups that came before the index was there.
    waiting: Vec<(u64, Vec<u8>)>,
    /// Groups that are written.
    groups: RangeSet,
    /// Those of them that are not in the journal.
    unnoted: RangeSet,
    noted_at: Instant,
    notes: Option<Notes>,
    /// Once all is whole.
    journal: Option<Journal>,
}

impl Job {
    fn new(directory: &Path, offer: Offer, overwrite: bool) -> Self {
        Self {
            directory: directory.to_path_buf(),
            offer,
            overwrite,
            index: vec![0; offer.index_bytes as usize],
            index_left: offer.index_bytes,
            target: None,
            waiting: Vec::new(),
            groups: RangeSet::default(),
            unnoted: RangeSet::default(),
            noted_at: Instant::now(),
            notes: None,
            journal: None,
        }
    }

    fn resume(&mut self, found: Found) {
        let Found { journal, index: bytes, groups, is_whole } = found;
        let Ok(index) = Index::decode(&bytes) else { return journal.remove() };
        let Self { directory, offer, overwrite, .. } = &*self;
        match Target::reopen(directory, index.clone(), offer.index_bytes, *overwrite, is_whole) {
            Some(target) => {
                let last = layout::groups(self.offer.total_bytes);
                if is_whole {
                    self.groups.insert(0..last);
                }
                for range in groups.iter() {
                    self.groups.insert(range.start.min(last)..range.end.min(last));
                }
                (self.index, self.index_left, self.target) = (bytes, 0, Some(target));
                self.notes = Some(Notes::start(journal));
            }
            None => {
                Target::discard(&self.directory, &index);
                journal.remove();
            }
        }
    }

    fn held_stream(&self) -> RangeSet {
        let mut held = RangeSet::default();
        for groups in self.groups.iter() {
            let start = layout::group_range(groups.start, self.offer.total_bytes).start;
            held.insert(start..layout::group_range(groups.end, self.offer.total_bytes).start);
        }
        held
    }

    /// Until all is whole; or, with no files to name, until nothing comes any more.
    fn take_all(
        &mut self,
        groups: &Receiver<(u64, Vec<u8>)>,
        give_back: &Sender<Vec<u8>>,
        written: &AtomicU64,
    ) -> Result<Vec<PathBuf>> {
        while !self.is_whole() {
            let Ok((group, bytes)) = groups.recv() else { return Ok(Vec::new()) };
            self.take(group, bytes, |buffer, bytes| {
                written.fetch_add(bytes, Ordering::Relaxed);
                // The other end may be gone: then nobody needs it.
                let _ = give_back.send(buffer);
            })?;
        }
        let Some(target) = &mut self.target else { return Ok(Vec::new()) };
        // A kill from here on leaves some files with their names and others without: whoever finds the journal then knows.
        self.journal = self.notes.take().and_then(Notes::end);
        if let Some(journal) = &mut self.journal {
            let _ = journal.add_whole();
        }
        target.finish()
    }

    /// Takes a whole group. `done` gets each buffer that is free again, and what was written of it.
    fn take(&mut self, group: u64, bytes: Vec<u8>, mut done: impl FnMut(Vec<u8>, u64)) -> Result<()> {
        self.check(group, &bytes)?;
        self.waiting.push((group, bytes));
        if self.target.is_none() {
            self.take_index()?;
        }
        if self.target.is_some() {
            for (group, bytes) in std::mem::take(&mut self.waiting) {
                self.write(group, &bytes)?;
                let written_bytes = bytes.len() as u64;
                done(bytes, written_bytes);
            }
        }
        self.note();
        Ok(())
    }

    /// Whole files need no journal any more; whatever else is there is noted for the next time.
    fn end(&mut self, outcome: Result<Vec<PathBuf>>) -> Result<Vec<PathBuf>> {
        match self.journal.take() {
            Some(journal) if outcome.is_ok() => journal.remove(),
            journal => {
                self.journal = journal;
                self.keep();
            }
        }
        outcome
    }

    /// Flushes and notes what was written.
    fn keep(&mut self) {
        let journal = self.journal.take().or_else(|| self.notes.take().and_then(Notes::end));
        if let (Some(target), Some(mut journal)) = (&mut self.target, journal) {
            let note = Note { dirty: target.take_dirty(), groups: std::mem::take(&mut self.unnoted) };
            // As with every note: what is not noted is sent again.
            let _ = note.make(&mut journal);
        }
    }

    fn is_whole(&self) -> bool {
        self.groups.prefix_end() == layout::groups(self.offer.total_bytes)
    }

    fn check(&self, group: u64, bytes: &[u8]) -> Result<()> {
        let (content, hash) = bytes.split_at(bytes.len() - HASH_BYTES as usize);
        let content_end = layout::content_range(group, self.offer.total_bytes);
        if content.len() as u64 != content_end.end - content_end.start || blake3::hash(content) != *hash {
            return Err(Error::HashDiffers);
        }
        Ok(())
    }

    /// Takes the index out of the group that came last, and once all of it is there, makes the files.
    fn take_index(&mut self) -> Result<()> {
        let Some((group, bytes)) = self.waiting.last() else { return Ok(()) };
        let range = layout::content_range(*group, self.offer.total_bytes);
        let end = range.end.min(self.offer.index_bytes);
        if range.start < end {
            let part = &bytes[..(end - range.start) as usize];
            self.index[range.start as usize..end as usize].copy_from_slice(part);
            self.index_left -= end - range.start;
        }
        if self.index_left > 0 {
            return Ok(());
        }
        let index = Index::decode(&self.index)?;
        let content_bytes = layout::content_bytes(self.offer.total_bytes).unwrap_or(0);
        if index.file_bytes() + self.offer.index_bytes != content_bytes {
            return Err(Error::Index { name: "the offer".into(), why: "it does not fit its own index" });
        }
        // The journal comes first: whatever has a `.part` name is then known to be ours.
        let journal = Journal::create(&self.directory, &self.offer, &self.index)?;
        match Target::create(&self.directory, index, self.offer.index_bytes, self.overwrite) {
            Ok(target) => self.target = Some(target),
            Err(error) => {
                journal.remove();
                return Err(error);
            }
        }
        self.notes = Some(Notes::start(journal));
        Ok(())
    }

    fn write(&mut self, group: u64, bytes: &[u8]) -> Result<()> {
        let content = &bytes[..bytes.len() - HASH_BYTES as usize];
        let at = layout::content_range(group, self.offer.total_bytes).start;
        if let Some(target) = &mut self.target {
            target.write(at, content)?;
        }
        self.groups.insert(group..group + 1);
        self.unnoted.insert(group..group + 1);
        Ok(())
    }

    /// Once a second what was written is flushed and noted, elsewhere, so that this thread does not wait for the disk.
    fn note(&mut self) {
        let (Some(target), Some(notes)) = (&mut self.target, &self.notes) else { return };
        if self.noted_at.elapsed() < NOTE_EVERY && target.closed() < CLOSED_MAX || self.unnoted.is_empty() {
            return;
        }
        let patient = target.closed() >= CLOSED_MAX;
        if notes.is_idle() || patient {
            let groups = std::mem::take(&mut self.unnoted);
            notes.add(Note { dirty: target.take_dirty(), groups });
            self.noted_at = Instant::now();
        }
    }
}

/// What a killed process loses at most, beside what is not whole.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// Longer lists of files are worked off elsewhere: to make the files takes a while.
const SHORT_INDEX_BYTES: u64 = 4 << 10;

/// Files that are kept open for the journal.
const CLOSED_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::io::reader::{FromFiles, Reader};
    use crate::io::source::Source;

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
            };
            Self { from, source, offer }
        }

        fn groups(&self) -> Vec<(u64, Vec<u8>)> {
            let mut reader = Reader::start(self.source.clone());
            let count = layout::groups(self.offer.total_bytes);
            let mut next = || match reader.wait(Duration::from_secs(60)) {
                Some(FromFiles::Group(start, bytes)) => (start, bytes),
                _ => panic!("the file is there"),
            };
            (0..count).map(|_| next()).collect()
        }

        fn is_in(&self, directory: &Path) -> bool {
            let names = fs::read_dir(directory).unwrap().count();
            let read = |directory: &Path| fs::read(directory.join("sample")).unwrap();
            names == 1 && read(directory) == read(self.from.path())
        }
    }

    fn wait(writer: &Writer) -> Result<Vec<PathBuf>> {
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
            let mut writer = Writer::start(into.path(), &sample.offer, false).unwrap();
            // The last one first: the index comes late, and what came before it waits.
            for (number, (start, bytes)) in sample.groups().iter().rev().enumerate() {
                if number == slow_after {
                    writer.patience = Patience(Duration::ZERO);
                }
                writer.put(*start, bytes, |_| true).unwrap();
            }
            assert_eq!(wait(&writer).unwrap(), [into.path().join("sample")]);
            assert!(sample.is_in(into.path()), "slow after {slow_after}");
        }
    }

    #[test]
    fn a_changed_byte_is_found_and_nothing_gets_its_name() {
        let sample = Sample::of(600_000);
        let into = tempfile::tempdir().unwrap();
        let mut writer = Writer::start(into.path(), &sample.offer, false).unwrap();
        for (start, mut bytes) in sample.groups() {
            bytes[1_000] ^= u8::from(start > 0);
            writer.put(start, &bytes, |_| true).unwrap();
        }
        assert!(matches!(wait(&writer), Err(Error::HashDiffers)));
        assert!(!into.path().join("sample").exists());
    }

    #[test]
    fn what_is_dropped_half_way_is_held_the_next_time() {
        let sample = Sample::of(2_000_000);
        for slow in [false, true] {
            let into = tempfile::tempdir().unwrap();
            let mut writer = Writer::start(into.path(), &sample.offer, false).unwrap();
            if slow {
                writer.patience = Patience(Duration::ZERO);
            }
            let groups = sample.groups();
            let (half, rest) = groups.split_at(4);
            half.iter().for_each(|(start, bytes)| writer.put(*start, bytes, |_| true).unwrap());
            drop(writer);
            let mut writer = Writer::start(into.path(), &sample.offer, false).unwrap();
            assert_eq!((writer.held().count(), writer.held().prefix_end()), (1, rest[0].0), "slow: {slow}");
            rest.iter().for_each(|(start, bytes)| writer.put(*start, bytes, |_| true).unwrap());
            wait(&writer).unwrap();
            assert!(sample.is_in(into.path()));
        }
    }

    #[test]
    fn a_kill_while_names_were_given_is_made_good() {
        let sample = Sample::of(600_000);
        let into = tempfile::tempdir().unwrap();
        let mut writer = Writer::start(into.path(), &sample.offer, false).unwrap();
        sample.groups().iter().for_each(|(start, bytes)| writer.put(*start, bytes, |_| true).unwrap());
        wait(&writer).unwrap();
        let index = sample.groups()[0].1[..sample.offer.index_bytes as usize].to_vec();
        Journal::create(into.path(), &sample.offer, &index).unwrap().add_whole().unwrap();
        let writer = Writer::start(into.path(), &sample.offer, false).unwrap();
        if cfg!(target_os = "linux") {
            assert_eq!(writer.held().covered(), sample.offer.total_bytes);
            assert_eq!(wait(&writer).unwrap(), [into.path().join("sample")]);
        }
        drop(writer);
        assert!(sample.is_in(into.path()));
    }
}
