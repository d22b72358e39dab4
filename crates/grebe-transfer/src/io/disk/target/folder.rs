//! The folder that one content lies in until it is whole.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::io::disk::directory::Directory;
use crate::io::disk::system::failed;

/// A folder in `.grebe-partial`, which nobody else can enter. All is held open, so that nobody can put something else in its
/// place.
#[derive(Debug)]
pub(in crate::io::disk) struct Folder {
    partial: Directory,
    own: Directory,
    name: PathBuf,
    /// For people.
    path: PathBuf,
}

impl Folder {
    /// The folder of a content in a directory, if an earlier session left one.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) where the folder around it is another user's, or others can enter it.
    pub(in crate::io::disk) fn find(
        directory: &Directory,
        path: &Path,
        content: &[u8; 32],
    ) -> Result<Option<Self>> {
        match open_partial(directory).and_then(|partial| Self::open(partial, path, content)) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("use", &path.join(PARTIAL), error)),
        }
    }

    /// Makes the folder of a content anew.
    ///
    /// # Errors
    /// As those of [`find`](Self::find), and where it cannot be made.
    pub(in crate::io::disk) fn make(directory: &Directory, path: &Path, content: &[u8; 32]) -> Result<Self> {
        directory
            .ensure_directory(PARTIAL.as_ref())
            .and_then(|()| {
                let (partial, name) = (open_partial(directory)?, name_of(content));
                match partial.remove_all(&name) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
                partial.create_directory(&name, 0o700)?;
                Self::open(partial, path, content)
            })
            .map_err(|error| failed("use", &path.join(PARTIAL), error))
    }

    fn open(partial: Directory, path: &Path, content: &[u8; 32]) -> io::Result<Self> {
        let name = name_of(content);
        let own = partial.open_below(&name)?;
        Ok(Self { own, partial, path: path.join(PARTIAL).join(&name), name })
    }

    pub(in crate::io::disk) fn directory(&self) -> &Directory {
        &self.own
    }

    /// What is in it, for people.
    pub(in crate::io::disk) fn path_of(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// Removes it with all that is in it, and the one around it where nothing else is in that.
    pub(in crate::io::disk) fn remove(&self, directory: &Directory) {
        // What cannot be removed is in nobody's way.
        let _ = self.partial.remove_all(&self.name);
        let _ = directory.remove_directory(PARTIAL.as_ref());
    }
}

fn open_partial(directory: &Directory) -> io::Result<Directory> {
    let partial = directory.open_below(PARTIAL.as_ref())?;
    if partial.is_private(directory)? {
        return Ok(partial);
    }
    Err(io::Error::other(
        "another user made it, or others can enter it: remove it, or receive into another directory",
    ))
}

fn name_of(content: &[u8; 32]) -> PathBuf {
    content[..16].iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

const PARTIAL: &str = ".grebe-partial";
