//! Flushes received data to the disk in batches: contents before they get their names, then their
//! directories.
//!
//! ```text
//!  writing threads --whole files--> [ flush: contents of this batch, names of the last ] -> report -> rename
//! ```
//!
//! A flush takes one turn of the disk and one commit of the file system's journal: 1 to 30 ms, for one file
//! or thousands. So many files of a file system are flushed by one call for all of it. A few files are
//! flushed individually, because that call also waits for the writes of other programs.

#[cfg(test)]
mod tests;
mod unflushed;

use std::fs::File;
use std::io;
use std::mem::take;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::directories::Place;
use crate::error::Error;
use crate::name::PartNames;
use crate::options::Fsync;
use crate::receive::content::dress;
use crate::receive::flushing::unflushed::Unflushed;
use crate::receive::partial::{Temporary, remove_notes};
use crate::receive::pending::Pending;
use crate::receive::session::Session;
use crate::system::{self, Directory, is_full};

/// A complete, verified file.
pub(super) struct Whole {
    pub(super) file: Pending,
    pub(super) bytes: u64,
    pub(super) then: Then,
}

/// Step after the content is on the disk.
pub(super) enum Then {
    /// Renames the file. Then removes the notes of its part, if there was one.
    Name(Temporary, Option<(Arc<Directory>, PartNames)>),
    /// Sets time and mode of an existing file with this content.
    Dress,
}

/// Files that wait for the disk.
pub(super) struct Flushing {
    mode: Fsync,
    batch: Mutex<Batch>,
    changed: Condvar,
    unflushed: Unflushed,
}

#[derive(Default)]
struct Batch {
    waiting: Vec<Whole>,
    bytes: u64,
    /// Arrival of the first waiting file.
    since: Option<Instant>,
    /// Renamed files whose names may not be on the disk yet.
    named: Vec<Whole>,
    is_closed: bool,
    /// A flush failed, so no more files get their names.
    is_broken: bool,
}

/// Maximum wait for more files. Delays the report, and bounds the small files that a power cut may lose.
const BATCH_AFTER: Duration = Duration::from_secs(1);

/// Maximum files per batch. Systems that flush files one by one keep these open.
const BATCH_FILES: usize = if system::FLUSHES_AT_ONCE { 4_096 } else { 64 };

/// Maximum bytes per batch, because the end of the copy waits for the last one.
const BATCH_BYTES: u64 = 32 << 20;

impl Flushing {
    pub(super) fn new(mode: Fsync) -> Self {
        Self { mode, batch: Mutex::default(), changed: Condvar::new(), unflushed: Unflushed::default() }
    }

    /// Whether flushing is enabled.
    pub(super) fn is_on(&self) -> bool {
        self.mode != Fsync::Never
    }

    /// Takes a complete file. Gives it its name and reports it, as soon as the policy allows.
    pub(super) fn take(&self, session: &Session, open: File, whole: Whole) {
        match self.mode {
            Fsync::Never => {
                let mut whole = whole;
                if whole.finish(session) {
                    whole.tell(session);
                }
            }
            Fsync::File => {
                if let Err(error) = self.take_one(session, &open, whole) {
                    self.fail(session, error);
                }
            }
            Fsync::Batch => self.take_many(session, open, whole),
        }
    }

    fn take_one(&self, session: &Session, open: &File, mut whole: Whole) -> io::Result<()> {
        system::flush(open)?;
        if self.is_broken() || !whole.finish(session) {
            return Ok(());
        }
        match (&whole.then, session.directories.open(whole.file.place)) {
            (Then::Dress, _) => system::flush(open)?,
            (Then::Name(..), Ok(directory)) => directory.flush()?,
            // The temporary file is gone, so the file failed.
            (Then::Name(..), Err(error)) => {
                session.file_failed(&whole.file, &error);
                return Ok(());
            }
        }
        whole.tell(session);
        Ok(())
    }

    fn take_many(&self, session: &Session, open: File, whole: Whole) {
        // Before another thread can take the file. It can be closed then, because there may be thousands.
        let directory = session.directories.open(whole.file.place);
        let noted = directory
            .and_then(|directory| self.unflushed.of_system(&directory, |system| system.add_content(open)));
        if let Err(error) = noted {
            // Its directory is gone.
            return session.file_failed(&whole.file, &error);
        }
        let mut batch = self.lock();
        while batch.waiting.len() >= 2 * BATCH_FILES {
            batch = self.changed.wait(batch).unwrap_or_else(PoisonError::into_inner);
        }
        batch.bytes += whole.bytes;
        batch.since.get_or_insert_with(Instant::now);
        batch.waiting.push(whole);
        if batch.waiting.len() == 1 || batch.is_due() {
            self.changed.notify_all();
        }
    }

    /// Notes a change of names in a directory.
    pub(super) fn names_changed(&self, session: &Session, place: Place) {
        if !self.is_on() || session.options.dry_run {
            return;
        }
        let open = session.directories.open(place);
        // A missing directory is reported by the code that needs it.
        let _ = open
            .and_then(|open| self.unflushed.of_system(&open, |system| system.add_directory(place, &open)));
    }

