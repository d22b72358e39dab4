//! Data files that have no name yet.

use std::fs;
use std::path::{Path, PathBuf};

use super::staged::Staged;
use crate::error::Error;

/// Data files under temporary names: they get their own with the first metadata, once there are samples. A
/// recorder killed before that leaves no recording.
#[derive(Debug)]
pub(super) struct Unnamed {
    pub(super) data: Staged,
    /// Files that they must not replace.
    pub(super) in_the_way: Vec<PathBuf>,
    /// Files that they replace under other names.
    pub(super) stale: Vec<PathBuf>,
}

impl Unnamed {
    /// Gives the data their names. If that fails, nothing changes, and a retry is possible.
    pub(super) fn name(&mut self) -> Result<(), Error> {
        if let Some(path) = self.in_the_way.iter().find(|path| path.symlink_metadata().is_ok()) {
            // Another recorder created it meanwhile.
            return Err(Error::Exists { path: path.clone() });
        }
        self.in_the_way.clear();
        self.data.give_names()?;
        for stale in self.stale.drain(..) {
            let _ = fs::remove_file(stale);
        }
        Ok(())
    }

    /// Leaves the data under their temporary names.
    pub(super) fn leave(self) {
        self.data.leave();
    }

    /// Current path of the data file that will have this path.
    pub(super) fn place_of(&self, path: &Path) -> PathBuf {
        self.data.place_of(path)
    }
}
