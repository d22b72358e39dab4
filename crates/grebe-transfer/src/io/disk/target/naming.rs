//! Files that are whole get their names, modes and times.

use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use super::{Fate, TREE, Target, name_of, part_name, time_of};
use crate::error::{Result, shown};
use crate::io::disk::directory::{Kind, Metadata, flush, is_flushed_at_once};
use crate::io::disk::system::{NameRules, failed};
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
    /// Gives what is good its mode and its time, and brings all of it to the disk.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) where that fails.
    pub(in crate::io::disk) fn make_safe(&mut self) -> Result<()> {
        let is_at_once = self.is_flushed_at_once();
        if !is_at_once {
            flush(&self.take_dirty()).map_err(|source| failed("bring to the disk", &self.path, source))?;
        }
        let own = self.folder.directory();
        // From the inside out, because a change in a directory changes its time.
        for number in (0..self.index.entries.len()).rev() {
            let entry = &self.index.entries[number];
            // A directory that may not be written to cannot be moved.
            let is_moved_first = entry.is_top() && entry.bytes.is_none();
            if self.is_left_out(number) || is_moved_first {
                continue;
            }
            let name = part_name(entry);
            match own.dress(&name, entry.mode & !self.umask, time(entry), !is_at_once) {
                Err(error) if !(self.named && error.kind() == io::ErrorKind::NotFound) => {
                    return Err(failed("bring to the disk", &self.folder.path_of(&name), error));
                }
                _ => {}
            }
        }
        let flushed = match is_at_once {
            true => own.flush_at_once(),
            // What was removed is not to come back.
            false => own.open_below(TREE.as_ref()).and_then(|tree| tree.flush()),
        };
        flushed.map_err(|source| failed("bring to the disk", &self.path, source))
    }

    /// Gives what is good its name, and brings the names to the disk.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) where that fails.
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
        let is_at_once = self.is_flushed_at_once();
        for number in 0..self.index.entries.len() {
            let entry = &self.index.entries[number];
            if entry.is_top() && !self.is_left_out(number) {
                self.give_name(entry, is_at_once, &mut named)?;
            }
        }
        let flushed = if is_at_once { self.directory.flush_at_once() } else { self.directory.flush() };
        flushed.map_err(|source| failed("bring to the disk", &self.path, source))?;
        Ok(named)
    }

    fn is_flushed_at_once(&self) -> bool {
        is_flushed_at_once(self.fates.iter().filter(|fate| **fate == Fate::Made).count())
    }

    /// What has another name here than at the sender.
    pub(super) fn renamed(&self, rules: NameRules) -> Vec<Renamed> {
        let made = self.index.entries.iter().zip(&self.fates).filter(|(_, fate)| **fate == Fate::Made);
        let renamed = made.map(|(entry, _)| entry).filter(|entry| rules.rename(&entry.name));
        renamed.map(|entry| Renamed { name: printable(&entry.name), path: self.final_path(entry) }).collect()
    }

    fn give_name(&self, entry: &Entry, is_flushed_later: bool, named: &mut Named) -> Result<()> {
        let (name, part, path) = (name_of(entry), part_name(entry), self.final_path(entry));
        let own = self.folder.directory();
        let (now, there) = (self.part(entry), self.there(entry));
        let has_both_names =
            now.zip(there).is_some_and(|(now, there)| there.has_identity() && there.is_same_thing(&now));
        if self.named && (now.is_none() || has_both_names) {
            named.paths.push(path);
            return Ok(());
        }
        // It stays open: under its new name others may put something else in its place.
        let moved = entry.bytes.is_none().then(|| own.open_below(&part)).transpose();
        let moved = moved.map_err(|source| failed("open", &self.folder.path_of(&part), source))?;
        let is_replaced = self.overwrite && entry.bytes.is_some();
        let kind = if entry.bytes.is_some() { Kind::File } else { Kind::Directory };
        let renamed = if is_replaced && there.is_none_or(|there| can_be_replaced(&there)) {
            own.rename(&part, &self.directory, &name)
        } else if there.is_some() {
            Err(io::ErrorKind::AlreadyExists.into())
        } else {
            own.rename_to_free(&part, &self.directory, &name, kind)
        };
        match renamed {
            Ok(()) => {
                if let Some(directory) = moved {
                    directory
                        .dress_itself(entry.mode & !self.umask, time(entry), !is_flushed_later)
                        .map_err(|source| failed("set the time of", &path, source))?;
                }
                named.paths.push(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                named.is_kept = true;
                let why =
                    format!("it came meanwhile; what was received is {}", shown(&self.folder.path_of(&part)));
                named.left_out.push(LeftOut { path, why });
            }
            Err(error) => return Err(failed("give its name to", &self.folder.path_of(&part), error)),
        }
        Ok(())
    }
}

fn time(entry: &Entry) -> SystemTime {
    time_of(entry.modified_unix_ns).unwrap_or_else(SystemTime::now)
}

/// Where a file may replace what is there: a file, or a link; never a directory, a device, a socket or a named pipe.
pub(super) fn can_be_replaced(there: &Metadata) -> bool {
    matches!(there.kind, Kind::File | Kind::Symlink)
}
