//! The received files: they lie in a folder of ours, where no name of a peer leads, until everything is whole.
//!
//! ```text
//!  DIRECTORY/.grebe-partial/<name of the content>/journal    what is safe on the disk
//!                                                 status     what became of each file at the sender
//!                                                 tree/...   the files and directories, under their names
//! ```

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::system::{
    failed, free_bytes, is_about_the_name, is_entry, is_renamed, is_same_file, join, private_directory,
    read_exact_at, remove, rename, set_mode, umask, write_all_at,
};
use super::{FileStatus, LeftOut, Renamed};
use crate::error::{Error, Result, shown};
use crate::proto::index::{Entry, Index, printable};
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
}

struct TargetFile {
    path: PathBuf,
    /// Where it begins in the content.
    start: u64,
    bytes: u64,
    is_left_out: bool,
}

/// What came of giving files their names.
#[derive(Debug, Default)]
pub(in crate::io) struct Named {
    /// What the sender named, where it is now.
    pub(in crate::io) paths: Vec<PathBuf>,
    pub(in crate::io) left_out: Vec<LeftOut>,
    pub(in crate::io) renamed: Vec<Renamed>,
    /// Something whole got no name, and waits for a later session.
    pub(super) is_kept: bool,
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
            if !file.is_left_out {
                // What cannot be read has another hash than what was sent.
                let _ = File::open(&file.path)
                    .and_then(|opened| read_exact_at(&opened, &mut bytes[..take], at - file.start));
            }
            (at, bytes) = (at + take as u64, &mut bytes[take..]);
        }
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

    /// Gives what is good its mode, its time and its name.
    ///
    /// # Errors
    /// [`Error::File`] where that fails.
    pub(super) fn give_names(&mut self) -> Result<Named> {
        let mut named = Named::default();
        for (entry, fate) in self.index.entries.iter().zip(&self.fates) {
            if *fate == Fate::Made && is_renamed(&entry.name) {
                named.renamed.push(Renamed { name: printable(&entry.name), path: self.final_path(entry) });
            }
            match fate {
                Fate::LeftOut(why) => {
                    named.left_out.push(LeftOut { path: self.final_path(entry), why: why.clone() });
                }
                Fate::There => named.paths.push(self.final_path(entry)),
                Fate::Made | Fate::Inside => {}
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

    fn give_name(&self, entry: &Entry, named: &mut Named) -> Result<()> {
        let (part, path) = (self.part_path(entry), self.final_path(entry));
        if self.named && (fs::symlink_metadata(&part).is_err() || is_same_file(&part, &path)) {
            named.paths.push(path);
            return Ok(());
        }
        let is_free = match fs::symlink_metadata(&path) {
            Ok(meta) => self.overwrite && entry.bytes.is_some() && !meta.is_dir(),
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
            umask: umask(folder).map_err(|source| failed("create a file in", folder, source))?,
            named: false,
        })
    }

    fn lay_out(&mut self, index_bytes: u64) {
        let mut start = index_bytes;
        for (number, entry) in self.index.entries.iter().enumerate() {
            if let Some(bytes) = entry.bytes.filter(|bytes| *bytes > 0) {
                let is_left_out = self.is_left_out(number);
                self.files.push(TargetFile { path: self.part_path(entry), start, bytes, is_left_out });
                start += bytes;
            }
        }
        let path = self.folder.join(STATUS);
        self.files.push(TargetFile { path, start, bytes: self.index.files(), is_left_out: false });
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
            if is_equal(&meta, entry) {
                self.fates[number] = Fate::There;
            } else if !(self.overwrite && entry.bytes.is_some() && !meta.is_dir()) {
                self.fates[number] = Fate::LeftOut(EXISTS.to_owned());
            }
        }
    }

    /// One of the paths that exist, where all do.
    fn all_exist(&self) -> Option<PathBuf> {
        let tops = self.index.entries.iter().zip(&self.fates).filter(|(entry, _)| entry.is_top());
        let mut exists = None;
        for (entry, fate) in tops {
            if matches!(fate, Fate::Made | Fate::There) {
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

/// The same, as far as length and time tell.
fn is_equal(meta: &fs::Metadata, entry: &Entry) -> bool {
    let modified = modified(entry);
    meta.is_file()
        && entry.bytes == Some(meta.len())
        && modified.is_some()
        && meta.modified().ok() == modified
}

fn modified(entry: &Entry) -> Option<SystemTime> {
    let age = Duration::from_nanos(entry.modified_unix_ns.unsigned_abs());
    if entry.modified_unix_ns < 0 { UNIX_EPOCH.checked_sub(age) } else { UNIX_EPOCH.checked_add(age) }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> Index {
        let entry = |name: &str, bytes| Entry {
            name: name.into(),
            bytes,
            mode: 0o666,
            modified_unix_ns: 1_500_000_000,
        };
        Index {
            entries: vec![
                entry("d", None),
                entry("d/a", Some(3)),
                entry("d/b", Some(0)),
                entry("f", Some(4)),
            ],
        }
    }

    const INDEX_BYTES: u64 = 10;

    fn create(directory: &Path, overwrite: bool) -> Result<Target> {
        let folder = Target::folder(directory, &[7; 32], true)?;
        Target::create(directory, &folder, index(), INDEX_BYTES, overwrite)
    }

    fn reopen(directory: &Path, named: bool) -> Option<Target> {
        let folder = Target::folder(directory, &[7; 32], false).unwrap();
        Target::reopen(directory, &folder, index(), INDEX_BYTES, false, named)
    }

    fn finish(target: &mut Target) -> Named {
        target.settle(&RangeSet::default()).unwrap();
        let named = target.give_names().unwrap();
        Target::remove_folder(&target.folder);
        named
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn files_get_their_names_when_all_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let mut target = create(directory.path(), false).unwrap();
        target.write(5, b"indexabcdef").unwrap();
        target.write(16, b"g\0\0\0").unwrap();
        assert_eq!(names(directory.path()), [".grebe-partial"], "nothing has its name");
        let mut read = [1; 12];
        target.read(8, &mut read);
        assert_eq!(&read, b"\0\0abcdefg\0\0\0");
        assert_eq!(finish(&mut target).paths, [at("d"), at("f")]);
        assert_eq!(
            (fs::read(at("d/a")).unwrap(), fs::read(at("f")).unwrap()),
            (b"abc".to_vec(), b"defg".to_vec())
        );
        let meta = fs::metadata(at("f")).unwrap();
        assert_eq!(
            meta.modified().unwrap().duration_since(UNIX_EPOCH).unwrap(),
            Duration::from_millis(1_500)
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::write(at("own"), b"").unwrap();
            let own = fs::metadata(at("own")).unwrap().permissions().mode();
            assert_eq!(meta.permissions().mode() & 0o777, own & 0o777, "the user's umask holds");
            fs::remove_file(at("own")).unwrap();
        }
        assert_eq!(names(directory.path()), ["d", "f"]);
    }

    #[test]
    fn nothing_that_is_there_is_replaced_unasked_and_the_others_come() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["f", "f.part", "d.part"] {
            fs::write(at(name), b"precious").unwrap();
        }
        let mut target = create(directory.path(), false).unwrap();
        target.write(10, b"abcdefg\0\0\0").unwrap();
        let named = finish(&mut target);
        assert_eq!((named.paths, named.left_out.len()), (vec![at("d")], 1));
        assert_eq!(named.left_out[0].path, at("f"));
        assert!(matches!(create(directory.path(), false), Err(Error::Exists { .. })), "nothing is left");
        for name in ["f", "f.part", "d.part"] {
            assert_eq!(fs::read(at(name)).unwrap(), b"precious");
        }
        let mut target = create(directory.path(), true).unwrap();
        target.write(10, b"abcdefg\0\0\0").unwrap();
        assert_eq!(finish(&mut target).left_out[0].path, at("d"), "directories are never replaced");
        assert_eq!(fs::read(at("f")).unwrap(), b"defg");
    }

    #[test]
    fn a_file_that_is_there_with_its_length_and_time_is_no_error() {
        let directory = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let _ = fs::remove_dir_all(directory.path().join("d"));
            let mut target = create(directory.path(), false).unwrap();
            target.write(10, b"abcdefg\0\0\0").unwrap();
            let named = finish(&mut target);
            assert_eq!((named.paths.len(), named.left_out), (2, vec![]));
        }
        fs::write(directory.path().join("f"), b"EDFG").unwrap();
        let mut target = create(directory.path(), false);
        assert!(matches!(target.as_mut(), Err(Error::Exists { .. })), "another time");
    }

    #[test]
    fn what_came_meanwhile_is_not_replaced_either_and_nothing_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let mut target = create(directory.path(), false).unwrap();
        target.write(10, b"abcdefg\0\0\0").unwrap();
        fs::write(directory.path().join("f"), b"precious").unwrap();
        target.settle(&RangeSet::default()).unwrap();
        let named = target.give_names().unwrap();
        assert!(named.is_kept && named.left_out[0].why.contains("meanwhile"), "{named:?}");
        assert_eq!(fs::read(directory.path().join("f")).unwrap(), b"precious");
        assert_eq!(fs::read(target.part_path(&index().entries[3])).unwrap(), b"defg");
    }

    #[test]
    fn what_changed_at_the_sender_or_came_damaged_gets_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let mut target = create(directory.path(), false).unwrap();
        target.write(10, b"abcdefg\x01\0\0").unwrap();
        let mut damaged = RangeSet::default();
        damaged.insert(16..17);
        target.settle(&damaged).unwrap();
        let named = target.give_names().unwrap();
        assert_eq!(named.paths, [at("d")]);
        let left_out: Vec<_> = named.left_out.iter().map(|left| left.path.clone()).collect();
        assert_eq!(left_out, [at("d/a"), at("f")]);
        assert_eq!(names(&at("d")), ["b"]);
        assert!(!at("f").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_cannot_be_had_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let mut index = index();
        index.entries[0].name = vec![b'd'; 300];
        for number in 1..3 {
            index.entries[number].name = [&[b'd'; 300][..], &index.entries[number].name[1..]].concat();
        }
        let folder = Target::folder(directory.path(), &[7; 32], true).unwrap();
        let mut target = Target::create(directory.path(), &folder, index, INDEX_BYTES, false).unwrap();
        target.write(10, b"abcdefg\0\0\0").unwrap();
        let named = finish(&mut target);
        assert_eq!((named.paths, named.left_out.len()), (vec![directory.path().join("f")], 1));
    }

    #[test]
    fn an_earlier_session_is_found_only_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let target = create(directory.path(), false).unwrap();
        assert!(reopen(directory.path(), false).is_some());
        fs::write(target.part_path(&index().entries[1]), b"longer").unwrap();
        assert!(reopen(directory.path(), false).is_none());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_place_of_the_folder_is_not_followed() {
        let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(elsewhere.path(), directory.path().join(PARTIAL)).unwrap();
        assert!(create(directory.path(), false).is_err());
        assert_eq!(names(elsewhere.path()), [""; 0]);
    }

    #[test]
    fn a_kill_between_two_names_is_made_good() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let mut target = create(directory.path(), false).unwrap();
        target.write(10, b"abcdefg\0\0\0").unwrap();
        // The directory has its name, the file has both.
        let entries = index().entries;
        fs::rename(target.part_path(&entries[0]), at("d")).unwrap();
        fs::hard_link(target.part_path(&entries[3]), at("f")).unwrap();
        let mut target = reopen(directory.path(), true).unwrap();
        assert_eq!(finish(&mut target).paths, [at("d"), at("f")]);
        assert_eq!(fs::read(at("f")).unwrap(), b"defg");
        assert_eq!(names(directory.path()), ["d", "f"]);
    }
}
