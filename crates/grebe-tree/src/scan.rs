//! Walks the sources.
//!
//! All names of a directory precede anything in its subdirectories, so a receiver knows when a directory is
//! complete. The walk is depth first, with names in byte order. A waiting directory takes 24 bytes.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crossbeam_channel::Sender;
use grebe_packet::Cancel;

use crate::directories::{Directories, Listed, NOT_LISTED, Place};
use crate::exclude::Exclude;
use crate::name::{self, DEPTH_MAX, bytes_of};
use crate::options::Options;
use crate::progress::{Progress, add};
use crate::system::{self, Directory, Kind, Metadata, Name, reason};
use crate::wire::{
    ATTRIBUTES_BYTES_MAX, Attribute, DirectoryId, Entry, EntryId, EntryKind, TOP, TOUCHED_BYTES,
    bytes_of_attributes,
};

/// Output of the walk.
#[derive(Debug)]
pub(crate) enum Scanned {
    Names(Names),
    /// A skipped name.
    LeftOut {
        name: Vec<u8>,
        why: String,
    },
    /// End of the walk.
    Done {
        is_complete: bool,
    },
}

/// Some names of one directory.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) directory: DirectoryId,
    pub(crate) found: Vec<Found>,
    pub(crate) is_last: bool,
    pub(crate) is_incomplete: bool,
}

#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) id: EntryId,
    pub(crate) entry: Entry,
    /// Directory of the name.
    pub(crate) place: Place,
    /// A source that is a link and stands for its target.
    pub(crate) follows: bool,
}

/// Whether the contents are meant, not the directory itself.
pub(crate) fn means_contents(source: &Path) -> bool {
    let bytes = source.as_os_str().as_encoded_bytes();
    let separator = |byte: u8| byte == b'/' || cfg!(windows) && byte == b'\\';
    source.file_name().is_none()
        || bytes.last().is_some_and(|byte| separator(*byte))
        || matches!(bytes, [.., before, b'.'] if separator(*before))
}

pub(crate) struct Scanner<'a> {
    options: &'a Options,
    exclude: Exclude,
    directories: &'a Directories,
    progress: &'a Progress,
    cancel: &'a Cancel,
    out: Sender<Scanned>,
    next_entry: EntryId,
    next_directory: DirectoryId,
    to_enter: Vec<ToEnter>,
    linked: HashMap<(u64, u64), Linked>,
    is_complete: bool,
}

#[derive(Debug)]
struct ToEnter {
    directory: DirectoryId,
    place: Place,
    /// Device of the source.
    device: u64,
    /// On another file system than the source, so its names are not read.
    is_skipped: bool,
}

/// A source after its lookup.
enum Top {
    Contents(ToEnter, Metadata, Vec<Name>),
    Named(ToEnter, Box<[u8]>, Metadata, Follows),
}

/// Whether a source that is a link stands for its target.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    No,
    File,
    Directory(Place),
}

/// A file with several names, not all met yet.
struct Linked {
    first: EntryId,
    names_left: u64,
}

/// Nobody receives the names any more.
struct Gone;

/// Names per message.
const NAMES_AT_ONCE: usize = 1_024;

/// Attribute bytes per message.
const ATTRIBUTE_BYTES_AT_ONCE: usize = 1 << 20;

impl<'a> Scanner<'a> {
    pub(crate) fn new(
        options: &'a Options,
        exclude: Exclude,
        directories: &'a Directories,
        progress: &'a Progress,
        cancel: &'a Cancel,
        out: Sender<Scanned>,
    ) -> Self {
        Self {
            options,
            exclude,
            directories,
            progress,
            cancel,
            out,
            next_entry: 0,
            next_directory: TOP + 1,
            to_enter: Vec::new(),
            linked: HashMap::new(),
            is_complete: true,
        }
    }

    pub(crate) fn run(mut self, sources: &[PathBuf]) {
        if self.walk(sources).is_ok() {
            self.progress.is_scanned.store(true, Ordering::Release);
            let _ = self.out.send(Scanned::Done { is_complete: self.is_complete });
        }
    }

