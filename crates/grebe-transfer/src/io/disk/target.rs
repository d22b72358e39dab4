//! The received files: they lie in a folder of ours, where no name of a peer leads, until everything is whole.
//!
//! ```text
//!  DIRECTORY/.grebe-partial/<name of the content>/journal    what is safe on the disk
//!                                                 status     what became of each file at the sender
//!                                                 tree/...   the files and directories, under their names
//! ```

mod folder;
mod naming;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) use self::folder::Folder;
pub(in crate::io) use self::naming::Named;
use super::FileStatus;
use super::directory::{Directory, Metadata};
use super::groups::GROUP_BYTES;
use super::system::{failed, free_bytes, is_about_the_name, join, read_exact_at, umask, write_all_at};
use crate::error::{Error, Result};
use crate::proto::index::{Entry, Index};
use crate::proto::ranges::RangeSet;

/// The files that content is written to. They have their full length from the beginning, with holes.
pub(super) struct Target {
    directory: Arc<Directory>,
    /// Of the directory, for people.
    path: PathBuf,
    folder: Folder,
    index: Index,
    overwrite: bool,
    /// Of each entry of the index.
    fates: Vec<Fate>,
    /// What has bytes, in the order of the content: files, and last their statuses.
    files: Vec<TargetFile>,
    open: Option<(usize, File)>,
    /// Files that were written to and closed since they were last asked for.
    closed: Vec<File>,
    /// The bits of a mode that the user does not want on new files.
    umask: u16,
    /// Content that is not what is there already.
    differing: RangeSet,
    /// Some files may have their final names already.
    named: bool,
}

/// Whether an entry is made here.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    Made,
    /// It is not, and why.
    LeftOut(String),
    /// The directory that it is in is not.
    Inside,
    /// A file of its name, length and time is there already.
    There,
    /// One of its name and length is there with another time: the bytes tell.
    Compared,
}

struct TargetFile {
    /// In the folder; of one that is compared in the directory.
    name: PathBuf,
    /// Where it begins in the content.
    start: u64,
    bytes: u64,
    is_left_out: bool,
    /// It is there already, and what comes is compared with it.
    is_compared: bool,
}

impl Target {
    /// Creates all files and directories in the folder. What cannot have its name here is left out.
    ///
    /// # Errors
    /// [`Error::Exists`] where nothing is left to create; [`Error::NoRoom`]; [`Error::File`].
    pub(super) fn create(
        directory: &Arc<Directory>,
        path: &Path,
        folder: Folder,
        index: Index,
        index_bytes: u64,
        overwrite: bool,
    ) -> Result<Self> {
        let mut target = Self::place(directory, path, folder, index, overwrite)?;
        target.fill(index_bytes).inspect_err(|_| target.remove_folder())?;
        Ok(target)
    }

    fn fill(&mut self, index_bytes: u64) -> Result<()> {
        self.leave_out_what_exists();
        if let Some(path) = self.all_exist() {
            return Err(Error::Exists { path });
        }
        // A full disk is better reported now than near the end.
        let needed_bytes = self.wanted_bytes();
        if let Some(free_bytes) = free_bytes(&self.path).filter(|free_bytes| *free_bytes < needed_bytes) {
            return Err(Error::NoRoom { path: self.path.clone(), free_bytes, needed_bytes });
        }
        let own = self.folder.directory();
        own.create_directory(TREE.as_ref(), 0o700)
            .map_err(|source| failed("create", &self.folder.path_of(TREE), source))?;
        for number in 0..self.index.entries.len() {
            self.make(number)?;
        }
        self.lay_out(index_bytes);
        let made = self.folder.directory().create_file(STATUS.as_ref(), 0o600);
        made.and_then(|file| file.set_len(self.index.files()))
            .map_err(|source| failed("create", &self.folder.path_of(STATUS), source))?;
        Ok(())
    }

