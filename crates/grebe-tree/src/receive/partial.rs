//! Folder at the destination's root for files without their final names.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::name::{OWN_PREFIX, PARTIAL, PartNames};
use crate::receive::journal::{self, Come};
use crate::receive::volumes::try_it;
use crate::system::{self, Directory, Kind, Metadata, read_at, write_all_at};
use crate::wire::{ShortHash, short};

/// Created when needed, and removed when empty.
pub(super) struct Partial {
    root: Arc<Directory>,
    open: Mutex<Option<Arc<Folder>>>,
    next: AtomicU64,
}

/// The open folder.
pub(super) struct Folder {
    pub(super) directory: Arc<Directory>,
    /// Held while this process uses the folder. A second process resumes no part and removes nothing.
    lock: Option<File>,
    /// Journals of parts from earlier copies.
    journals: HashSet<Box<[u8]>>,
}

/// A file under a temporary name. Dropping it deletes the file, unless it was renamed or kept.
#[derive(Debug)]
pub(super) struct Temporary {
    pub(super) directory: Arc<Directory>,
    pub(super) name: Vec<u8>,
    is_kept: bool,
}

const LOCK: &[u8] = b".grebe-lock";
const TEMPORARY: &str = ".grebe-t";

impl Partial {
    pub(super) fn new(root: Arc<Directory>) -> Self {
        Self { root, open: Mutex::new(None), next: AtomicU64::new(0) }
    }

    /// The folder, if an earlier copy left one.
    pub(super) fn find(&self) -> io::Result<Option<Arc<Folder>>> {
        match self.folder(false) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the folder.
    pub(super) fn folder(&self, is_made: bool) -> io::Result<Arc<Folder>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = &*open {
            return Ok(folder.clone());
        }
        let folder = Arc::new(Folder::open(&self.root, is_made)?);
        *open = Some(folder.clone());
        Ok(folder)
    }

    /// Creates a file with a unique name, at a place from which it can be renamed into `directory`.
    pub(super) fn create(&self, directory: &Arc<Directory>, mode: u16) -> io::Result<(File, Temporary)> {
        let name = self.name();
        let directory = self.beside(directory)?;
        let file = directory.create_file(&name, mode)?;
        Ok((file, Temporary { directory, name, is_kept: false }))
    }

    /// Reserves such a name, in a directory from which files can be renamed into `directory`.
    pub(super) fn reserve(&self, directory: &Arc<Directory>) -> io::Result<Temporary> {
        Ok(Temporary { directory: self.beside(directory)?, name: self.name(), is_kept: false })
    }

    /// The folder, or `directory` itself if that is on another file system.
    pub(super) fn beside(&self, directory: &Arc<Directory>) -> io::Result<Arc<Directory>> {
        let folder = self.folder(true)?;
        let is_same_system = directory.device()? == folder.directory.device()?;
        Ok(if is_same_system { folder.directory.clone() } else { directory.clone() })
    }

    /// Whether a directory at the top is the folder, whichever name led to it. Some file systems know one
    /// by several names, such as `GREBE-~1`.
    pub(super) fn is_folder(&self, found: &Metadata) -> bool {
        let own = self.root.metadata(PARTIAL);
        own.is_ok_and(|own| own.inode > 0 && (own.device, own.inode) == (found.device, found.inode))
    }

    /// Removes the folder if empty, even one of an earlier copy.
    pub(super) fn clear(&self) {
        let _ = self.find();
        self.close();
    }

    /// Removes the folder if this copy used it and it is empty.
    pub(super) fn close(&self) {
        let folder = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(folder) = folder else { return };
        if folder.lock.is_some() {
            let _ = folder.directory.remove_file(LOCK);
            drop(folder);
            // Parts of other copies keep it.
            let _ = self.root.remove_directory(PARTIAL);
        }
    }

    /// Marks a directory before its creation under a new name. Until it is finished, the same copy resumes in
    /// it instead of creating a directory inside it.
    pub(super) fn begin_new(&self, name: &[u8]) -> io::Result<File> {
        let folder = self.folder(true)?;
        let mark = mark_of(name);
        match folder.directory.create_file(&mark, 0o600) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let old = folder.directory.write_file(&mark)?;
                old.set_len(0)?;
                Ok(old)
            }
            made => made,
        }
    }

    pub(super) fn end_new(&self, name: &[u8]) {
        if let Ok(Some(folder)) = self.find() {
            let _ = folder.directory.remove_file(&mark_of(name));
        }
    }

    /// A unique name.
    pub(super) fn name(&self) -> Vec<u8> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{TEMPORARY}{}-{number}", std::process::id()).into_bytes()
    }
}

impl Temporary {
    /// A part, which stays for a later copy.
    pub(super) fn part(directory: Arc<Directory>, name: Vec<u8>) -> Self {
        Self { directory, name, is_kept: true }
    }

