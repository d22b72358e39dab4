//! The files that are sent, as one run of content: the list of them, their bytes, and last a status of each.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::UNIX_EPOCH;

use super::system::{failed, read_exact_at};
use super::{FileStatus, LeftOut, groups};
use crate::error::{Error, Result};
use crate::proto::index::{Entry, INDEX_BYTES_MAX, Index, is_reserved, printable};

/// Files and directories to send, looked at but not read yet.
#[derive(Debug)]
pub struct Source {
    files: Vec<SourceFile>,
    index: Vec<u8>,
    content_bytes: u64,
    content: [u8; 32],
    touched: [u8; 8],
    names: Vec<String>,
    left_out: Vec<LeftOut>,
}

#[derive(Debug)]
struct SourceFile {
    path: PathBuf,
    /// Where it begins in the content.
    start: u64,
    bytes: u64,
    seen: Seen,
}

/// What tells a file that changed from one that did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    bytes: u64,
    modified_unix_ns: i64,
    /// Device and inode.
    identity: [u64; 2],
    /// Its time of change: a file that was changed and given its old time back still has another one.
    touched: [u64; 2],
}

impl Source {
    /// Looks at `paths` and, where they are directories, at all in them. Names are those of the paths' last components. What cannot
    /// be sent is [left out](Self::left_out).
    ///
    /// # Errors
    /// [`Error::File`] where one of the paths cannot be looked at or is neither a file nor a directory, or where nothing is left to
    /// send; [`Error::Index`] where two have the same name, or where there are too many files.
    pub fn open(paths: &[PathBuf]) -> Result<Self> {
        let mut walk = Walk::default();
        for path in paths {
            walk.add_top(path)?;
        }
        if let (true, Some(LeftOut { path, why })) = (walk.index.entries.is_empty(), walk.left_out.first()) {
            return Err(failed("send", path, io::Error::other(why.clone())));
        }
        walk.index.check()?;
        let index = walk.index.encode();
        if index.len() > INDEX_BYTES_MAX {
            let name = format!("{} files", walk.index.entries.len());
            return Err(Error::Index { name, why: "too many for one transfer; pack them into one file" });
        }
        let mut start = index.len() as u64;
        for file in &mut walk.files {
            file.start = start;
            start += file.bytes;
        }
        let tops = walk.index.entries.iter().filter(|entry| entry.is_top());
        Ok(Self {
            names: tops.map(|entry| printable(&entry.name)).collect(),
            content_bytes: start + walk.files.len() as u64,
            content: name_of_content(&walk.index, &walk.files),
            touched: touched(&walk.files),
            files: walk.files,
            index,
            left_out: walk.left_out,
        })
    }

    /// Bytes of all files.
    pub fn file_bytes(&self) -> u64 {
        self.content_bytes - (self.index.len() + self.files.len()) as u64
    }

    /// Files in it.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// What was named, for people.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What is not sent: links and devices in directories, what cannot be read, and names that cannot be sent.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    pub(crate) fn index_bytes(&self) -> u64 {
        self.index.len() as u64
    }

    pub(crate) fn stream_bytes(&self) -> u64 {
        groups::stream_bytes(self.content_bytes)
    }

    /// The same files, unchanged, have the same name in a later session.
    pub(crate) fn content(&self) -> [u8; 32] {
        self.content
    }

    /// Another one in a later session: files may have been changed, although they have the same length and times.
    pub(crate) fn touched(&self) -> [u8; 8] {
        self.touched
    }
}

/// Modes are no part of it: a change of them changes no byte.
fn name_of_content(index: &Index, files: &[SourceFile]) -> [u8; 32] {
    let mut index = index.clone();
    index.entries.iter_mut().for_each(|entry| entry.mode = 0);
    // Each change in a directory changes its time.
    index
        .entries
        .iter_mut()
        .filter(|entry| entry.bytes.is_none())
        .for_each(|entry| entry.modified_unix_ns = 0);
    let mut hasher = blake3::Hasher::new();
    hasher.update(&index.encode());
    files.iter().flat_map(|file| file.seen.identity).for_each(|part| {
        hasher.update(&part.to_be_bytes());
    });
    *hasher.finalize().as_bytes()
}

fn touched(files: &[SourceFile]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    files.iter().flat_map(|file| file.seen.touched).for_each(|part| {
        hasher.update(&part.to_be_bytes());
    });
    std::array::from_fn(|at| hasher.finalize().as_bytes()[at])
}

