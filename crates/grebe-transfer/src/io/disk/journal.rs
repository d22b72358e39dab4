//! The journal: which groups are safe on the disk, so that a later session goes on from there without reading them again.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use grebe_packet::user_state;

use super::directory;
use super::system::failed;
use super::target::Folder;
use crate::error::{Error, Result};
use crate::proto::ranges::RangeSet;
use crate::proto::wire::Offer;

/// A file: a head that names the content and has its index, then one record per run of groups. It is locked while in use. All of it
/// is authenticated with a key that only this user has: what a peer may have put there is not believed.
pub(super) struct Journal {
    file: File,
    /// The names on the way to it are on the disk.
    is_safe: bool,
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
    pub(super) fn create(folder: &Folder, key: [u8; 32], offer: &Offer, index: &[u8]) -> Result<Self> {
        let failed = |source| failed("create", &folder.path_of(NAME), source);
        let file = folder.directory().create_file(NAME.as_ref(), 0o600).map_err(failed)?;
        lock(&file).map_err(failed)?;
        let mut journal = Self { file, is_safe: false, key, offer: *offer };
        let head = [&head(offer)[..], index].concat();
        let check = journal.check(&head);
        journal.file.write_all(&[&head[..], &check].concat()).map_err(failed)?;
        Ok(journal)
    }

    /// The journal of this content, if there is one that can be read and that no other process uses.
    pub(super) fn find(folder: &Folder, key: [u8; 32], offer: &Offer) -> Result<Option<FoundJournal>> {
        let failed = |source| failed("use", &folder.path_of(NAME), source);
        let Ok(mut file) = folder.directory().write_file(NAME.as_ref()) else { return Ok(None) };
        lock(&file).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let mut journal = Self { file, is_safe: false, key, offer: *offer };
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
                is_whole |= number(8) == FLUSHED;
            } else if said[16..] == offer.touched {
                groups.insert(range);
            } else {
                doubtful.insert(range);
            }
            rest = after;
        }
        groups.iter().for_each(|range| doubtful.remove(range));
        let good = (bytes.len() - rest.len()) as u64;
        let journal_file = &mut journal.file;
        journal_file.set_len(good).and_then(|()| journal_file.seek(SeekFrom::Start(good))).map_err(failed)?;
        let index = index.to_vec();
        Ok(Some(FoundJournal { journal, index, groups, doubtful, is_whole }))
    }

    /// Notes groups that are on the disk.
    pub(super) fn add(&mut self, groups: Range<u64>) -> std::io::Result<()> {
        self.add_record(groups.start, groups.end)
    }

    fn add_record(&mut self, first: u64, end: u64) -> std::io::Result<()> {
        let said = [&first.to_be_bytes()[..], &end.to_be_bytes(), &self.offer.touched].concat();
        let check = self.check(&[&self.offer.content, &said[..]].concat());
        self.file.write_all(&[&said[..], &check].concat())
    }

    /// Notes that everything is whole and on the disk: from now on files may have their final names.
    pub(super) fn add_whole(&mut self) -> std::io::Result<()> {
        self.add_record(WHOLE, FLUSHED)?;
        self.flush()
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if std::mem::replace(&mut self.is_safe, true) {
            self.file.sync_data()
        } else {
            directory::flush_at_once(&self.file)
        }
    }

    fn check(&self, bytes: &[u8]) -> [u8; CHECK_BYTES] {
        first_bytes(&blake3::keyed_hash(&self.key, bytes))
    }
}

/// A thread that flushes files, then notes their groups in the journal, so that the writer does not wait for the disk.
pub(super) struct JournalThread {
    notes: SyncSender<Note>,
    idle: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<Journal>>,
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
            let mut flushed = Ok(());
            for note in taken {
                // What a disk could not take once it forgets: the next flush would say that all is good.
                flushed = flushed.and_then(|()| note.make(&mut journal));
                is_idle.store(true, Ordering::Release);
            }
            flushed.map(|()| journal)
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
    ///
    /// # Errors
    /// Where something could not be brought to the disk. What was noted before is there.
    pub(super) fn end(self) -> std::io::Result<Journal> {
        drop(self.notes);
        self.thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the journal's thread has ended")))
    }
}

impl Note {
    /// Flushes the files, then notes the groups.
    ///
    /// # Errors
    /// Where the files cannot be flushed. Groups that cannot be noted are sent again after a restart.
    pub(super) fn make(&self, journal: &mut Journal) -> std::io::Result<()> {
        directory::flush(&self.dirty)?;
        let noted = self.groups.iter().try_for_each(|range| journal.add(range));
        let _ = noted.and_then(|()| journal.flush());
        Ok(())
    }
}

const NAME: &str = "journal";
const MAGIC: &[u8; 16] = b"grebe journal 2\n";
const CHECK_BYTES: usize = 16;
const RECORD_BYTES: usize = 24 + CHECK_BYTES;

/// The first number of the record that says that everything is whole: no group has it.
const WHOLE: u64 = u64::MAX;

/// The second number of that record. Earlier versions had another one there, and noted it before all was on the disk.
const FLUSHED: u64 = 1;

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

/// A file that a power cut left half, or as zeros, is no key.
fn read_key(path: &Path) -> Option<[u8; 32]> {
    fs::read(path).ok()?.try_into().ok().filter(|key| *key != [0; 32])
}

