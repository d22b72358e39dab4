//! Checks each whole group against its hash, writes it, and has it noted in the journal once it is safe.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::groups::{self, HASH_BYTES};
use super::journal::{FoundJournal, Journal, JournalThread, Note};
use super::target::Target;
use crate::error::{Error, Result};
use crate::proto::index::Index;
use crate::proto::ranges::RangeSet;
use crate::proto::wire::Offer;

/// Checks, writes and notes whole groups.
pub(super) struct GroupStore {
    pub(super) directory: PathBuf,
    offer: Offer,
    overwrite: bool,
    index: Vec<u8>,
    index_left: u64,
    target: Option<Target>,
    /// Whole groups that arrived before the index was whole.
    waiting: Vec<(u64, Vec<u8>)>,
    /// Groups that are written.
    groups: RangeSet,
    /// Those of them that are not in the journal.
    unnoted: RangeSet,
    noted_at: Instant,
    notes: Option<JournalThread>,
    /// Once everything is whole.
    journal: Option<Journal>,
}

impl GroupStore {
    pub(super) fn new(directory: &Path, offer: Offer, overwrite: bool) -> Self {
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

    /// Goes on with what an earlier session left.
    pub(super) fn resume(&mut self, found: FoundJournal) {
        let FoundJournal { journal, index: bytes, groups, is_whole } = found;
        let Ok(index) = Index::decode(&bytes) else { return journal.remove() };
        let Self { directory, offer, overwrite, .. } = &*self;
        match Target::reopen(directory, index.clone(), offer.index_bytes, *overwrite, is_whole) {
            Some(target) => {
                let last = groups::count(self.offer.total_bytes);
                if is_whole {
                    self.groups.insert(0..last);
                }
                for range in groups.iter() {
                    self.groups.insert(range.start.min(last)..range.end.min(last));
                }
                (self.index, self.index_left, self.target) = (bytes, 0, Some(target));
                self.notes = Some(JournalThread::start(journal));
            }
            None => {
                Target::discard(&self.directory, &index);
                journal.remove();
            }
        }
    }

    /// What is written, as ranges of the stream.
    pub(super) fn held_stream(&self) -> RangeSet {
        let mut held = RangeSet::default();
        for groups in self.groups.iter() {
            let start = groups::group_range(groups.start, self.offer.total_bytes).start;
            held.insert(start..groups::group_range(groups.end, self.offer.total_bytes).start);
        }
        held
    }

    /// Takes a whole group. `done` gets each buffer that is free again, and what was written of it.
    pub(super) fn take(
        &mut self,
        group: u64,
        bytes: Vec<u8>,
        mut done: impl FnMut(Vec<u8>, u64),
    ) -> Result<()> {
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

    /// Everything is whole: the files get their names.
    pub(super) fn finish(&mut self) -> Result<Vec<PathBuf>> {
        let Some(target) = &mut self.target else { return Ok(Vec::new()) };
        // A kill from here on may leave only some files with their names: the journal then explains it to the next session.
        self.journal = self.notes.take().and_then(JournalThread::end);
        if let Some(journal) = &mut self.journal {
            let _ = journal.add_whole();
        }
        target.finish()
    }

    /// Ends the work: whole files need no journal any more; what else is there is noted for a later session.
    pub(super) fn end(&mut self, outcome: Result<Vec<PathBuf>>) -> Result<Vec<PathBuf>> {
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
    pub(super) fn keep(&mut self) {
        let journal = self.journal.take().or_else(|| self.notes.take().and_then(JournalThread::end));
        if let (Some(target), Some(mut journal)) = (&mut self.target, journal) {
            let note = Note { dirty: target.take_dirty(), groups: std::mem::take(&mut self.unnoted) };
            // Groups that are not noted are sent again.
            let _ = note.make(&mut journal);
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.groups.prefix_end() == groups::count(self.offer.total_bytes)
    }

    fn check(&self, group: u64, bytes: &[u8]) -> Result<()> {
        let (content, hash) = bytes.split_at(bytes.len() - HASH_BYTES as usize);
        let content_end = groups::content_range(group, self.offer.total_bytes);
        if content.len() as u64 != content_end.end - content_end.start || blake3::hash(content) != *hash {
            return Err(Error::HashDiffers);
        }
        Ok(())
    }

    /// Takes the index out of the newest group, and creates the files once all of it is there.
    fn take_index(&mut self) -> Result<()> {
        let Some((group, bytes)) = self.waiting.last() else { return Ok(()) };
        let range = groups::content_range(*group, self.offer.total_bytes);
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
        let content_bytes = groups::content_bytes(self.offer.total_bytes).unwrap_or(0);
        if index.file_bytes() + self.offer.index_bytes != content_bytes {
            return Err(Error::Index { name: "the offer".into(), why: "it does not fit its own index" });
        }
        // The journal comes first: it says that the `.part` files are ours.
        let journal = Journal::create(&self.directory, &self.offer, &self.index)?;
        match Target::create(&self.directory, index, self.offer.index_bytes, self.overwrite) {
            Ok(target) => self.target = Some(target),
            Err(error) => {
                journal.remove();
                return Err(error);
            }
        }
        self.notes = Some(JournalThread::start(journal));
        Ok(())
    }

    fn write(&mut self, group: u64, bytes: &[u8]) -> Result<()> {
        let content = &bytes[..bytes.len() - HASH_BYTES as usize];
        let at = groups::content_range(group, self.offer.total_bytes).start;
        if let Some(target) = &mut self.target {
            target.write(at, content)?;
        }
        self.groups.insert(group..group + 1);
        self.unnoted.insert(group..group + 1);
        Ok(())
    }

    /// Once a second what was written is flushed and noted on the journal's thread.
    fn note(&mut self) {
        let (Some(target), Some(notes)) = (&mut self.target, &self.notes) else { return };
        if self.noted_at.elapsed() < NOTE_EVERY && target.closed() < CLOSED_MAX || self.unnoted.is_empty() {
            return;
        }
        // With too many files to flush, this thread waits for the journal's.
        if notes.is_idle() || target.closed() >= CLOSED_MAX {
            let groups = std::mem::take(&mut self.unnoted);
            notes.add(Note { dirty: target.take_dirty(), groups });
            self.noted_at = Instant::now();
        }
    }
}

/// A killed process loses what it wrote in this time at most, beside groups that are not whole.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// Files that are kept open until they are flushed.
const CLOSED_MAX: usize = 64;
