//! Destinations of output files: replaced files, files written into, and locks on recording names.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Writes a file whole or not at all: beside it first, then in its place. Only a regular file is replaced; a device, a FIFO or
/// another special file is written into. Symbolic links are followed.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("picture.png");
/// grebe_recording::write_whole(&path, b"...")?;
/// assert_eq!(std::fs::read(&path)?, b"...");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The system's error. An existing regular file is then unchanged.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let there = fs::metadata(path).ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let place = followed(path)?;
    let name = place.file_name().ok_or(ErrorKind::InvalidInput)?.to_string_lossy().into_owned();
    let beside = place.with_file_name(format!(".{name}.{}", std::process::id()));
    let write = || {
        fs::write(&beside, bytes)?;
        if let Some(there) = &there {
            fs::set_permissions(&beside, there.permissions())?;
        }
        fs::rename(&beside, &place)
    };
    write().inspect_err(|_| {
        // The first error counts; removes the rest of the attempt if possible.
        let _ = fs::remove_file(&beside);
    })
}

/// Follows symbolic links, even to a missing target.
pub(crate) fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(to) = fs::read_link(&place) else { return Ok(place) };
        place = place.parent().unwrap_or(Path::new("")).join(to);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Fails if another program has the file open so that it cannot be replaced, which Windows allows.
pub(crate) fn check_replaceable(path: &Path) -> io::Result<()> {
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt;
        const DELETE: u32 = 0x0001_0000;
        OpenOptions::new().access_mode(DELETE).open(path)?;
    }
    let _ = path;
    Ok(())
}

/// Whether Windows takes this name for that of a device, as `con.wav`.
pub(crate) fn is_device(path: &Path) -> bool {
    let is_one = |path: PathBuf| path.to_string_lossy().starts_with(r"\\.\");
    cfg!(windows) && std::path::absolute(path).is_ok_and(is_one)
}

/// Reserves the name of a recording for one recorder. A lock file holds it, which a killed recorder leaves
/// unlocked. The lock identifies the resolved path, however it was written.
#[derive(Debug)]
pub(crate) struct NameLock {
    path: PathBuf,
    _file: File,
}

impl NameLock {
    /// Takes the name of a recording whose metadata are `meta`; `path` is its lock file.
    pub(crate) fn take(path: PathBuf, meta: &Path) -> Result<Self, Error> {
        loop {
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
            let file = file.map_err(Error::file("create", meta))?;
            // A file system without locks does not block recorders.
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                return Err(Error::Busy { path: meta.to_owned() });
            }
            // A previous holder may have removed it meanwhile.
            if is_there(&file, &path) {
                return Ok(Self { path, _file: file });
            }
        }
    }

    /// Whether a recorder holds the name of this lock file. A file system without locks does not tell.
    pub(crate) fn is_taken(path: &Path) -> bool {
        File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

impl Drop for NameLock {
    fn drop(&mut self) {
        // Removed while locked, so that another recorder notices and makes its own.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(unix)]
fn is_there(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |meta: io::Result<fs::Metadata>| meta.ok().map(|meta| (meta.dev(), meta.ino()));
    identity(file.metadata()).is_some_and(|own| identity(fs::metadata(path)) == Some(own))
}

#[cfg(not(unix))]
fn is_there(_: &File, _: &Path) -> bool {
    // An open file cannot be removed.
    true
}

/// As many as Linux follows.
const LINKS_MAX: usize = 40;

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    #[test]
    fn a_regular_file_is_replaced_and_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn special_files_are_written_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let reader = std::thread::spawn({
            let fifo = fifo.clone();
            move || fs::read(fifo).unwrap()
        });
        write_whole(&fifo, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo());
        write_whole(Path::new("/dev/null"), b"nowhere").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }

    #[test]
    fn links_are_followed_even_to_missing_targets() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("far")).unwrap();
        let (link, place) = (folder.path().join("link"), folder.path().join("far/place"));
        symlink("far/place", &link).unwrap();
        for text in ["first", "second"] {
            write_whole(&link, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&place).unwrap(), text);
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        }
        symlink("loop", folder.path().join("loop")).unwrap();
        assert!(write_whole(&folder.path().join("loop"), b"").is_err());
    }
}
