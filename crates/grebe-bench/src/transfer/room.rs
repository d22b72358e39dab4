use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::content;
use super::options::Options;
use super::row::size_words;
use super::tasks::TransferTask;
use crate::error::{Error, Result};
use crate::peer::Peer;

/// The directory of a run, with the file to send; goes with everything in it, even where this process is killed.
pub(super) struct Room {
    directory: TempDir,
    _guard: Peer,
}

impl Room {
    /// Looks for room for the file twice: as it is sent, and as it comes.
    pub(super) fn new(options: &Options, file_bytes: u64) -> Result<Self> {
        let needed = 2 * file_bytes + file_bytes / 20;
        let memory = Path::new("/dev/shm");
        let parent = match &options.directory {
            Some(directory) => directory.clone(),
            None if free_bytes(memory).is_some_and(|free| free > needed) => memory.to_owned(),
            None => std::env::temp_dir(),
        };
        if let Some(free) = free_bytes(&parent).filter(|&free| free < needed) {
            return Err(Error::Needs {
                what: format!(
                    "{} has {} free, and the file needs {}: give another --dir or a smaller --size",
                    parent.display(),
                    size_words(free),
                    size_words(needed)
                ),
            });
        }
        let made = tempfile::Builder::new().prefix("grebe-bench-").tempdir_in(&parent);
        let directory = made.map_err(|error| Error::Needs {
            what: format!("cannot make a directory in {}: {error}", parent.display()),
        })?;
        let guard = TransferTask::Guard { directory: directory.path().to_owned() };
        let guard = guard.start(options.launcher.command(), "guard", &options.cancel)?;
        let room = Self { _guard: guard, directory };
        std::fs::create_dir(room.arrivals()).map_err(Error::io("make a directory for what comes"))?;
        content::fill(&room.file(), file_bytes, options.seed)?;
        Ok(room)
    }

    /// The file to send.
    pub(super) fn file(&self) -> PathBuf {
        self.directory.path().join(FILE)
    }

    /// Where it comes to.
    pub(super) fn arrivals(&self) -> PathBuf {
        self.directory.path().join("came")
    }

    /// Where it comes to as a whole.
    pub(super) fn arrived(&self) -> PathBuf {
        self.arrivals().join(FILE)
    }

    /// Compares what came with what was sent, and removes it.
    pub(super) fn check_arrived(&self, program: &str) -> Result<()> {
        let came = self.arrived();
        content::compare(program, &self.file(), &came)?;
        std::fs::remove_file(&came).map_err(Error::io("remove a file that was compared"))
    }

    /// Where keys are made.
    pub(super) fn keys(&self) -> PathBuf {
        self.directory.path().join("keys")
    }

    /// Where that is, for people.
    pub(super) fn words(&self) -> String {
        self.directory.path().parent().map_or(String::new(), |parent| parent.display().to_string())
    }
}

#[cfg(unix)]
fn free_bytes(directory: &Path) -> Option<u64> {
    let of = rustix::fs::statvfs(directory).ok()?;
    Some(of.f_bavail.saturating_mul(of.f_frsize))
}

/// Not asked here: what does not fit fails when it is written.
#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// The name of the file, where it is sent from and where it comes to.
const FILE: &str = "random.bin";
