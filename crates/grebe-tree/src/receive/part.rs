//! A large file in progress: its part, and the journal of how much is on the disk.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::mem::discriminant;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender};

use crate::blocks::{BlockMap, Blocks};
use crate::delta::{Laid, Run, copy_run};
use crate::error::{Error, Result};
use crate::name::PartNames;
use crate::progress::{Current, add};
use crate::receive::basis::Basis;
use crate::receive::content::dress;
use crate::receive::flushing::{Then, Whole};
use crate::receive::journal::{self, Come};
use crate::receive::partial::{Temporary, identity, remove_notes};
use crate::receive::pending::Pending;
use crate::receive::shared::Receiving;
use crate::receive::viewed_parts::LiveMap;
use crate::system::{self, Directory};
use crate::wire::{RecordKind, ShortHash, TOP, TOUCHED_BYTES};

/// A partially received file.
pub(super) struct Part {
    pub(super) file: Pending,
    pub(super) open: File,
    /// Kept on drop if it has a journal.
    temporary: Temporary,
    journal: Option<PartJournal>,
    /// Everything up to here was received, verified and written. For blocks: the received amount.
    pub(super) prefix: u64,
    /// State of a file that arrives in blocks, in any order.
    pub(super) blocks: Option<PartBlocks>,
    /// Bytes copied from existing files.
    pub(super) copied_bytes: u64,
    /// Data already written beyond the prefix. It counts once a copy confirms its place.
    laid: Laid,
    /// Unverified ranges, because the basis changed after its signature.
    pub(super) wrong: Wrong,
    pub(super) noted: Instant,
}

pub(super) struct PartBlocks {
    pub(super) map: BlockMap,
    /// Map for viewers.
    live: Option<LiveMap>,
}

/// Ranges of a part to be sent again.
#[derive(Default)]
pub(super) struct Wrong {
    /// In order and disjoint, with gaps between them. Arriving data is removed from the front.
    pub(super) stretches: VecDeque<Range<u64>>,
    /// The receiver requested them from the sender.
    pub(super) is_asked: bool,
}

struct PartJournal {
    directory: Arc<Directory>,
    names: PartNames,
    open: Arc<File>,
    identity: ShortHash,
    turn: u64,
    /// Directories of the part, the journal and their folder, while these names may not be on the disk.
    unflushed: Vec<Arc<Directory>>,
}

/// Minimum amount worth keeping when the copy ends early.
const KEPT_BYTES_MIN: u64 = 1 << 20;

/// Data to flush before the journal may list it.
pub(super) struct Note {
    part: File,
    unflushed: Vec<Arc<Directory>>,
    journal: Arc<File>,
    /// Flushes the note itself too.
    is_flushed: bool,
    turn: u64,
    identity: ShortHash,
    come: Come,
}

/// Runs on its own thread, because a flush can take long and the writer must not wait.
pub(super) fn write_notes(receiving: &Receiving, notes: &Receiver<Note>, idle: &AtomicBool) {
    for note in notes {
        match note.flush() {
            // Without a note, the data is sent again.
            Ok(()) => _ = note.write(),
            // The system reports a lost write once, and the next flush would succeed.
            Err(error) => receiving.flushing.fail(receiving, error),
        }
        idle.store(true, Ordering::Release);
    }
}

impl Note {
    fn flush(&self) -> io::Result<()> {
        system::flush(&self.part)?;
        self.unflushed.iter().try_for_each(|directory| directory.flush())
    }

    /// Writes the note after its data is on the disk.
    fn write(&self) -> io::Result<()> {
        journal::write(&self.journal, self.turn, &self.identity, &self.come)?;
        if self.is_flushed { system::flush(&self.journal) } else { Ok(()) }
    }
}

impl Part {
    pub(super) fn begin(
        receiving: &Receiving,
        file: Pending,
        first: &RecordKind,
    ) -> std::result::Result<Self, Box<(Pending, io::Error)>> {
        match Self::open(receiving, &file, first) {
            Ok(part) => {
                let part = Self { file, ..part };
                receiving.progress.set_current(Some(part.current(receiving)));
                add(&receiving.progress.bytes_done, part.prefix);
                add(&receiving.progress.bytes_same, part.prefix);
                Ok(part)
            }
            Err(error) => Err(Box::new((file, error))),
        }
    }

