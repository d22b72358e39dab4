//! Folder with an entry per published graph, writable only for this user.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::endpoint::{check_folder, folders, is_leftover, make_folder};
use crate::error::Error;

/// Directory for publishing, created if missing.
pub(super) fn own_folder() -> Result<PathBuf, Error> {
    let mut refused = None;
    for folder in folders() {
        match make_folder(&folder) {
            Ok(()) => return Ok(folder),
            Err(source) => {
                refused = Some(Error::Telemetry { what: "cannot publish in", path: folder, source })
            }
        }
    }
    let nowhere = || Error::Telemetry {
        what: "cannot publish in",
        path: PathBuf::new(),
        source: io::ErrorKind::NotFound.into(),
    };
    Err(refused.unwrap_or_else(nowhere))
}

/// All published graphs of this user's processes, alive or dead.
pub(super) fn all() -> Vec<Entry> {
    let mut all: Vec<Entry> = entries().filter_map(Entry::of).collect();
    all.sort();
    all
}

/// Removes files that dead processes left.
pub(super) fn remove_leftovers() {
    for path in entries().filter(|path| is_leftover(path)) {
        // Another watcher may have been faster.
        let _ = fs::remove_file(path);
    }
}

fn entries() -> impl Iterator<Item = PathBuf> {
    folders()
        .filter(|folder| check_folder(folder).is_ok())
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten())
        .map(|entry| entry.path())
}

/// Published graph by its name: `PID.NAME.top`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) path: PathBuf,
}

impl Entry {
    pub(super) fn of(path: PathBuf) -> Option<Self> {
        let (pid, name) = path.file_name()?.to_str()?.strip_suffix(".top")?.split_once('.')?;
        Some(Self { pid: pid.parse().ok()?, name: name.to_owned(), path })
    }
}

/// File name with letters, digits and `-`, at most 32 of them (a socket's path has room for about 100 bytes
/// in total).
pub(super) fn file_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    let name: String = name.chars().take(32).map(plain).collect();
    if name.is_empty() { "graph".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let entry = |name: &str| Entry::of(Path::new("/run").join(name));
        let found = entry("42.sg-2.top").unwrap();
        assert_eq!((found.pid, found.name.as_str()), (42, "sg-2"));
        assert_eq!([entry("x.sg.top"), entry("42.sg.new"), entry("42.top")], [None, None, None]);
        assert_eq!(file_name("my/../graph 1"), "my----graph-1");
        assert_eq!(file_name(""), "graph");
    }
}
