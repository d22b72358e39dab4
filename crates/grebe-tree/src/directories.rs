//! Directories of a tree: their hierarchy, and a cache of open ones.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::name::join;
use crate::system::{self, Directory, Kind, Metadata};

/// A directory in [`Directories`].
pub(crate) type Place = u32;

/// All directories met so far, a few of them open. Each takes 16 bytes and its name.
#[derive(Debug, Default)]
pub(crate) struct Directories {
    nodes: RwLock<Nodes>,
    /// Least recently used first.
    open: Mutex<Vec<(Place, Arc<Directory>)>>,
    listed: Listed,
}

/// Restriction to files that were listed before an offer.
#[derive(Debug, Default)]
pub(crate) enum Listed {
    /// No restriction.
    #[default]
    Any,
    /// Files are being noted.
    Noting(Mutex<Seen>),
    /// Only these files.
    Only(Arc<Seen>),
}

/// Names with the identity of their files, as keyed hashes. Nobody else knows the key, so nobody can
/// construct another file with the same hash.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    key: RandomState,
    hashes: HashSet<u64>,
}

impl Seen {
    /// Length and time count only for files, because the contents of a directory may change.
    fn hash(&self, path: &[u8], found: &Metadata) -> u64 {
        let is_file = found.kind == Kind::File;
        let content = is_file.then_some((found.bytes, found.modified_ns));
        self.key.hash_one((path, found.device, found.inode, content))
    }
}

#[derive(Debug, Default)]
struct Nodes {
    nodes: Vec<Node>,
    /// All names, concatenated.
    names: Vec<u8>,
    roots: Vec<(Place, Arc<Directory>)>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    parent: Place,
    depth: u32,
    /// Start of its name, which ends at the start of the next one.
    name_start: u64,
}

/// Maximum open directories, more than a path is usually deep.
const OPEN_MAX: usize = 64;

impl Listed {
    pub(crate) fn noting() -> Self {
        Self::Noting(Mutex::default())
    }

    /// Whether the file may be sent.
    pub(crate) fn allows(&self, path: &[u8], found: &Metadata) -> bool {
        match self {
            Self::Any => true,
            Self::Noting(noted) => {
                let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
                let hash = noted.hash(path, found);
                noted.hashes.insert(hash);
                true
            }
            Self::Only(seen) => seen.hashes.contains(&seen.hash(path, found)),
        }
    }

    /// Takes the noted files.
    pub(crate) fn take(&self) -> Seen {
        match self {
            Self::Noting(noted) => std::mem::take(&mut noted.lock().unwrap_or_else(PoisonError::into_inner)),
            _ => Seen::default(),
        }
    }
}

/// Reason for skipping a file that was not listed.
pub(crate) const NOT_LISTED: &str =
    "it has changed since it was listed, or something else has its name: send it again";

impl Directories {
    pub(crate) fn that_lists(listed: Listed) -> Self {
        Self { listed, ..Self::default() }
    }

    pub(crate) fn listed(&self) -> &Listed {
        &self.listed
    }

    /// Opens a file for reading, if it is the one that was listed.
    pub(crate) fn read_file(&self, place: Place, name: &[u8], follows: bool) -> io::Result<File> {
        let open = self.open(place)?.read_file(name, follows)?;
        if matches!(self.listed, Listed::Only(_)) {
            self.check(place, name, &system::metadata(&open)?)?;
        }
        Ok(open)
    }

    /// Whether the file in its present state may be sent.
    pub(crate) fn check(&self, place: Place, name: &[u8], now: &Metadata) -> io::Result<()> {
        match &self.listed {
            Listed::Only(_) if !self.listed.allows(&self.path_of(place, name), now) => {
                Err(io::Error::other(NOT_LISTED))
            }
            _ => Ok(()),
        }
    }

    /// Adds a root directory. With a name, the paths of its contents begin with that name.
    pub(crate) fn add_root(&self, directory: Directory, name: &[u8]) -> Place {
        let mut nodes = self.nodes.write().unwrap_or_else(PoisonError::into_inner);
        let place = nodes.nodes.len() as Place;
        nodes.add(place, 0, name);
        nodes.roots.push((place, Arc::new(directory)));
        place
    }

    pub(crate) fn add(&self, parent: Place, name: &[u8]) -> Place {
        let mut nodes = self.nodes.write().unwrap_or_else(PoisonError::into_inner);
        let depth = nodes.nodes[parent as usize].depth + 1;
        nodes.add(parent, depth, name)
    }

    /// Bytes of all names.
    pub(crate) fn names_bytes(&self) -> usize {
        self.nodes.read().unwrap_or_else(PoisonError::into_inner).names.len()
    }

