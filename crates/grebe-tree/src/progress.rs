//! What a copy says while it runs.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Counters of a copy that runs. Whoever shows them reads a [`snapshot`](Self::snapshot) now and then; that holds nobody up.
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

/// Is called for each file, from several threads. It may block: then the copy waits.
pub type Notify = dyn Fn(&Event<'_>) + Send + Sync;

/// Something was done with one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The name, from what was named on down, `/` between directories; any bytes.
    pub name: &'a [u8],
    /// What was done.
    pub done: Done<'a>,
    /// The length of the file; 0 for what is no file.
    pub bytes: u64,
}

/// What was done with a name, or would be where nothing is to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Done<'a> {
    /// A file was sent, or has its name at the destination.
    Copied,
    /// A file was there already.
    Same,
    /// A directory, symbolic link or hard link was made.
    Made,
    /// Something that is not at the source was removed at the destination.
    Deleted,
    /// It was left out.
    LeftOut {
        /// Why.
        why: &'a str,
    },
}

/// How far a copy is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Files that were found until now.
    pub files_found: u64,
    /// Their bytes.
    pub bytes_found: u64,
    /// Whether all are found, so that the totals are the last ones.
    pub is_scanned: bool,
    /// Files that are done: sent or written. Those that were there count, too.
    pub files_done: u64,
    /// Bytes of files that are done, and of the one that is under way.
    pub bytes_done: u64,
    /// Files that were there already.
    pub files_same: u64,
    /// Their bytes, and those of parts that were there.
    pub bytes_same: u64,
    /// Bytes of files that travelled or, within one host, were read and written.
    pub data_bytes: u64,
    /// Bytes that this end wrote to the stream, or read from it, all told.
    pub stream_bytes: u64,
    /// What was left out until now.
    pub left_out: u64,
    /// The large file that is under way.
    pub current: Option<Current>,
}

/// A large file that is under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Current {
    /// Its name, as in [`Event::name`].
    pub name: Vec<u8>,
    /// How far it is, in bytes.
    pub done_bytes: u64,
    /// Its length in bytes.
    pub total_bytes: u64,
}

impl Progress {
    /// Counters that also tell of each file.
    pub fn with_notify(notify: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        Self { notify: Some(Box::new(notify)), ..Self::default() }
    }

    /// How far it is now.
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

/// Adds to a counter that only says how far something is.
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}