/// The content of one transfer, and what became of its files while they were read.
#[derive(Debug)]
pub(in crate::io) struct Content {
    source: Arc<Source>,
    statuses: Mutex<Vec<FileStatus>>,
    /// The statuses as they are sent. What happens later the receiver finds by its hashes.
    sent_statuses: OnceLock<Vec<u8>>,
}

impl Content {
    pub(in crate::io) fn new(source: Arc<Source>) -> Self {
        let statuses = Mutex::new(vec![FileStatus::Good; source.files.len()]);
        Self { source, statuses, sent_statuses: OnceLock::new() }
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// Whether a group cannot be read again from the disk as it was: where a list and a file share it, the file may change.
    pub(super) fn is_read_once(&self, group: u64) -> bool {
        let group_of = |content_at: u64| content_at / groups::GROUP_BYTES;
        let statuses_start = self.source.content_bytes - self.source.files.len() as u64;
        group == group_of(self.source.index_bytes().saturating_sub(1)) || group >= group_of(statuses_start)
    }

    /// Files that did not arrive as they are.
    pub(in crate::io) fn left_out(&self) -> Vec<LeftOut> {
        let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let bad = self.source.files.iter().zip(&*statuses).filter(|(_, status)| **status != FileStatus::Good);
        bad.map(|(file, status)| LeftOut { path: file.path.clone(), why: status.why().into() }).collect()
    }

    fn mark(&self, number: usize, status: FileStatus) {
        let mut statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        if statuses[number] == FileStatus::Good {
            statuses[number] = status;
        }
    }

    /// Looks at all files once more, when everything has been read.
    fn look_again(&self) -> Vec<u8> {
        for (number, file) in self.source.files.iter().enumerate() {
            match fs::metadata(&file.path) {
                Ok(meta) if Seen::of(&meta) == file.seen => {}
                Ok(_) => self.mark(number, FileStatus::Changed),
                Err(_) => self.mark(number, FileStatus::Unreadable),
            }
        }
        let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        statuses.iter().map(|status| *status as u8).collect()
    }
}

/// Reads content from anywhere; the file read last stays open.
pub(super) struct ContentReader {
    content: Arc<Content>,
    open: Option<(usize, File)>,
}

impl ContentReader {
    pub(super) fn new(content: Arc<Content>) -> Self {
        Self { content, open: None }
    }

    /// A file that cannot be read, or is no longer as it was, is noted and does not hold up the others: what is missing is zeros.
    pub(super) fn read_at(&mut self, mut bytes: &mut [u8], mut at: u64) {
        let source = self.content.source.clone();
        while !bytes.is_empty() {
            let number = source.files.partition_point(|file| file.start + file.bytes <= at);
            let take = match source.files.get(number) {
                _ if at < source.index_bytes() => copy_from(&source.index, at as usize, bytes),
                Some(file) => {
                    let take = (file.start + file.bytes - at).min(bytes.len() as u64) as usize;
                    self.read_file(number, file, &mut bytes[..take], at - file.start);
                    take
                }
                None => {
                    let statuses = self.content.sent_statuses.get_or_init(|| self.content.look_again());
                    let start = source.content_bytes - statuses.len() as u64;
                    copy_from(statuses, (at - start) as usize, bytes)
                }
            };
            (at, bytes) = (at + take as u64, &mut bytes[take..]);
        }
    }

    fn read_file(&mut self, number: usize, file: &SourceFile, bytes: &mut [u8], at: u64) {
        if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
            self.open = File::open(&file.path).ok().map(|opened| (number, opened));
            let seen = self.open.as_ref().and_then(|(_, opened)| opened.metadata().ok());
            if seen.is_some_and(|meta| Seen::of(&meta) != file.seen) {
                self.content.mark(number, FileStatus::Changed);
            }
        }
        let read = self.open.as_ref().map(|(_, opened)| read_exact_at(opened, bytes, at));
        match read {
            Some(Ok(())) => return,
            Some(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.content.mark(number, FileStatus::Changed);
            }
            _ => self.content.mark(number, FileStatus::Unreadable),
        }
        bytes.fill(0);
    }
}

fn copy_from(from: &[u8], at: usize, into: &mut [u8]) -> usize {
    let take = into.len().min(from.len() - at);
    into[..take].copy_from_slice(&from[at..at + take]);
    take
}

