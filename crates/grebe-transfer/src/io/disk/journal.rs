//! The journal: which groups are safe on the disk, so that a later session goes on from there without reading them again.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use grebe_packet::user_state;

use crate::error::{Error, Result};
use crate::proto::ranges::RangeSet;
use crate::proto::wire::Offer;

/// A file: a head that names the content and has its index, then one record per run of groups. It is locked while in use. All of it
/// is authenticated with a key that only this user has: what a peer may have put there is not believed.
pub(super) struct Journal {
    file: File,
    key: [u8; 32],
    offer: Offer,
}

/// What an earlier session left.
pub(super) struct FoundJournal {
    pub(super) journal: Journal,
    pub(super) index: Vec<u8>,
    pub(super) groups: RangeSet,
    /// Groups of files that somebody may have changed since, although their lengths and times are the same.
    pub(super) doubtful: RangeSet,
    /// Everything was whole, and the files were being given their names.
    pub(super) is_whole: bool,
}

impl Journal {
    /// Begins a journal in an empty folder.
    pub(super) fn create(folder: &Path, key: [u8; 32], offer: &Offer, index: &[u8]) -> Result<Self> {
        let path = folder.join(NAME);
        let failed = |source| Error::File { action: "create", path: path.clone(), source };
        let file = OpenOptions::new().read(true).append(true).create_new(true).open(&path).map_err(failed)?;
        lock(&file).map_err(failed)?;
        let mut journal = Self { file, key, offer: *offer };
        let head = [&head(offer)[..], index].concat();
        let check = journal.check(&head);
        journal.file.write_all(&[&head[..], &check].concat()).map_err(failed)?;
        Ok(journal)
    }

    /// The journal of this content, if there is one that can be read and that no other process uses.
    pub(super) fn find(folder: &Path, key: [u8; 32], offer: &Offer) -> Result<Option<FoundJournal>> {
        let path = folder.join(NAME);
        let failed = |source| Error::File { action: "use", path: path.clone(), source };
        let Ok(mut file) = OpenOptions::new().read(true).append(true).open(&path) else { return Ok(None) };
        lock(&file).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let journal = Self { file, key, offer: *offer };
        let expected = head(offer);
        let Some(rest) = bytes.strip_prefix(&expected[..]) else { return Ok(None) };
        let Some((index, rest)) = rest.split_at_checked(offer.index_bytes as usize) else { return Ok(None) };
        let Some(mut rest) = rest.strip_prefix(&journal.check(&[&expected[..], index].concat())) else {
            return Ok(None);
        };
        let (mut groups, mut doubtful, mut is_whole) = (RangeSet::default(), RangeSet::default(), false);
        while let Some((record, after)) = rest.split_first_chunk::<RECORD_BYTES>() {
            let (said, check_read) = record.split_at(24);
            // A record that was being written when the process ended is the last one.
            if journal.check(&[&offer.content, said].concat()) != *check_read {
                break;
            }
            let number =
                |at: usize| said[at..at + 8].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
            let range = number(0)..number(8).max(number(0));
            if number(0) == WHOLE {
                is_whole = this_boot() == Some(number(8));
            } else if said[16..] == offer.touched {
                groups.insert(range);
            } else {
                doubtful.insert(range);
            }
            rest = after;
        }
        groups.iter().for_each(|range| doubtful.remove(range));
        let good = (bytes.len() - rest.len()) as u64;
        journal.file.set_len(good).map_err(failed)?;
        let index = index.to_vec();
        Ok(Some(FoundJournal { journal, index, groups, doubtful, is_whole }))
    }

    /// Notes groups that are on the disk.
    pub(super) fn add(&mut self, groups: Range<u64>) -> std::io::Result<()> {
        let said = [&groups.start.to_be_bytes()[..], &groups.end.to_be_bytes(), &self.offer.touched].concat();
        let check = self.check(&[&self.offer.content, &said[..]].concat());
        self.file.write_all(&[&said[..], &check].concat())
    }

    /// Notes that everything is whole: from now on files may have their final names. What was not flushed is lost when the power
    /// fails, so that this note does not count after the system has started again.
    pub(super) fn add_whole(&mut self) -> std::io::Result<()> {
        this_boot().map_or(Ok(()), |boot| self.add(WHOLE..boot))
    }

