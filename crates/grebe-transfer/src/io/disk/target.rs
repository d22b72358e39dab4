//! The received files: their names end in `.part` until everything is whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::write_all_at;
use crate::error::{Error, Result};
use crate::proto::index::{Entry, Index, PART};

/// The files that content is written to. They have their full length from the beginning, with holes.
pub(super) struct Target {
    directory: PathBuf,
    index: Index,
    /// Files with bytes in them, in the order of the content.
    files: Vec<TargetFile>,
    open: Option<(usize, File)>,
    /// Files that were written to and closed since they were last asked for.
    closed: Vec<File>,
    overwrite: bool,
    /// Some files may have their final names already.
    named: bool,
}

struct TargetFile {
    path: PathBuf,
    /// Where it begins in the content.
    start: u64,
    bytes: u64,
}

impl Target {
    /// Creates all files and directories.
    pub(super) fn create(directory: &Path, index: Index, index_bytes: u64, overwrite: bool) -> Result<Self> {
        let target = Self::place(directory, index, index_bytes, overwrite);
        for entry in target.tops() {
            target.check_free(&directory.join(&entry.name), entry)?;
            let part = target.part_path(&entry.name);
            if fs::symlink_metadata(&part).is_ok() {
                if !overwrite {
                    return Err(Error::Exists { path: part });
                }
                remove(&part).map_err(|source| failed("remove", &part, source))?;
            }
        }
        check_room(directory, target.index.file_bytes())?;
        for entry in &target.index.entries {
            let path = target.part_path(&entry.name);
            let made = match entry.bytes {
                None => fs::create_dir(&path),
                // `create_new` does not follow a link that somebody put there.
                Some(bytes) => OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .open(&path)
                    .and_then(|file| file.set_len(bytes)),
            };
            made.map_err(|source| failed("create", &path, source))?;
        }
        Ok(target)
    }

    /// Finds what an earlier session left; `None` where it has changed since. `named`: everything was whole, and some files may
    /// have their final names.
    pub(super) fn reopen(
        directory: &Path,
        index: Index,
        index_bytes: u64,
        overwrite: bool,
        named: bool,
    ) -> Option<Self> {
        let mut target = Self::place(directory, index, index_bytes, overwrite);
        target.named = named;
        let is_entry = |path: &Path, entry: &Entry| {
            fs::symlink_metadata(path).is_ok_and(|meta| match entry.bytes {
                None => meta.is_dir(),
                Some(bytes) => meta.is_file() && meta.len() == bytes,
            })
        };
        let is_there = |entry: &Entry| {
            is_entry(&target.part_path(&entry.name), entry)
                || named && is_entry(&directory.join(&entry.name), entry)
        };
        target.index.entries.iter().all(is_there).then_some(target)
    }

    /// Removes what an earlier session left.
    pub(super) fn discard(directory: &Path, index: &Index) {
        for entry in index.entries.iter().filter(|entry| entry.top() == entry.name) {
            // What cannot be removed is in the way, and `create` says so.
            let _ = remove(&directory.join(format!("{}{PART}", entry.name)));
        }
    }

