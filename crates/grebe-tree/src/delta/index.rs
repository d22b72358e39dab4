//! Index of a tree (`--index`): signatures and hashes, kept for the next run so that unchanged files are not
//! read again.
//!
//! ```text
//!  GREBEIX1, then records back to back:
//!    bytes of the body (4), the name's hash (8), the body's hash (8), body
//!  body
//!    name (LEB128 length, bytes), length (LEB128), mtime_ns (8), ctime_ns (8), inode (8), flags (1)
//!    flag 1: hash of the whole file (16)
//!    flag 2: chunk sizes (1, as sent), pieces (LEB128), each after its length (LEB128)
//! ```
//! Numbers are little-endian. The newest record of a name counts. Records are append-only, so a killed
//! process leaves at worst half a record at the end. The next run truncates it. A record whose hash does not
//! match its body is ignored.
//!
//! **Trust.** A wrong signature costs bytes but never corrupts content, because every copy is verified
//! ([`copy_run`](super::copy_run)). The hash of a whole file is valid only as long as length, times and inode
//! identify the content. A file that was changed and got all of these back looks unchanged. Without a change
//! time in the system, only length and modification time count.

mod record;

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use grebe_packet::user_state;

use self::record::{BODY_BYTES_MAX, HEAD_BYTES, check, decode, encode, key, number_of, put_record};
pub(crate) use self::record::{FileIdentity, Known};

/// Records of one tree. Takes some 40 bytes of memory per file, with at most [`FILES_MAX`] files, and at most
/// [`INDEX_BYTES_MAX`] bytes on disk.
#[derive(Debug)]
pub(crate) struct Index {
    path: PathBuf,
    file: File,
    places: HashMap<u64, Place>,
    /// Records not written yet.
    waiting: Vec<u8>,
    /// Length of the file, without pending records.
    written_bytes: u64,
    /// Error that stopped the writing of records.
    failed: Option<io::Error>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    at: u64,
    body_bytes: u32,
    /// Requested or added in this run.
    is_used: bool,
}

impl Index {
    /// Opens the index of a tree in the user's state directory, under a name derived from the tree's path.
    /// The name excludes device numbers, because they may change at a reboot.
    ///
    /// # Errors
    /// As those of [`open`](Self::open), and if the directory does not exist.
    pub(crate) fn of_tree(tree: &Path) -> io::Result<Self> {
        let state = user_state().ok_or(io::ErrorKind::NotFound)?;
        Self::open(&place_of(&state, tree)?)
    }