    fn open(receiving: &Receiving, file: &Pending, first: &RecordKind) -> io::Result<Self> {
        let into = receiving.directories.open(file.place)?;
        let folder = receiving.partial.folder(true)?;
        let left = match first {
            RecordKind::Restart => Come::Prefix(0),
            RecordKind::Blocks { .. } => {
                let blocks = Blocks::of(file.bytes);
                let map = file.left_blocks.as_ref().map(|map| (**map).clone());
                Come::Blocks(map.unwrap_or_else(|| BlockMap::none(blocks)))
            }
            _ => Come::Prefix(file.left_bytes),
        };
        let is_new = left.bytes() == 0 && !matches!(first, RecordKind::Restart | RecordKind::Blocks { .. });
        let basis = receiving.bases.get(file.id).filter(|_| is_new);
        let mut laid_file = basis.and_then(|basis| basis.take_laid());
        let laid = laid_file.as_mut().map(|laid| std::mem::take(&mut laid.laid)).unwrap_or_default();
        let is_laid = laid.end() > 0;
        let part = |open, temporary, journal, left: Come| {
            let prefix = left.bytes();
            let blocks = match left {
                Come::Blocks(map) => Some(PartBlocks { map, live: None }),
                Come::Prefix(_) => None,
            };
            let file = file.clone();
            let (copied_bytes, wrong, noted) = (0, Wrong::default(), Instant::now());
            Self { file, open, temporary, journal, prefix, blocks, copied_bytes, laid, wrong, noted }
        };
        if file.bytes < TOUCHED_BYTES || !folder.is_ours() {
            let (open, temporary) = match laid_file {
                Some(laid_file) => laid_file.take(),
                None => receiving.partial.create(&into, file.mode)?,
            };
            let left = match left {
                Come::Blocks(map) => Come::Blocks(BlockMap::none(map.blocks)),
                Come::Prefix(_) => Come::Prefix(0),
            };
            return Ok(part(open, temporary, None, left));
        }
        let names = PartNames::of(&receiving.directories.path_of(file.place, &file.name));
        let directory = receiving.partial.beside(&into)?;
        let is_kept = left.bytes() > 0;
        let is_flushed = receiving.flushing.is_on();
        // The journal must not describe another part than the existing one.
        if !is_kept && folder.directory.remove_file(&names.journal).is_ok() && is_flushed {
            folder.directory.flush()?;
        }
        let open = match directory.write_file(&names.part) {
            Ok(open)
                if is_kept
                    && open.metadata()?.len() >= left.prefix()
                    && folder.is_trusted(&directory, &open)? =>
            {
                open
            }
            _ if is_kept => {
                return Err(io::Error::other(
                    "the part of it that an earlier copy left has gone; copy it again",
                ));
            }
            found => {
                if found.is_ok() {
                    directory.remove_file(&names.part)?;
                }
                match laid_file.take() {
                    Some(laid_file) => laid_file.rename(&directory, &names.part)?,
                    None => directory.create_file(&names.part, file.mode)?,
                }
            }
        };
        if !is_laid {
            open.set_len(if matches!(left, Come::Blocks(_)) { file.bytes } else { left.bytes() })?;
        }
        let journal = match folder.directory.write_file(&names.journal) {
            Ok(journal) => journal,
            Err(_) => folder.directory.create_file(&names.journal, 0o600)?,
        };
        let identity = identity(file.bytes, file.modified_ns, file.touched);
        let noted = journal::read(&journal, &identity, file.bytes);
        if is_kept && noted.is_none_or(|noted| discriminant(&noted) != discriminant(&left)) {
            // Removes records of the other kind, so that a later copy does not trust truncated data.
            journal.set_len(0)?;
            journal::write(&journal, 1, &identity, &left)?;
        }
        let live = match &left {
            Come::Blocks(map) => {
                receiving.viewed_parts.add(file.id, &folder.directory, &names);
                // Without a map, no viewer sees the file before it is complete.
                LiveMap::create(&folder.directory, &names, map, file.modified_ns).ok()
            }
            Come::Prefix(_) => None,
        };
        let temporary = Temporary::part(directory.clone(), names.part.clone());
        let mut unflushed = Vec::new();
        if is_flushed {
            // The folder's own name, too.
            unflushed.extend([directory, folder.directory.clone(), receiving.directories.open(TOP)?]);
        }
        let journal = PartJournal {
            directory: folder.directory.clone(),
            names,
            open: Arc::new(journal),
            identity,
            turn: 1,
            unflushed,
        };
        let mut part = part(open, temporary, Some(journal), left);
        if let Some(blocks) = &mut part.blocks {
            blocks.live = live;
        }
        Ok(part)
    }