#[derive(Default)]
struct Walk {
    index: Index,
    files: Vec<SourceFile>,
    left_out: Vec<LeftOut>,
}

impl Walk {
    fn add_top(&mut self, path: &Path) -> Result<()> {
        let failed = |source| failed("look at", path, source);
        // What the user names is followed if it is a link, and has the name that the user gave.
        let meta = fs::metadata(path).map_err(failed)?;
        let named = match path.file_name() {
            Some(_) => path.to_path_buf(),
            None => fs::canonicalize(path).map_err(failed)?,
        };
        if !meta.is_file() && !meta.is_dir() {
            return Err(failed(io::Error::other("it is neither a file nor a directory")));
        }
        self.add(path.to_path_buf(), Vec::new(), named.file_name().unwrap_or_default(), &meta);
        Ok(())
    }

    /// Adds a file, or a directory with all in it. `above` is the name of the directory that it is in, with a slash.
    fn add(&mut self, path: PathBuf, above: Vec<u8>, own: &OsStr, meta: &fs::Metadata) {
        let name = match name_bytes(own) {
            Some(own) if is_reserved(own) => {
                return self.leave_out(path, "such names are for grebe's own files");
            }
            Some(own) if above.len() + own.len() <= usize::from(u16::MAX) => [&above, own].concat(),
            Some(_) => return self.leave_out(path, "its name is too long"),
            None => return self.leave_out(path, "its name is not Unicode"),
        };
        let seen = Seen::of(meta);
        let bytes = meta.is_file().then_some(seen.bytes);
        let inside = match bytes {
            Some(_) => File::open(&path).map(|_| Vec::new()),
            None => fs::read_dir(&path).and_then(Iterator::collect),
        };
        let mut inside: Vec<fs::DirEntry> = match inside {
            Ok(inside) => inside,
            Err(error) => return self.leave_out(path, &error.to_string()),
        };
        let modified_unix_ns = seen.modified_unix_ns;
        self.index.entries.push(Entry { name: name.clone(), bytes, mode: mode(meta), modified_unix_ns });
        if let Some(bytes) = bytes {
            return self.files.push(SourceFile { path, start: 0, bytes, seen });
        }
        // The order of a directory differs from one look to the next; a later session must find the same content.
        inside.sort_by_key(fs::DirEntry::file_name);
        for entry in inside {
            match fs::symlink_metadata(entry.path()) {
                Ok(meta) if meta.is_file() || meta.is_dir() => {
                    self.add(entry.path(), [&name[..], b"/"].concat(), &entry.file_name(), &meta);
                }
                Ok(meta) if meta.is_symlink() => self.leave_out(entry.path(), "a symbolic link"),
                Ok(_) => self.leave_out(entry.path(), "neither a file nor a directory"),
                Err(error) => self.leave_out(entry.path(), &error.to_string()),
            }
        }
    }

    fn leave_out(&mut self, path: PathBuf, why: &str) {
        self.left_out.push(LeftOut { path, why: why.to_owned() });
    }
}

impl Seen {
    #[cfg(unix)]
    fn of(meta: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            bytes: meta.len(),
            modified_unix_ns: modified_unix_ns(meta),
            identity: [meta.dev(), meta.ino()],
            touched: [meta.ctime().cast_unsigned(), meta.ctime_nsec().cast_unsigned()],
        }
    }

    #[cfg(not(unix))]
    fn of(meta: &fs::Metadata) -> Self {
        let modified_unix_ns = modified_unix_ns(meta);
        Self { bytes: meta.len(), modified_unix_ns, identity: [0; 2], touched: [0; 2] }
    }
}

#[cfg(unix)]
fn name_bytes(name: &OsStr) -> Option<&[u8]> {
    Some(std::os::unix::ffi::OsStrExt::as_bytes(name))
}

#[cfg(not(unix))]
fn name_bytes(name: &OsStr) -> Option<&[u8]> {
    name.to_str().map(str::as_bytes)
}

fn modified_unix_ns(meta: &fs::Metadata) -> i64 {
    let Ok(modified) = meta.modified() else { return 0 };
    match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_nanos()).unwrap_or(i64::MAX),
    }
}

#[cfg(unix)]
fn mode(meta: &fs::Metadata) -> u16 {
    use std::os::unix::fs::PermissionsExt;
    (meta.permissions().mode() & 0o777) as u16
}