    /// Opens an index or creates it. Replaces an unreadable one.
    ///
    /// # Errors
    /// If another process uses it ([`io::ErrorKind::WouldBlock`]), or the file cannot be opened.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        match file.try_lock() {
            // An error means a file system without locks.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
        }
        let (places, written_bytes) = match read_places(&file)? {
            Some(found) => found,
            None => {
                file.set_len(0)?;
                file.seek(SeekFrom::Start(0))?;
                file.write_all(MAGIC)?;
                (HashMap::new(), MAGIC.len() as u64)
            }
        };
        file.set_len(written_bytes)?;
        Ok(Self { path: path.to_path_buf(), file, places, waiting: Vec::new(), written_bytes, failed: None })
    }

    /// Returns the record of a file that is still the same.
    pub(crate) fn known(&mut self, name: &[u8], identity: &FileIdentity) -> Option<Known> {
        let place = *self.places.get(&key(name))?;
        let body = self.body(place)?;
        let known = decode(&body, name, identity)?;
        self.places.insert(key(name), Place { is_used: true, ..place });
        Some(known)
    }

    /// Adds results for a file whose identity after reading is `identity`. Earlier results that `known` lacks
    /// stay.
    ///
    /// Ignores a file that changed within the last two seconds, because it may change again under the same
    /// time.
    pub(crate) fn note(&mut self, name: &[u8], identity: &FileIdentity, known: Known) {
        if self.failed.is_some() || !identity.is_settled(SystemTime::now()) || name.len() > NAME_BYTES_MAX {
            return;
        }
        let before = self.known(name, identity).unwrap_or_default();
        let merged =
            Known { hash: known.hash.or(before.hash), signature: known.signature.or(before.signature) };
        let body = encode(name, identity, &merged);
        let is_full = self.places.len() >= FILES_MAX && !self.places.contains_key(&key(name))
            || self.end() + (HEAD_BYTES + body.len()) as u64 > INDEX_BYTES_MAX;
        if is_full || body.len() > BODY_BYTES_MAX {
            return;
        }
        let at = self.end() + HEAD_BYTES as u64;
        put_record(&mut self.waiting, name, &body);
        self.places.insert(key(name), Place { at, body_bytes: body.len() as u32, is_used: true });
        if self.waiting.len() >= WAITING_BYTES_MAX {
            self.flush();
        }
    }

    /// Writes pending records. If more than half of the file is obsolete, replaces it by a compact one in one
    /// step.
    ///
    /// # Errors
    /// The first write error. Earlier records are valid.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush();
        if let Some(error) = self.failed {
            return Err(error);
        }
        let record = |place: &Place| HEAD_BYTES as u64 + u64::from(place.body_bytes);
        let used: u64 = self.places.values().filter(|place| place.is_used).map(record).sum();
        if self.written_bytes < REPLACED_BYTES_MIN || used > self.written_bytes / 2 {
            return Ok(());
        }
        self.replace()
    }

    fn replace(mut self) -> io::Result<()> {
        let mut used: Vec<Place> = self.places.values().filter(|place| place.is_used).copied().collect();
        used.sort_unstable_by_key(|place| place.at);
        let new = self.path.with_extension("new");
        let mut out = BufWriter::new(File::create(&new)?);
        out.write_all(MAGIC)?;
        for place in used {
            self.file.seek(SeekFrom::Start(place.at - HEAD_BYTES as u64))?;
            let mut record = vec![0; HEAD_BYTES + place.body_bytes as usize];
            self.file.read_exact(&mut record)?;
            out.write_all(&record)?;
        }
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()?;
        // Windows cannot replace an open file.
        drop(self.file);
        fs::rename(&new, &self.path)
    }

    fn flush(&mut self) {
        let written = self.file.seek(SeekFrom::Start(self.written_bytes));
        match written.and_then(|_| self.file.write_all(&self.waiting)) {
            Ok(()) => self.written_bytes += self.waiting.len() as u64,
            Err(error) => self.failed = self.failed.take().or(Some(error)),
        }
        self.waiting.clear();
    }

    fn end(&self) -> u64 {
        self.written_bytes + self.waiting.len() as u64
    }

    /// Body of a record, if complete.
    fn body(&mut self, place: Place) -> Option<Vec<u8>> {
        let begin = place.at - HEAD_BYTES as u64;
        let mut record = vec![0; HEAD_BYTES + place.body_bytes as usize];
        match begin.checked_sub(self.written_bytes) {
            Some(waiting) => {
                let waiting = self.waiting.get(waiting as usize..)?.get(..record.len())?;
                record.copy_from_slice(waiting);
            }
            None => {
                self.file.seek(SeekFrom::Start(begin)).ok()?;
                self.file.read_exact(&mut record).ok()?;
            }
        }
        let body = record.split_off(HEAD_BYTES);
        (record[12..] == check(&body)).then_some(body)
    }
}

fn place_of(state: &Path, tree: &Path) -> io::Result<PathBuf> {
    let hash = blake3::hash(fs::canonicalize(tree)?.as_os_str().as_encoded_bytes());
    Ok(state.join("index").join(&hash.to_hex()[..32]))
}

