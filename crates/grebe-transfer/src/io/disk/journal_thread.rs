//! Flushes and notes what was written, on a thread of its own, so that the writer does not wait for the disk.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::journal::Journal;
use crate::proto::ranges::RangeSet;

/// A thread that flushes files, then notes their groups in the journal.
pub(super) struct JournalThread {
    notes: SyncSender<Note>,
    idle: Arc<AtomicBool>,
    thread: JoinHandle<Journal>,
}

/// Groups that are to be noted once their files are flushed.
pub(super) struct Note {
    pub(super) dirty: Vec<File>,
    pub(super) groups: RangeSet,
}

impl JournalThread {
    pub(super) fn start(mut journal: Journal) -> Self {
        let (notes, taken) = sync_channel::<Note>(1);
        let idle = Arc::new(AtomicBool::new(true));
        let is_idle = idle.clone();
        let thread = std::thread::spawn(move || {
            for note in taken {
                // Groups that are not noted are sent again after a restart.
                let _ = note.make(&mut journal);
                is_idle.store(true, Ordering::Release);
            }
            journal
        });
        Self { notes, idle, thread }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.idle.load(Ordering::Acquire)
    }

    pub(super) fn add(&self, note: Note) {
        self.idle.store(false, Ordering::Release);
        let _ = self.notes.send(note);
    }

    /// Waits until everything is noted, and returns the journal.
    pub(super) fn end(self) -> Option<Journal> {
        drop(self.notes);
        self.thread.join().ok()
    }
}

impl Note {
    /// Flushes the files, then notes the groups.
    pub(super) fn make(&self, journal: &mut Journal) -> std::io::Result<()> {
        self.dirty.iter().try_for_each(File::sync_data)?;
        self.groups.iter().try_for_each(|range| journal.add(range))
    }
}