    /// Finds what an earlier session left; `None` where it has changed since. `named`: everything was whole, and some files may
    /// have their final names.
    pub(super) fn reopen(
        directory: &Arc<Directory>,
        path: &Path,
        folder: Folder,
        index: Index,
        index_bytes: u64,
        overwrite: bool,
        named: bool,
    ) -> Option<Self> {
        let mut target = Self::place(directory, path, folder, index, overwrite).ok()?;
        target.named = named;
        if !named {
            target.leave_out_what_exists();
        }
        for number in 0..target.index.entries.len() {
            let entry = &target.index.entries[number];
            let (part, there) = (target.part(entry), target.there(entry));
            let is_there = part.is_some_and(|part| part.is_of(entry))
                || named && there.is_some_and(|there| there.is_of(entry));
            if is_there {
                continue;
            }
            if named {
                target.fates[number] = Fate::LeftOut("it was left out before".to_owned());
                continue;
            }
            if part.is_some() {
                return None;
            }
            // What could not be made then cannot be made now.
            target.make(number).ok().filter(|()| target.is_left_out(number))?;
        }
        target.lay_out(index_bytes);
        let status = target.folder.directory().metadata(STATUS.as_ref());
        status.is_ok_and(|status| status.bytes == target.index.files()).then_some(target)
    }

    /// Writes content to its place in the files. What belongs to the index, or to no file here, is skipped; `false` where something
    /// was left out.
    pub(super) fn write(&mut self, mut at: u64, mut bytes: &[u8]) -> Result<bool> {
        let mut is_all = true;
        let index_end = self.files.first().map_or(u64::MAX, |first| first.start);
        let skip = index_end.saturating_sub(at).min(bytes.len() as u64);
        (at, bytes) = (at + skip, &bytes[skip as usize..]);
        while !bytes.is_empty() {
            let number = self.files.partition_point(|file| file.start + file.bytes <= at);
            let Some(file) = self.files.get(number) else { return Ok(is_all) };
            let take = (file.start + file.bytes - at).min(bytes.len() as u64) as usize;
            let (within, is_left_out) = (at - file.start, file.is_left_out);
            if file.is_compared {
                let mut there = vec![0; take];
                self.read(at, &mut there);
                if there != bytes[..take] {
                    self.differing.insert(at..at + take as u64);
                }
            }
            is_all &= !is_left_out;
            if !is_left_out {
                let file = self.opened(number)?;
                write_all_at(file, &bytes[..take], within)
                    .map_err(|source| failed("write", &self.path_of(&self.files[number]), source))?;
            }
            (at, bytes) = (at + take as u64, &bytes[take..]);
        }
        Ok(is_all)
    }

    /// Removes the folder with all that is in it.
    pub(super) fn remove_folder(&self) {
        self.folder.remove(&self.directory);
    }

    /// Reads back what was written; zeros for what is not there.
    pub(super) fn read(&self, mut at: u64, mut bytes: &mut [u8]) {
        bytes.fill(0);
        while let Some(file) =
            self.files.get(self.files.partition_point(|file| file.start + file.bytes <= at))
        {
            let before = file.start.saturating_sub(at).min(bytes.len() as u64);
            (at, bytes) = (at + before, &mut bytes[before as usize..]);
            let take = (file.start + file.bytes).saturating_sub(at).min(bytes.len() as u64) as usize;
            if take == 0 {
                return;
            }
            if !file.is_left_out || file.is_compared {
                // What cannot be read has another hash than what was sent.
                let within = if file.is_compared { &self.directory } else { self.folder.directory() };
                let _ = within
                    .read_file(&file.name)
                    .and_then(|opened| read_exact_at(&opened, &mut bytes[..take], at - file.start));
            }
            (at, bytes) = (at + take as u64, &mut bytes[take..]);
        }
    }

    /// Groups that need not come, since all in them is left out or there already; and groups of which the hash is enough, since it tells
    /// whether what is there is the same.
    pub(super) fn spared_groups(&self) -> [RangeSet; 2] {
        [false, true].map(|is_compared| {
            let mut content = RangeSet::default();
            let spared = self.files.iter().filter(|file| file.is_left_out && file.is_compared == is_compared);
            spared.for_each(|file| {
                content.insert(file.start..file.start + file.bytes);
            });
            let mut groups = RangeSet::default();
            for range in content.iter() {
                let whole = range.start.div_ceil(GROUP_BYTES)..range.end / GROUP_BYTES;
                groups.insert(whole.start.min(whole.end)..whole.end);
            }
            groups
        })
    }

    /// Where the statuses begin in the content.
    pub(super) fn statuses_start(&self) -> u64 {
        self.files.last().map_or(u64::MAX, |statuses| statuses.start)
    }

    /// Takes modes and times from another list of the same files.
    pub(super) fn take_modes(&mut self, index: Index) {
        let names = |index: &Index| {
            index.entries.iter().map(|entry| (entry.name.clone(), entry.bytes)).collect::<Vec<_>>()
        };
        if names(&index) == names(&self.index) {
            self.index = index;
        }
    }

