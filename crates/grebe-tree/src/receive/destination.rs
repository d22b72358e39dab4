//! Destination of a tree: an existing directory or a new name.

use std::io;
use std::path::{Path, PathBuf};

use crate::directories::Directories;
use crate::error::{Error, Result};
use crate::name::{PARTIAL, bytes_of};
use crate::receive::partial::is_unfinished;
use crate::scan::means_contents;
use crate::system::Directory;
use crate::wire::Hello;

/// The destination as named.
#[derive(Debug)]
pub(super) struct Destination {
    pub(super) path: PathBuf,
    /// New name of the source.
    pub(super) new_name: Option<Box<[u8]>>,
    /// This copy creates the directory, so it is empty.
    pub(super) is_new: bool,
    /// There are several sources.
    pub(super) of_several: bool,
}

/// State of the destination before the copy.
#[derive(Debug)]
pub(super) enum Found {
    Directory {
        is_empty: bool,
    },
    /// A directory that an earlier copy started under this name and did not finish.
    Unfinished,
    /// Something else, which a single file may replace.
    Other,
    Nothing {
        has_partial: bool,
    },
}

/// Examines the destination.
pub(super) fn look(path: &Path) -> Result<Found> {
    let failed = |action, source| Error::File { action, path: path.to_path_buf(), source };
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            let mut names = std::fs::read_dir(path).map_err(|source| failed("read", source))?;
            if is_begun(path) {
                return Ok(Found::Unfinished);
            }
            Ok(Found::Directory { is_empty: names.next().is_none() })
        }
        Ok(_) => Ok(Found::Other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let above = above(path);
            if !above.is_dir() {
                let why = "directory not found; make it first";
                return Err(Error::Destination { path: above, why });
            }
            // A dangling link counts as an existing name.
            if std::fs::symlink_metadata(path).is_ok() {
                return Ok(Found::Other);
            }
            Ok(Found::Nothing { has_partial: above.join(".grebe-partial").exists() })
        }
        Err(error) => Err(failed("look at", error)),
    }
}

impl Destination {
    /// The directory, if it existed before this copy.
    pub(super) fn there(&self) -> Option<PathBuf> {
        match &self.new_name {
            _ if self.is_new => None,
            Some(_) => Some(above(&self.path)),
            None => Some(self.path.clone()),
        }
    }

    /// Flushes the name of a new directory to the disk.
    pub(super) fn flush_name(&self) -> Result<()> {
        let failed = |source| Error::File { action: "bring to the disk", path: self.path.clone(), source };
        // A directory that this user cannot open cannot be flushed.
        match Directory::open(&above(&self.path)) {
            Ok(above) if self.is_new => above.flush().map_err(failed),
            _ => Ok(()),
        }
    }
}

impl Found {
    /// There is nothing to keep and nothing of an earlier copy.
    pub(super) fn is_fresh(&self) -> bool {
        matches!(self, Self::Directory { is_empty: true } | Self::Nothing { has_partial: false })
    }

    /// Opens the target directory. Creates it unless this is a dry run.
    pub(super) fn open(
        self,
        path: &Path,
        sender: &Hello,
        is_dry_run: bool,
    ) -> Result<(Destination, Directories)> {
        let failed = |action, source| Error::File { action, path: path.to_path_buf(), source };
        let is_one = sender.sources == 1 && !sender.is_contents;
        let gets_name = is_one && !means_contents(path);
        let (root, new_name, is_new) = match self {
            Self::Unfinished if !gets_name => (path.to_path_buf(), None, false),
            Self::Directory { .. } => (path.to_path_buf(), None, false),
            Self::Other if !gets_name => {
                let why = "it is not a directory; name a directory, or one file as the source";
                return Err(Error::Destination { path: path.to_path_buf(), why });
            }
            Self::Unfinished | Self::Other | Self::Nothing { .. } if gets_name => {
                let name =
                    path.file_name().ok_or_else(|| failed("name", io::ErrorKind::InvalidInput.into()))?;
                (above(path), Some(Box::from(&*bytes_of(name))), false)
            }
            Self::Unfinished | Self::Other | Self::Nothing { .. } if is_dry_run => (above(path), None, true),
            Self::Unfinished | Self::Other | Self::Nothing { .. } => {
                std::fs::create_dir(path).map_err(|source| failed("make", source))?;
                (path.to_path_buf(), None, true)
            }
        };
        if new_name.as_deref().is_some_and(|name| name == PARTIAL) {
            let why = "such names are for grebe's own files; name another one";
            return Err(Error::Destination { path: path.to_path_buf(), why });
        }
        let directories = Directories::default();
        directories.add_root(Directory::open(&root).map_err(|source| failed("open", source))?, b"");
        let of_several = sender.sources > 1;
        Ok((Destination { path: path.to_path_buf(), new_name, is_new, of_several }, directories))
    }
}

/// Whether an interrupted copy started the directory under this name.
fn is_begun(path: &Path) -> bool {
    let Some(name) = path.file_name() else { return false };
    let is_begun = Directory::open(&above(path)).and_then(|above| is_unfinished(&above, &bytes_of(name)));
    is_begun.unwrap_or(false)
}

/// Parent directory of a path.
fn above(path: &Path) -> PathBuf {
    match path.parent() {
        Some(above) if above.as_os_str().is_empty() => PathBuf::from("."),
        Some(above) => above.to_path_buf(),
        None => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Role;

    fn sender(sources: u64, is_contents: bool) -> Hello {
        Hello { sources, is_contents, ..Hello::new(Role::Sender) }
    }

    fn open(path: &Path, sources: u64, is_contents: bool) -> Result<Option<Vec<u8>>> {
        let (destination, _) = look(path)?.open(path, &sender(sources, is_contents), false)?;
        Ok(destination.new_name.map(Into::into))
    }

    #[test]
    fn an_existing_directory_takes_the_copy_and_another_destination_is_its_name() {
        let there = tempfile::tempdir().unwrap();
        let path = |name: &str| there.path().join(name);
        assert_eq!(open(there.path(), 1, false).unwrap(), None);
        assert_eq!(open(&path("new"), 1, false).unwrap(), Some(b"new".to_vec()));
        assert!(!path("new").exists());
        // Contents of a source, or several sources, need a directory.
        assert_eq!(open(&path("contents"), 1, true).unwrap(), None);
        assert_eq!(open(&path("several"), 2, false).unwrap(), None);
        assert_eq!(open(&path("slash/"), 1, false).unwrap(), None);
        assert!(path("contents").is_dir() && path("several").is_dir() && path("slash").is_dir());
        std::fs::write(path("file"), "").unwrap();
        assert_eq!(open(&path("file"), 1, false).unwrap(), Some(b"file".to_vec()));
        for result in
            [open(&path("file"), 2, false), open(&path("file"), 1, true), open(&path("no/where"), 1, false)]
        {
            assert!(matches!(result, Err(Error::Destination { .. })), "{result:?}");
        }
        assert!(matches!(open(&path(".grebe-partial"), 1, false), Err(Error::Destination { .. })));
    }

    #[test]
    fn a_destination_with_files_of_an_earlier_copy_is_not_fresh() {
        let there = tempfile::tempdir().unwrap();
        let new = there.path().join("new");
        assert!(look(there.path()).unwrap().is_fresh() && look(&new).unwrap().is_fresh());
        std::fs::create_dir(there.path().join(".grebe-partial")).unwrap();
        assert!(!look(there.path()).unwrap().is_fresh() && !look(&new).unwrap().is_fresh());
    }
}
