//! Large files: they arrive in pieces and stay in the partial folder meanwhile. A journal notes how much of
//! each is on the disk.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::error::{Error, Result};
use crate::progress::add;
use crate::receive::content::{Copied, copy_local};
use crate::receive::part::{Note, Part, write_notes};
use crate::receive::pending::Pending;
use crate::receive::shared::Receiving;
use crate::receive::stranger::is_too_much;
use crate::system::{self, is_full};
use crate::wire::{EntryId, GROUP_BYTES, Kind, Made, MadeWord, RecordKind, WITHOUT_MAX};

/// Message to the thread of the parts.
pub(super) enum ToParts {
    Piece(Piece),
    /// Asks whether any earlier data must be sent again.
    Settle(Sender<bool>),
}

/// Message about a large file.
pub(super) struct Piece {
    pub(super) id: EntryId,
    /// Present in the first piece.
    pub(super) begins: Option<Pending>,
    /// Buffer with the content.
    pub(super) body: Arc<Vec<u8>>,
    pub(super) record: RecordKind,
}

/// Maximum delay of the journal.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// Within one host, copying again costs less than a flush per second.
const LOCAL_NOTE_EVERY: Duration = Duration::from_secs(10);

/// Maximum open files, more than an honest sender needs.
const PARTS_MAX: usize = 256;

/// Maximum parts that wait for ranges to be sent again; each is an open file.
const ASKED_MAX: usize = 32;