    /// Number of directories above it.
    pub(crate) fn depth(&self, place: Place) -> u32 {
        self.nodes.read().unwrap_or_else(PoisonError::into_inner).nodes[place as usize].depth
    }

    /// Path below its root.
    pub(crate) fn path(&self, place: Place) -> Vec<u8> {
        let nodes = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
        let chain = nodes.chain(place, |_| false);
        let root = chain.last().map_or(place, |top| nodes.nodes[*top as usize].parent);
        chain.iter().rev().fold(nodes.name(root).to_vec(), |path, place| join(&path, nodes.name(*place)))
    }

    /// Path of a name in it.
    pub(crate) fn path_of(&self, place: Place, name: &[u8]) -> Vec<u8> {
        join(&self.path(place), name)
    }

    /// Opens the directory. Each step on the way is opened without following links.
    pub(crate) fn open(&self, place: Place) -> io::Result<Arc<Directory>> {
        if let Some(open) = self.find(place) {
            return Ok(open);
        }
        let (mut at, steps) = {
            let nodes = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
            let mut found = None;
            let chain = nodes.chain(place, |place| {
                found = self.find(place);
                found.is_some()
            });
            let start = match found {
                Some(open) => open,
                None => nodes.root(place).ok_or(io::ErrorKind::NotFound)?,
            };
            let steps: Vec<_> =
                chain.iter().rev().map(|place| (*place, nodes.name(*place).to_vec())).collect();
            (start, steps)
        };
        for (place, name) in steps {
            at = Arc::new(at.open_below(&name)?);
            self.keep(place, at.clone());
        }
        Ok(at)
    }

    fn find(&self, place: Place) -> Option<Arc<Directory>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let at = open.iter().rposition(|(other, _)| *other == place)?;
        let last = open.len() - 1;
        if at != last {
            open[at..].rotate_left(1);
        }
        Some(open[last].1.clone())
    }

    fn keep(&self, place: Place, directory: Arc<Directory>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= OPEN_MAX {
            open.remove(0);
        }
        open.push((place, directory));
    }
}

impl Nodes {
    fn add(&mut self, parent: Place, depth: u32, name: &[u8]) -> Place {
        let place = self.nodes.len() as Place;
        self.nodes.push(Node { parent, depth, name_start: self.names.len() as u64 });
        self.names.extend_from_slice(name);
        place
    }

    fn name(&self, place: Place) -> &[u8] {
        let start = self.nodes[place as usize].name_start as usize;
        let end =
            self.nodes.get(place as usize + 1).map_or(self.names.len(), |next| next.name_start as usize);
        &self.names[start..end]
    }

    /// The directory and those above it, up to but without its root or the first for which `is_enough`
    /// returns true.
    fn chain(&self, mut place: Place, mut is_enough: impl FnMut(Place) -> bool) -> Vec<Place> {
        let mut chain = Vec::new();
        while self.nodes[place as usize].depth > 0 && !is_enough(place) {
            chain.push(place);
            place = self.nodes[place as usize].parent;
        }
        chain
    }

    fn root(&self, mut place: Place) -> Option<Arc<Directory>> {
        while self.nodes[place as usize].depth > 0 {
            place = self.nodes[place as usize].parent;
        }
        self.roots.iter().find(|(root, _)| *root == place).map(|(_, directory)| directory.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_is_found_however_many_were_opened_since() {
        let root = tempfile::tempdir().unwrap();
        let directories = Directories::default();
        let top = directories.add_root(Directory::open(root.path()).unwrap(), b"");
        let mut deep = vec![top];
        let mut path = root.path().to_path_buf();
        for level in 0..100 {
            path.push(format!("d{level}"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join("here"), format!("{level}")).unwrap();
            deep.push(directories.add(deep[level], format!("d{level}").as_bytes()));
        }
        for level in [100, 1, 50, 100, 99, 2] {
            let directory = directories.open(deep[level]).unwrap();
            assert_eq!(directory.metadata(b"here").unwrap().bytes, if level > 10 { 2 } else { 1 });
            assert_eq!(directories.depth(deep[level]), level as u32);
        }
        assert!(directories.open.lock().unwrap().len() <= OPEN_MAX);
        assert_eq!(directories.path_of(deep[2], b"x"), b"d0/d1/x");
        assert_eq!(directories.path(top), b"");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_on_the_way_is_not_followed() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(outside.path().join("b")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("a")).unwrap();
        let directories = Directories::default();
        let top = directories.add_root(Directory::open(root.path()).unwrap(), b"");
        let a = directories.add(top, b"a");
        let b = directories.add(a, b"b");
        assert!(directories.open(a).is_err() && directories.open(b).is_err());
    }
}
