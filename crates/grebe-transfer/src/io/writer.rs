//! Checks, writes and remembers what comes, a group at a time, on threads of its own.
//!
//! ```text
//!  [ receive's thread ] --groups--> [ writer: BLAKE3, write ] --every second--> [ journal: flush, note ]
//! ```

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::index::{INDEX_BYTES_MAX, Index};
use crate::io::journal::{Found, Journal};
use crate::io::layout::{self, HASH_BYTES};
use crate::io::target::Target;
use crate::wire::Offer;
use crate::{Error, RangeSet, Result};

/// The writer's thread and the groups that are not whole yet.
pub(super) struct Writer {
    full: SyncSender<(u64, Vec<u8>)>,
    empties: Receiver<Vec<u8>>,
    done: Receiver<Result<Vec<PathBuf>>>,
    thread: Option<JoinHandle<()>>,
    open: HashMap<u64, Vec<u8>>,
    stream_bytes: u64,
    /// Bytes handed over, and those of them that are written.
    handed_over: u64,
    written: Arc<AtomicU64>,
    held: RangeSet,
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
        // The sender is held back by what is handed over and not written: this never fills.
        let (full, groups) = sync_channel(1 << 14);
        let (give_back, empties) = channel();
        let (tell, done) = sync_channel(1);
        let written = Arc::new(AtomicU64::new(0));
        let held = job.held_stream();
        let counter = written.clone();
        let thread = Builder::new()
            .name("grebe-write".into())
            .spawn(move || {
                let _ = tell.send(job.run(&groups, &give_back, &counter));
            })
            .map_err(|source| Error::File {
                action: "start a thread to write",
                path: directory.into(),
                source,
            })?;
        Ok(Self {
            full,
            empties,
            done,
            thread: Some(thread),
            open: HashMap::new(),
            stream_bytes: offer.total_bytes,
            handed_over: 0,
            written,
            held,
        })
    }

    /// What an earlier session left, as ranges of the stream.
    pub fn held(&self) -> &RangeSet {
        &self.held
    }

    /// Takes bytes of the stream. `has` says whether all of a range has come.
    pub fn put(&mut self, mut at: u64, mut bytes: &[u8], has: impl Fn(&std::ops::Range<u64>) -> bool) {
        while !bytes.is_empty() {
            let group = layout::group_of(at);
            let range = layout::group_range(group, self.stream_bytes);
            let take = (range.end - at).min(bytes.len() as u64) as usize;
            let buffer = self.open.entry(group).or_insert_with(|| {
                let mut buffer = self.empties.try_recv().unwrap_or_default();
                buffer.resize((range.end - range.start) as usize, 0);
                buffer
            });
            let from = (at - range.start) as usize;
            buffer[from..from + take].copy_from_slice(&bytes[..take]);
            if has(&range)
                && let Some(buffer) = self.open.remove(&group)
            {
                self.handed_over += buffer.len() as u64;
                // A writer that has failed says so in `outcome`.
                let _ = self.full.send((group, buffer));
            }
            (at, bytes) = (at + take as u64, &bytes[take..]);
        }
    }

    /// Bytes that are whole and not written yet.
    pub fn backlog_bytes(&self) -> u64 {
        self.handed_over.saturating_sub(self.written.load(Ordering::Relaxed))
    }

    /// How it ended, once it has: the files.
    pub fn outcome(&self) -> Option<Result<Vec<PathBuf>>> {
        self.done.try_recv().ok()
    }
}

impl Drop for Writer {
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
        }
    }

    fn resume(&mut self, found: Found) {
        let Found { journal, index: bytes, groups } = found;
        let Ok(index) = Index::decode(&bytes) else { return journal.remove() };
        match Target::reopen(&self.directory, index.clone(), self.offer.index_bytes, self.overwrite) {
            Some(target) => {
                let last = layout::groups(self.offer.total_bytes);
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

    fn run(
        &mut self,
        groups: &Receiver<(u64, Vec<u8>)>,
        give_back: &Sender<Vec<u8>>,
        written: &AtomicU64,
    ) -> Result<Vec<PathBuf>> {
        let outcome = self.take_all(groups, give_back, written);
        if let Some(notes) = self.notes.take() {
            match &outcome {
                Ok(paths) if !paths.is_empty() => notes.remove(),
                _ => {
                    let dirty = self.target.as_mut().map(Target::take_dirty).unwrap_or_default();
                    notes.finish(dirty, std::mem::take(&mut self.unnoted));
                }
            }
        }
        outcome
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
            self.check(group, &bytes)?;
            self.waiting.push((group, bytes));
            if self.target.is_none() {
                self.take_index()?;
            }
            if self.target.is_some() {
                for (group, bytes) in std::mem::take(&mut self.waiting) {
                    self.write(group, &bytes)?;
                    written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                    // The other end may be gone: then nobody needs it.
                    let _ = give_back.send(bytes);
                }
            }
            self.note();
        }
        match &mut self.target {
            Some(target) => target.finish(),
            None => Ok(Vec::new()),
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
            notes.add(target.take_dirty(), std::mem::take(&mut self.unnoted));
            self.noted_at = Instant::now();
        }
    }
}

/// The journal's thread: flushes, then notes.
struct Notes {
    jobs: SyncSender<(Vec<File>, RangeSet)>,
    idle: Arc<std::sync::atomic::AtomicBool>,
    thread: JoinHandle<Journal>,
}

impl Notes {
    fn start(mut journal: Journal) -> Self {
        let (jobs, todo) = sync_channel::<(Vec<File>, RangeSet)>(1);
        let idle = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let is_idle = idle.clone();
        let thread = std::thread::spawn(move || {
            for (files, groups) in todo {
                if files.iter().all(|file| file.sync_data().is_ok()) {
                    for range in groups.iter() {
                        // A note that is not made costs sending it again.
                        let _ = journal.add(range);
                    }
                }
                is_idle.store(true, Ordering::Release);
            }
            journal
        });
        Self { jobs, idle, thread }
    }

    fn is_idle(&self) -> bool {
        self.idle.load(Ordering::Acquire)
    }

    fn add(&self, files: Vec<File>, groups: RangeSet) {
        self.idle.store(false, Ordering::Release);
        let _ = self.jobs.send((files, groups));
    }

    fn finish(self, files: Vec<File>, groups: RangeSet) {
        self.add(files, groups);
        drop(self.jobs);
        let _ = self.thread.join();
    }

    fn remove(self) {
        drop(self.jobs);
        if let Ok(journal) = self.thread.join() {
            journal.remove();
        }
    }
}

/// What a killed process loses at most, beside what is not whole.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// Files that are kept open for the journal.
const CLOSED_MAX: usize = 64;
