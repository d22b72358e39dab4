//! Names of streams, and the directory that holds a file per stream.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::platform::names;

/// Names of this user's streams that have a producer. Removes the files of dead producers.
///
/// # Errors
/// The directory is not private to this user, or cannot be read.
pub fn streams(directory: Option<&Path>) -> Result<Vec<String>, Error> {
    let Some(directory) = Directory::find(directory)? else { return Ok(Vec::new()) };
    let _lock = names::lock(&directory.path)?;
    let unreadable =
        |error: std::io::Error| Error::Directory { path: directory.path.clone(), why: error.to_string() };
    let mut names = Vec::new();
    for entry in fs::read_dir(&directory.path).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)) else { continue };
        if check_name(name).is_err() {
            continue;
        }
        // Another user's leftover, or a foreign file, is skipped.
        if let Ok(true) = names::has_producer(&directory.file(name)?) {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Directory that only its owner can use.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
}

impl Directory {
    /// Opens the directory, and creates it if missing.
    pub(crate) fn make(given: Option<&Path>) -> Result<Self, Error> {
        let path = Self::path(given);
        if let Err(error) = names::create_private(&path)
            && error.kind() != std::io::ErrorKind::AlreadyExists
        {
            return Err(Error::Directory { path, why: error.to_string() });
        }
        Self { path }.checked()
    }

    /// Opens the directory if it exists. An explicitly named one may belong to another user.
    pub(crate) fn find(given: Option<&Path>) -> Result<Option<Self>, Error> {
        let path = Self::path(given);
        if fs::symlink_metadata(&path).is_err() {
            return Ok(None);
        }
        match given {
            Some(_) => Ok(Some(Self { path })),
            None => Self { path }.checked().map(Some),
        }
    }

    pub(crate) fn path(given: Option<&Path>) -> PathBuf {
        given.map_or_else(names::own_directory, Path::to_owned)
    }

    /// Requires a private directory.
    fn checked(self) -> Result<Self, Error> {
        let fail = |why: String| Error::Directory { path: self.path.clone(), why };
        let found = fs::symlink_metadata(&self.path).map_err(|error| fail(error.to_string()))?;
        if !found.is_dir() {
            return Err(fail("it is not a directory".to_owned()));
        }
        match names::why_unsafe(&self.path).map_err(|error| fail(error.to_string()))? {
            Some(why) => Err(fail(why)),
            None => Ok(self),
        }
    }

    /// File of a stream to connect to.
    pub(crate) fn file_to_join(name: &str, given: Option<&Path>) -> Result<PathBuf, Error> {
        match Self::find(given)? {
            Some(found) => found.file(name),
            None => {
                let path = Self { path: Self::path(given) }.file(name)?;
                Err(Error::NoStream { name: name.to_owned(), path })
            }
        }
    }

    /// Path of a stream's file.
    pub(crate) fn file(&self, name: &str) -> Result<PathBuf, Error> {
        check_name(name)?;
        Ok(self.path.join(format!("{name}{SUFFIX}")))
    }
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

    #[cfg(unix)]
    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = Directory::make(Some(folder.path())).unwrap_err().to_string();
        assert!(
            error.contains("others can write") && error.contains(folder.path().to_str().unwrap()),
            "{error}"
        );
    }
}