#[cfg(not(unix))]
fn mode(meta: &fs::Metadata) -> u16 {
    if meta.is_dir() { 0o755 } else { 0o644 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(source: &Arc<Source>) -> (Vec<u8>, Arc<Content>) {
        let content = Arc::new(Content::new(source.clone()));
        let mut bytes = vec![0; source.content_bytes as usize];
        ContentReader::new(content.clone()).read_at(&mut bytes, 0);
        (bytes, content)
    }

    #[test]
    fn content_is_index_files_and_statuses_in_a_row() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("d/e")).unwrap();
        for (name, bytes) in [("d/a", &b"first"[..]), ("d/b", b""), ("d/e/c", b"second"), ("f", b"third")] {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        let paths = [folder.path().join("d"), folder.path().join("f")];
        let source = Arc::new(Source::open(&paths).unwrap());
        assert_eq!(
            (source.names(), source.files(), source.file_bytes()),
            (&["d".into(), "f".into()][..], 4, 16)
        );
        let index_bytes = source.index_bytes() as usize;
        let (whole, content) = read_all(&source);
        assert_eq!(&whole[index_bytes..], b"firstsecondthird\0\0\0\0");
        let index = Index::decode(&whole[..index_bytes]).unwrap();
        let names: Vec<_> = index.entries.iter().map(|entry| printable(&entry.name)).collect();
        assert_eq!(names, ["d", "d/a", "d/b", "d/e", "d/e/c", "f"]);
        let mut reader = ContentReader::new(content);
        let mut one = [0];
        for (at, byte) in whole.iter().enumerate() {
            reader.read_at(&mut one, at as u64);
            assert_eq!(one[0], *byte, "{at}");
        }
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let names = ["good", "grows", "gone", "shorter", "torn"];
        for name in names {
            fs::write(at(name), b"contents").unwrap();
        }
        let source = Arc::new(Source::open(&names.map(at)).unwrap());
        let content = Arc::new(Content::new(source.clone()));
        let mut reader = ContentReader::new(content.clone());
        let mut whole = vec![0; source.content_bytes as usize - 1];
        // All but a byte of the last file is read; then the first ones change behind the reader, and the others before it.
        reader.read_at(&mut whole[..(source.index_bytes() + 3 * 8) as usize], 0);
        fs::write(at("grows"), b"contents and more").unwrap();
        fs::remove_file(at("gone")).unwrap();
        fs::write(at("shorter"), b"cut").unwrap();
        fs::write(at("torn"), b"CONTENTS").unwrap();
        let mut whole = vec![0; source.content_bytes as usize];
        reader.read_at(&mut whole, 0);
        assert_eq!(whole[whole.len() - 5..], [0, 1, 2, 1, 1]);
        let left_out = content.left_out();
        assert_eq!(
            left_out.iter().map(|left| left.path.clone()).collect::<Vec<_>>(),
            names[1..].iter().map(|name| at(name)).collect::<Vec<_>>()
        );
    }

    #[test]
    fn another_content_is_known_and_another_mode_is_not_another_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, b"one").unwrap();
        let paths = std::slice::from_ref(&path);
        let before = Source::open(paths).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::hard_link(&path, folder.path().join("g")).unwrap();
        let after = Source::open(paths).unwrap();
        assert_eq!(after.content(), before.content());
        #[cfg(unix)]
        assert_ne!(after.touched(), before.touched());
        fs::write(&path, b"two").unwrap();
        assert_ne!(Source::open(paths).unwrap().content(), before.content());
    }

    #[test]
    fn what_cannot_be_sent_is_said() {
        assert!(matches!(Source::open(&["/no/such/file".into()]), Err(Error::File { .. })));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, b"x").unwrap();
        assert!(
            matches!(Source::open(&[path.clone(), path]), Err(Error::Index { .. })),
            "twice the same name"
        );
    }

    #[cfg(unix)]
    #[test]
    fn what_is_left_out_is_named_and_the_others_are_sent() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["a:b", "line\nend", ".grebe-partial"] {
            fs::write(at(name), b"x").unwrap();
        }
        fs::write(folder.path().join(OsStr::new("tab\t")), b"x").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", at("link")).unwrap();
        let source = Source::open(&[folder.path().to_path_buf()]).unwrap();
        assert_eq!(source.files(), 3);
        let left_out: Vec<_> = source.left_out().iter().map(|left| left.path.clone()).collect();
        assert_eq!(left_out, [at(".grebe-partial"), at("link")]);
    }
}
