//! Unix: sockets in a folder of the user.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, test_kill_process};

pub(crate) type Stream = UnixStream;

/// A hang-up is reported without a request. Input is not: a reader may have closed its sending side.
pub(crate) const WHILE_IDLE: PollFlags = PollFlags::empty();

/// The user's run-time directory, or else a private one among the temporary files.
pub(crate) fn folders() -> impl Iterator<Item = PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let temporary = std::env::temp_dir().join(format!("grebe-{uid}"));
    runtime.map(|folder| folder.join("grebe")).into_iter().chain([temporary])
}

pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => check_folder(folder),
    }
}

/// Among the temporary files, anybody could have created it before us.
pub(crate) fn check_folder(folder: &Path) -> io::Result<()> {
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

/// Whether a process was killed before it renamed its `PID.NAME.new` socket.
pub(crate) fn is_leftover(path: &Path) -> bool {
    let is_dead = |pid: i32| Pid::from_raw(pid).is_none_or(|pid| test_kill_process(pid).is_err());
    pid_of_unnamed(path).is_some_and(is_dead)
}

fn pid_of_unnamed(path: &Path) -> Option<i32> {
    path.file_name()?.to_str()?.strip_suffix(".new")?.split_once('.')?.0.parse().ok()
}

/// Socket under its name, which it loses when dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Listens under another name first, so that a socket under the final name either answers or belongs to a
    /// dead process.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if the name is taken.
    pub(crate) fn bind(path: PathBuf) -> io::Result<Self> {
        if !is_free(&path) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let before = path.with_extension("new");
        let _ = fs::remove_file(&before);
        let socket = UnixListener::bind(&before)?;
        fs::set_permissions(&before, Permissions::from_mode(0o600))?;
        socket.set_nonblocking(true)?;
        fs::rename(before, &path)?;
        Ok(Self { socket, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        fds.push(PollFd::new(&self.socket, PollFlags::IN));
    }

    /// Next reader. Only this user can connect.
    pub(crate) fn accept(&mut self) -> io::Result<Stream> {
        let (stream, _) = self.socket.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Possibly already removed by a clean-up.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether nobody listens there. Removes the socket of a dead process with the same number.
fn is_free(path: &Path) -> bool {
    match UnixStream::connect(path) {
        Ok(_) => false,
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(_) => fs::remove_file(path).is_ok(),
    }
}

/// Connects, or removes the socket if its process is gone.
pub(crate) fn connect(path: &Path) -> Option<Stream> {
    match UnixStream::connect(path) {
        Ok(stream) => stream.set_nonblocking(true).ok().map(|()| stream),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // A socket gets this name only once it listens. Another watcher may have been faster.
            let _ = fs::remove_file(path);
            None
        }
        Err(_) => None,
    }
}

pub(crate) fn pair() -> io::Result<(Stream, Stream)> {
    let (one, other) = UnixStream::pair()?;
    one.set_nonblocking(true)?;
    other.set_nonblocking(true)?;
    Ok((one, other))
}

pub(crate) fn is_gone(stream: &Stream) -> bool {
    let mut fds = [PollFd::new(stream, WHILE_IDLE)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unnamed_sockets_are_leftovers() {
        let unnamed = |name: &str| pid_of_unnamed(&Path::new("/run").join(name));
        assert_eq!([unnamed("42.sg.new"), unnamed("42.sg.top"), unnamed("sg.new")], [Some(42), None, None]);
        assert!(!is_leftover(Path::new(&format!("/run/{}.sg.new", std::process::id()))));
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("grebe");
        make_folder(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        make_folder(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        assert_eq!(make_folder(&folder).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let link = outer.path().join("link");
        std::os::unix::fs::symlink(outer.path(), &link).unwrap();
        assert!(make_folder(&link).is_err());
    }
}
