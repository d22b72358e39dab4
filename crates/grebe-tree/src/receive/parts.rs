//! Large files: they come in pieces, lie in the partial folder meanwhile, and a journal says how much of each is on the disk.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::delta::{Run, copy_run};
use crate::error::{Error, Result};
use crate::progress::{Current, add};
use crate::receive::content::{Copied, copy_local, dress};
use crate::receive::partial::{Journal, PartNames, identity};
use crate::receive::shared::{Pending, Receiving};
use crate::receive::signing::Basis;
use crate::system::{self, Directory, is_full};
use crate::wire::{EntryId, GROUP_BYTES, RecordKind, ShortHash, TOUCHED_BYTES};

/// Something about a large file.
pub(super) struct Piece {
    pub(super) id: EntryId,
    /// With the first piece.
    pub(super) begins: Option<Pending>,
    /// What the content is in.
    pub(super) body: Arc<Vec<u8>>,
    pub(super) record: RecordKind,
}

/// The journal is at most so far behind.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// More files that are open at once than an honest sender has.
const PARTS_MAX: usize = 256;

/// Less than this is not worth being kept when the copy ends early.
const KEPT_BYTES_MIN: u64 = 1 << 20;

/// A file of which some has come.
struct Part {
    file: Pending,
    open: File,
    directory: Arc<Directory>,
    name: Vec<u8>,
    journal: Option<PartJournal>,
    /// Everything up to here has come, was verified and is written.
    prefix: u64,
    /// Of what was there.
    copied_bytes: u64,
    /// Not verified: something was not any more as it was told. All comes again.
    is_wrong: bool,
    noted: Instant,
}

struct PartJournal {
    directory: Arc<Directory>,
    name: Vec<u8>,
    open: Arc<File>,
    identity: ShortHash,
    turn: u64,
}

/// Until no more come. What is not whole then is kept for a later copy.
pub(super) fn write_parts(receiving: &Receiving, pieces: &Receiver<Piece>) {
    let (notes, notes_out) = bounded(1);
    let idle = Arc::new(AtomicBool::new(true));
    std::thread::scope(|scope| {
        let is_idle = idle.clone();
        scope.spawn(move || write_notes(&notes_out, &is_idle));
        let (open, from_basis) = (HashMap::new(), HashSet::new());
        let mut parts =
            Parts { receiving, open, from_basis, buffer: Vec::new(), notes, idle, is_full: false };
        // Also when the copy ends early: what has come is written, and kept for a later one.
        for piece in pieces {
            if parts.is_full {
                break;
            }
            let began = Instant::now();
            if let Err(error) = parts.piece(piece) {
                receiving.fail(error);
                break;
            }
            add(&receiving.done.disk_us, began.elapsed().as_micros() as u64);
        }
        parts.keep();
    });
}

struct Parts<'a> {
    receiving: &'a Receiving,
    open: HashMap<EntryId, Part>,
    /// Files of which something was copied from what was there: the sender waits for word of them, also where they cannot be written.
    from_basis: HashSet<EntryId>,
    buffer: Vec<u8>,
    notes: Sender<Note>,
    idle: Arc<AtomicBool>,
    /// Nothing behind a piece that had no room is written: a part is good up to where it is noted to be.
    is_full: bool,
}

/// Bytes that are to be on the disk before the journal says so.
struct Note {
    part: File,
    journal: Arc<File>,
    turn: u64,
    identity: ShortHash,
    prefix: u64,
}

/// A flush can take long: the writer does not wait for it.
fn write_notes(notes: &Receiver<Note>, idle: &AtomicBool) {
    for note in notes {
        // What is not noted comes again.
        let _ = note.write();
        idle.store(true, Ordering::Release);
    }
}

impl Note {
    fn write(&self) -> io::Result<()> {
        self.part.sync_data()?;
        Journal::write(&self.journal, self.turn, &self.identity, self.prefix)
    }
}