    fn walk(&mut self, sources: &[PathBuf]) -> Result<(), Gone> {
        self.top(sources)?;
        while let Some(next) = self.to_enter.pop() {
            let first = self.to_enter.len();
            let names = self.directories.open(next.place).and_then(|open| open.names());
            match names {
                _ if next.is_skipped => self.send(&next, Vec::new(), true, true)?,
                Ok(names) => self.names(&next, names, true, None)?,
                Err(error) => {
                    let name = self.directories.path(next.place);
                    self.left_out(name, format!("the directory cannot be read: {}", reason(&error)))?;
                    self.send(&next, Vec::new(), true, true)?;
                }
            }
            // The first one is entered next.
            self.to_enter[first..].reverse();
        }
        Ok(())
    }

    /// Lists the sources.
    fn top(&mut self, sources: &[PathBuf]) -> Result<(), Gone> {
        let mut taken = HashSet::new();
        let mut is_itself_said = false;
        for source in sources {
            let found = if means_contents(source) { self.contents(source) } else { self.named(source) };
            match found {
                Ok(Top::Contents(at, metadata, names)) if self.options.recursive => {
                    if !is_itself_said {
                        is_itself_said = true;
                        let itself = self.itself(&at, &metadata);
                        self.send(&at, vec![itself], false, false)?;
                    }
                    // Only several sources can have equal names.
                    let taken = (sources.len() > 1).then_some(&mut taken);
                    self.names(&at, names, false, taken)?;
                }
                Ok(Top::Contents(..)) => {
                    let why = "it is a directory; -r copies directories".to_owned();
                    self.left_out(bytes_of(source.as_os_str()).into_owned(), why)?;
                }
                Ok(Top::Named(at, name, metadata, follows)) => {
                    if !taken.insert(name.clone()) {
                        self.left_out(name.into(), SAME_NAME.to_owned())?;
                        continue;
                    }
                    let found = self.found(&at, name, metadata, follows)?;
                    self.send(&at, found.into_iter().collect(), false, false)?;
                }
                Err(error) => {
                    self.is_complete = false;
                    self.left_out(bytes_of(source.as_os_str()).into_owned(), reason(&error))?;
                }
            }
        }
        let top = ToEnter { directory: TOP, place: 0, device: 0, is_skipped: false };
        let is_complete = self.is_complete;
        self.send(&top, Vec::new(), true, !is_complete)?;
        self.to_enter.reverse();
        Ok(())
    }

    fn contents(&self, source: &Path) -> io::Result<Top> {
        let directory = Directory::open(source)?;
        let (metadata, names) = (directory.own_metadata()?, directory.names()?);
        let place = self.directories.add_root(directory, b"");
        let at = ToEnter { directory: TOP, place, device: metadata.device, is_skipped: false };
        Ok(Top::Contents(at, metadata, names))
    }

    fn named(&self, source: &Path) -> io::Result<Top> {
        let name: Box<[u8]> = bytes_of(source.file_name().ok_or(io::ErrorKind::NotFound)?).into();
        let directory = Directory::open(source.parent().unwrap_or(Path::new("")))?;
        let itself = directory.metadata(&name)?;
        let is_followed = itself.kind == Kind::Symlink && !self.options.modes;
        let metadata = if is_followed { directory.metadata_following(&name)? } else { itself };
        let follows = match metadata.kind {
            _ if !is_followed => Follows::No,
            Kind::Directory => Follows::Directory(self.directories.add_root(Directory::open(source)?, &name)),
            _ => Follows::File,
        };
        let place = self.directories.add_root(directory, b"");
        let at = ToEnter { directory: TOP, place, device: metadata.device, is_skipped: false };
        Ok(Top::Named(at, name, metadata, follows))
    }

    fn itself(&mut self, at: &ToEnter, metadata: &Metadata) -> Found {
        let open = self.directories.open(at.place);
        let attributes = match open {
            Ok(open) if self.options.attributes => open.own_attributes().unwrap_or_default(),
            _ => Vec::new(),
        };
        self.listed(at.place, Box::from(&b""[..]), EntryKind::Itself, metadata, attributes)
    }

