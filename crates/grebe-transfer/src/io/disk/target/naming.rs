//! Files that are whole get their names, modes and times.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Fate, Target, modified};
use crate::error::{Result, shown};
use crate::io::disk::system::{NameRules, failed, is_same_file, rename, set_mode};
use crate::io::disk::{LeftOut, Renamed};
use crate::proto::index::{Entry, printable};

/// What came of giving files their names.
#[derive(Debug, Default)]
pub(in crate::io) struct Named {
    /// What the sender named, where it is now.
    pub(in crate::io) paths: Vec<PathBuf>,
    pub(in crate::io) left_out: Vec<LeftOut>,
    pub(in crate::io) renamed: Vec<Renamed>,
    /// Something whole got no name, and waits for a later session.
    pub(in crate::io::disk) is_kept: bool,
}

impl Target {
    /// Gives what is good its mode, its time and its name.
    ///
    /// # Errors
    /// [`Error::File`] where that fails.
    pub(in crate::io::disk) fn give_names(&mut self) -> Result<Named> {
        let mut named = Named { renamed: self.renamed(NameRules::HERE), ..Named::default() };
        for (entry, fate) in self.index.entries.iter().zip(&self.fates) {
            match fate {
                Fate::LeftOut(why) => {
                    named.left_out.push(LeftOut { path: self.final_path(entry), why: why.clone() });
                }
                Fate::There => named.paths.push(self.final_path(entry)),
                Fate::Made | Fate::Inside | Fate::Compared => {}
            }
        }
        // From the inside out, because a change in a directory changes its time.
        for number in (0..self.index.entries.len()).rev() {
            if self.is_left_out(number) {
                continue;
            }
            let entry = &self.index.entries[number];
            let path = self.part_path(entry);
            if entry.is_top() && entry.bytes.is_none() {
                // A directory that may not be written to cannot be moved.
                continue;
            }
            match set_mode_and_time(&path, entry, self.umask) {
                Err(error) if !(self.named && error.kind() == io::ErrorKind::NotFound) => {
                    return Err(failed("set the time of", &path, error));
                }
                _ => {}
            }
        }
        for number in 0..self.index.entries.len() {
            let entry = &self.index.entries[number];
            if entry.is_top() && !self.is_left_out(number) {
                self.give_name(entry, &mut named)?;
            }
        }
        Ok(named)
    }

    /// What has another name here than at the sender.
    pub(super) fn renamed(&self, rules: NameRules) -> Vec<Renamed> {
        let made = self.index.entries.iter().zip(&self.fates).filter(|(_, fate)| **fate == Fate::Made);
        let renamed = made.map(|(entry, _)| entry).filter(|entry| rules.rename(&entry.name));
        renamed.map(|entry| Renamed { name: printable(&entry.name), path: self.final_path(entry) }).collect()
    }

    fn give_name(&self, entry: &Entry, named: &mut Named) -> Result<()> {
        let (part, path) = (self.part_path(entry), self.final_path(entry));
        if self.named && (fs::symlink_metadata(&part).is_err() || is_same_file(&part, &path)) {
            named.paths.push(path);
            return Ok(());
        }
        let is_free = match fs::symlink_metadata(&path) {
            Ok(meta) => self.overwrite && entry.bytes.is_some() && can_be_replaced(&meta),
            Err(_) => true,
        };
        match if is_free {
            rename(&part, &path, self.overwrite || entry.bytes.is_none())
        } else {
            Err(io::ErrorKind::AlreadyExists.into())
        } {
            Ok(()) => {
                if entry.bytes.is_none() {
                    set_mode_and_time(&path, entry, self.umask)
                        .map_err(|source| failed("set the time of", &path, source))?;
                }
                named.paths.push(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                named.is_kept = true;
                let why = format!("it came meanwhile; what was received is {}", shown(&part));
                named.left_out.push(LeftOut { path, why });
            }
            Err(error) => return Err(failed("give its name to", &part, error)),
        }
        Ok(())
    }
}

fn set_mode_and_time(path: &Path, entry: &Entry, umask: u16) -> io::Result<()> {
    // Directories too are opened for this, which some systems do not do: their time is then the time of arrival.
    match File::open(path) {
        Ok(file) => file.set_modified(modified(entry).unwrap_or_else(SystemTime::now))?,
        Err(error) if entry.bytes.is_some() => return Err(error),
        Err(_) => {}
    }
    set_mode(path, entry.mode & !umask)
}

/// Where a file may replace what is there: a file, or a link; never a directory, a device, a socket or a named pipe.
pub(super) fn can_be_replaced(there: &fs::Metadata) -> bool {
    there.is_file() || there.is_symlink()
}