    fn current(&self, receiving: &Receiving) -> Current {
        let name = receiving.directories.path_of(self.file.place, &self.file.name);
        Current { name, done_bytes: self.prefix, total_bytes: self.file.bytes }
    }

    /// Marks a block as written; `None` if it is not possible.
    pub(super) fn came(&mut self, receiving: &Receiving, number: u64) -> Option<io::Result<()>> {
        let blocks = self.blocks.as_mut()?;
        if number >= blocks.map.blocks.count() || blocks.map.has(number) {
            return None;
        }
        blocks.map.add(number);
        self.prefix = blocks.map.come_bytes();
        let told = blocks.live.as_ref().map_or(Ok(()), |live| live.come(&blocks.map, number));
        receiving.progress.set_current(Some(self.current(receiving)));
        Some(told)
    }

    /// Received amount for the journal.
    fn come(&self) -> Come {
        match &self.blocks {
            Some(blocks) => Come::Blocks(blocks.map.clone()),
            None => Come::Prefix(self.prefix),
        }
    }

    pub(super) fn write(&mut self, offset: u64, content: &[u8]) -> io::Result<()> {
        if self.blocks.is_some() {
            return system::write_all_at(&self.open, content, offset);
        }
        self.clear_until(offset)?;
        system::write_all_at(&self.open, content, offset)?;
        self.prefix = offset + content.len() as u64;
        Ok(())
    }

    /// Leaves a hole from the prefix to `offset`, whatever was written there.
    fn clear_until(&mut self, offset: u64) -> io::Result<()> {
        let laid = self.prefix..offset.min(self.laid.end());
        if !laid.is_empty() {
            system::clear(&self.open, laid)?;
        }
        Ok(())
    }

    /// Copies the parts in common with an existing file.
    pub(super) fn copy(
        &mut self,
        offset: u64,
        bytes: u64,
        receiving: &Receiving,
        basis: &Basis,
        run: &Run,
        buffer: &mut Vec<u8>,
    ) -> io::Result<()> {
        self.clear_until(offset)?;
        let (open, laid, (map, run)) = (&self.open, &self.laid, basis.place_of(run));
        let is_good = copy_run(basis.reader(receiving), &map, laid, &run, offset, buffer, |at, chunk| {
            // Without earlier writes, a hole reads the same.
            if at < laid.end() || chunk.iter().any(|byte| *byte != 0) {
                system::write_all_at(open, chunk, at)?;
            }
            Ok(())
        })?;
        drop(map);
        self.prefix = offset + bytes;
        self.copied_bytes += bytes;
        if !is_good {
            self.wrong.add(offset..offset + bytes);
        }
        Ok(())
    }

    /// Confirms that a range equals data received before the plan.
    pub(super) fn confirm(&mut self, offset: u64, bytes: u64, check: &ShortHash) -> io::Result<()> {
        self.clear_until(offset)?;
        if self.laid.hash(&(offset..offset + bytes)) != Some(check) {
            self.wrong.add(offset..offset + bytes);
        }
        self.prefix = offset + bytes;
        Ok(())
    }

