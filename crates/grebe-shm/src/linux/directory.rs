//! Control sockets: their names, their directory, and the clean-up after dead producers.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::error::Error;

/// Names of this user's streams that have a producer. Removes sockets of dead producers.
///
/// # Errors
/// The directory is not private to this user, or cannot be read.
pub fn streams(directory: Option<&Path>) -> Result<Vec<String>, Error> {
    let Some(directory) = Directory::find(directory)? else { return Ok(Vec::new()) };
    let _lock = directory.lock()?;
    let unreadable =
        |error: std::io::Error| Error::Directory { path: directory.path.clone(), why: error.to_string() };
    let mut names = Vec::new();
    for entry in fs::read_dir(&directory.path).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)) else { continue };
        if check_name(name).is_err() {
            continue;
        }
        // Another user's leftover, or a file that is not a socket, is skipped.
        if let Ok(true) = directory.sweep(name) {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Directory that only its owner can use.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
}

/// Excludes other producers and listings until it is dropped.
pub(super) struct Locked(#[allow(dead_code, reason = "the lock goes with the descriptor")] OwnedFd);

impl Directory {
    /// Opens the directory, and creates it if missing.
    pub(super) fn make(given: Option<&Path>) -> Result<Self, Error> {
        let path = Self::path(given);
        if let Err(error) = fs::DirBuilder::new().mode(0o700).create(&path)
            && error.kind() != std::io::ErrorKind::AlreadyExists
        {
            return Err(Error::Directory { path, why: error.to_string() });
        }
        Self { path }.checked()
    }

    /// Opens the directory if it exists. An explicitly named one may belong to another user.
    pub(super) fn find(given: Option<&Path>) -> Result<Option<Self>, Error> {
        let path = Self::path(given);
        if fs::symlink_metadata(&path).is_err() {
            return Ok(None);
        }
        match given {
            Some(_) => Ok(Some(Self { path })),
            None => Self { path }.checked().map(Some),
        }
    }

    pub(super) fn path(given: Option<&Path>) -> PathBuf {
        if let Some(path) = given {
            return path.to_owned();
        }
        match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute()) {
            Some(runtime) => runtime.join("grebe"),
            None => std::env::temp_dir().join(format!("grebe-{}", rustix::process::getuid().as_raw())),
        }
    }

    /// Requires a private directory, because others could place their own sockets in it.
    fn checked(self) -> Result<Self, Error> {
        let fail = |why: String| Error::Directory { path: self.path.clone(), why };
        let found = fs::symlink_metadata(&self.path).map_err(|error| fail(error.to_string()))?;
        if !found.is_dir() {
            return Err(fail("it is not a directory".to_owned()));
        }
        let own = rustix::process::getuid().as_raw();
        if found.uid() != own {
            return Err(fail(format!(
                "it belongs to user {}: remove it, or set XDG_RUNTIME_DIR",
                found.uid()
            )));
        }
        if found.permissions().mode() & 0o022 != 0 {
            return Err(fail("others can write to it: chmod 700 it".to_owned()));
        }
        Ok(self)
    }

    /// Path of a stream's socket.
    pub(super) fn socket_path(&self, name: &str) -> Result<PathBuf, Error> {
        check_name(name)?;
        Ok(self.path.join(format!("{name}{SUFFIX}")))
    }

    /// Address of a stream's socket.
    pub(super) fn address(&self, name: &str) -> Result<SocketAddrUnix, Error> {
        let path = self.socket_path(name)?;
        SocketAddrUnix::new(&path).map_err(|_| Error::Directory {
            path: self.path.clone(),
            why: "its path is too long for a socket (107 bytes with the name): set XDG_RUNTIME_DIR to a shorter one".to_owned(),
        })
    }

    /// Waits until no other producer or listing is active here. The lock ends with its process.
    pub(super) fn lock(&self) -> Result<Locked, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd =
            open(&self.path, flags, Mode::empty()).map_err(Error::tried("open the directory of streams"))?;
        flock(&fd, FlockOperation::LockExclusive).map_err(Error::tried("lock the directory of streams"))?;
        Ok(Locked(fd))
    }

    /// Whether a producer of this name exists. Removes a dead socket. Call it under the lock.
    pub(super) fn sweep(&self, name: &str) -> Result<bool, Error> {
        let path = self.socket_path(name)?;
        let socket = seqpacket()?;
        match connect(&socket, &self.address(name)?) {
            Ok(()) | Err(Errno::AGAIN) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(Errno::CONNREFUSED) => {
                let _ = fs::remove_file(path);
                Ok(false)
            }
            Err(errno) => Err(Error::System { action: "look for a producer", source: errno.into() }),
        }
    }
}

/// Non-blocking packet socket.
pub(super) fn seqpacket() -> Result<OwnedFd, Error> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(Error::tried("open a socket"))
}

fn check_name(name: &str) -> Result<(), Error> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = name.len() <= NAME_BYTES_MAX
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(good);
    if is_name { Ok(()) } else { Err(Error::Name(name.to_owned())) }
}

const SUFFIX: &str = ".shm";
const NAME_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_the_directory_are_refused() {
        for name in ["", ".", "..", "../x", "a/b", ".hidden", "-x", "a b", "ü", &"x".repeat(65)] {
            assert!(matches!(check_name(name), Err(Error::Name(_))), "{name}");
        }
        for name in ["a", "adc-0_left.2", &"x".repeat(64)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = Directory::make(Some(folder.path())).unwrap_err().to_string();
        assert!(
            error.contains("others can write") && error.contains(folder.path().to_str().unwrap()),
            "{error}"
        );
    }

    #[test]
    fn a_path_that_is_too_long_for_a_socket_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("d".repeat(90));
        let directory = Directory::make(Some(&long)).unwrap();
        let error = directory.address("name").unwrap_err().to_string();
        assert!(error.contains("too long"), "{error}");
    }
}