/// Runs until the end of incoming pieces. Keeps incomplete parts for a later copy.
pub(super) fn write_parts(receiving: &Receiving, told: &Receiver<ToParts>) {
    let (notes, notes_out) = bounded(1);
    let idle = Arc::new(AtomicBool::new(true));
    std::thread::scope(|scope| {
        let is_idle = idle.clone();
        scope.spawn(move || write_notes(receiving, &notes_out, &is_idle));
        let (open, from_basis, asked) = (HashMap::new(), HashSet::new(), HashSet::new());
        let mut parts =
            Parts { receiving, open, from_basis, asked, buffer: Vec::new(), notes, idle, is_full: false };
        // Even if the copy ends early: received data is written and kept for a later copy.
        for told in told {
            if parts.is_full {
                break;
            }
            let piece = match told {
                ToParts::Piece(piece) => piece,
                ToParts::Settle(say) => {
                    // The asking thread may have given up.
                    let _ = say.send(!parts.asked.is_empty());
                    continue;
                }
            };
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
    /// Files with data copied from a basis. The sender waits for a result, even if they cannot be written.
    from_basis: HashSet<EntryId>,
    /// Files with data that must be sent again.
    asked: HashSet<EntryId>,
    buffer: Vec<u8>,
    notes: Sender<Note>,
    idle: Arc<AtomicBool>,
    /// The disk is full. Nothing after a failed piece is written, because a part must be good up to its note.
    is_full: bool,
}

impl Parts<'_> {
    fn piece(&mut self, piece: Piece) -> Result<()> {
        let Piece { id, begins, body, record } = piece;
        if let RecordKind::Early { offset, content } = record {
            if let Some(basis) = self.receiving.bases.get(id) {
                basis.early(offset, &body[content]);
            }
            return Ok(());
        }
        if matches!(record, RecordKind::Failed { .. } | RecordKind::End { .. }) {
            self.asked.remove(&id);
        }
        // A part that waits for ranges continues.
        let begins = begins.filter(|_| !self.open.contains_key(&id));
        let is_first = begins.is_some();
        if let Some(file) = begins {
            if self.open.len() >= PARTS_MAX {
                return Err(Error::Malformed { what: "too many files at once" });
            }
            if matches!(record, RecordKind::Failed { .. }) {
                // The sender reports the reason.
                self.receiving.bases.done(id);
                return Ok(());
            }
            match Part::begin(self.receiving, file, &record) {
                Ok(part) => {
                    self.open.insert(id, part);
                }
                Err(failed) => self.receiving.file_failed(&failed.0, &failed.1),
            }
        }
        match &record {
            RecordKind::Copy { .. } | RecordKind::Laid { .. } => {
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
        // A file that could not be started or written is not finished.
        let Some(part) = self.open.get_mut(&id) else {
            if is_awaited {
                self.made(id, MadeWord::Good);
            }
            return Ok(());
        };
        let reaches = match &record {
            RecordKind::Piece { offset, content } => offset.saturating_add(content.len() as u64),
            RecordKind::Laid { offset, bytes, .. } => offset.saturating_add(*bytes),
            RecordKind::End { bytes, .. } => *bytes,
            _ => 0,
        };
        let written = match record {
            _ if self.receiving.is_too_much(&part.file, reaches) => Err(is_too_much()),
            RecordKind::Piece { offset, content } if part.wrong.is_asked => {
                part.wrong.take(offset..offset.saturating_add(content.len() as u64))?;
                system::write_all_at(&part.open, &body[content], offset)
            }
            RecordKind::Piece { offset, content } => {
                let is_expected = match &part.blocks {
                    Some(blocks) => blocks.expects(offset, content.len() as u64),
                    None => offset >= part.prefix && is_in_file(offset, content.len() as u64),
                };
                if !is_expected {
                    let what = "a piece that came already, or is beyond the end of any file";
                    return Err(Error::Malformed { what });
                }
                part.write(offset, &body[content])
            }
            RecordKind::Blocks { log2 } => {
                let own = part.blocks.as_ref().map(|blocks| blocks.map.blocks.log2);
                if !is_first || own != Some(log2) {
                    return Err(Error::Malformed { what: "blocks of another length, or that came already" });
                }
                Ok(())
            }
            RecordKind::Block { number } => match part.came(self.receiving, number) {
                Some(written) => written,
                None => {
                    return Err(Error::Malformed { what: "a block that came already, or does not exist" });
                }
            },
            RecordKind::Copy { offset, run } => {
                if offset < part.prefix || part.blocks.is_some() {
                    return Err(Error::Malformed { what: "a piece of a file that came already" });
                }
                let basis = self.receiving.bases.get(id);
                let basis = basis.ok_or(Error::Malformed { what: "unknown chunks of a file" })?;
                let stretch = {
                    let (map, run) = basis.place_of(&run);
                    map.stretch(run.first, run.chunks)
                };
                let stretch =
                    stretch.ok_or(Error::Malformed { what: "chunks that the file there does not have" })?;
                let bytes = stretch.end - stretch.start;
                if !is_in_file(offset, bytes) {
                    return Err(Error::Malformed { what: "a piece beyond the end of any file" });
                }
                if self.receiving.is_too_much(&part.file, offset + bytes) {
                    self.failed(id, &is_too_much());
                    return Ok(());
                }
                add(&self.receiving.progress.bytes_done, bytes);
                add(&self.receiving.progress.bytes_same, bytes);
                part.copy(offset, bytes, self.receiving, &basis, &run, &mut self.buffer)
            }
            RecordKind::Laid { offset, bytes, check } => {
                if offset < part.prefix || part.blocks.is_some() {
                    return Err(Error::Malformed { what: "a piece of a file that came already" });
                }
                part.confirm(offset, bytes, &check)
            }
            RecordKind::Restart => part.restart(self.receiving),
            RecordKind::Failed { .. } => {
                if let Some(part) = self.open.remove(&id) {
                    part.discard();
                }
                return Ok(());
            }
            RecordKind::End { bytes, later_ns } => {
                if part
                    .blocks
                    .as_ref()
                    .is_some_and(|blocks| !blocks.map.is_whole() || blocks.map.blocks.bytes != bytes)
                {
                    return Err(Error::Malformed { what: "a file that ends too early" });
                }
                if bytes < part.prefix {
                    return Err(Error::Malformed { what: "a file that is shorter than its received part" });
                }
                if !part.wrong.stretches.is_empty() {
                    return self.ask_again(id);
                }
                let Some(part) = self.open.remove(&id) else { return Ok(()) };
                if is_awaited {
                    self.receiving.bases.learn(bytes, part.copied_bytes);
                    self.made(id, MadeWord::Good);
                }
                self.finish(part, bytes, later_ns);
                return Ok(());
            }
            RecordKind::Local => {
                let Some(part) = self.open.remove(&id) else { return Ok(()) };
                self.local(part);
                return Ok(());
            }
            RecordKind::Whole { .. } | RecordKind::Same | RecordKind::Differs | RecordKind::Early { .. } => {
                Ok(())
            }
        };
        if let Err(error) = written {
            self.failed(id, &error);
            return Ok(());
        }
        let Some(part) = self.open.get_mut(&id) else { return Ok(()) };
        if part.blocks.is_none() {
            self.receiving.progress.set_current_bytes(part.prefix);
        }
        if part.noted.elapsed() >= NOTE_EVERY && self.idle.load(Ordering::Acquire) {
            part.note(self.receiving, &self.notes, &self.idle);
        }
        Ok(())
    }

    /// The basis changed after its signature: requests the affected ranges, or the whole file.
    fn ask_again(&mut self, id: EntryId) -> Result<()> {
        let asked = self.open.values().filter(|part| part.wrong.is_asked).count();
        let Some(part) = self.open.get_mut(&id) else { return Ok(()) };
        if part.wrong.is_asked {
            return Err(Error::Malformed { what: "a file without the requested stretches" });
        }
        let file = part.file.clone();
        let word = if part.wrong.stretches.len() <= WITHOUT_MAX && asked < ASKED_MAX {
            part.wrong.is_asked = true;
            MadeWord::Without(part.wrong.stretches.iter().cloned().collect())
        } else {
            if let Some(part) = self.open.remove(&id) {
                part.discard();
            }
            MadeWord::Whole
        };
        self.asked.insert(id);
        self.receiving.pending.expect(file)?;
        self.made(id, word);
        Ok(())
    }

    /// Reports whether a file could be made from its basis. Failed ranges are sent again.
    fn made(&self, id: EntryId, word: MadeWord) {
        self.receiving.say(Kind::Made, Made { id, word }.encode());
    }

    /// Handles a file that could not be written. A full disk keeps all parts.
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

    fn finish(&self, mut part: Part, bytes: u64, later_ns: i64) {
        self.receiving.viewed_parts.remove(part.file.id);
        match part.finish(self.receiving, bytes, later_ns) {
            Ok(()) => {
                let (open, whole) = part.into_whole(bytes);
                self.receiving.flushing.take(self.receiving, open, whole);
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
        let note_every = if receiving.flushing.is_on() { NOTE_EVERY } else { LOCAL_NOTE_EVERY };
        let copied = copy_local(receiving, &file, &from, &to, |at| {
            add(&receiving.progress.bytes_done, at.saturating_sub(at_last));
            at_last = at;
            part.prefix = at;
            receiving.progress.set_current_bytes(at);
            if part.noted.elapsed() >= note_every && idle.load(Ordering::Acquire) {
                part.note(receiving, &notes, &idle);
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
            Ok(Copied::Stopped) => part.keep(receiving),
            Err(error) => {
                receiving.file_failed(&file, &error);
                if is_full(&error) { part.keep(receiving) } else { part.discard() }
            }
        }
        receiving.progress.set_current(None);
    }

    /// Keeps received data for a later copy.
    fn keep(&mut self) {
        for (_, part) in self.open.drain() {
            part.keep(self.receiving);
        }
    }
}

/// Whether a range can lie in a file.
fn is_in_file(offset: u64, bytes: u64) -> bool {
    offset.checked_add(bytes).is_some_and(|end| end <= i64::MAX as u64)
}

/// Whether a file arrives in pieces.
pub(super) fn is_large(file: &Pending) -> bool {
    file.bytes > GROUP_BYTES as u64
}
