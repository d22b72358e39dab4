//! An incomplete summary file: it has a temporary name beside its final one, and is removed on failure.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::format::{HEAD_BYTES, Head, Kind};
use super::place::beside;

/// A file that is written from its beginning to its end; its head comes last.
#[derive(Debug)]
pub(super) struct PartFile {
    file: File,
    /// Temporary path, and final path.
    temporary: PathBuf,
    path: PathBuf,
    is_whole: bool,
}

impl PartFile {
    /// Begins a file that will be called `path`, with room for its head.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        remove_left_over(path);
        // One of two that make the same is the last.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_file_name(format!(".{name}.{}.{number}{PART}", std::process::id()));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&temporary)?;
        if cfg!(unix) {
            // Marks it as being written; a file system without locks does not block anyone.
            let _ = file.try_lock();
        }
        file.write_all(&[0; HEAD_BYTES])?;
        Ok(Self { file, temporary, path: path.to_owned(), is_whole: false })
    }

    /// The same file, to read what was written.
    pub(super) fn reader(&self) -> io::Result<File> {
        File::open(&self.temporary)
    }

    /// Its final path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Writes the head, and gives the file its name.
    pub(super) fn finish(mut self, head: &Head) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&head.encode())?;
        fs::rename(&self.temporary, &self.path)?;
        self.is_whole = true;
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.is_whole {
            // Useless; if it cannot be removed, it only takes space.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Removes the parts of a recording's summaries that killed processes left beside it.
pub(crate) fn remove_parts_of(recording: &Path) {
    for kind in Kind::ALL {
        remove_left_over(&beside(recording, kind));
    }
}

/// Removes files of killed processes: they hold no lock any more.
fn remove_left_over(path: &Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_ours = |file: &str| file.starts_with(&format!(".{name}.")) && file.ends_with(PART);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_left = || {
            let mut options = OpenOptions::new();
            options.write(true);
            // A lock would keep its own writer from reading it.
            #[cfg(windows)]
            std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 0);
            let file = options.open(entry.path()).ok()?;
            if cfg!(unix) { file.try_lock().ok() } else { Some(()) }
        };
        if entry.file_name().to_str().is_some_and(is_ours) && is_left().is_some() {
            // A process that cannot remove it cannot write here either.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// How a summary is called that is not whole.
const PART: &str = ".part";