    pub(super) fn discard(mut self) {
        self.is_kept = false;
    }

    /// Renames the file. Replaces an existing file, but not a directory.
    pub(super) fn rename(&mut self, to: &Directory, name: &[u8]) -> io::Result<()> {
        let renamed = self.directory.rename(&self.name, to, name);
        self.is_kept = renamed.is_ok();
        renamed
    }

    /// Renames the file without replacing anything.
    pub(super) fn rename_to_free(&mut self, to: &Directory, name: &[u8]) -> io::Result<()> {
        let renamed = self.directory.rename_to_free(&self.name, to, name);
        self.is_kept = renamed.is_ok();
        renamed
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = self.directory.remove_file(&self.name);
        }
    }
}

/// Removes the notes of a part.
pub(super) fn remove_notes(folder: &Directory, names: &PartNames) {
    for name in [&names.journal, &names.map, &names.wanted] {
        let _ = folder.remove_file(name);
    }
}

/// Whether an earlier copy started this directory under a new name and did not finish it.
pub(super) fn is_unfinished(above: &Directory, name: &[u8]) -> io::Result<bool> {
    let folder = above.open_below(PARTIAL)?;
    let mark = folder.read_file(&mark_of(name), false)?;
    let mut inode = [0; 8];
    // A copy killed at that moment had not noted the inode.
    let is_noted = read_at(&mark, &mut inode, 0)? == inode.len();
    let is_it = above.metadata(name)?.inode == u64::from_le_bytes(inode);
    Ok(is_private(&folder, above)? && (is_it || !is_noted))
}

/// Notes which directory it is, after its creation.
pub(super) fn note_new(mark: &File, directory: &Directory, name: &[u8]) -> io::Result<()> {
    write_all_at(mark, &directory.metadata(name)?.inode.to_le_bytes(), 0)
}

fn mark_of(name: &[u8]) -> Vec<u8> {
    let hash = blake3::hash(name).to_hex();
    [OWN_PREFIX, b"n", &hash.as_bytes()[..32]].concat()
}