impl Parts<'_> {
    fn piece(&mut self, piece: Piece) -> Result<()> {
        let Piece { id, begins, body, record } = piece;
        if let Some(file) = begins {
            if self.open.len() >= PARTS_MAX {
                return Err(Error::Malformed { what: "too many files at once" });
            }
            if matches!(record, RecordKind::Failed { .. }) {
                // The sender says why.
                self.receiving.bases.done(id);
                return Ok(());
            }
            match Part::begin(self.receiving, file, matches!(record, RecordKind::Restart)) {
                Ok(part) => {
                    self.open.insert(id, part);
                }
                Err((file, error)) => self.receiving.file_failed(&file, &error),
            }
        }
        match &record {
            RecordKind::Copy { .. } => {
                self.from_basis.insert(id);
            }
            RecordKind::Restart => {
                self.from_basis.remove(&id);
            }
            RecordKind::Failed { .. } | RecordKind::End { .. } | RecordKind::Local => {
                self.receiving.bases.done(id);
            }
            _ => {}
        }
        let is_awaited = matches!(record, RecordKind::End { .. }) && self.from_basis.remove(&id);
        // What could not be begun or written is not taken to its end.
        let Some(part) = self.open.get_mut(&id) else {
            if is_awaited {
                self.receiving.bases.made(self.receiving, id, true);
            }
            return Ok(());
        };
        let written = match record {
            RecordKind::Piece { offset, content } => {
                if offset < part.prefix {
                    return Err(Error::Malformed { what: "a piece of a file that came already" });
                }
                part.write(offset, &body[content])
            }
            RecordKind::Copy { offset, run } => {
                if offset < part.prefix {
                    return Err(Error::Malformed { what: "a piece of a file that came already" });
                }
                let basis = self.receiving.bases.get(id);
                let basis = basis.ok_or(Error::Malformed { what: "chunks of a file that were not told" })?;
                let stretch = basis.map().stretch(run.first, run.chunks);
                let stretch =
                    stretch.ok_or(Error::Malformed { what: "chunks that the file there does not have" })?;
                let bytes = stretch.end - stretch.start;
                add(&self.receiving.progress.bytes_done, bytes);
                add(&self.receiving.progress.bytes_same, bytes);
                part.copy(offset, bytes, self.receiving, &basis, &run, &mut self.buffer)
            }
            RecordKind::Restart => part.restart(),
            RecordKind::Failed { .. } => {
                if let Some(part) = self.open.remove(&id) {
                    part.discard();
                }
                return Ok(());
            }
            RecordKind::End { bytes, later_ns } => {
                if bytes < part.prefix {
                    return Err(Error::Malformed { what: "a file that is shorter than what came of it" });
                }
                let Some(part) = self.open.remove(&id) else { return Ok(()) };
                if part.is_wrong {
                    part.discard();
                    self.receiving.expect(part.file)?;
                    self.receiving.bases.made(self.receiving, id, false);
                    return Ok(());
                }
                if is_awaited {
                    self.receiving.bases.learn(bytes, part.copied_bytes);
                    self.receiving.bases.made(self.receiving, id, true);
                }
                self.finish(part, bytes, later_ns);
                return Ok(());
            }
            RecordKind::Local => {
                let Some(part) = self.open.remove(&id) else { return Ok(()) };
                self.local(part);
                return Ok(());
            }
            RecordKind::Whole { .. } | RecordKind::Same | RecordKind::Differs => Ok(()),
        };
        if let Err(error) = written {
            self.failed(id, &error);
            return Ok(());
        }
        let Some(part) = self.open.get_mut(&id) else { return Ok(()) };
        self.receiving.progress.set_current_bytes(part.prefix);
        if part.noted.elapsed() >= NOTE_EVERY && self.idle.load(Ordering::Acquire) {
            part.note(&self.notes, &self.idle);
        }
        Ok(())
    }

    /// A file could not be written. On a full disk all parts are kept.
    fn failed(&mut self, id: EntryId, error: &io::Error) {
        self.is_full |= is_full(error);
        if let Some(part) = self.open.get(&id) {
            self.receiving.file_failed(&part.file, error);
        }
        if !is_full(error)
            && let Some(part) = self.open.remove(&id)
        {
            part.discard();
        }
    }

    fn finish(&self, part: Part, bytes: u64, later_ns: i64) {
        match part.finish(self.receiving, bytes, later_ns) {
            Ok(()) => {
                self.receiving.copied(&part.file, bytes);
                part.forget_journal();
            }
            Err(error) => {
                self.receiving.file_failed(&part.file, &error);
                part.discard();
            }
        }
        self.receiving.progress.set_current(None);
    }

    /// Copies a file that the sender hands over.
    fn local(&mut self, mut part: Part) {
        let receiving = self.receiving;
        let from = receiving.handover.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into());
        let from = match from.and_then(|handover| handover.take(part.file.id)) {
            Ok(from) => from,
            Err(error) => {
                let path = receiving.directories.path_of(part.file.place, &part.file.name);
                receiving.leave_out(path, format!("it cannot be read: {}", system::reason(&error)));
                return part.discard();
            }
        };
        let Ok(to) = part.open.try_clone() else { return part.discard() };
        let file = part.file.clone();
        let (notes, idle) = (self.notes.clone(), self.idle.clone());
        let mut at_last = part.prefix;
        let copied = copy_local(receiving, &file, &from, &to, |at| {
            add(&receiving.progress.bytes_done, at.saturating_sub(at_last));
            at_last = at;
            part.prefix = at;
            receiving.progress.set_current_bytes(at);
            if part.noted.elapsed() >= NOTE_EVERY && idle.load(Ordering::Acquire) {
                part.note(&notes, &idle);
            }
        });
        match copied {
            Ok(Copied::Good { bytes, later_ns }) => {
                add(&receiving.progress.bytes_done, bytes.saturating_sub(at_last));
                self.finish(part, bytes, later_ns);
            }
            Ok(Copied::Changed) => {
                let path = receiving.directories.path_of(file.place, &file.name);
                receiving.leave_out(path, "it changed each time that it was read".to_owned());
                part.discard();
            }
            Ok(Copied::Stopped) => part.keep(),
            Err(error) => {
                receiving.file_failed(&file, &error);
                if is_full(&error) { part.keep() } else { part.discard() }
            }
        }
        receiving.progress.set_current(None);
    }

    /// The copy ends; what has come stays for a later one.
    fn keep(&mut self) {
        for (_, part) in self.open.drain() {
            part.keep();
        }
    }
}

