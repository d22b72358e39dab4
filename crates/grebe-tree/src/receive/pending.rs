//! Files to be received, from their listing until their content has come.

use std::collections::HashMap;
use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::blocks::BlockMap;
use crate::directories::Place;
use crate::error::{Error, Result};
use crate::receive::partial::Temporary;
use crate::wire::{Attribute, EntryId, FILES_AHEAD, Owner, bytes_of_attributes};

/// A file to be received.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) id: EntryId,
    pub(super) place: Place,
    pub(super) name: Box<[u8]>,
    pub(super) bytes: u64,
    pub(super) modified_ns: i64,
    pub(super) mode: u16,
    pub(super) owner: Option<Owner>,
    pub(super) attributes: Arc<Held>,
    pub(super) touched: u64,
    /// Further names of it follow.
    pub(super) is_linked: bool,
    /// Mode of the existing file with its name.
    pub(super) replaces: Option<u16>,
    /// Amount that an earlier copy left.
    pub(super) left_bytes: u64,
    /// Blocks that an earlier copy left.
    pub(super) left_blocks: Option<Arc<BlockMap>>,
    /// Copy of a probably equal file under another name.
    pub(super) adopted: Option<Arc<Adopted>>,
    /// The sender got the hash of an existing or found file, and may report a difference.
    pub(super) is_hashed: bool,
}

/// Attributes in memory, counted until the last user drops them.
#[derive(Debug, Default)]
pub(super) struct Held {
    attributes: Vec<Attribute>,
    all_bytes: Arc<AtomicUsize>,
}

impl Deref for Held {
    type Target = [Attribute];

    fn deref(&self) -> &[Attribute] {
        &self.attributes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all_bytes.fetch_sub(bytes_of_attributes(&self.attributes), Ordering::Relaxed);
    }
}

/// Unnamed copy of a file that was found under another name. Dropping it deletes the copy, unless it got a name.
#[derive(Debug)]
pub(super) struct Adopted(Mutex<Option<Temporary>>);

/// Listed files whose content has not come.
#[derive(Debug, Default)]
pub(super) struct PendingFiles {
    state: Mutex<State>,
    chosen: Condvar,
}

#[derive(Debug, Default)]
struct State {
    files: HashMap<EntryId, Pending>,
    /// Bytes of their names.
    names_bytes: usize,
    /// First number that is not compared yet.
    next: EntryId,
    /// Number of listings received but not compared.
    listings_waiting: u64,
}

/// Maximum files, more than an honest sender lists before it sends.
pub(super) const PENDING_MAX: usize = 4 * FILES_AHEAD;

/// Maximum bytes of their names.
const NAMES_BYTES_MAX: usize = PENDING_MAX * 256;

impl PendingFiles {
    /// Counts a received listing.
    pub(super) fn listing_came(&self) {
        self.lock().listings_waiting += 1;
    }

    /// Marks a listing as compared: all files below `next` are decided.
    pub(super) fn listing_done(&self, next: EntryId) {
        let mut state = self.lock();
        state.next = next;
        state.listings_waiting -= 1;
        drop(state);
        self.chosen.notify_all();
    }

    pub(super) fn expect(&self, file: Pending) -> Result<()> {
        let mut state = self.lock();
        state.names_bytes += file.name.len();
        if state.files.len() >= PENDING_MAX || state.names_bytes > NAMES_BYTES_MAX {
            return Err(Error::Malformed { what: "more names than it sends content for" });
        }
        state.files.insert(file.id, file);
        Ok(())
    }

    /// Takes the file for received content; `None` if it is refused.
    pub(super) fn take(&self, id: EntryId, is_stopped: impl Fn() -> bool) -> Result<Option<Pending>> {
        let mut state = self.lock();
        while state.next <= id && !is_stopped() {
            if state.listings_waiting == 0 {
                return Err(Error::Malformed { what: "content of a file that was not listed" });
            }
            let waited = self.chosen.wait_timeout(state, Duration::from_millis(100));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let file = state.files.remove(&id);
        state.names_bytes -= file.as_ref().map_or(0, |file| file.name.len());
        Ok(file)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Counts the attributes in `all_bytes` until they are dropped. The flag: whether they fit.
    pub(super) fn new(attributes: Vec<Attribute>, all_bytes: &Arc<AtomicUsize>) -> (Self, bool) {
        let bytes = bytes_of_attributes(&attributes);
        let before = all_bytes.fetch_add(bytes, Ordering::Relaxed);
        (Self { attributes, all_bytes: all_bytes.clone() }, bytes == 0 || before + bytes <= HELD_BYTES_MAX)
    }
}

/// Maximum attribute bytes of files to be received or being written: several times an honest sender's lead.
const HELD_BYTES_MAX: usize = 64 << 20;

impl Adopted {
    pub(super) fn new(temporary: Temporary) -> Self {
        Self(Mutex::new(Some(temporary)))
    }

    /// Takes the copy, once.
    pub(super) fn take(&self) -> io::Result<Temporary> {
        let temporary = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        temporary.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_that_wait_take_so_much_memory_and_no_more() {
        let pending = PendingFiles::default();
        let file = |id| Pending {
            id,
            place: 0,
            name: vec![b'a'; 1 << 10].into(),
            bytes: 0,
            modified_ns: 0,
            mode: 0,
            owner: None,
            attributes: Arc::default(),
            touched: 0,
            is_linked: false,
            replaces: None,
            left_bytes: 0,
            left_blocks: None,
            adopted: None,
            is_hashed: false,
        };
        let ids = 0..PENDING_MAX as EntryId;
        let taken = ids.take_while(|id| pending.expect(file(*id)).is_ok()).count();
        assert_eq!(taken, NAMES_BYTES_MAX >> 10);
    }

    #[test]
    fn attributes_of_files_that_wait_take_so_much_memory_and_no_more() {
        let all_bytes = Arc::default();
        let hold = || {
            Held::new(vec![Attribute { name: vec![b'a'; 1 << 10], value: vec![0; 255 << 10] }], &all_bytes)
        };
        let held: Vec<_> = (0..256).map(|_| hold()).collect();
        assert!(held.iter().all(|(_, fits)| *fits), "64 MiB");
        assert!(!hold().1);
        drop(held);
        assert!(hold().1);
    }
}