impl Folder {
    fn open(root: &Directory, is_made: bool) -> io::Result<Self> {
        if is_made {
            match root.create_directory(PARTIAL, 0o700) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        let directory = root.open_below(PARTIAL)?;
        if !is_private(&directory, root)? {
            return Err(io::Error::other("a folder .grebe-partial there is not this user's own; remove it"));
        }
        let lock = lock(&directory)?;
        let mut journals = HashSet::new();
        if lock.is_some() {
            for name in directory.names()? {
                if name.bytes.starts_with(TEMPORARY.as_bytes()) {
                    directory.remove_file(&name.bytes)?;
                } else if is_journal(&name.bytes) {
                    journals.insert(name.bytes);
                }
            }
        }
        Ok(Self { directory: Arc::new(directory), lock, journals })
    }

    /// Whether parts can be left for a later copy.
    pub(super) fn is_ours(&self) -> bool {
        self.lock.is_some()
    }

    /// Whether an open part can be trusted. On another file system it lies in its final directory, where
    /// others may put links or files of theirs.
    pub(super) fn is_trusted(&self, directory: &Arc<Directory>, part: &File) -> io::Result<bool> {
        let found = system::metadata(part)?;
        let is_own = found.kind == Kind::File && found.links <= 1 && found.owner.user == system::user();
        Ok(Arc::ptr_eq(directory, &self.directory) || is_own)
    }

    /// Amount of a file of this length that an earlier copy left, by its journal.
    pub(super) fn left(&self, names: &PartNames, identity: &ShortHash, bytes: u64) -> Option<Come> {
        if !self.journals.contains(&names.journal[..]) {
            return None;
        }
        let journal = self.directory.read_file(&names.journal, false).ok()?;
        journal::read(&journal, identity, bytes)
    }
}

/// Whether a folder belongs to this user and nobody else can enter it. Its files are trusted and get their
/// final names.
///
/// On a file system without owners or modes, it counts as this user's if a new file beside it does. Others
/// could change anything there anyway.
fn is_private(folder: &Directory, above: &Directory) -> io::Result<bool> {
    let found = folder.own_metadata()?;
    // On other systems, a user's own directory is not writable for others.
    let is_closed = found.mode & 0o077 == 0 || cfg!(not(unix));
    if found.owner.user == system::user() && is_closed {
        return Ok(true);
    }
    // Somebody else has mounted another file system here.
    if found.device != above.device()? {
        return Ok(false);
    }
    let ours = format!("{TEMPORARY}{}-beside", std::process::id());
    let made = try_it(above, ours.as_bytes(), false)?;
    Ok(found.owner.user == made.user && (is_closed || made.is_open))
}

fn lock(directory: &Directory) -> io::Result<Option<File>> {
    let file = match directory.create_file(LOCK, 0o600) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => directory.write_file(LOCK)?,
        file => file?,
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        // A file system without locks.
        Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

fn is_journal(name: &[u8]) -> bool {
    name.strip_prefix(OWN_PREFIX).is_some_and(|rest| rest.starts_with(b"j"))
}

/// Identity of a part: the content of a file as the sender describes it.
pub(super) fn identity(bytes: u64, modified_ns: i64, touched: u64) -> ShortHash {
    let mut hasher = blake3::Hasher::new();
    for number in [bytes, modified_ns as u64, touched] {
        hasher.update(&number.to_be_bytes());
    }
    short(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partial(root: &tempfile::TempDir) -> Partial {
        Partial::new(Arc::new(Directory::open(root.path()).unwrap()))
    }

    #[test]
    fn the_folder_is_made_when_needed_and_goes_when_empty() {
        let root = tempfile::tempdir().unwrap();
        let partial = partial(&root);
        assert!(partial.find().unwrap().is_none());
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
        let here = Arc::new(Directory::open(root.path()).unwrap());
        let (_, mut temporary) = partial.create(&here, 0o644).unwrap();
        assert!(root.path().join(".grebe-partial").is_dir());
        temporary.rename(&here, b"done").unwrap();
        drop((temporary, partial.create(&here, 0o644).unwrap()));
        partial.close();
        let names: Vec<_> =
            std::fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["done"]);
    }

    #[test]
    fn leftovers_of_a_killed_copy_are_removed_except_its_parts() {
        let root = tempfile::tempdir().unwrap();
        let folder = partial(&root).folder(true).unwrap();
        let names = PartNames::of(b"a/b");
        for name in [&b".grebe-t1-2"[..], &names.part, &names.journal] {
            folder.directory.create_file(name, 0o600).unwrap();
        }
        let journal = folder.directory.write_file(&names.journal).unwrap();
        let of = identity(9, 8, 7);
        journal::write(&journal, 0, &of, &Come::Prefix(3)).unwrap();
        journal::write(&journal, 1, &of, &Come::Prefix(5)).unwrap();
        drop(folder);
        let found = partial(&root).find().unwrap().unwrap();
        assert!(!root.path().join(".grebe-partial/.grebe-t1-2").exists());
        assert_eq!(found.left(&names, &of, 9), Some(Come::Prefix(5)));
        assert_eq!(found.left(&names, &identity(9, 8, 6), 9), None);
        assert_eq!(found.left(&PartNames::of(b"a/c"), &of, 9), None);
    }

    #[test]
    fn a_second_copy_takes_no_parts_of_the_first() {
        let root = tempfile::tempdir().unwrap();
        let (first, second) = (partial(&root), partial(&root));
        assert!(first.folder(true).unwrap().is_ours());
        assert!(!second.folder(true).unwrap().is_ours());
        second.close();
        assert!(root.path().join(".grebe-partial/.grebe-lock").exists());
    }

    #[test]
    #[cfg(unix)]
    fn a_part_outside_the_folder_is_trusted_only_as_a_file_of_ones_own_alone() {
        let root = tempfile::tempdir().unwrap();
        let folder = partial(&root).folder(true).unwrap();
        let here = Arc::new(Directory::open(root.path()).unwrap());
        here.create_file(b"part", 0o600).unwrap();
        let trusts = |directory: &Arc<Directory>, path: &str| {
            folder.is_trusted(directory, &File::open(root.path().join(path)).unwrap()).unwrap()
        };
        assert!(trusts(&here, "part") && !trusts(&here, ".grebe-partial"));
        let pipe = root.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let pipe = File::options().read(true).write(true).open(pipe).unwrap();
        assert!(!folder.is_trusted(&here, &pipe).unwrap(), "a pipe has one link too");
        std::fs::hard_link(root.path().join("part"), root.path().join("other")).unwrap();
        assert!(!trusts(&here, "part") && trusts(&folder.directory, "part"));
        std::fs::remove_file(root.path().join("other")).unwrap();
        if std::os::unix::fs::chown(root.path().join("part"), Some(65_533), None).is_ok() {
            assert!(!trusts(&here, "part"));
        } else {
            eprintln!("skipped: only root can give a file to somebody else");
        }
    }

    #[test]
    #[cfg(unix)]
    fn the_folder_is_known_by_any_of_its_names() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("other")).unwrap();
        let (partial, here) = (partial(&root), Directory::open(root.path()).unwrap());
        let is_folder = |name: &[u8]| partial.is_folder(&here.metadata(name).unwrap());
        assert!(!is_folder(b"other"));
        partial.folder(true).unwrap();
        assert!(is_folder(PARTIAL) && !is_folder(b"other"));
    }

    #[test]
    #[cfg(unix)]
    fn a_folder_that_others_can_enter_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(".grebe-partial");
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(partial(&root).folder(true).is_err());
        std::fs::remove_dir(&path).unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), &path).unwrap();
        assert!(partial(&root).folder(true).is_err());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