    /// Discards everything received.
    pub(super) fn restart(&mut self, receiving: &Receiving) -> io::Result<()> {
        (self.prefix, self.copied_bytes, self.wrong) = (0, 0, Wrong::default());
        self.laid = Laid::default();
        let is_blocks = self.blocks.take().is_some();
        let Some(journal) = &mut self.journal else { return self.open.set_len(0) };
        if is_blocks {
            receiving.viewed_parts.remove(self.file.id);
            let _ = journal.directory.remove_file(&journal.names.map);
        }
        // After pending notes, both places must be empty.
        journal.open.set_len(0)?;
        journal.identity = identity(0, 0, u64::MAX);
        if receiving.flushing.is_on() {
            system::flush(&journal.open)?;
        }
        self.open.set_len(0)
    }

    pub(super) fn note(&mut self, receiving: &Receiving, notes: &Sender<Note>, idle: &AtomicBool) {
        self.noted = Instant::now();
        if self.wrong.is_asked || !self.wrong.stretches.is_empty() {
            return;
        }
        let come = self.come();
        let Some(journal) = &mut self.journal else { return };
        let Ok(part) = self.open.try_clone() else { return };
        journal.turn += 1;
        let note = Note {
            part,
            unflushed: std::mem::take(&mut journal.unflushed),
            is_flushed: receiving.flushing.is_on(),
            journal: journal.open.clone(),
            turn: journal.turn,
            identity: journal.identity,
            come,
        };
        idle.store(false, Ordering::Release);
        if notes.try_send(note).is_err() {
            idle.store(true, Ordering::Release);
        }
    }

    /// Completes the file except for its name.
    pub(super) fn finish(&mut self, receiving: &Receiving, bytes: u64, later_ns: i64) -> io::Result<()> {
        self.clear_until(bytes)?;
        if self.open.metadata()?.len() != bytes {
            self.open.set_len(bytes)?;
        }
        dress(receiving, &self.file, &self.open, later_ns)
    }

    pub(super) fn into_whole(self, bytes: u64) -> (File, Whole) {
        let notes = self.journal.map(|journal| (journal.directory, journal.names));
        let then = Then::Name(self.temporary, notes);
        (self.open, Whole { file: self.file, bytes, then })
    }

    pub(super) fn discard(self) {
        if let Some(journal) = &self.journal {
            remove_notes(&journal.directory, &journal.names);
        }
        self.temporary.discard();
    }

    /// Notes the received amount, if worth it.
    pub(super) fn keep(mut self, receiving: &Receiving) {
        if self.prefix < KEPT_BYTES_MIN || !self.wrong.stretches.is_empty() {
            return self.discard();
        }
        let come = self.come();
        let Some(journal) = &mut self.journal else { return self.discard() };
        let Ok(part) = self.open.try_clone() else { return self.discard() };
        let note = Note {
            part,
            unflushed: std::mem::take(&mut journal.unflushed),
            journal: journal.open.clone(),
            is_flushed: receiving.flushing.is_on(),
            turn: journal.turn + 1,
            identity: journal.identity,
            come,
        };
        // The earlier note stays valid.
        if receiving.flushing.is_broken() {
            return;
        }
        // At least two records follow any write still in progress.
        if note.flush().and_then(|()| note.write()).is_err() {
            self.discard();
        }
    }
}

impl Wrong {
    fn add(&mut self, stretch: Range<u64>) {
        match self.stretches.back_mut().filter(|last| last.end == stretch.start) {
            Some(last) => last.end = stretch.end,
            None => self.stretches.push_back(stretch),
        }
    }

    /// Takes a requested range as received.
    pub(super) fn take(&mut self, stretch: Range<u64>) -> Result<()> {
        let first = self.stretches.front_mut();
        let first = first.filter(|first| first.start == stretch.start && stretch.end <= first.end);
        let first = first.ok_or(Error::Malformed { what: "a piece of a file that was not asked for" })?;
        first.start = stretch.end;
        if first.is_empty() {
            self.stretches.pop_front();
        }
        Ok(())
    }
}

impl PartBlocks {
    /// Whether a piece lies within one missing block.
    pub(super) fn expects(&self, offset: u64, bytes: u64) -> bool {
        let blocks = self.map.blocks;
        let number = offset >> blocks.log2;
        let range = blocks.range(number);
        offset.checked_add(bytes).is_some_and(|end| end <= range.end) && !self.map.has(number)
    }
}
