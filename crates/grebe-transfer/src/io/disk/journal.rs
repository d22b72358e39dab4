//! The journal: which groups are safe on the disk, so that a later session goes on from there without reading them again.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::error::{Error, Result};
use crate::proto::ranges::RangeSet;
use crate::proto::wire::Offer;

/// A file beside the received ones: a head that names the content and has its index, then one record per run of groups. It is
/// locked while in use, and removed when everything is whole.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    salt: [u8; 32],
}

/// What an earlier session left.
pub(super) struct FoundJournal {
    pub(super) journal: Journal,
    pub(super) index: Vec<u8>,
    pub(super) groups: RangeSet,
    /// Everything was whole, and the files were being given their names.
    pub(super) is_whole: bool,
}

impl Journal {
    /// Begins a journal; one of the same content that is there is replaced.
    pub(super) fn create(directory: &Path, offer: &Offer, index: &[u8]) -> Result<Self> {
        let path = path(directory, offer);
        let failed = |source| Error::File { action: "create", path: path.clone(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        lock(&file).map_err(failed)?;
        file.set_len(0).map_err(failed)?;
        let head = [&head(offer)[..], index].concat();
        file.write_all(&head).and_then(|()| file.write_all(&check(&head))).map_err(failed)?;
        Ok(Self { file, path: path.clone(), salt: offer.content })
    }

    /// The journal of this content, if there is one that can be read and that no other process uses.
    pub(super) fn find(directory: &Path, offer: &Offer) -> Result<Option<FoundJournal>> {
        let path = path(directory, offer);
        let failed = |source| Error::File { action: "use", path: path.clone(), source };
        let Ok(mut file) = OpenOptions::new().read(true).append(true).open(&path) else { return Ok(None) };
        lock(&file).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let expected = head(offer);
        let Some(rest) = bytes.strip_prefix(&expected[..]) else { return Ok(None) };
        let Some((index, rest)) = rest.split_at_checked(offer.index_bytes as usize) else { return Ok(None) };
        let Some(mut rest) = rest.strip_prefix(&check(&[&expected[..], index].concat())) else {
            return Ok(None);
        };
        let mut groups = RangeSet::default();
        let mut is_whole = false;
        while let Some((record, after)) = rest.split_first_chunk::<RECORD_BYTES>() {
            let (range, check_read) = record.split_at(16);
            // A record that was being written when the process ended is the last one.
            if record_check(&offer.content, range) != *check_read {
                break;
            }
            let number =
                |at: usize| range[at..at + 8].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
            if number(0) == WHOLE {
                is_whole = this_boot() == Some(number(8));
            } else {
                groups.insert(number(0)..number(8).max(number(0)));
            }
            rest = after;
        }
        let good = (bytes.len() - rest.len()) as u64;
        file.set_len(good).map_err(failed)?;
        let index = index.to_vec();
        let journal = Self { file, path: path.clone(), salt: offer.content };
        Ok(Some(FoundJournal { journal, index, groups, is_whole }))
    }

    /// Notes groups that are on the disk.
    pub(super) fn add(&mut self, groups: Range<u64>) -> std::io::Result<()> {
        let mut record = [0; RECORD_BYTES];
        record[..8].copy_from_slice(&groups.start.to_be_bytes());
        record[8..16].copy_from_slice(&groups.end.to_be_bytes());
        let check = record_check(&self.salt, &record[..16]);
        record[16..].copy_from_slice(&check);
        self.file.write_all(&record)
    }

    /// Notes that everything is whole: from now on files may have their final names. What was not flushed is lost when the power
    /// fails, so that this note does not count after the system has started again.
    pub(super) fn add_whole(&mut self) -> std::io::Result<()> {
        this_boot().map_or(Ok(()), |boot| self.add(WHOLE..boot))
    }

    /// Removes the journal: everything is whole, or nothing of it can be used.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A thread that flushes files, then notes their groups in the journal, so that the writer does not wait for the disk.
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

const MAGIC: &[u8; 16] = b"grebe journal 1\n";
const RECORD_BYTES: usize = 24;

/// The first number of the record that says that everything is whole: no group has it.
const WHOLE: u64 = u64::MAX;

/// A number that changes each time the system starts; `None` where the system has none.
fn this_boot() -> Option<u64> {
    let id = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    Some(u64::from_be_bytes(check(&id)))
}

fn path(directory: &Path, offer: &Offer) -> PathBuf {
    let name: String = offer.content[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    directory.join(format!(".grebe-{name}.journal"))
}

fn head(offer: &Offer) -> Vec<u8> {
    [&MAGIC[..], &offer.content, &offer.total_bytes.to_be_bytes(), &offer.index_bytes.to_be_bytes()].concat()
}

fn check(bytes: &[u8]) -> [u8; 8] {
    let hash = *blake3::hash(bytes).as_bytes();
    std::array::from_fn(|at| hash[at])
}

fn record_check(salt: &[u8; 32], range: &[u8]) -> [u8; 8] {
    check(&[&salt[..], range].concat())
}

fn lock(file: &File) -> std::io::Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(fs::TryLockError::WouldBlock) => {
            Err(std::io::Error::other("another process receives the same files here"))
        }
        // A file system without locks.
        Err(fs::TryLockError::Error(_)) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer() -> Offer {
        Offer { total_bytes: 1_000_000, index_bytes: 5, content: [7; 32] }
    }

    #[test]
    fn what_was_noted_is_found_and_half_a_record_is_not() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Journal::find(directory.path(), &offer()).unwrap().is_none());
        let mut journal = Journal::create(directory.path(), &offer(), b"index").unwrap();
        journal.add(0..3).unwrap();
        journal.add(5..6).unwrap();
        journal.file.write_all(&[0; 11]).unwrap();
        drop(journal);
        let mut found = Journal::find(directory.path(), &offer()).unwrap().unwrap();
        assert_eq!(
            (&found.index[..], found.groups.iter().collect::<Vec<_>>()),
            (&b"index"[..], vec![0..3, 5..6])
        );
        found.journal.add(3..5).unwrap();
        drop(found);
        let mut found = Journal::find(directory.path(), &offer()).unwrap().unwrap();
        assert_eq!((found.groups.prefix_end(), found.is_whole), (6, false));
        found.journal.add_whole().unwrap();
        drop(found);
        let found = Journal::find(directory.path(), &offer()).unwrap().unwrap();
        assert_eq!((found.groups.prefix_end(), found.is_whole), (6, this_boot().is_some()));
        found.journal.remove();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn another_content_is_not_found() {
        let directory = tempfile::tempdir().unwrap();
        drop(Journal::create(directory.path(), &offer(), b"index").unwrap());
        let other = Offer { content: [8; 32], ..offer() };
        assert!(Journal::find(directory.path(), &other).unwrap().is_none());
        let longer = Offer { total_bytes: 2_000_000, ..offer() };
        assert!(Journal::find(directory.path(), &longer).unwrap().is_none());
    }

    #[test]
    fn every_changed_byte_ends_what_is_believed() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(directory.path(), &offer(), b"index").unwrap();
        journal.add(0..9).unwrap();
        let path = journal.path.clone();
        drop(journal);
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(&path, &changed).unwrap();
            let found = Journal::find(directory.path(), &offer()).unwrap();
            assert!(found.is_none_or(|found| found.groups.is_empty()), "byte {at}");
        }
    }

    #[test]
    fn two_do_not_write_the_same_files() {
        let directory = tempfile::tempdir().unwrap();
        let _journal = Journal::create(directory.path(), &offer(), b"index").unwrap();
        assert!(Journal::find(directory.path(), &offer()).is_err());
    }
}
