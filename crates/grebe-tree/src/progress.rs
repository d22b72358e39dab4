//! Progress of a running copy.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Counters of a running copy. Read a [`snapshot`](Self::snapshot) now and then; that blocks nobody.
#[derive(Default)]
pub struct Progress {
    pub(crate) files_found: AtomicU64,
    pub(crate) bytes_found: AtomicU64,
    pub(crate) is_scanned: AtomicBool,
    pub(crate) files_done: AtomicU64,
    pub(crate) bytes_done: AtomicU64,
    pub(crate) files_same: AtomicU64,
    pub(crate) bytes_same: AtomicU64,
    pub(crate) data_bytes: AtomicU64,
    pub(crate) stream_bytes: AtomicU64,
    pub(crate) left_out: AtomicU64,
    current: Mutex<Option<Current>>,
    notify: Option<Box<Notify>>,
}

/// Callback for each file, from several threads. It may block, and the copy then waits.
pub type Notify = dyn Fn(&Event<'_>) + Send + Sync;

/// Event about one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event<'a> {
    /// Path below and including the source, with `/` between directories; any bytes.
    pub name: &'a [u8],
    /// The result.
    pub done: Done<'a>,
    /// Length of the file; 0 for other kinds.
    pub bytes: u64,
}

/// Result for a name, or the intended result of a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Done<'a> {
    /// A file was sent, or has its final name at the destination.
    Copied,
    /// The file existed already.
    Same,
    /// A directory, symbolic link or hard link was created.
    Made,
    /// A name that the source lacks was removed at the destination.
    Deleted,
    /// The name was skipped.
    LeftOut {
        /// The reason.
        why: &'a str,
    },
}

/// Progress of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Files found so far.
    pub files_found: u64,
    /// Bytes of these files.
    pub bytes_found: u64,
    /// Whether the walk is complete, so that the totals are final.
    pub is_scanned: bool,
    /// Files done: sent, written, or already present.
    pub files_done: u64,
    /// Bytes of the files done, and of the present one.
    pub bytes_done: u64,
    /// Files already present.
    pub files_same: u64,
    /// Bytes of these files, and of parts already present.
    pub bytes_same: u64,
    /// Bytes of files that were transferred or, within one host, read and written.
    pub data_bytes: u64,
    /// Bytes that this end wrote to or read from the stream in total.
    pub stream_bytes: u64,
    /// Names skipped so far.
    pub left_out: u64,
    /// The large file in progress.
    pub current: Option<Current>,
}

/// A large file in progress.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Current {
    /// Name, as in [`Event::name`].
    pub name: Vec<u8>,
    /// Bytes done.
    pub done_bytes: u64,
    /// Length in bytes.
    pub total_bytes: u64,
}

impl Progress {
    /// Makes counters that also report each file.
    pub fn with_notify(notify: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        Self { notify: Some(Box::new(notify)), ..Self::default() }
    }

    /// Returns the present progress.
    pub fn snapshot(&self) -> Snapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Snapshot {
            files_found: read(&self.files_found),
            bytes_found: read(&self.bytes_found),
            is_scanned: self.is_scanned.load(Ordering::Acquire),
            files_done: read(&self.files_done),
            bytes_done: read(&self.bytes_done),
            files_same: read(&self.files_same),
            bytes_same: read(&self.bytes_same),
            data_bytes: read(&self.data_bytes),
            stream_bytes: read(&self.stream_bytes),
            left_out: read(&self.left_out),
            current: self.current.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    pub(crate) fn is_told(&self) -> bool {
        self.notify.is_some()
    }

    pub(crate) fn tell(&self, name: &[u8], done: Done<'_>, bytes: u64) {
        if let Some(notify) = &self.notify {
            notify(&Event { name, done, bytes });
        }
    }

    pub(crate) fn set_current(&self, current: Option<Current>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = current;
    }

    pub(crate) fn set_current_bytes(&self, done_bytes: u64) {
        if let Some(current) = self.current.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            current.done_bytes = done_bytes;
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(f)
    }
}

/// Adds to a counter that is only informative.
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}
