//! Directory of control sockets, and the clean-up after dead producers.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, connect};

use super::system::Connection;
use crate::error::Error;

/// Excludes other producers and listings until it is dropped.
pub(crate) struct Locked(#[allow(dead_code, reason = "the lock goes with the descriptor")] OwnedFd);

/// The user's own directory.
pub(crate) fn own_directory() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute()) {
        Some(runtime) => runtime.join("grebe"),
        None => std::env::temp_dir().join(format!("grebe-{}", rustix::process::getuid().as_raw())),
    }
}

/// Makes a directory for this user only.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)
}

/// Reason not to use a directory, in which others could place their own sockets.
pub(crate) fn why_unsafe(path: &Path) -> io::Result<Option<String>> {
    let found = fs::symlink_metadata(path)?;
    let own = rustix::process::getuid().as_raw();
    Ok(if found.uid() != own {
        Some(format!("it belongs to user {}: remove it, or set XDG_RUNTIME_DIR", found.uid()))
    } else if found.permissions().mode() & 0o022 != 0 {
        Some("others can write to it: chmod 700 it".to_owned())
    } else {
        None
    })
}

/// Waits until no other producer or listing is active here. The lock ends with its process.
pub(crate) fn lock(directory: &Path) -> Result<Locked, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = open(directory, flags, Mode::empty()).map_err(Error::tried("open the directory of streams"))?;
    flock(&fd, FlockOperation::LockExclusive).map_err(Error::tried("lock the directory of streams"))?;
    Ok(Locked(fd))
}

/// Whether a producer listens at this socket. Removes a dead one. Call it under the lock.
pub(crate) fn has_producer(path: &Path) -> Result<bool, Error> {
    let connection = Connection::open().map_err(Error::tried("open a socket"))?;
    match connect(&connection.0, &address(path)?) {
        Ok(()) | Err(Errno::AGAIN) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(Errno::CONNREFUSED) => {
            let _ = fs::remove_file(path);
            Ok(false)
        }
        Err(errno) => Err(Error::tried("look for a producer")(errno)),
    }
}

/// Address of a stream's socket.
pub(crate) fn address(path: &Path) -> Result<SocketAddrUnix, Error> {
    SocketAddrUnix::new(path).map_err(|_| Error::Directory {
        path: path.to_owned(),
        why: "its path is too long for a socket (107 bytes with the name, 103 on macOS): set XDG_RUNTIME_DIR to a \
              shorter one"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_too_long_for_a_socket_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("d".repeat(90));
        let error = address(&long.join("name.shm")).unwrap_err().to_string();
        assert!(error.contains("too long"), "{error}");
    }
}