    fn check(&self, bytes: &[u8]) -> [u8; CHECK_BYTES] {
        first_bytes(&blake3::keyed_hash(&self.key, bytes))
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

const NAME: &str = "journal";
const MAGIC: &[u8; 16] = b"grebe journal 2\n";
const CHECK_BYTES: usize = 16;
const RECORD_BYTES: usize = 24 + CHECK_BYTES;

/// The first number of the record that says that everything is whole: no group has it.
const WHOLE: u64 = u64::MAX;

/// A number that changes each time the system starts; `None` where the system has none.
fn this_boot() -> Option<u64> {
    let id = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    Some(u64::from_be_bytes(first_bytes(&blake3::hash(&id))))
}

fn head(offer: &Offer) -> Vec<u8> {
    [&MAGIC[..], &offer.content, &offer.total_bytes.to_be_bytes(), &offer.index_bytes.to_be_bytes()].concat()
}

fn first_bytes<const N: usize>(hash: &blake3::Hash) -> [u8; N] {
    std::array::from_fn(|at| hash.as_bytes()[at])
}

/// The key that journals of this user are authenticated with, made where there is none. It lies where no peer's names lead;
/// `state` takes the place of the user's own directory for such things. Where there is none, journals are good for one process.
pub(in crate::io) fn key(state: Option<&Path>) -> Result<[u8; 32]> {
    let mut fresh = [0; 32];
    getrandom::fill(&mut fresh).map_err(|error| Error::Keys { what: error.to_string() })?;
    let Some(directory) = state.map(Path::to_path_buf).or_else(user_state) else { return Ok(fresh) };
    let path = directory.join("transfer.key");
    // A disk that takes no key is no reason not to receive.
    Ok(read_key(&path).or_else(|| make_key(&directory, &path, &fresh)).unwrap_or(fresh))
}

fn read_key(path: &Path) -> Option<[u8; 32]> {
    fs::read(path).ok()?.try_into().ok()
}

/// The key gets its name when it is whole; whoever comes second takes that of the first.
fn make_key(directory: &Path, path: &Path, fresh: &[u8; 32]) -> Option<[u8; 32]> {
    fs::create_dir_all(directory).ok()?;
    let new = directory.join(format!("transfer.key.{}", std::process::id()));
    let _ = fs::remove_file(&new);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&new).ok()?.write_all(fresh).ok()?;
    let linked = fs::hard_link(&new, path).or_else(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Ok(()),
        _ => fs::rename(&new, path),
    });
    let _ = fs::remove_file(&new);
    linked.ok().and_then(|()| read_key(path))
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

    const KEY: [u8; 32] = [3; 32];

    fn offer() -> Offer {
        Offer { total_bytes: 1_000_000, index_bytes: 5, content: [7; 32], touched: [1; 8] }
    }

    fn create(folder: &Path) -> Journal {
        Journal::create(folder, KEY, &offer(), b"index").unwrap()
    }

    fn find(folder: &Path, offer: &Offer) -> Option<FoundJournal> {
        Journal::find(folder, KEY, offer).unwrap()
    }

    #[test]
    fn what_was_noted_is_found_and_half_a_record_is_not() {
        let folder = tempfile::tempdir().unwrap();
        assert!(find(folder.path(), &offer()).is_none());
        let mut journal = create(folder.path());
        journal.add(0..3).unwrap();
        journal.add(5..6).unwrap();
        journal.file.write_all(&[0; 11]).unwrap();
        drop(journal);
        let mut found = find(folder.path(), &offer()).unwrap();
        assert_eq!(
            (&found.index[..], found.groups.iter().collect::<Vec<_>>()),
            (&b"index"[..], vec![0..3, 5..6])
        );
        found.journal.add(3..5).unwrap();
        drop(found);
        let mut found = find(folder.path(), &offer()).unwrap();
        assert_eq!((found.groups.prefix_end(), found.is_whole), (6, false));
        found.journal.add_whole().unwrap();
        drop(found);
        let found = find(folder.path(), &offer()).unwrap();
        assert_eq!((found.groups.prefix_end(), found.is_whole), (6, this_boot().is_some()));
    }

    #[test]
    fn what_somebody_may_have_changed_is_doubtful_until_it_is_noted_again() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path()).add(0..6).unwrap();
        let touched = Offer { touched: [2; 8], ..offer() };
        let mut found = find(folder.path(), &touched).unwrap();
        assert_eq!((found.groups.prefix_end(), found.doubtful.prefix_end()), (0, 6));
        found.journal.add(0..2).unwrap();
        drop(found);
        let found = find(folder.path(), &touched).unwrap();
        assert_eq!((found.groups.prefix_end(), found.doubtful.iter().next()), (2, Some(2..6)));
    }

    #[test]
    fn another_content_or_another_users_journal_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        drop(create(folder.path()));
        assert!(find(folder.path(), &Offer { content: [8; 32], ..offer() }).is_none());
        assert!(find(folder.path(), &Offer { total_bytes: 2_000_000, ..offer() }).is_none());
        assert!(Journal::find(folder.path(), [4; 32], &offer()).unwrap().is_none());
    }

    #[test]
    fn every_changed_byte_ends_what_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path()).add(0..9).unwrap();
        let path = folder.path().join(NAME);
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(&path, &changed).unwrap();
            let found = find(folder.path(), &offer());
            assert!(found.is_none_or(|found| found.groups.is_empty()), "byte {at}");
        }
    }

    #[test]
    fn two_do_not_write_the_same_files() {
        let folder = tempfile::tempdir().unwrap();
        let _journal = create(folder.path());
        assert!(Journal::find(folder.path(), KEY, &offer()).is_err());
    }

    #[test]
    fn the_key_is_made_once_and_is_the_users_alone() {
        let state = tempfile::tempdir().unwrap();
        let state = state.path().join("grebe");
        let first = key(Some(&state)).unwrap();
        assert_eq!(key(Some(&state)).unwrap(), first);
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(state.join("transfer.key")).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
