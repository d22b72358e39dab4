//! The files that are sent, as one run of content.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use super::groups;
use super::read_exact_at;
use crate::error::{Error, Result};
use crate::proto::index::{Entry, INDEX_BYTES_MAX, Index};

/// Files and directories to send, looked at but not read yet.
#[derive(Debug)]
pub struct Source {
    files: Vec<SourceFile>,
    index: Vec<u8>,
    content_bytes: u64,
    content: [u8; 32],
    names: Vec<String>,
    left_out: Vec<PathBuf>,
}

#[derive(Debug)]
struct SourceFile {
    path: PathBuf,
    /// Where it begins in the content.
    start: u64,
    bytes: u64,
}

impl Source {
    /// Looks at `paths` and, where they are directories, at all in them. Names are those of the paths' last components.
    ///
    /// # Errors
    /// [`Error::File`] where one cannot be looked at, [`Error::Index`] where a name cannot be sent.
    pub fn open(paths: &[PathBuf]) -> Result<Self> {
        let mut walk = Walk::default();
        for path in paths {
            walk.add_top(path)?;
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
        walk.identity.update(&index);
        let tops = walk.index.entries.iter().filter(|entry| entry.top() == entry.name);
        Ok(Self {
            names: tops.map(|entry| entry.name.clone()).collect(),
            files: walk.files,
            index,
            content_bytes: start,
            content: *walk.identity.finalize().as_bytes(),
            left_out: walk.left_out,
        })
    }

    /// Bytes of all files.
    pub fn file_bytes(&self) -> u64 {
        self.content_bytes - self.index.len() as u64
    }

    /// Files in it.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// What was named.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Links and devices found in directories, which are not sent.
    pub fn left_out(&self) -> &[PathBuf] {
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
}

/// Reads content from anywhere; the file read last stays open.
pub(super) struct ContentReader {
    source: Arc<Source>,
    open: Option<(usize, File)>,
}

impl ContentReader {
    pub(super) fn new(source: Arc<Source>) -> Self {
        Self { source, open: None }
    }

    pub(super) fn read_exact_at(&mut self, mut bytes: &mut [u8], mut at: u64) -> Result<()> {
        let index = &self.source.index;
        if at < index.len() as u64 {
            let from = at as usize;
            let (head, rest) = bytes.split_at_mut(bytes.len().min(index.len() - from));
            head.copy_from_slice(&index[from..from + head.len()]);
            (at, bytes) = (at + head.len() as u64, rest);
        }
        while !bytes.is_empty() {
            let number = self.source.files.partition_point(|file| file.start + file.bytes <= at);
            let SourceFile { path, start, bytes: file_bytes } = &self.source.files[number];
            let failed = |action| move |source| Error::File { action, path: path.clone(), source };
            if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
                self.open = Some((number, File::open(path).map_err(failed("open"))?));
            }
            let take = (start + file_bytes - at).min(bytes.len() as u64) as usize;
            let (head, rest) = bytes.split_at_mut(take);
            if let Some((_, file)) = &self.open {
                read_exact_at(file, head, at - start).map_err(failed("read"))?;
            }
            (at, bytes) = (at + take as u64, rest);
        }
        Ok(())
    }
}

#[derive(Default)]
struct Walk {
    index: Index,
    files: Vec<SourceFile>,
    identity: blake3::Hasher,
    left_out: Vec<PathBuf>,
}

impl Walk {
    fn add_top(&mut self, path: &Path) -> Result<()> {
        let failed = |source| Error::File { action: "look at", path: path.to_path_buf(), source };
        // What the user names is followed if it is a link, and has the name that the user gave.
        let meta = fs::metadata(path).map_err(failed)?;
        let named = match path.file_name() {
            Some(_) => path.to_path_buf(),
            None => fs::canonicalize(path).map_err(failed)?,
        };
        let name = named.file_name().unwrap_or_default();
        let name = name.to_str().ok_or_else(|| unreadable_name(path))?;
        if !meta.is_file() && !meta.is_dir() {
            return Err(failed(std::io::Error::other("it is neither a file nor a directory")));
        }
        self.add(path.to_path_buf(), name.to_owned(), &meta)
    }

    fn add(&mut self, path: PathBuf, name: String, meta: &fs::Metadata) -> Result<()> {
        self.identify(meta);
        let bytes = meta.is_file().then_some(meta.len());
        self.index.entries.push(Entry {
            name: name.clone(),
            bytes,
            mode: mode(meta),
            modified_unix_ns: modified_unix_ns(meta),
        });
        if let Some(bytes) = bytes {
            self.files.push(SourceFile { path, start: 0, bytes });
            return Ok(());
        }
        let failed = |source| Error::File { action: "list", path: path.clone(), source };
        let mut inside =
            fs::read_dir(&path).map_err(failed)?.collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
        // The order of a directory differs from one look to the next; a later session must find the same content.
        inside.sort_by_key(fs::DirEntry::file_name);
        for entry in inside {
            let below = entry.path();
            let meta = fs::symlink_metadata(&below).map_err(|source| Error::File {
                action: "look at",
                path: below.clone(),
                source,
            })?;
            if !meta.is_file() && !meta.is_dir() {
                self.left_out.push(below);
                continue;
            }
            let own = entry.file_name();
            let own = own.to_str().ok_or_else(|| unreadable_name(&below))?;
            self.add(below, format!("{name}/{own}"), &meta)?;
        }
        Ok(())
    }

    /// A file that was changed and given its old time back still has another time of change.
    #[cfg(unix)]
    fn identify(&mut self, meta: &fs::Metadata) {
        use std::os::unix::fs::MetadataExt;
        if meta.is_file() {
            for part in
                [meta.dev(), meta.ino(), meta.ctime().cast_unsigned(), meta.ctime_nsec().cast_unsigned()]
            {
                self.identity.update(&part.to_be_bytes());
            }
        }
    }

    #[cfg(not(unix))]
    fn identify(&mut self, _: &fs::Metadata) {}
}

fn unreadable_name(path: &Path) -> Error {
    Error::Index { name: path.to_string_lossy().into_owned(), why: "its name is not UTF-8" }
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

    #[test]
    fn content_is_index_and_files_in_a_row() {
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
        let index_bytes = source.index_bytes();
        let mut content = vec![0; index_bytes as usize + 16];
        let mut reader = ContentReader::new(source.clone());
        for (at, byte) in content.iter_mut().enumerate() {
            reader.read_exact_at(std::slice::from_mut(byte), at as u64).unwrap();
        }
        assert_eq!(&content[index_bytes as usize..], b"firstsecondthird");
        let index = Index::decode(&content[..index_bytes as usize]).unwrap();
        let names: Vec<_> = index.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["d", "d/a", "d/b", "d/e", "d/e/c", "f"]);
        let mut whole = vec![0; content.len()];
        reader.read_exact_at(&mut whole, 0).unwrap();
        assert_eq!(whole, content);
    }

    #[test]
    fn a_file_that_changed_is_another_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, b"one").unwrap();
        let paths = std::slice::from_ref(&path);
        let before = Source::open(paths).unwrap().content();
        assert_eq!(Source::open(paths).unwrap().content(), before);
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(&path, b"two").unwrap();
        assert_ne!(Source::open(paths).unwrap().content(), before);
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
}