/// Places of the newest record per name, and the end of the last complete record. `None` if the file is not
/// an index.
fn read_places(file: &File) -> io::Result<Option<(HashMap<u64, Place>, u64)>> {
    let total = file.metadata()?.len();
    let mut reader = BufReader::with_capacity(256 << 10, file);
    let mut magic = [0; MAGIC.len()];
    if total < MAGIC.len() as u64 || reader.read_exact(&mut magic).is_err() || magic != *MAGIC {
        return Ok(None);
    }
    let mut places = HashMap::new();
    let mut end = MAGIC.len() as u64;
    while !reader.fill_buf()?.is_empty() && places.len() < FILES_MAX {
        let mut head = [0; HEAD_BYTES];
        if reader.read_exact(&mut head).is_err() {
            break;
        }
        let at = end + HEAD_BYTES as u64;
        let [a, b, c, d, key @ ..] = head;
        let body_bytes = u32::from_le_bytes([a, b, c, d]);
        if body_bytes == 0 || body_bytes as usize > BODY_BYTES_MAX || at + u64::from(body_bytes) > total {
            break;
        }
        reader.seek_relative(body_bytes.into())?;
        end = at + u64::from(body_bytes);
        places.insert(number_of(&key), Place { at, body_bytes, is_used: false });
    }
    Ok(Some((places, end)))
}