impl Part {
    fn begin(
        receiving: &Receiving,
        file: Pending,
        is_anew: bool,
    ) -> std::result::Result<Self, (Pending, io::Error)> {
        match Self::open(receiving, &file, is_anew) {
            Ok((open, directory, name, journal, prefix)) => {
                let path = receiving.directories.path_of(file.place, &file.name);
                receiving.progress.set_current(Some(Current {
                    name: path,
                    done_bytes: prefix,
                    total_bytes: file.bytes,
                }));
                add(&receiving.progress.bytes_done, prefix);
                add(&receiving.progress.bytes_same, prefix);
                Ok(Self {
                    file,
                    open,
                    directory,
                    name,
                    journal,
                    prefix,
                    copied_bytes: 0,
                    is_wrong: false,
                    noted: Instant::now(),
                })
            }
            Err(error) => Err((file, error)),
        }
    }

    #[allow(clippy::type_complexity, reason = "the parts of what it makes")]
    fn open(
        receiving: &Receiving,
        file: &Pending,
        is_anew: bool,
    ) -> io::Result<(File, Arc<Directory>, Vec<u8>, Option<PartJournal>, u64)> {
        let into = receiving.directories.open(file.place)?;
        let folder = receiving.partial.folder(true)?;
        if file.bytes < TOUCHED_BYTES || !folder.is_ours() {
            let (open, temporary) = receiving.partial.create(&into, file.mode)?;
            return Ok((open, temporary.directory, temporary.name, None, 0));
        }
        let names = PartNames::of(&receiving.directories.path_of(file.place, &file.name));
        let directory = receiving.partial.beside(&into)?;
        let identity = identity(file.bytes, file.modified_ns, file.touched);
        let mut left = if is_anew { 0 } else { file.left_bytes };
        let open = match directory.write_file(&names.part) {
            Ok(open) if left > 0 && open.metadata()?.len() >= left => open,
            found => {
                left = 0;
                if found.is_ok() {
                    directory.remove_file(&names.part)?;
                }
                directory.create_file(&names.part, file.mode)?
            }
        };
        if file.left_bytes > left && !is_anew {
            return Err(io::Error::other("the part of it that an earlier copy left has gone; copy it again"));
        }
        open.set_len(left)?;
        if left == 0 {
            let _ = folder.directory.remove_file(&names.journal);
        }
        let journal = match folder.directory.write_file(&names.journal) {
            Ok(journal) => journal,
            Err(_) => folder.directory.create_file(&names.journal, 0o600)?,
        };
        let journal = PartJournal {
            directory: folder.directory.clone(),
            name: names.journal,
            open: Arc::new(journal),
            identity,
            turn: 0,
        };
        Ok((open, directory, names.part, Some(journal), left))
    }