    /// Notes a new directory, before anything in it is reported.
    pub(super) fn made_directory(&self, session: &Session, place: Place) {
        if self.mode != Fsync::File {
            return self.names_changed(session, place);
        }
        if let Ok(directory) = session.directories.open(place)
            && let Err(error) = directory.flush()
        {
            self.fail(session, error);
        }
    }

    /// Notes an existing file, which may not be on the disk either.
    pub(super) fn was_there(&self, session: &Session, place: Place, name: &[u8]) {
        if !self.is_on() || session.options.dry_run {
            return;
        }
        let Ok(directory) = session.directories.open(place) else { return };
        let _ = self.unflushed.of_system(&directory, |system| {
            system.add_directory(place, &directory);
            system.add_what_was_there(|| directory.read_file(name, false), BATCH_FILES);
        });
    }

    /// Renames files while `others` runs, and the remaining ones after it.
    pub(super) fn during<T>(&self, session: &Session, others: impl FnOnce() -> T) -> T {
        std::thread::scope(|scope| {
            // Also if they panic.
            let _close = Close(self);
            if self.mode == Fsync::Batch {
                scope.spawn(|| {
                    while let Some(batch) = self.next() {
                        self.flush(session, batch);
                    }
                });
            }
            others()
        })
    }

    /// Flushes all changes, and reports the files that have their names.
    pub(super) fn finish(&self, session: &Session) {
        if self.is_on() {
            self.flush(session, Vec::new());
        }
    }

    /// Next files to rename. Empty if only the last batch is to be reported; `None` if nothing is left.
    fn next(&self) -> Option<Vec<Whole>> {
        let mut batch = self.lock();
        let idle = Instant::now();
        loop {
            let since = batch.since.or_else(|| (!batch.named.is_empty()).then_some(idle));
            let left = since.map(|since| BATCH_AFTER.saturating_sub(since.elapsed()));
            let is_late = left.is_some_and(|left| left.is_zero());
            if batch.is_due() || is_late && !batch.is_closed {
                (batch.bytes, batch.since) = (0, None);
                let waiting = take(&mut batch.waiting);
                drop(batch);
                // There is room again.
                self.changed.notify_all();
                return Some(waiting);
            }
            if batch.is_closed {
                return None;
            }
            batch = match left {
                Some(left) => {
                    self.changed.wait_timeout(batch, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(batch).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn flush(&self, session: &Session, batch: Vec<Whole>) {
        if self.is_broken() {
            return;
        }
        let named = take(&mut self.lock().named);
        if let Err(error) = self.unflushed.flush() {
            return self.fail(session, error);
        }
        named.iter().for_each(|whole| whole.tell(session));
        let named = batch.into_iter().filter_map(|mut whole| {
            if !whole.finish(session) {
                return None;
            }
            match whole.then {
                Then::Name(..) => self.names_changed(session, whole.file.place),
                Then::Dress => self.was_there(session, whole.file.place, &whole.file.name),
            }
            Some(whole)
        });
        let named: Vec<_> = named.collect();
        self.lock().named = named;
    }

    /// Whether a flush has failed.
    pub(super) fn is_broken(&self) -> bool {
        self.lock().is_broken
    }

    /// Notes a failed flush. The system reports such an error once, so later flushes prove nothing.
    pub(super) fn fail(&self, session: &Session, source: io::Error) {
        self.lock().is_broken = true;
        let path = session.destination.path.clone();
        session.fail(if is_full(&source) {
            Error::NoRoom { path }
        } else {
            Error::File { action: "bring to the disk", path, source }
        });
    }

    fn lock(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the end of incoming files when dropped.
struct Close<'a>(&'a Flushing);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl Batch {
    fn is_due(&self) -> bool {
        let is_full = self.waiting.len() >= BATCH_FILES || self.bytes >= BATCH_BYTES;
        is_full || self.is_closed && !self.waiting.is_empty()
    }
}

impl Whole {
    /// Applies the final step to a file, and reports a failure.
    fn finish(&mut self, session: &Session) -> bool {
        let into = session.directories.open(self.file.place);
        let finished = into.and_then(|into| match &mut self.then {
            Then::Name(temporary, notes) => {
                let named = session.give_name(temporary, &into, &self.file.name);
                if let Some((folder, names)) = notes {
                    remove_notes(folder, names);
                }
                named
            }
            Then::Dress => dress(session, &self.file, &into.read_file(&self.file.name, false)?, 0),
        });
        match &finished {
            Ok(()) => session.note_good(&self.file),
            Err(error) => session.file_failed(&self.file, error),
        }
        finished.is_ok()
    }

    fn tell(&self, session: &Session) {
        match self.then {
            Then::Name(..) => session.copied(&self.file, self.bytes),
            Then::Dress => session.same(&self.file),
        }
    }
}