const MAGIC: &[u8; 8] = b"GREBEIX1";
const NAME_BYTES_MAX: usize = 1 << 20;
const FILES_MAX: usize = 4 << 20;
const INDEX_BYTES_MAX: u64 = 1 << 30;
/// Minimum length for a replacement.
const REPLACED_BYTES_MIN: u64 = 1 << 20;
const WAITING_BYTES_MAX: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use proptest::prelude::*;

    use super::*;
    use crate::delta::ChunkSizes;

    fn identity(seed: u64) -> FileIdentity {
        FileIdentity { bytes: seed, mtime_ns: -5, ctime_ns: seed as i64, inode: u64::MAX - seed }
    }

    fn known(seed: u8, piece_bytes: usize) -> Known {
        let sizes = ChunkSizes::from_byte(14).unwrap();
        Known { hash: Some([seed; 16]), signature: Some((sizes, vec![vec![seed; piece_bytes], vec![1]])) }
    }

    fn reopened(index: Index) -> Index {
        let path = index.path.clone();
        index.finish().unwrap();
        Index::open(&path).unwrap()
    }

    #[test]
    fn an_index_entry_is_valid_until_the_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        let mut index = Index::open(&folder.path().join("index/of/this")).unwrap();
        index.note(b"a", &identity(1), known(1, 100));
        index.note(b"b", &identity(2), Known::default());
        for _ in 0..3 {
            assert_eq!(index.known(b"a", &identity(1)), Some(known(1, 100)));
            assert_eq!(index.known(b"b", &identity(2)), Some(Known::default()));
            assert_eq!(index.known(b"c", &identity(1)), None);
            let same = identity(1);
            for other in [
                FileIdentity { bytes: 9, ..same },
                FileIdentity { mtime_ns: 9, ..same },
                FileIdentity { ctime_ns: 9, ..same },
                FileIdentity { inode: 9, ..same },
            ] {
                assert_eq!(index.known(b"a", &other), None, "{other:?}");
            }
            index = reopened(index);
        }
    }

    #[test]
    fn the_newest_record_counts_and_keeps_what_it_does_not_say() {
        let folder = tempfile::tempdir().unwrap();
        let mut index = Index::open(&folder.path().join("index")).unwrap();
        index.note(b"a", &identity(1), Known { hash: None, ..known(1, 50) });
        index.note(b"a", &identity(1), Known { signature: None, ..known(2, 0) });
        let both = Known { hash: Some([2; 16]), ..known(1, 50) };
        assert_eq!(reopened(index).known(b"a", &identity(1)), Some(both.clone()));
        let mut index = Index::open(&folder.path().join("index")).unwrap();
        index.note(b"a", &identity(3), Known::default());
        assert_eq!(index.known(b"a", &identity(1)), None);
        assert_eq!(index.known(b"a", &identity(3)), Some(Known::default()));
    }

    #[test]
    fn a_file_that_changed_just_now_is_not_noted() {
        let folder = tempfile::tempdir().unwrap();
        let mut index = Index::open(&folder.path().join("index")).unwrap();
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
        let fresh = FileIdentity { mtime_ns: now_ns, ..identity(1) };
        let settled = FileIdentity { mtime_ns: now_ns - 60_000_000_000, ..identity(1) };
        index.note(b"fresh", &fresh, known(1, 1));
        index.note(b"touched", &FileIdentity { ctime_ns: now_ns, ..settled }, known(1, 1));
        index.note(b"settled", &settled, known(1, 1));
        assert_eq!(index.known(b"fresh", &fresh), None);
        assert_eq!(index.known(b"touched", &FileIdentity { ctime_ns: now_ns, ..settled }), None);
        assert!(index.known(b"settled", &settled).is_some());
    }

    #[test]
    fn an_index_truncated_anywhere_keeps_the_part_before_and_continues() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        let mut index = Index::open(&path).unwrap();
        let mut ends = Vec::new();
        for n in 0..4_u8 {
            index.note(&[n], &identity(n.into()), known(n, 5));
            ends.push(index.end());
        }
        index.finish().unwrap();
        let whole = fs::read(&path).unwrap();
        assert_eq!(ends[3], whole.len() as u64);
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let mut index = Index::open(&path).unwrap();
            let there: Vec<bool> =
                (0..4).map(|n| index.known(&[n], &identity(n.into())) == Some(known(n, 5))).collect();
            let expected: Vec<bool> = ends.iter().map(|end| *end <= cut as u64).collect();
            assert_eq!(there, expected, "cut at {cut}");
            index.note(b"more", &identity(9), known(9, 9));
            assert_eq!(reopened(index).known(b"more", &identity(9)), Some(known(9, 9)));
        }
    }

    #[test]
    fn a_wrong_byte_loses_records_and_invents_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        let mut index = Index::open(&path).unwrap();
        (0..3_u8).for_each(|n| index.note(&[n], &identity(n.into()), known(n, 5)));
        index.finish().unwrap();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 0x10;
            fs::write(&path, &wrong).unwrap();
            let mut index = Index::open(&path).unwrap();
            for n in 0..3_u8 {
                let found = index.known(&[n], &identity(n.into()));
                assert!(found.is_none() || found == Some(known(n, 5)), "byte {at}");
            }
        }
    }

    #[test]
    fn obsolete_records_are_removed_when_they_are_most_of_the_index() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        let mut index = Index::open(&path).unwrap();
        (0..40_u8).for_each(|n| index.note(&[n], &identity(n.into()), known(n, 60_000)));
        let mut index = reopened(index);
        let before = fs::metadata(&path).unwrap().len();
        assert!(before > 2_400_000, "{before}");
        for n in 0..10_u8 {
            assert_eq!(index.known(&[n], &identity(n.into())), Some(known(n, 60_000)));
        }
        index.note(b"new", &identity(7), known(7, 7));
        let mut index = reopened(index);
        assert!(fs::metadata(&path).unwrap().len() < before / 3);
        for n in 0..40_u8 {
            assert_eq!(index.known(&[n], &identity(n.into())).is_some(), n < 10, "{n}");
        }
        assert_eq!(index.known(b"new", &identity(7)), Some(known(7, 7)));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn one_process_uses_the_index_and_an_invalid_file_starts_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        fs::write(&path, b"something else").unwrap();
        let mut index = Index::open(&path).unwrap();
        assert_eq!(Index::open(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        index.note(b"a", &identity(1), known(1, 1));
        assert_eq!(reopened(index).known(b"a", &identity(1)), Some(known(1, 1)));
    }

    #[test]
    fn trees_have_names_of_their_own_that_stay() {
        let folder = tempfile::tempdir().unwrap();
        let state = Path::new("/state");
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&two).unwrap();
        let place = |tree: &Path| place_of(state, tree).unwrap();
        assert_eq!(place(&one), place(&two.join("../one")));
        assert_ne!(place(&one), place(&two));
        assert!(place(&one).starts_with("/state/index"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_index_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..500), is_index: bool) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("index");
            let head = if is_index { &MAGIC[..] } else { &[] };
            fs::write(&path, [head, &bytes].concat()).unwrap();
            let mut index = Index::open(&path).unwrap();
            prop_assert_eq!(index.known(b"a", &identity(1)), None);
            let _ = decode(&bytes, b"a", &identity(1));
        }
    }
}