/// The key gets its name when it is whole and on the disk; whoever comes second takes that of the first.
fn make_key(directory: &Path, path: &Path, fresh: &[u8; 32]) -> Option<[u8; 32]> {
    fs::create_dir_all(directory).ok()?;
    let new = directory.join(format!("transfer.key.{}", std::process::id()));
    let _ = fs::remove_file(&new);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new).ok()?;
    file.write_all(fresh).and_then(|()| file.sync_all()).ok()?;
    let linked = fs::hard_link(&new, path).or_else(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists if read_key(path).is_some() => Ok(()),
        _ => fs::rename(&new, path),
    });
    let _ = fs::remove_file(&new);
    linked.ok().and_then(|()| read_key(path))
}

fn lock(file: &File) -> std::io::Result<()> {
    let until = Instant::now() + LOCKED_WITHIN;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            // A child that is just being started holds what its parent has just closed.
            Err(fs::TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOCK_PAUSE),
            Err(fs::TryLockError::WouldBlock) => {
                return Err(std::io::Error::other("another process receives the same files here"));
            }
            // A file system without locks.
            Err(fs::TryLockError::Error(_)) => return Ok(()),
        }
    }
}

const LOCKED_WITHIN: Duration = Duration::from_millis(500);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::disk::directory::Directory;

    const KEY: [u8; 32] = [3; 32];

    fn offer() -> Offer {
        Offer { total_bytes: 1_000_000, index_bytes: 5, content: [7; 32], touched: [1; 8] }
    }

    /// The folder of a content, new, and where it is.
    fn folder() -> (tempfile::TempDir, Folder) {
        let directory = tempfile::tempdir().unwrap();
        let open = Directory::open(directory.path()).unwrap();
        let folder = Folder::make(&open, directory.path(), &[7; 32]).unwrap();
        (directory, folder)
    }

    fn create(folder: &Folder) -> Journal {
        Journal::create(folder, KEY, &offer(), b"index").unwrap()
    }

    fn find(folder: &Folder, offer: &Offer) -> Option<FoundJournal> {
        Journal::find(folder, KEY, offer).unwrap()
    }

    #[test]
    fn what_was_noted_is_found_and_half_a_record_is_not() {
        let (_directory, folder) = folder();
        assert!(find(&folder, &offer()).is_none());
        let mut journal = create(&folder);
        journal.add(0..3).unwrap();
        journal.add(5..6).unwrap();
        journal.file.write_all(&[0; 11]).unwrap();
        drop(journal);
        let mut found = find(&folder, &offer()).unwrap();
        assert_eq!(
            (&found.index[..], found.groups.iter().collect::<Vec<_>>()),
            (&b"index"[..], vec![0..3, 5..6])
        );
        found.journal.add(3..5).unwrap();
        drop(found);
        let mut found = find(&folder, &offer()).unwrap();
        assert_eq!((found.groups.prefix_end(), found.is_whole), (6, false));
        found.journal.add_whole().unwrap();
        drop(found);
        let found = find(&folder, &offer()).unwrap();
        assert_eq!((found.groups.prefix_end(), found.is_whole), (6, true));
    }

    #[test]
    fn what_somebody_may_have_changed_is_doubtful_until_it_is_noted_again() {
        let (_directory, folder) = folder();
        create(&folder).add(0..6).unwrap();
        let touched = Offer { touched: [2; 8], ..offer() };
        let mut found = find(&folder, &touched).unwrap();
        assert_eq!((found.groups.prefix_end(), found.doubtful.prefix_end()), (0, 6));
        found.journal.add(0..2).unwrap();
        drop(found);
        let found = find(&folder, &touched).unwrap();
        assert_eq!((found.groups.prefix_end(), found.doubtful.iter().next()), (2, Some(2..6)));
    }

    #[test]
    fn another_content_or_another_users_journal_is_not_found() {
        let (_directory, folder) = folder();
        drop(create(&folder));
        assert!(find(&folder, &Offer { content: [8; 32], ..offer() }).is_none());
        assert!(find(&folder, &Offer { total_bytes: 2_000_000, ..offer() }).is_none());
        assert!(Journal::find(&folder, [4; 32], &offer()).unwrap().is_none());
    }

    #[test]
    fn every_changed_byte_ends_what_is_believed() {
        let (_directory, folder) = folder();
        create(&folder).add(0..9).unwrap();
        let path = folder.path_of(NAME);
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(&path, &changed).unwrap();
            let found = find(&folder, &offer());
            assert!(found.is_none_or(|found| found.groups.is_empty()), "byte {at}");
        }
    }

    #[test]
    fn two_do_not_write_the_same_files() {
        let (_directory, folder) = folder();
        let _journal = create(&folder);
        assert!(Journal::find(&folder, KEY, &offer()).is_err());
    }

    #[test]
    fn the_key_is_made_once_and_is_the_users_alone() {
        let state = tempfile::tempdir().unwrap();
        let state = state.path().join("grebe");
        let first = key(Some(&state)).unwrap();
        assert_eq!(key(Some(&state)).unwrap(), first);
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1);
        // What a power cut leaves of it would be read for ever.
        for broken in [&[][..], &[1; 7], &[0; 32]] {
            fs::write(state.join("transfer.key"), broken).unwrap();
            let made = key(Some(&state)).unwrap();
            assert_eq!(key(Some(&state)).unwrap(), made, "{broken:?}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(state.join("transfer.key")).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
