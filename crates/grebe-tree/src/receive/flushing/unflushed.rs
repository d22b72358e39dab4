//! Changes since the last flush, by file system.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::directories::Place;
use crate::system::{self, Directory};

/// File systems with changes.
#[derive(Default)]
pub(super) struct Unflushed {
    systems: Mutex<Vec<System>>,
}

/// A file system and its changes.
pub(super) struct System {
    device: u64,
    /// Kept open, because the system reports a write error only to files that were open before it.
    any: Arc<Directory>,
    contents: Vec<File>,
    directories: Vec<(Place, Arc<Directory>)>,
    /// Too many changes for individual flushes.
    is_many: bool,
}

/// Maximum files, and directories, to flush individually.
const FEW: usize = 16;

impl Unflushed {
    /// Records a change on the file system of a directory.
    pub(super) fn of_system(
        &self,
        directory: &Arc<Directory>,
        change: impl FnOnce(&mut System),
    ) -> io::Result<()> {
        let device = directory.device()?;
        let mut systems = self.systems.lock().unwrap_or_else(PoisonError::into_inner);
        let at = systems.iter().position(|system| system.device == device).unwrap_or_else(|| {
            systems.push(System::new(device, directory.clone()));
            systems.len() - 1
        });
        change(&mut systems[at]);
        Ok(())
    }

    /// Flushes the changes noted so far. Further ones may be noted meanwhile, for the next call.
    pub(super) fn flush(&self) -> io::Result<()> {
        let noted: Vec<_> = {
            let mut systems = self.systems.lock().unwrap_or_else(PoisonError::into_inner);
            systems.iter_mut().filter_map(System::take).collect()
        };
        noted.into_iter().try_for_each(System::flush)
    }
}

impl System {
    fn new(device: u64, any: Arc<Directory>) -> Self {
        Self { device, any, contents: Vec::new(), directories: Vec::new(), is_many: false }
    }

    pub(super) fn add_directory(&mut self, place: Place, directory: &Arc<Directory>) {
        if self.is_many || self.directories.iter().any(|(other, _)| *other == place) {
            return;
        }
        if self.directories.len() >= FEW {
            return self.add_many();
        }
        self.directories.push((place, directory.clone()));
    }

    pub(super) fn add_content(&mut self, open: File) {
        if self.is_many && system::FLUSHES_AT_ONCE {
            return;
        }
        if self.contents.len() >= FEW && system::FLUSHES_AT_ONCE {
            return self.add_many();
        }
        self.contents.push(open);
    }

    /// Adds an existing file. Opens it only for an individual flush, of at most `files_max` files.
    pub(super) fn add_what_was_there(&mut self, open: impl FnOnce() -> io::Result<File>, files_max: usize) {
        if self.is_many {
            return;
        }
        match open() {
            Ok(open) if self.contents.len() < files_max => self.add_content(open),
            // A file that cannot be opened cannot be flushed individually.
            _ => self.add_many(),
        }
    }

    fn add_many(&mut self) {
        self.is_many = true;
        self.directories.clear();
        if system::FLUSHES_AT_ONCE {
            self.contents.clear();
        }
    }

    /// Takes the pending changes, if any.
    fn take(&mut self) -> Option<Self> {
        let is_clean = !self.is_many && self.contents.is_empty() && self.directories.is_empty();
        let clean = Self::new(self.device, self.any.clone());
        (!is_clean).then(|| std::mem::replace(self, clean))
    }

    fn flush(self) -> io::Result<()> {
        self.contents.iter().try_for_each(system::flush)?;
        if self.is_many {
            return self.any.flush_system();
        }
        self.directories.iter().try_for_each(|(_, directory)| directory.flush())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    fn add(unflushed: &Unflushed, directory: &Arc<Directory>, name: &str) {
        let made = directory.create_file(name.as_bytes(), 0o600).unwrap();
        unflushed.of_system(directory, |system| system.add_content(made)).unwrap();
    }

    fn held(unflushed: &Unflushed) -> (usize, usize, bool) {
        let systems = unflushed.systems.lock().unwrap();
        let [system] = &systems[..] else { panic!("{} file systems", systems.len()) };
        (system.contents.len(), system.directories.len(), system.is_many)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn few_are_flushed_by_themselves_and_many_by_one_call() {
        let root = tempfile::tempdir().unwrap();
        let here = Arc::new(Directory::open(root.path()).unwrap());
        let unflushed = Unflushed::default();
        for number in 0..FEW {
            add(&unflushed, &here, &format!("{number}"));
            unflushed.of_system(&here, |system| system.add_directory(7, &here)).unwrap();
        }
        assert_eq!(held(&unflushed), (FEW, 1, false));
        add(&unflushed, &here, "one more");
        unflushed.of_system(&here, |system| system.add_directory(8, &here)).unwrap();
        assert_eq!(held(&unflushed), (0, 0, true), "no file stays open");
        unflushed.flush().unwrap();
        assert_eq!(held(&unflushed), (0, 0, false));
    }

    #[test]
    fn more_directories_than_a_few_are_flushed_by_one_call() {
        let root = tempfile::tempdir().unwrap();
        let here = Arc::new(Directory::open(root.path()).unwrap());
        let unflushed = Unflushed::default();
        for place in 0..=FEW as Place {
            assert!(place == 0 || held(&unflushed) == (0, place as usize, false));
            unflushed.of_system(&here, |system| system.add_directory(place, &here)).unwrap();
        }
        assert_eq!(held(&unflushed), (0, 0, true));
    }

    #[test]
    fn existing_files_are_opened_only_to_be_flushed_one_by_one() {
        let root = tempfile::tempdir().unwrap();
        let here = Arc::new(Directory::open(root.path()).unwrap());
        let unflushed = Unflushed::default();
        let gone = || here.read_file(b"gone", false);
        unflushed.of_system(&here, |system| system.add_what_was_there(gone, 64)).unwrap();
        assert_eq!(held(&unflushed), (0, 0, true));
        let never = || panic!("it was opened");
        unflushed.of_system(&here, |system| system.add_what_was_there(never, 64)).unwrap();
    }
}