    /// Writes content to its place in the files. What belongs to the index is skipped.
    pub(super) fn write(&mut self, mut at: u64, mut bytes: &[u8]) -> Result<()> {
        let index_end = self.files.first().map_or(u64::MAX, |first| first.start);
        let skip = index_end.saturating_sub(at).min(bytes.len() as u64);
        (at, bytes) = (at + skip, &bytes[skip as usize..]);
        while !bytes.is_empty() {
            let number = self.files.partition_point(|file| file.start + file.bytes <= at);
            let Some(TargetFile { path, start, bytes: file_bytes }) = self.files.get(number) else {
                return Ok(());
            };
            if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
                let file = OpenOptions::new()
                    .write(true)
                    .open(path)
                    .map_err(|source| failed("open", path, source))?;
                if let Some((_, before)) = self.open.replace((number, file)) {
                    self.closed.push(before);
                }
            }
            let take = (start + file_bytes - at).min(bytes.len() as u64) as usize;
            if let Some((_, file)) = &self.open {
                write_all_at(file, &bytes[..take], at - start)
                    .map_err(|source| failed("write", path, source))?;
            }
            (at, bytes) = (at + take as u64, &bytes[take..]);
        }
        Ok(())
    }

    /// Files that were written to since the last call: to be flushed.
    pub(super) fn take_dirty(&mut self) -> Vec<File> {
        let mut dirty = std::mem::take(&mut self.closed);
        if let Some((_, file)) = &self.open
            && let Ok(file) = file.try_clone()
        {
            dirty.push(file);
        }
        dirty
    }

    /// Files that were written to and closed since [`take_dirty`](Self::take_dirty).
    pub(super) fn closed(&self) -> usize {
        self.closed.len()
    }

    /// Everything is whole: sets modes, times and the final names, and returns the paths.
    pub(super) fn finish(&mut self) -> Result<Vec<PathBuf>> {
        (self.open, self.closed) = (None, Vec::new());
        // From the inside out, because a change in a directory changes its time.
        for entry in self.index.entries.iter().rev() {
            let path = self.part_path(&entry.name);
            match set_mode_and_time(&path, entry) {
                Err(error) if !(self.named && error.kind() == io::ErrorKind::NotFound) => {
                    return Err(failed("set the time of", &path, error));
                }
                _ => {}
            }
        }
        let mut paths = Vec::new();
        for entry in self.tops() {
            let (part, path) = (self.part_path(&entry.name), self.directory.join(&entry.name));
            paths.push(path.clone());
            if self.named && fs::symlink_metadata(&part).is_err() {
                continue;
            }
            if self.named && is_same_file(&part, &path) {
                remove(&part).map_err(|source| failed("remove", &part, source))?;
                continue;
            }
            self.check_free(&path, entry)?;
            give_name(&part, &path, entry, self.overwrite)
                .map_err(|source| failed("give its name to", &part, source))?;
        }
        Ok(paths)
    }

    fn place(directory: &Path, index: Index, index_bytes: u64, overwrite: bool) -> Self {
        let mut start = index_bytes;
        let mut files = Vec::new();
        let mut target = Self {
            directory: directory.to_path_buf(),
            index: Index::default(),
            files: Vec::new(),
            open: None,
            closed: Vec::new(),
            overwrite,
            named: false,
        };
        for entry in &index.entries {
            if let Some(bytes) = entry.bytes.filter(|bytes| *bytes > 0) {
                files.push(TargetFile { path: target.part_path(&entry.name), start, bytes });
                start += bytes;
            }
        }
        (target.index, target.files) = (index, files);
        target
    }

    fn tops(&self) -> impl Iterator<Item = &Entry> {
        self.index.entries.iter().filter(|entry| entry.top() == entry.name)
    }

    /// `a/b` is `a.part/b` for now.
    fn part_path(&self, name: &str) -> PathBuf {
        let (top, below) = name.split_once('/').map_or((name, None), |(top, below)| (top, Some(below)));
        let top = self.directory.join(format!("{top}{PART}"));
        below.map_or_else(|| top.clone(), |below| top.join(below))
    }

    fn check_free(&self, path: &Path, entry: &Entry) -> Result<()> {
        match fs::symlink_metadata(path) {
            Ok(meta) if self.overwrite && entry.bytes.is_some() && !meta.is_dir() => Ok(()),
            Ok(_) => Err(Error::Exists { path: path.to_path_buf() }),
            Err(_) => Ok(()),
        }
    }
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> Error {
    Error::File { action, path: path.to_path_buf(), source }
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// Never replaces a file that appeared there meanwhile, as a rename would.
fn give_name(part: &Path, path: &Path, entry: &Entry, overwrite: bool) -> io::Result<()> {
    if overwrite || entry.bytes.is_none() {
        return fs::rename(part, path);
    }
    match fs::hard_link(part, path) {
        Ok(()) => fs::remove_file(part),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // A file system without links.
        Err(_) => fs::rename(part, path),
    }
}

/// Whether a file has both names: it was linked and the old name not removed.
#[cfg(unix)]
fn is_same_file(part: &Path, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (fs::symlink_metadata(part), fs::symlink_metadata(path)) {
        (Ok(part), Ok(path)) => part.is_file() && (part.dev(), part.ino()) == (path.dev(), path.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_same_file(_: &Path, _: &Path) -> bool {
    false
}

fn set_mode_and_time(path: &Path, entry: &Entry) -> io::Result<()> {
    let age = Duration::from_nanos(entry.modified_unix_ns.unsigned_abs());
    let modified =
        if entry.modified_unix_ns < 0 { UNIX_EPOCH.checked_sub(age) } else { UNIX_EPOCH.checked_add(age) };
    // Directories too are opened for this, which some systems do not do: their time is then the time of arrival.
    match File::open(path) {
        Ok(file) => file.set_modified(modified.unwrap_or_else(SystemTime::now))?,
        Err(error) if entry.bytes.is_some() => return Err(error),
        Err(_) => {}
    }
    set_mode(path, entry.mode)
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u16) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(u32::from(mode)))
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u16) -> io::Result<()> {
    Ok(())
}

/// A full disk is better reported now than near the end.
#[cfg(unix)]
fn check_room(directory: &Path, needed_bytes: u64) -> Result<()> {
    if let Ok(stat) = rustix::fs::statvfs(directory) {
        let free_bytes = stat.f_bavail.saturating_mul(stat.f_frsize);
        if free_bytes < needed_bytes {
            return Err(Error::NoRoom { path: directory.to_path_buf(), free_bytes, needed_bytes });
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_room(_: &Path, _: u64) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> Index {
        let entry = |name: &str, bytes| Entry {
            name: name.into(),
            bytes,
            mode: 0o640,
            modified_unix_ns: 1_500_000_000,
        };
        Index {
            entries: vec![
                entry("d", None),
                entry("d/a", Some(3)),
                entry("d/b", Some(0)),
                entry("f", Some(4)),
            ],
        }
    }

    #[test]
    fn files_get_their_names_when_all_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let mut target = Target::create(directory.path(), index(), 10, false).unwrap();
        target.write(5, b"indexabcdef").unwrap();
        target.write(16, b"g").unwrap();
        assert!(at("d.part/a").exists() && !at("d").exists());
        assert_eq!(target.finish().unwrap(), [at("d"), at("f")]);
        assert_eq!(
            (fs::read(at("d/a")).unwrap(), fs::read(at("f")).unwrap()),
            (b"abc".to_vec(), b"defg".to_vec())
        );
        let modified = fs::metadata(at("f")).unwrap().modified().unwrap();
        assert_eq!(modified.duration_since(UNIX_EPOCH).unwrap(), Duration::from_millis(1_500));
        assert!(!at("d.part").exists() && !at("f.part").exists());
    }

    #[test]
    fn nothing_that_is_there_is_replaced_unasked() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("f"), b"precious").unwrap();
        assert!(matches!(Target::create(directory.path(), index(), 10, false), Err(Error::Exists { .. })));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing was begun");
        let mut target = Target::create(directory.path(), index(), 10, true).unwrap();
        target.write(10, b"abcdefg").unwrap();
        target.finish().unwrap();
        assert_eq!(fs::read(directory.path().join("f")).unwrap(), b"defg");
        assert!(
            Target::create(directory.path(), index(), 10, true).is_err(),
            "directories are never replaced"
        );
    }

    #[test]
    fn what_came_meanwhile_is_not_replaced_either() {
        let directory = tempfile::tempdir().unwrap();
        let mut target = Target::create(directory.path(), index(), 10, false).unwrap();
        fs::write(directory.path().join("f"), b"precious").unwrap();
        assert!(target.finish().is_err());
        assert_eq!(fs::read(directory.path().join("f")).unwrap(), b"precious");
    }

    #[test]
    fn an_earlier_session_is_found_only_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        drop(Target::create(directory.path(), index(), 10, false).unwrap());
        assert!(Target::reopen(directory.path(), index(), 10, false, false).is_some());
        fs::write(directory.path().join("d.part/a"), b"longer").unwrap();
        assert!(Target::reopen(directory.path(), index(), 10, false, false).is_none());
    }

    #[test]
    fn a_kill_between_two_names_is_made_good() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let mut target = Target::create(directory.path(), index(), 10, false).unwrap();
        target.write(10, b"abcdefg").unwrap();
        // The directory has its name, the file has both.
        fs::rename(at("d.part"), at("d")).unwrap();
        fs::hard_link(at("f.part"), at("f")).unwrap();
        assert!(Target::reopen(directory.path(), index(), 10, false, false).is_none());
        let mut target = Target::reopen(directory.path(), index(), 10, false, true).unwrap();
        assert_eq!(target.finish().unwrap(), [at("d"), at("f")]);
        assert_eq!(fs::read(at("f")).unwrap(), b"defg");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