    fn write(&mut self, offset: u64, content: &[u8]) -> io::Result<()> {
        system::write_all_at(&self.open, content, offset)?;
        self.prefix = offset + content.len() as u64;
        Ok(())
    }

    /// Copies what the file has in common with one that is there.
    fn copy(
        &mut self,
        offset: u64,
        bytes: u64,
        receiving: &Receiving,
        basis: &Basis,
        run: &Run,
        buffer: &mut Vec<u8>,
    ) -> io::Result<()> {
        let (open, mut at) = (&self.open, offset);
        let is_good = copy_run(basis.reader(receiving), &basis.map(), run, buffer, |chunk| {
            // Nothing was written there: a hole reads the same.
            if chunk.iter().any(|byte| *byte != 0) {
                system::write_all_at(open, chunk, at)?;
            }
            at += chunk.len() as u64;
            Ok(())
        })?;
        self.prefix = offset + bytes;
        self.copied_bytes += bytes;
        self.is_wrong |= !is_good;
        Ok(())
    }

    /// What has come does not count.
    fn restart(&mut self) -> io::Result<()> {
        (self.prefix, self.copied_bytes, self.is_wrong) = (0, 0, false);
        self.open.set_len(0)?;
        let Some(journal) = &mut self.journal else { return Ok(()) };
        // Behind the notes that may still be written, both places are to be empty.
        journal.open.set_len(0)?;
        journal.identity = identity(0, 0, u64::MAX);
        Ok(())
    }

    fn note(&mut self, notes: &Sender<Note>, idle: &AtomicBool) {
        self.noted = Instant::now();
        let prefix = self.prefix;
        if self.is_wrong {
            return;
        }
        let Some(journal) = &mut self.journal else { return };
        let Ok(part) = self.open.try_clone() else { return };
        journal.turn += 1;
        let note = Note {
            part,
            journal: journal.open.clone(),
            turn: journal.turn,
            identity: journal.identity,
            prefix,
        };
        idle.store(false, Ordering::Release);
        if notes.try_send(note).is_err() {
            idle.store(true, Ordering::Release);
        }
    }

    fn finish(&self, receiving: &Receiving, bytes: u64, later_ns: i64) -> io::Result<()> {
        if self.open.metadata()?.len() != bytes {
            self.open.set_len(bytes)?;
        }
        dress(receiving, &self.file, &self.open, later_ns)?;
        let into = receiving.directories.open(self.file.place)?;
        self.directory.rename(&self.name, &into, &self.file.name)
    }

    fn forget_journal(&self) {
        if let Some(journal) = &self.journal {
            let _ = journal.directory.remove_file(&journal.name);
        }
    }

    fn discard(&self) {
        self.forget_journal();
        let _ = self.directory.remove_file(&self.name);
    }

    /// Notes what has come, if that is worth it.
    fn keep(mut self) {
        if self.prefix < KEPT_BYTES_MIN || self.is_wrong {
            return self.discard();
        }
        let prefix = self.prefix;
        let Some(journal) = &mut self.journal else { return self.discard() };
        // Two records at least are written behind whatever is on its way to the journal.
        let kept = self
            .open
            .sync_data()
            .and_then(|()| Journal::write(&journal.open, journal.turn + 1, &journal.identity, prefix));
        if kept.is_err() {
            self.discard();
        }
    }
}

/// Whether a file comes in pieces.
pub(super) fn is_large(file: &Pending) -> bool {
    file.bytes > GROUP_BYTES as u64
}
