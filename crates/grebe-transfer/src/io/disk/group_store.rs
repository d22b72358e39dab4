//! Checks each whole group against its hash, writes it, and has it noted in the journal once it is safe.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::Place;
use super::directory::Directory;
use super::groups::{self, GROUP_BYTES, HASH_BYTES};
use super::journal::{FoundJournal, Journal, JournalThread, Note};
use super::system::failed;
use super::target::{Folder, Named, Target};
use crate::error::{Error, Result};
use crate::proto::index::Index;
use crate::proto::ranges::RangeSet;
use crate::proto::wire::Offer;

/// Checks, writes and notes whole groups.
pub(super) struct GroupStore {
    pub(super) place: Place,
    /// The place, held open.
    directory: Arc<Directory>,
    offer: Offer,
    index: Vec<u8>,
    index_left: u64,
    target: Option<Target>,
    /// Whole groups that arrived before the index was whole.
    waiting: Vec<(u64, Vec<u8>)>,
    /// Groups that are written.
    groups: RangeSet,
    /// Groups that an earlier session wrote, and that wait for the hashes that they should have now.
    doubtful: RangeSet,
    /// Groups of files that are there already, and whose hashes are to tell whether they are the same.
    compared: RangeSet,
    /// What need not come any more, once the index is there.
    spared: Sender<RangeSet>,
    /// Content whose hash was another one. Only the files that it belongs to are left out.
    damaged: RangeSet,
    /// Groups that are written and not in the journal.
    unnoted: RangeSet,
    noted_at: Instant,
    notes: Option<JournalThread>,
    /// Once everything is whole.
    journal: Option<Journal>,
}

impl GroupStore {
    /// Goes on with what an earlier session left, or begins anew.
    pub(super) fn open(place: Place, offer: Offer, spared: Sender<RangeSet>) -> Result<Self> {
        let directory = Directory::open(&place.directory);
        let directory = Arc::new(directory.map_err(|source| failed("open", &place.directory, source))?);
        let mut store = Self {
            directory,
            place,
            offer,
            index: vec![0; offer.index_bytes as usize],
            index_left: offer.index_bytes,
            target: None,
            waiting: Vec::new(),
            groups: RangeSet::default(),
            doubtful: RangeSet::default(),
            compared: RangeSet::default(),
            spared,
            damaged: RangeSet::default(),
            unnoted: RangeSet::default(),
            noted_at: Instant::now(),
            notes: None,
            journal: None,
        };
        if let Some((folder, found)) = store.find()? {
            store.resume(folder, found);
        }
        Ok(store)
    }

    /// What an earlier session left, if no other process uses it.
    fn find(&self) -> Result<Option<(Folder, FoundJournal)>> {
        let folder = Folder::find(&self.directory, &self.place.directory, &self.offer.content)?;
        let Some(folder) = folder else { return Ok(None) };
        let found = Journal::find(&folder, self.place.key, &self.offer)?;
        Ok(found.map(|found| (folder, found)))
    }

    fn resume(&mut self, folder: Folder, found: FoundJournal) {
        let FoundJournal { journal, index: bytes, groups, doubtful, is_whole } = found;
        // What cannot be used is removed when the list of files has come again.
        let Ok(index) = Index::decode(&bytes) else { return };
        let Place { directory, overwrite, .. } = &self.place;
        let index_bytes = self.offer.index_bytes;
        let Some(target) =
            Target::reopen(&self.directory, directory, folder, index, index_bytes, *overwrite, is_whole)
        else {
            return;
        };
        let last = groups::count(self.offer.total_bytes);
        // The statuses are those of the session that ends, and the list has the modes of today.
        let statuses_group = (target.statuses_start() / GROUP_BYTES).min(last);
        let first_doubtful = self.offer.index_bytes.div_ceil(GROUP_BYTES);
        let insert = |into: &mut RangeSet, range: Range<u64>, within: Range<u64>| {
            into.insert(range.start.max(within.start)..range.end.min(within.end).max(within.start));
        };
        groups.iter().for_each(|range| insert(&mut self.groups, range, 0..statuses_group));
        doubtful.iter().for_each(|range| insert(&mut self.doubtful, range, first_doubtful..statuses_group));
        if is_whole {
            self.groups.insert(0..last);
        }
        (self.index, self.index_left, self.target) = (bytes, 0, Some(target));
        self.notes = Some(JournalThread::start(journal));
        if !is_whole {
            self.spare();
        }
    }

    /// Notes which groups need not come.
    fn spare(&mut self) {
        let Some([left_out, compared]) = self.target.as_ref().map(Target::spared_groups) else { return };
        left_out.iter().for_each(|range| {
            self.groups.insert(range);
        });
        compared.iter().for_each(|range| {
            self.groups.remove(range.clone());
            self.compared.insert(range);
        });
    }

    /// What is written, as ranges of the stream. Of doubtful groups the hashes are to come.
    pub(super) fn held_stream(&self) -> RangeSet {
        let mut held = RangeSet::default();
        let range_of = |group: u64| groups::group_range(group, self.offer.total_bytes);
        for groups in self.groups.iter() {
            held.insert(range_of(groups.start).start..range_of(groups.end).start);
        }
        for group in self.doubtful.iter().chain(self.compared.iter()).flatten() {
            let range = range_of(group);
            held.insert(range.start..range.end - HASH_BYTES);
        }
        held
    }

