//! The received files: they lie in a folder of ours, where no name of a peer leads, until everything is whole.
//!
//! ```text
//!  DIRECTORY/.grebe-partial/<name of the content>/journal    what is safe on the disk
//!                                                 status     what became of each file at the sender
//!                                                 tree/...   the files and directories, under their names
//! ```

mod naming;

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(in crate::io) use self::naming::Named;
use super::FileStatus;
use super::groups::GROUP_BYTES;
use super::system::{
    failed, free_bytes, is_about_the_name, is_entry, join, private_directory, read_exact_at, remove, umask,
    write_all_at,
};
use crate::error::{Error, Result};
use crate::proto::index::{Entry, Index};
use crate::proto::ranges::RangeSet;

/// The files that content is written to. They have their full length from the beginning, with holes.
pub(super) struct Target {
    directory: PathBuf,
    folder: PathBuf,
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
    path: PathBuf,
    /// Where it begins in the content.
    start: u64,
    bytes: u64,
    is_left_out: bool,
    /// It is there already, and what comes is compared with it.
    is_compared: bool,
}

impl Target {
    /// The folder for a content; it is made if `is_new`, and what was in it is removed.
    ///
    /// # Errors
    /// [`Error::File`] where it cannot be made, or where something else has its name.
    pub(super) fn folder(directory: &Path, content: &[u8; 32], is_new: bool) -> Result<PathBuf> {
        let ours = directory.join(PARTIAL);
        let name: String = content[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let folder = ours.join(name);
        if is_new {
            if let Err(error) = private_directory(&ours)
                && error.kind() != io::ErrorKind::AlreadyExists
            {
                return Err(failed("create", &ours, error));
            }
            if !fs::symlink_metadata(&ours).is_ok_and(|meta| meta.is_dir()) {
                let why = io::Error::other("it is not a directory of grebe's: move it away");
                return Err(failed("use", &ours, why));
            }
            if fs::symlink_metadata(&folder).is_ok() {
                remove(&folder).map_err(|source| failed("remove", &folder, source))?;
            }
            private_directory(&folder).map_err(|source| failed("create", &folder, source))?;
        }
        Ok(folder)
    }

    /// Removes the folder with all that is in it, and the one around it where nothing else is in that.
    pub(super) fn remove_folder(folder: &Path) {
        // What cannot be removed is in nobody's way.
        let _ = fs::remove_dir_all(folder);
        let _ = folder.parent().map(fs::remove_dir);
    }

    /// Creates all files and directories in the folder. What cannot have its name here is left out.
    ///
    /// # Errors
    /// [`Error::Exists`] where nothing is left to create; [`Error::NoRoom`]; [`Error::File`].
    pub(super) fn create(
        directory: &Path,
        folder: &Path,
        index: Index,
        index_bytes: u64,
        overwrite: bool,
    ) -> Result<Self> {
        let mut target = Self::place(directory, folder, index, overwrite)?;
        target.leave_out_what_exists();
        if let Some(path) = target.all_exist() {
            return Err(Error::Exists { path });
        }
        // A full disk is better reported now than near the end.
        let needed_bytes = target.wanted_bytes();
        if let Some(free_bytes) = free_bytes(directory).filter(|free_bytes| *free_bytes < needed_bytes) {
            return Err(Error::NoRoom { path: directory.to_path_buf(), free_bytes, needed_bytes });
        }
        let tree = folder.join(TREE);
        fs::create_dir(&tree).map_err(|source| failed("create", &tree, source))?;
        for number in 0..target.index.entries.len() {
            target.make(number)?;
        }
        target.lay_out(index_bytes);
        let status = folder.join(STATUS);
        let made = File::create_new(&status).and_then(|file| file.set_len(target.index.files()));
        made.map_err(|source| failed("create", &status, source))?;
        Ok(target)
    }

    /// Finds what an earlier session left; `None` where it has changed since. `named`: everything was whole, and some files may
    /// have their final names.
    pub(super) fn reopen(
        directory: &Path,
        folder: &Path,
        index: Index,
        index_bytes: u64,
        overwrite: bool,
        named: bool,
    ) -> Option<Self> {
        let mut target = Self::place(directory, folder, index, overwrite).ok()?;
        target.named = named;
        if !named {
            target.leave_out_what_exists();
        }
        for number in 0..target.index.entries.len() {
            let entry = &target.index.entries[number];
            let is_there = is_entry(&target.part_path(entry), entry)
                || named && is_entry(&target.final_path(entry), entry);
            if is_there {
                continue;
            }
            if named {
                target.fates[number] = Fate::LeftOut("it was left out before".to_owned());
                continue;
            }
            if fs::symlink_metadata(target.part_path(entry)).is_ok() {
                return None;
            }
            // What could not be made then cannot be made now.
            target.make(number).ok().filter(|()| target.is_left_out(number))?;
        }
        target.lay_out(index_bytes);
        fs::metadata(folder.join(STATUS))
            .is_ok_and(|meta| meta.len() == target.index.files())
            .then_some(target)
    }

    /// Writes content to its place in the files. What belongs to the index, or to no file here, is skipped.
    pub(super) fn write(&mut self, mut at: u64, mut bytes: &[u8]) -> Result<()> {
        let index_end = self.files.first().map_or(u64::MAX, |first| first.start);
        let skip = index_end.saturating_sub(at).min(bytes.len() as u64);
        (at, bytes) = (at + skip, &bytes[skip as usize..]);
        while !bytes.is_empty() {
            let number = self.files.partition_point(|file| file.start + file.bytes <= at);
            let Some(file) = self.files.get(number) else { return Ok(()) };
            let take = (file.start + file.bytes - at).min(bytes.len() as u64) as usize;
            let (path, within, is_left_out) = (file.path.clone(), at - file.start, file.is_left_out);
            if file.is_compared {
                let mut there = vec![0; take];
                self.read(at, &mut there);
                if there != bytes[..take] {
                    self.differing.insert(at..at + take as u64);
                }
            }
            if !is_left_out {
                let file = self.opened(number)?;
                write_all_at(file, &bytes[..take], within)
                    .map_err(|source| failed("write", &path, source))?;
            }
            (at, bytes) = (at + take as u64, &bytes[take..]);
        }
        Ok(())
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
                let _ = File::open(&file.path)
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
        let path = self.folder.join(STATUS);
        let statuses = fs::read(&path).map_err(|source| failed("read", &path, source))?;
        let ranges: HashMap<&Path, Range<u64>> =
            self.files.iter().map(|file| (&*file.path, file.start..file.start + file.bytes)).collect();
        let files = self.index.entries.iter().enumerate().filter(|(_, entry)| entry.bytes.is_some());
        for ((number, entry), status) in files.zip(statuses) {
            let path = self.part_path(entry);
            if self.fates[number] == Fate::Compared {
                let range = ranges.get(&*self.final_path(entry));
                let is_same = range.is_some_and(|it| !damaged.touches(it) && !self.differing.touches(it));
                self.fates[number] = match FileStatus::of(status) {
                    FileStatus::Good if is_same => Fate::There,
                    FileStatus::Good => Fate::LeftOut(EXISTS.to_owned()),
                    status => Fate::LeftOut(status.why().to_owned()),
                };
                continue;
            }
            let why = match FileStatus::of(status) {
                FileStatus::Good if ranges.get(&*path).is_some_and(|range| damaged.touches(range)) => {
                    "what came is not what was read: send it again"
                }
                FileStatus::Good => continue,
                status => status.why(),
            };
            if self.fates[number] == Fate::Made {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(failed("remove", &path, error));
                    }
                    _ => self.fates[number] = Fate::LeftOut(why.to_owned()),
                }
            }
        }
        Ok(())
    }

    fn place(directory: &Path, folder: &Path, index: Index, overwrite: bool) -> Result<Self> {
        Ok(Self {
            directory: directory.to_path_buf(),
            folder: folder.to_path_buf(),
            overwrite,
            fates: vec![Fate::Made; index.entries.len()],
            index,
            files: Vec::new(),
            open: None,
            closed: Vec::new(),
            differing: RangeSet::default(),
            umask: umask(folder).map_err(|source| failed("create a file in", folder, source))?,
            named: false,
        })
    }

    fn lay_out(&mut self, index_bytes: u64) {
        let mut start = index_bytes;
        for (number, entry) in self.index.entries.iter().enumerate() {
            if let Some(bytes) = entry.bytes.filter(|bytes| *bytes > 0) {
                let is_compared = self.fates[number] == Fate::Compared;
                let path = if is_compared { self.final_path(entry) } else { self.part_path(entry) };
                let is_left_out = self.is_left_out(number);
                self.files.push(TargetFile { path, start, bytes, is_left_out, is_compared });
                start += bytes;
            }
        }
        let path = self.folder.join(STATUS);
        let bytes = self.index.files();
        self.files.push(TargetFile { path, start, bytes, is_left_out: false, is_compared: false });
    }

    /// Creates a file or a directory in the folder, unless its name or that of its directory cannot be had.
    fn make(&mut self, number: usize) -> Result<()> {
        let entry = &self.index.entries[number];
        if self.is_left_out(number) {
            return Ok(());
        }
        let path = self.part_path(entry);
        if !entry.is_top() && path.parent().is_some_and(|above| fs::symlink_metadata(above).is_err()) {
            self.fates[number] = Fate::Inside;
            return Ok(());
        }
        let made = match entry.bytes {
            None => fs::create_dir(&path),
            // `create_new` does not follow a link that somebody put there.
            Some(bytes) => File::create_new(&path).and_then(|file| file.set_len(bytes)),
        };
        match made {
            Ok(()) => Ok(()),
            Err(error) if is_about_the_name(&error) => {
                self.fates[number] = Fate::LeftOut(format!("this system cannot have such a name: {error}"));
                Ok(())
            }
            Err(error) => Err(failed("create", &path, error)),
        }
    }

    fn leave_out_what_exists(&mut self) {
        for number in 0..self.index.entries.len() {
            let entry = &self.index.entries[number];
            if !entry.is_top() {
                continue;
            }
            let Ok(meta) = fs::symlink_metadata(self.final_path(entry)) else { continue };
            let is_long_as = meta.is_file() && entry.bytes == Some(meta.len());
            if is_long_as && (meta.len() == 0 || has_time(&meta, entry)) {
                self.fates[number] = Fate::There;
            } else if is_long_as && !self.overwrite {
                self.fates[number] = Fate::Compared;
            } else if !(self.overwrite && entry.bytes.is_some() && naming::can_be_replaced(&meta)) {
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
            let path = &self.files[number].path;
            let file =
                OpenOptions::new().write(true).open(path).map_err(|source| failed("open", path, source))?;
            if let Some((_, before)) = self.open.replace((number, file)) {
                self.closed.push(before);
            }
        }
        self.open.as_ref().map(|(_, file)| file).ok_or(Error::HashDiffers)
    }

    fn part_path(&self, entry: &Entry) -> PathBuf {
        join(&self.folder.join(TREE), &entry.name)
    }

    fn final_path(&self, entry: &Entry) -> PathBuf {
        join(&self.directory, &entry.name)
    }
}

const PARTIAL: &str = ".grebe-partial";
const TREE: &str = "tree";
const STATUS: &str = "status";
const EXISTS: &str = "it exists: move it away, or say that it may be replaced";

fn has_time(meta: &fs::Metadata, entry: &Entry) -> bool {
    let modified = modified(entry);
    modified.is_some() && meta.modified().ok() == modified
}

fn modified(entry: &Entry) -> Option<SystemTime> {
    let age = Duration::from_nanos(entry.modified_unix_ns.unsigned_abs());
    if entry.modified_unix_ns < 0 { UNIX_EPOCH.checked_sub(age) } else { UNIX_EPOCH.checked_add(age) }
}

#[cfg(test)]
mod tests;
