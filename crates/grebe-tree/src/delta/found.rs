//! Files that may match a new one: moved or renamed files of the destination, and files in directories that
//! the user named.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, Metadata, ReadDir};
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use crate::name::{bytes_of, is_own};

/// A regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// Seconds since 1970; may be negative.
    pub(crate) mtime_s: i64,
}

/// Files by length and time, and by name. Nothing is read here; users of a file verify it by its hash.
///
/// Takes some 250 bytes per file, bounded by [`FILES_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Found {
    files: Vec<FoundFile>,
    by_length_and_time: HashMap<(u64, i64), Vec<u32>>,
    by_name: HashMap<OsString, Vec<u32>>,
    /// Directories still to search, last one first.
    directories: Vec<PathBuf>,
    /// Directory being read.
    reading: Option<ReadDir>,
}

impl Found {
    /// Makes an empty collection with directories to search.
    pub(crate) fn in_directories(mut directories: Vec<PathBuf>) -> Self {
        directories.reverse();
        Self { directories, ..Self::default() }
    }

    /// Continues the search while `goes_on` returns true, and adds all regular files. Does not follow links,
    /// and skips unreadable entries.
    pub(crate) fn look(&mut self, mut goes_on: impl FnMut() -> bool) {
        while self.files.len() < FILES_MAX && goes_on() {
            let Some(reading) = &mut self.reading else {
                let Some(next) = self.directories.pop() else { return };
                self.reading = fs::read_dir(next).ok();
                continue;
            };
            match reading.next() {
                Some(Ok(entry)) => self.add_entry(&entry),
                Some(Err(_)) => {}
                None => self.reading = None,
            }
        }
    }

    fn add_entry(&mut self, entry: &DirEntry) {
        let Ok(kind) = entry.file_type() else { return };
        if kind.is_dir() && !is_own(&bytes_of(&entry.file_name())) {
            self.directories.push(entry.path());
        } else if kind.is_file()
            && let Ok(metadata) = entry.metadata()
            && metadata.len() >= FOUND_BYTES_MIN
        {
            self.add(FoundFile { path: entry.path(), bytes: metadata.len(), mtime_s: mtime_s(&metadata) });
        }
    }

    /// A file of this length and time, if any. Prefers the same name.
    pub(crate) fn same(&self, bytes: u64, mtime_s: i64, name: &OsStr) -> Option<&FoundFile> {
        let is_same = |file: &&FoundFile| file.bytes == bytes && file.mtime_s == mtime_s;
        // The list may not hold all of thousands of files with one length and second.
        let named = self.named(name).find(is_same);
        named.or_else(|| {
            let numbers = self.by_length_and_time.get(&(bytes, mtime_s))?;
            numbers.first().map(|number| &self.files[*number as usize])
        })
    }

    /// A file of this name with the nearest length, between half and twice this one.
    pub(crate) fn similar(&self, bytes: u64, name: &OsStr) -> Option<&FoundFile> {
        let near = self.named(name).filter(|file| file.bytes / 2 <= bytes && bytes / 2 <= file.bytes);
        near.min_by_key(|file| file.bytes.abs_diff(bytes))
    }

    fn named(&self, name: &OsStr) -> impl Iterator<Item = &FoundFile> {
        let numbers = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        numbers.iter().map(|number| &self.files[*number as usize])
    }

    fn add(&mut self, file: FoundFile) {
        let number = self.files.len() as u32;
        let Some(name) = file.path.file_name() else { return };
        let same_name = match self.by_name.get_mut(name) {
            Some(numbers) => numbers,
            None => self.by_name.entry(name.to_os_string()).or_default(),
        };
        let same = self.by_length_and_time.entry((file.bytes, file.mtime_s)).or_default();
        // Bounded, because a thousand files named `data.bin` would make each search slow.
        for numbers in [same_name, same] {
            if numbers.len() < ALIKE_MAX {
                numbers.push(number);
            }
        }
        self.files.push(file);
    }
}

/// Whole seconds, because some file systems store no more. Matches are verified by hash.
fn mtime_s(metadata: &Metadata) -> i64 {
    let Ok(modified) = metadata.modified() else { return 0 };
    match modified.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_secs() as i64,
        Err(before) => {
            let before = before.duration();
            -(before.as_secs() as i64) - i64::from(before.subsec_nanos() > 0)
        }
    }
}