    /// Takes a whole group. `done` gets each buffer that is free again, and what was written of it.
    pub(super) fn take(
        &mut self,
        group: u64,
        mut bytes: Vec<u8>,
        mut done: impl FnMut(Vec<u8>, u64),
    ) -> Result<()> {
        let content = groups::content_range(group, self.offer.total_bytes);
        let hash_at = (content.end - content.start) as usize;
        let only = group..group + 1;
        if (self.doubtful.contains(&only) || self.compared.contains(&only))
            && let Some(target) = &self.target
        {
            target.read(content.start, &mut bytes[..hash_at]);
        }
        if blake3::hash(&bytes[..hash_at]) != bytes[hash_at..] {
            if content.start < self.offer.index_bytes {
                return Err(Error::HashDiffers);
            }
            self.damaged.insert(content);
        }
        self.waiting.push((group, bytes));
        if self.index_left > 0 {
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

    /// Everything has come: what is good gets its name.
    pub(super) fn finish(&mut self) -> Result<Named> {
        let Some(target) = &mut self.target else { return Ok(Named::default()) };
        if let Ok(index) = Index::decode(&self.index) {
            target.take_modes(index);
        }
        target.settle(&self.damaged)?;
        // A kill from here on may leave only some files with their names: the journal then explains it to the next session.
        let noted = self.notes.take().map_or(Ok(None), |notes| notes.end().map(Some));
        let journal = noted
            .map_err(|source| failed("bring to the disk what came into", &self.place.directory, source))?;
        if let Some(path) = target.all_exist() {
            self.journal = journal;
            return Err(Error::Exists { path });
        }
        // What cannot be brought to the disk is not noted, either.
        target.make_safe()?;
        self.journal = journal;
        if let Some(journal) = &mut self.journal {
            let _ = journal.add_whole();
        }
        target.give_names()
    }

    /// Ends the work: files that have their names need no journal any more; what else is there is noted for a later session.
    pub(super) fn end(&mut self, outcome: Result<Named>) -> Result<Named> {
        let is_done = match &outcome {
            Ok(named) => !named.is_kept,
            // What is there is another one: nothing of what came can be used.
            Err(Error::Exists { .. }) => true,
            Err(_) => false,
        };
        if is_done
            && self.journal.take().is_some()
            && let Some(target) = &self.target
        {
            target.remove_folder();
        } else {
            self.keep();
        }
        outcome
    }

    /// Flushes and notes what was written.
    pub(super) fn keep(&mut self) {
        let journal = self.journal.take().or_else(|| self.notes.take().and_then(|notes| notes.end().ok()));
        if let (Some(target), Some(mut journal)) = (&mut self.target, journal) {
            let note = Note { dirty: target.take_dirty(), groups: std::mem::take(&mut self.unnoted) };
            // Groups that are not noted are sent again.
            let _ = note.make(&mut journal);
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.groups.prefix_end() == groups::count(self.offer.total_bytes)
    }

    /// Takes the index out of the newest group, and creates the files once all of it is there.
    fn take_index(&mut self) -> Result<()> {
        let Some((group, bytes)) = self.waiting.last() else { return Ok(()) };
        self.index_left -= copy_index(*group, bytes, &self.offer, &mut self.index);
        if self.index_left > 0 {
            return Ok(());
        }
        let index = Index::decode(&self.index)?;
        let content_bytes = groups::content_bytes(self.offer.total_bytes).unwrap_or(0);
        if index.file_bytes() + index.files() + self.offer.index_bytes != content_bytes {
            return Err(Error::Index { name: "the offer".into(), why: "it does not fit its own index" });
        }
        self.place.offer(&index)?;
        // Another process may have begun meanwhile.
        self.find()?;
        let Place { directory, key, overwrite, .. } = &self.place;
        let folder = Folder::make(&self.directory, directory, &self.offer.content)?;
        let journal = Journal::create(&folder, *key, &self.offer, &self.index)?;
        let index_bytes = self.offer.index_bytes;
        self.target =
            Some(Target::create(&self.directory, directory, folder, index, index_bytes, *overwrite)?);
        self.notes = Some(JournalThread::start(journal));
        self.spare();
        // The other end may be gone.
        let _ = self.spared.send(self.held_stream());
        Ok(())
    }

    fn write(&mut self, group: u64, bytes: &[u8]) -> Result<()> {
        copy_index(group, bytes, &self.offer, &mut self.index);
        let content = groups::content_range(group, self.offer.total_bytes);
        let is_there = match &mut self.target {
            Some(target) if !self.doubtful.contains(&(group..group + 1)) => {
                target.write(content.start, &bytes[..(content.end - content.start) as usize])?
            }
            _ => true,
        };
        self.groups.insert(group..group + 1);
        // What is left out today may be wanted in a later session.
        if is_there && !self.damaged.touches(&content) {
            self.unnoted.insert(group..group + 1);
        }
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

/// Copies what a group has of the index to its place, and returns how many bytes those are.
fn copy_index(group: u64, bytes: &[u8], offer: &Offer, index: &mut [u8]) -> u64 {
    let range = groups::content_range(group, offer.total_bytes);
    let end = range.end.min(offer.index_bytes).max(range.start);
    let part = &bytes[..(end - range.start) as usize];
    if !part.is_empty() {
        index[range.start as usize..end as usize].copy_from_slice(part);
    }
    part.len() as u64
}