    /// Lists all names of a directory.
    fn names(
        &mut self,
        at: &ToEnter,
        mut names: Vec<Name>,
        is_last: bool,
        mut taken: Option<&mut HashSet<Box<[u8]>>>,
    ) -> Result<(), Gone> {
        names.retain(|name| &*name.bytes != name::PARTIAL);
        names.sort_unstable_by(|a, b| a.bytes.cmp(&b.bytes));
        let directory = match self.directories.open(at.place) {
            Ok(directory) => directory,
            Err(error) => {
                self.left_out(self.directories.path(at.place), reason(&error))?;
                return self.send(at, Vec::new(), is_last, true);
            }
        };
        let mut is_incomplete = false;
        let mut rest = &mut names[..];
        let mut attribute_bytes = 0;
        loop {
            let (now, later) = rest.split_at_mut(rest.len().min(NAMES_AT_ONCE));
            rest = later;
            let looked_up = look_up(&directory, now);
            let mut found = Vec::with_capacity(now.len());
            for (name, metadata) in now.iter_mut().zip(looked_up) {
                let name = std::mem::take(&mut name.bytes);
                if taken.as_mut().is_some_and(|taken| !taken.insert(name.clone())) {
                    self.left_out(name.into(), SAME_NAME.to_owned())?;
                    continue;
                }
                match metadata {
                    Ok(metadata) => {
                        let new = self.found(at, name, metadata, Follows::No)?;
                        attribute_bytes += new.as_ref().map_or(0, |new| new.entry.attribute_bytes());
                        found.extend(new);
                        if attribute_bytes > ATTRIBUTE_BYTES_AT_ONCE {
                            attribute_bytes = 0;
                            self.send(at, std::mem::take(&mut found), false, is_incomplete)?;
                        }
                    }
                    // Removed meanwhile, so it counts as never present.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => {
                        is_incomplete = true;
                        self.left_out(self.directories.path_of(at.place, &name), reason(&error))?;
                    }
                }
            }
            let is_end = rest.is_empty();
            self.send(at, found, is_last && is_end, is_incomplete)?;
            if is_end {
                return Ok(());
            }
        }
    }

    /// Examines one name; `None` if it is skipped.
    fn found(
        &mut self,
        at: &ToEnter,
        name: Box<[u8]>,
        metadata: Metadata,
        follows: Follows,
    ) -> Result<Option<Found>, Gone> {
        let directories = self.directories;
        let path = || directories.path_of(at.place, &name);
        let is_directory = metadata.kind == Kind::Directory;
        if !self.exclude.is_empty() && self.exclude.matches(&path(), is_directory) {
            return Ok(None);
        }
        let kind = match (name::check(&name), metadata.kind) {
            (Err(why), _) => Err(why.to_owned()),
            (_, Kind::Directory) if !self.options.recursive => {
                Err("it is a directory; -r copies directories".to_owned())
            }
            (_, Kind::Directory) if directories.depth(at.place) >= DEPTH_MAX => {
                Err("too many directories inside one another".to_owned())
            }
            (_, Kind::Symlink) if !matches!(directories.listed(), Listed::Any) => {
                Err("it is a symbolic link, which is not sent".to_owned())
            }
            (_, Kind::Special) => Err("it is a device, a socket or a named pipe".to_owned()),
            _ if !directories.listed().allows(&path(), &metadata) => Err(NOT_LISTED.to_owned()),
            (_, Kind::Directory) => Ok(EntryKind::Directory),
            (_, Kind::Symlink) => match directories.open(at.place).and_then(|open| open.read_link(&name)) {
                Ok(target) => Ok(EntryKind::Symlink { target }),
                Err(error) => Err(format!("the link cannot be read: {}", reason(&error))),
            },
            (_, Kind::File) => Ok(self.file(&metadata)),
        };
        let kind = match kind {
            Ok(kind) => kind,
            Err(why) => return self.left_out(path(), why).map(|()| None),
        };
        let attributes = match self.attributes(at.place, &name, &metadata, follows) {
            Ok(attributes) => attributes,
            Err(error) => {
                self.left_out(path(), format!("its attributes cannot be read: {}", reason(&error)))?;
                Vec::new()
            }
        };
        if is_directory {
            let place = match follows {
                Follows::Directory(place) => place,
                _ => directories.add(at.place, &name),
            };
            let is_skipped = self.options.one_file_system && metadata.device != at.device;
            let directory = self.next_directory;
            self.next_directory += 1;
            self.to_enter.push(ToEnter { directory, place, device: at.device, is_skipped });
        }
        if let EntryKind::File { bytes, .. } = kind {
            add(&self.progress.files_found, 1);
            add(&self.progress.bytes_found, bytes);
        }
        let mut found = self.listed(at.place, name, kind, &metadata, attributes);
        found.follows = follows == Follows::File;
        Ok(Some(found))
    }

    /// A file, or another name of a known file.
    fn file(&mut self, metadata: &Metadata) -> EntryKind {
        let is_linked = self.options.hard_links && metadata.links > 1;
        let key = (metadata.device, metadata.inode);
        if is_linked && let Some(known) = self.linked.get_mut(&key) {
            let to = known.first;
            known.names_left = known.names_left.saturating_sub(1);
            if known.names_left == 0 {
                self.linked.remove(&key);
            }
            return EntryKind::HardLink { to };
        }
        if is_linked {
            self.linked.insert(key, Linked { first: self.next_entry, names_left: metadata.links - 1 });
        }
        let bytes = metadata.bytes;
        let touched = if bytes >= TOUCHED_BYTES { metadata.touched() } else { 0 };
        EntryKind::File { bytes, is_linked, touched }
    }

    fn attributes(
        &self,
        place: Place,
        name: &[u8],
        metadata: &Metadata,
        follows: Follows,
    ) -> io::Result<Vec<Attribute>> {
        if !self.options.attributes {
            return Ok(Vec::new());
        }
        let directory = self.directories.open(place)?;
        let attributes = match (metadata.kind, follows) {
            (Kind::File, _) => system::attributes(&directory.read_file(name, follows == Follows::File)?)?,
            (Kind::Directory, Follows::Directory(place)) => self.directories.open(place)?.own_attributes()?,
            (Kind::Directory, _) => directory.open_below(name)?.own_attributes()?,
            (Kind::Symlink | Kind::Special, _) => Vec::new(),
        };
        if bytes_of_attributes(&attributes) > ATTRIBUTES_BYTES_MAX {
            return Err(io::Error::other("they are too many"));
        }
        Ok(attributes)
    }

    fn listed(
        &mut self,
        place: Place,
        name: Box<[u8]>,
        kind: EntryKind,
        metadata: &Metadata,
        attributes: Vec<Attribute>,
    ) -> Found {
        let entry = Entry {
            name: name.into(),
            kind,
            modified_ns: metadata.modified_ns,
            mode: metadata.mode,
            owner: self.options.owners.then_some(metadata.owner),
            attributes,
        };
        let id = self.next_entry;
        self.next_entry += 1;
        Found { id, entry, place, follows: false }
    }

    fn send(
        &mut self,
        at: &ToEnter,
        found: Vec<Found>,
        is_last: bool,
        is_incomplete: bool,
    ) -> Result<(), Gone> {
        if self.cancel.is_cancelled() {
            return Err(Gone);
        }
        if found.is_empty() && !is_last {
            return Ok(());
        }
        self.is_complete &= !is_incomplete || at.is_skipped;
        let names = Names { directory: at.directory, found, is_last, is_incomplete };
        self.out.send(Scanned::Names(names)).map_err(|_| Gone)
    }

    fn left_out(&mut self, name: Vec<u8>, why: String) -> Result<(), Gone> {
        self.out.send(Scanned::LeftOut { name, why }).map_err(|_| Gone)
    }
}

const SAME_NAME: &str = "something else that was named has the same name; copy it by itself";

/// Metadata of each name, in order. The lookups follow the order on the disk.
fn look_up(directory: &Directory, names: &[Name]) -> Vec<io::Result<Metadata>> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_unstable_by_key(|at| names[*at].inode);
    let mut found: Vec<_> = names.iter().map(|_| Err(io::ErrorKind::NotFound.into())).collect();
    for at in order {
        found[at] = directory.metadata(&names[at].bytes);
    }
    found
}