/// Minimum length; a shorter file is sent sooner than found.
pub(crate) const FOUND_BYTES_MIN: u64 = 32 << 10;
const FILES_MAX: usize = 1 << 20;
const ALIKE_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    fn make(path: &Path, bytes: u64, mtime_s: u64) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = File::create(path).unwrap();
        file.set_len(bytes).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::new(mtime_s, 500)).unwrap();
    }

    fn found(folder: &Path) -> Found {
        let mut found = Found::in_directories(vec![folder.to_path_buf()]);
        found.look(|| true);
        found
    }

    fn same<'a>(found: &'a Found, bytes: u64, mtime_s: i64, name: &str) -> Option<&'a Path> {
        found.same(bytes, mtime_s, OsStr::new(name)).map(|file| &*file.path)
    }

    fn similar<'a>(found: &'a Found, bytes: u64, name: &str) -> Option<&'a Path> {
        found.similar(bytes, OsStr::new(name)).map(|file| &*file.path)
    }

    #[test]
    fn a_file_is_found_by_length_and_time_wherever_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        let [deep, twin, other] =
            ["a/b/c/run.bin", "z/twin.bin", "run.bin"].map(|name| folder.path().join(name));
        make(&deep, 50_000, 1_000);
        make(&twin, 50_000, 1_000);
        make(&other, 50_000, 2_000);
        let found = found(folder.path());
        assert_eq!(same(&found, 50_000, 1_000, "run.bin"), Some(&*deep));
        assert_eq!(same(&found, 50_000, 1_000, "twin.bin"), Some(&*twin));
        assert!(same(&found, 50_000, 1_000, "renamed.bin").is_some());
        assert_eq!(same(&found, 50_000, 2_000, "renamed.bin"), Some(&*other));
        assert_eq!(same(&found, 50_001, 1_000, "run.bin"), None);
        assert_eq!(same(&found, 50_000, 1_001, "run.bin"), None);
    }

    #[test]
    fn among_files_of_one_name_the_nearest_length_is_the_similar_one() {
        let folder = tempfile::tempdir().unwrap();
        let [short, middle, long] = ["a/log", "b/log", "c/log"].map(|name| folder.path().join(name));
        make(&short, 40_000, 1);
        make(&middle, 90_000, 1);
        make(&long, 1_000_000, 1);
        let found = found(folder.path());
        assert_eq!(similar(&found, 80_000, "log"), Some(&*middle));
        assert_eq!(similar(&found, 50_000, "log"), Some(&*short));
        assert_eq!(similar(&found, 2_000_000, "log"), Some(&*long));
        assert_eq!(similar(&found, 3_000_000, "log"), None);
        assert_eq!(similar(&found, 48_000, "other"), None);
    }

    #[test]
    fn small_files_parts_and_link_targets_are_not_searched() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        make(&folder.path().join("small"), FOUND_BYTES_MIN - 1, 1);
        make(&folder.path().join(".grebe-partial/part"), 50_000, 1);
        make(&outside.path().join("secret"), 50_000, 1);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
            std::os::unix::fs::symlink(outside.path().join("secret"), folder.path().join("to_file")).unwrap();
        }
        assert_eq!(found(folder.path()).files, []);
    }

    #[test]
    fn a_search_continues_where_it_ended() {
        let folder = tempfile::tempdir().unwrap();
        (0..10).for_each(|n| make(&folder.path().join(format!("{n}/file")), 50_000, 1));
        let mut found = Found::in_directories(vec![folder.path().to_path_buf()]);
        let mut files = Vec::new();
        for _ in 0..20 {
            let mut steps = 0;
            found.look(|| {
                steps += 1;
                steps <= 4
            });
            files.push(found.files.len());
        }
        assert!(files[0] == 0 && files.is_sorted(), "{files:?}");
        assert_eq!(files.last(), Some(&10));
    }

    #[test]
    fn a_search_keeps_some_of_many_equal_files_and_none_twice() {
        let mut found = Found::default();
        for n in 0..1_000 {
            let path = PathBuf::from(format!("{n}/data.bin"));
            found.add(FoundFile { path, bytes: 50_000, mtime_s: 7 });
        }
        assert_eq!(found.by_name.values().map(Vec::len).collect::<Vec<_>>(), [ALIKE_MAX]);
        assert_eq!(found.by_length_and_time.values().map(Vec::len).collect::<Vec<_>>(), [ALIKE_MAX]);
    }

    #[test]
    fn files_of_the_same_second_are_found_by_name() {
        let mut found = Found::default();
        let path = |n: u64| PathBuf::from(format!("before/{n}.bin"));
        for n in 0..10 * ALIKE_MAX as u64 {
            found.add(FoundFile { path: path(n), bytes: 50_000, mtime_s: 7 });
        }
        for n in 0..10 * ALIKE_MAX as u64 {
            assert_eq!(same(&found, 50_000, 7, &format!("{n}.bin")), Some(&*path(n)));
        }
        assert!(same(&found, 50_000, 7, "renamed.bin").is_some());
        assert_eq!(same(&found, 50_001, 7, "3.bin"), None);
    }

    #[test]
    fn times_before_1970_are_whole_seconds_downwards() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_modified(UNIX_EPOCH - Duration::from_millis(1_500)).unwrap();
        assert_eq!(mtime_s(&file.as_file().metadata().unwrap()), -2);
        file.as_file().set_modified(UNIX_EPOCH - Duration::from_secs(3)).unwrap();
        assert_eq!(mtime_s(&file.as_file().metadata().unwrap()), -3);
    }
}