    /// Files that were written to since the last call: to be flushed.
    pub(super) fn take_dirty(&mut self) -> Vec<File> {
        let mut dirty = std::mem::take(&mut self.closed);
        if let Some((_, file)) = &self.open
            && let Ok(file) = file.try_clone()
        {
            dirty.push(file);
        }
        dirty
    }

    /// Files that were written to and closed since [`take_dirty`](Self::take_dirty).
    pub(super) fn closed(&self) -> usize {
        self.closed.len()
    }

    /// Everything has come: removes files that changed at the sender, and those in `damaged`, content whose hash was another one.
    ///
    /// # Errors
    /// [`Error::HashDiffers`] where the statuses are damaged; [`Error::File`].
    pub(super) fn settle(&mut self, damaged: &RangeSet) -> Result<()> {
        (self.open, self.closed) = (None, Vec::new());
        if damaged.touches(&(self.statuses_start()..u64::MAX)) {
            return Err(Error::HashDiffers);
        }
        let mut statuses = Vec::new();
        let open = self.folder.directory().read_file(STATUS.as_ref());
        open.and_then(|mut open| open.read_to_end(&mut statuses))
            .map_err(|source| failed("read", &self.folder.path_of(STATUS), source))?;
        let ranges: HashMap<&Path, Range<u64>> =
            self.files.iter().map(|file| (&*file.name, file.start..file.start + file.bytes)).collect();
        let files = self.index.entries.iter().enumerate().filter(|(_, entry)| entry.bytes.is_some());
        for ((number, entry), status) in files.zip(statuses) {
            let part = part_name(entry);
            if self.fates[number] == Fate::Compared {
                let range = ranges.get(&*name_of(entry));
                let is_same = range.is_some_and(|it| !damaged.touches(it) && !self.differing.touches(it));
                self.fates[number] = match FileStatus::of(status) {
                    FileStatus::Good if is_same => Fate::There,
                    FileStatus::Good => Fate::LeftOut(EXISTS.to_owned()),
                    status => Fate::LeftOut(status.why().to_owned()),
                };
                continue;
            }
            let why = match FileStatus::of(status) {
                FileStatus::Good if ranges.get(&*part).is_some_and(|range| damaged.touches(range)) => {
                    "what came is not what was read: send it again"
                }
                FileStatus::Good => continue,
                status => status.why(),
            };
            if self.fates[number] == Fate::Made {
                match self.folder.directory().remove_file(&part) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(failed("remove", &self.folder.path_of(&part), error));
                    }
                    _ => self.fates[number] = Fate::LeftOut(why.to_owned()),
                }
            }
        }
        Ok(())
    }

    fn place(
        directory: &Arc<Directory>,
        path: &Path,
        folder: Folder,
        index: Index,
        overwrite: bool,
    ) -> Result<Self> {
        Ok(Self {
            directory: directory.clone(),
            path: path.to_path_buf(),
            overwrite,
            fates: vec![Fate::Made; index.entries.len()],
            index,
            files: Vec::new(),
            open: None,
            closed: Vec::new(),
            differing: RangeSet::default(),
            umask: umask(folder.directory())
                .map_err(|source| failed("create a file in", &folder.path_of(""), source))?,
            folder,
            named: false,
        })
    }

    fn lay_out(&mut self, index_bytes: u64) {
        let mut start = index_bytes;
        for (number, entry) in self.index.entries.iter().enumerate() {
            if let Some(bytes) = entry.bytes.filter(|bytes| *bytes > 0) {
                let is_compared = self.fates[number] == Fate::Compared;
                let name = if is_compared { name_of(entry) } else { part_name(entry) };
                let is_left_out = self.is_left_out(number);
                self.files.push(TargetFile { name, start, bytes, is_left_out, is_compared });
                start += bytes;
            }
        }
        let (name, bytes) = (STATUS.into(), self.index.files());
        self.files.push(TargetFile { name, start, bytes, is_left_out: false, is_compared: false });
    }

    /// Creates a file or a directory in the folder, unless its name or that of its directory cannot be had.
    fn make(&mut self, number: usize) -> Result<()> {
        let entry = &self.index.entries[number];
        if self.is_left_out(number) {
            return Ok(());
        }
        let (own, name) = (self.folder.directory(), part_name(entry));
        if !entry.is_top() && name.parent().is_some_and(|above| own.metadata(above).is_err()) {
            self.fates[number] = Fate::Inside;
            return Ok(());
        }
        let made = match entry.bytes {
            None => own.create_directory(&name, 0o777),
            Some(bytes) => own.create_file(&name, 0o666).and_then(|file| file.set_len(bytes)),
        };
        match made {
            Ok(()) => Ok(()),
            Err(error) if is_about_the_name(&error) => {
                self.fates[number] = Fate::LeftOut(format!("this system cannot have such a name: {error}"));
                Ok(())
            }
            Err(error) => Err(failed("create", &self.folder.path_of(&name), error)),
        }
    }

    fn leave_out_what_exists(&mut self) {
        for number in 0..self.index.entries.len() {
            let entry = &self.index.entries[number];
            if !entry.is_top() {
                continue;
            }
            let Some(there) = self.there(entry) else { continue };
            let is_long_as = entry.bytes.is_some() && there.is_of(entry);
            if is_long_as && (there.bytes == 0 || has_time(&there, entry)) {
                self.fates[number] = Fate::There;
            } else if is_long_as && !self.overwrite {
                self.fates[number] = Fate::Compared;
            } else if !(self.overwrite && entry.bytes.is_some() && naming::can_be_replaced(&there)) {
                self.fates[number] = Fate::LeftOut(EXISTS.to_owned());
            }
        }
    }

    /// One of the paths that exist with another content, where all do.
    pub(super) fn all_exist(&self) -> Option<PathBuf> {
        let tops = self.index.entries.iter().zip(&self.fates).filter(|(entry, _)| entry.is_top());
        let mut exists = None;
        for (entry, fate) in tops {
            if !matches!(fate, Fate::LeftOut(why) if why == EXISTS) {
                return None;
            }
            exists.get_or_insert_with(|| self.final_path(entry));
        }
        exists
    }

    fn is_left_out(&self, number: usize) -> bool {
        self.fates[number] != Fate::Made
    }

    fn wanted_bytes(&self) -> u64 {
        let wanted = |(entry, fate): (&Entry, &Fate)| entry.bytes.filter(|_| *fate == Fate::Made);
        self.index.entries.iter().zip(&self.fates).filter_map(wanted).sum()
    }

    fn opened(&mut self, number: usize) -> Result<&File> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
            let file = &self.files[number];
            let file = self.folder.directory().write_file(&file.name);
            let file = file.map_err(|source| failed("open", &self.path_of(&self.files[number]), source))?;
            if let Some((_, before)) = self.open.replace((number, file)) {
                self.closed.push(before);
            }
        }
        self.open.as_ref().map(|(_, file)| file).ok_or(Error::HashDiffers)
    }

    /// What stands in the folder.
    fn part(&self, entry: &Entry) -> Option<Metadata> {
        self.folder.directory().metadata(&part_name(entry)).ok()
    }

    /// What stands where it is to be.
    fn there(&self, entry: &Entry) -> Option<Metadata> {
        self.directory.metadata(&name_of(entry)).ok()
    }

    fn path_of(&self, file: &TargetFile) -> PathBuf {
        if file.is_compared { self.path.join(&file.name) } else { self.folder.path_of(&file.name) }
    }

    fn final_path(&self, entry: &Entry) -> PathBuf {
        self.path.join(name_of(entry))
    }
}

const TREE: &str = "tree";
const STATUS: &str = "status";
const EXISTS: &str = "it exists: move it away, or say that it may be replaced";

/// In the directory.
fn name_of(entry: &Entry) -> PathBuf {
    join(Path::new(""), &entry.name)
}

/// In the folder.
fn part_name(entry: &Entry) -> PathBuf {
    join(TREE.as_ref(), &entry.name)
}

fn has_time(there: &Metadata, entry: &Entry) -> bool {
    let modified = time_of(entry.modified_unix_ns);
    modified.is_some() && time_of(there.modified_unix_ns) == modified
}

/// As finely as this system has times.
fn time_of(unix_ns: i64) -> Option<SystemTime> {
    let age = Duration::from_nanos(unix_ns.unsigned_abs());
    if unix_ns < 0 { UNIX_EPOCH.checked_sub(age) } else { UNIX_EPOCH.checked_add(age) }
}

#[cfg(test)]
mod tests;
