//! Directory of the sockets, writable only for this user.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, test_kill_process};

use crate::error::Error;

/// Directory for publishing, created if missing.
pub(super) fn own_folder() -> Result<PathBuf, Error> {
    let mut refused = None;
    for folder in candidates() {
        match make(&folder) {
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

/// All sockets of this user's processes, alive or dead.
pub(super) fn sockets() -> Vec<Socket> {
    let mut sockets: Vec<Socket> = entries().filter_map(Socket::of).collect();
    sockets.sort();
    sockets
}

/// Removes leftover `PID.NAME.new` sockets of processes that were killed before renaming them.
pub(super) fn remove_unnamed() {
    let is_dead = |pid: i32| Pid::from_raw(pid).is_none_or(|pid| test_kill_process(pid).is_err());
    for path in entries().filter(|path| pid_of_unnamed(path).is_some_and(is_dead)) {
        // Another watcher may have been faster.
        let _ = fs::remove_file(path);
    }
}

fn pid_of_unnamed(path: &Path) -> Option<i32> {
    path.file_name()?.to_str()?.strip_suffix(".new")?.split_once('.')?.0.parse().ok()
}

fn entries() -> impl Iterator<Item = PathBuf> {
    candidates()
        .filter(|folder| check(folder).is_ok())
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten())
        .map(|entry| entry.path())
}

/// Socket by its name: `PID.NAME.top`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Socket {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) path: PathBuf,
}

impl Socket {
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

/// The user's run-time directory, or else a private one among the temporary files.
fn candidates() -> impl Iterator<Item = PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let temporary = std::env::temp_dir().join(format!("grebe-{uid}"));
    runtime.map(|folder| folder.join("grebe")).into_iter().chain([temporary])
}

fn make(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => check(folder),
    }
}

/// Among the temporary files, anybody could have created it before us.
fn check(folder: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(folder)?;
    let is_ours = meta.is_dir() && meta.uid() == rustix::process::getuid().as_raw();
    if is_ours && meta.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        "it is not a folder that only this user can write to",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let socket = |name: &str| Socket::of(PathBuf::from("/run").join(name));
        let found = socket("42.sg-2.top").unwrap();
        assert_eq!((found.pid, found.name.as_str()), (42, "sg-2"));
        assert_eq!([socket("x.sg.top"), socket("42.sg.new"), socket("42.top")], [None, None, None]);
        let unnamed = |name: &str| pid_of_unnamed(&Path::new("/run").join(name));
        assert_eq!([unnamed("42.sg.new"), unnamed("42.sg.top"), unnamed("sg.new")], [Some(42), None, None]);
        assert_eq!(file_name("my/../graph 1"), "my----graph-1");
        assert_eq!(file_name(""), "graph");
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("grebe");
        make(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        make(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(make(&folder).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let link = outer.path().join("link");
        std::os::unix::fs::symlink(outer.path(), &link).unwrap();
        assert!(make(&link).is_err());
    }
}
