//! Files with the names of pipes, in a directory of the user.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION, GENERIC_WRITE};
use windows_sys::Win32::Storage::FileSystem::{
    DELETE, FILE_FLAG_DELETE_ON_CLOSE, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE,
};

use crate::error::Error;

/// The user's own directory, which the system protects from other users.
pub(crate) fn own_directory() -> PathBuf {
    let local = std::env::var_os("LOCALAPPDATA").map(PathBuf::from).filter(|path| path.is_absolute());
    local.unwrap_or_else(std::env::temp_dir).join("grebe").join("streams")
}

/// Makes a directory. It inherits the access list of the user's own one.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// A foreign directory is harmless, because a consumer looks at the pipe's owner.
pub(crate) fn why_unsafe(_: &Path) -> io::Result<Option<String>> {
    Ok(None)
}

/// Nothing to exclude: a producer holds its file.
pub(crate) fn lock(_: &Path) -> Result<(), Error> {
    Ok(())
}

/// Whether a producer holds this file. Removes the file of a dead one.
pub(crate) fn has_producer(path: &Path) -> Result<bool, Error> {
    // The producer shares its file for reading only.
    let opened = OpenOptions::new().access_mode(DELETE).share_mode(SHARE_ALL).open(path);
    match opened {
        Ok(file) => {
            drop(file);
            let _ = fs::remove_file(path);
            Ok(false)
        }
        Err(error) if is(&error, ERROR_SHARING_VIOLATION) => Ok(true),
        // It has just ended.
        Err(error) if is(&error, ERROR_ACCESS_DENIED) || error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::tried("look for a producer")(error)),
    }
}

/// Takes a stream's name, as long as the file is open: writes the pipe's name into its file. The system deletes the
/// file when this process ends, however it ends.
pub(super) fn take(path: &Path, name: &str, pipe: &str) -> Result<File, Error> {
    let until = Instant::now() + RETRY;
    loop {
        let opened = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .access_mode(GENERIC_WRITE | DELETE)
            .share_mode(FILE_SHARE_READ)
            .custom_flags(FILE_FLAG_DELETE_ON_CLOSE)
            .open(path);
        match opened {
            Ok(mut file) => {
                let written = file.set_len(0).and_then(|()| file.write_all(pipe.as_bytes()));
                return written.map(|()| file).map_err(Error::tried("write the stream's file"));
            }
            // A listing looks at it, or the last reader of a deleted file has not closed it yet.
            Err(error)
                if Instant::now() < until
                    && (is(&error, ERROR_SHARING_VIOLATION) || is(&error, ERROR_ACCESS_DENIED)) =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) if is(&error, ERROR_SHARING_VIOLATION) => return Err(Error::InUse(name.to_owned())),
            Err(error) => {
                return Err(Error::Directory { path: path.to_owned(), why: error.to_string() });
            }
        }
    }
}

/// Path of the pipe that a stream's file names, with a zero at the end.
pub(super) fn pipe_path(pipe: &str) -> Option<Vec<u16>> {
    let rest = pipe.strip_prefix(PIPE_PREFIX)?;
    let is_name = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_name.then(|| format!(r"\\.\pipe\{pipe}").encode_utf16().chain([0]).collect())
}

fn is(error: &io::Error, code: u32) -> bool {
    error.raw_os_error() == Some(code as i32)
}

pub(super) const PIPE_PREFIX: &str = "grebe-";
const SHARE_ALL: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
/// Enough for other processes to close a file.
const RETRY: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_leads_to_pipes_of_grebe_only() {
        assert!(pipe_path("grebe-1-2-3af").is_some_and(|path| path.ends_with(&[u16::from(b'f'), 0])));
        for pipe in ["", "grebe-", "lsass", r"grebe-..\lsass", "grebe-1\n"] {
            assert_eq!(pipe_path(pipe), None, "{pipe}");
        }
    }

    #[test]
    fn a_name_is_taken_as_long_as_its_producer_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let (x, y) = (folder.path().join("x.shm"), folder.path().join("y.shm"));
        let held = take(&x, "x", "grebe-1").unwrap();
        assert_eq!(fs::read_to_string(&x).unwrap(), "grebe-1");
        assert!(has_producer(&x).unwrap());
        assert!(matches!(take(&x, "x", "grebe-2"), Err(Error::InUse(_))));
        drop(held);
        assert!(!has_producer(&x).unwrap());
        // A leftover of a power cut.
        fs::write(&y, "grebe-3").unwrap();
        assert!(!has_producer(&y).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
