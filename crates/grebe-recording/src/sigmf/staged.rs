//! Files under temporary names, which take their places together.
//!
//! They take them one after the other, and a process killed in between must leave no contradiction. So files
//! that name others, or have their sums, are removed before those are replaced, and come after them.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::checksum::Summing;
use super::layout::{old, temporary};
use crate::error::Error;
use crate::output::followed;

/// Files that take their places together, or are removed.
#[derive(Debug, Default)]
pub(super) struct Staged {
    steps: VecDeque<Step>,
}

#[derive(Debug)]
enum Step {
    Remove { path: PathBuf },
    Name { temporary: PathBuf, path: PathBuf },
}

impl Staged {
    /// A new file that will be `path`, and where it is until then.
    pub(super) fn create(&mut self, path: &Path) -> Result<(File, PathBuf), Error> {
        let mut create = || {
            let path = followed(path)?;
            let temporary = temporary(&path);
            let file = File::create(&temporary)?;
            self.steps.push_back(Step::Name { temporary: temporary.clone(), path });
            Ok((file, temporary))
        };
        create().map_err(Error::file("create", path))
    }

    /// A file that is there will be `path`.
    pub(super) fn name(&mut self, file: &Path, path: &Path) {
        self.steps.push_back(Step::Name { temporary: file.into(), path: path.into() });
    }

    /// Writes a value; the sum of the file.
    pub(super) fn json(
        &mut self,
        path: PathBuf,
        value: &impl serde::Serialize,
        durable: bool,
    ) -> Result<String, Error> {
        self.write(path, durable, |out| {
            serde_json::to_writer_pretty(&mut *out, value)?;
            out.write_all(b"\n")
        })
    }

    /// Writes a text; the sum of the file.
    pub(super) fn text(&mut self, path: PathBuf, text: &str, durable: bool) -> Result<String, Error> {
        self.write(path, durable, |out| out.write_all(text.as_bytes()))
    }

    fn write(
        &mut self,
        path: PathBuf,
        durable: bool,
        write: impl FnOnce(&mut Summing<BufWriter<File>>) -> io::Result<()>,
    ) -> Result<String, Error> {
        let failed = Error::file("create", &path);
        let mut out = Summing::new(BufWriter::with_capacity(BUFFER_BYTES, self.create(&path)?.0));
        write(&mut out).map_err(&failed)?;
        let (out, sum) = out.finish();
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        if durable {
            file.sync_all().map_err(&failed)?;
        }
        Ok(sum)
    }

    /// Removes the file at `path` before any file takes its place: it names them, or has their sums.
    pub(super) fn remove_first(&mut self, path: &Path) -> Result<(), Error> {
        let path = followed(path).map_err(Error::file("create", path))?;
        self.steps.push_front(Step::Remove { path });
        Ok(())
    }

    /// Current path of the file that will have this name.
    pub(super) fn place_of(&self, path: &Path) -> PathBuf {
        let place = followed(path).unwrap_or_else(|_| path.to_owned());
        let found = self.steps.iter().find_map(|step| match step {
            Step::Name { temporary, path } if *path == place => Some(temporary.clone()),
            _ => None,
        });
        found.unwrap_or(place)
    }

    /// Leaves the files under the names that they have.
    pub(super) fn leave(mut self) {
        self.steps.clear();
    }

    /// Gives all files their names, in order: if one cannot get its name, it and all later ones are removed.
    pub(super) fn commit(mut self) -> Result<(), Error> {
        while let Some(step) = self.steps.front() {
            step.take()?;
            self.steps.pop_front();
        }
        Ok(())
    }

    /// Renames all files or none: after a failure, the replaced files are back, and a retry is possible.
    pub(super) fn give_names(&mut self) -> Result<(), Error> {
        let mut moved: Vec<(&PathBuf, PathBuf)> = Vec::new();
        let mut aside = Vec::new();
        for step in &self.steps {
            let (Step::Name { path, .. } | Step::Remove { path }) = step;
            let old = old(path);
            let give = || -> Result<(), Error> {
                if path.symlink_metadata().is_ok() {
                    fs::rename(path, &old).map_err(Error::file("replace", path))?;
                    moved.push((path, old.clone()));
                    aside.push(old);
                }
                if let Step::Name { temporary, path } = step {
                    fs::rename(temporary, path).map_err(Error::file("create", path))?;
                    moved.push((temporary, path.clone()));
                }
                Ok(())
            };
            if let Err(error) = give() {
                moved.iter().rev().for_each(|(from, to)| drop(fs::rename(to, from)));
                return Err(error);
            }
        }
        aside.iter().for_each(|path| drop(fs::remove_file(path)));
        self.steps.clear();
        Ok(())
    }

    /// Simulates a process killed after `steps` steps; returns whether that was before the last.
    #[cfg(test)]
    pub(super) fn kill_behind(mut self, steps: usize) -> bool {
        let is_before_last = steps < self.steps.len();
        for _ in 0..steps.min(self.steps.len()) {
            self.steps[0].take().unwrap();
            self.steps.pop_front();
        }
        self.leave();
        is_before_last
    }
}

impl Step {
    fn take(&self) -> Result<(), Error> {
        match self {
            Self::Remove { path } => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(Error::file("replace", path)(error))
                }
                _ => Ok(()),
            },
            Self::Name { temporary, path } => {
                fs::rename(temporary, path).map_err(Error::file("create", path))
            }
        }
    }
}

/// Makes the new names of files beside `path` survive a loss of power, where the system can. The data are
/// safe without.
pub(super) fn sync_folder(path: &Path) {
    if cfg!(unix) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        for step in &self.steps {
            if let Step::Name { temporary, .. } = step {
                let _ = fs::remove_file(temporary);
            }
        }
    }
}

const BUFFER_BYTES: usize = 256 << 10;
