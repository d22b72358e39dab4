//! A file in the making, in a folder beside its place, with a note of its source and its progress. An
//! interrupted conversion continues there.
//!
//! ```text
//!   x.wav.part/x.wav       written at the rate of the disk
//!   x.wav.part/note.json   source and good length; every two seconds, after the data are on the disk
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::disk::{Appender, Disk, DiskFile, WriteMethod};
use crate::error::Error;
use crate::output::{NameLock, followed};

/// A file that is being made.
#[derive(Debug)]
pub(super) struct Part {
    /// The requested path, and its resolved target.
    path: PathBuf,
    place: PathBuf,
    folder: PathBuf,
    disk: Disk,
    end: Appender,
    /// Appended so far.
    bytes: u64,
    /// The next mark to note once written, and the time of the last note.
    pending: Option<Mark>,
    looked: Instant,
    keeper: Option<Keeper>,
    _name: NameLock,
}

/// How far a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Mark {
    /// Good bytes of the file.
    pub(super) bytes: u64,
    /// Samples per channel in these bytes.
    pub(super) samples: u64,
}

/// Note beside a part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Note {
    /// Source and options.
    made_from: Value,
    good: Mark,
}

/// A thread that brings the file to the disk, then notes how far it is.
#[derive(Debug)]
struct Keeper {
    marks: Sender<Mark>,
    thread: JoinHandle<()>,
    noted_samples: Arc<AtomicU64>,
}

impl Part {
    /// Begins the file that will be `to`, or continues one begun from the same source; returns its progress.
    /// `bytes`: its final size, if known.
    pub(super) fn begin(
        to: &Path,
        made_from: Value,
        bytes: Option<u64>,
        overwrite: bool,
    ) -> Result<(Self, Mark), Error> {
        let failed = Error::file("create", to);
        let place = followed(to).map_err(&failed)?;
        let refused = |what: &str| Err(Error::Content { path: to.into(), what: what.to_owned() });
        let name = NameLock::take(beside(&place, ".", ".lock"), to)?;
        if let Ok(there) = place.symlink_metadata() {
            if !there.is_file() {
                return refused("is not a regular file, and is not replaced: choose another name");
            }
            if !overwrite {
                return Err(Error::Exists { path: to.into() });
            }
        }
        let folder = beside(&place, "", ".part");
        let data = folder.join(place.file_name().unwrap_or_default());
        let mut good = open_folder(&folder, &made_from, overwrite)?;
        if good.samples == 0 {
            // Discards even the header.
            good = Mark::default();
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&data);
        let file = file.map_err(&failed)?;
        if file.metadata().map_err(&failed)?.len() < good.bytes {
            // A file system that came back without it.
            good = Mark::default();
        }
        let note = Note { made_from, good };
        note.write(&folder).map_err(&failed)?;
        file.set_len(good.bytes).map_err(&failed)?;
        let keeper = Keeper::start(folder.clone(), note);
        let mut disk = Disk::start(BUFFER_BYTES, 1, WriteMethod::Best).map_err(&failed)?;
        let mut behind = file.try_clone().map_err(&failed)?;
        let tail_of = |file: &mut File, alignment: u64| {
            let mut tail = Vec::new();
            file.seek(SeekFrom::Start(good.bytes - good.bytes % alignment))?;
            file.read_to_end(&mut tail)?;
            io::Result::Ok(tail)
        };
        // Past the page cache, the tail could not be read.
        let longest = tail_of(&mut behind, TAIL_BYTES_MAX).map_err(&failed)?;
        let file = DiskFile::new(data, file, disk.is_direct(), false, false).begun(good.bytes);
        let file = match bytes {
            Some(bytes) => file.expecting(bytes),
            None => file,
        };
        let tail_bytes = (good.bytes % file.alignment() as u64) as usize;
        let tail = &longest[longest.len() - tail_bytes..];
        let end = disk.append_behind(file, tail).map_err(&failed)?;
        let keeper = keeper(end.file().clone()).map_err(&failed)?;
        let part = Self {
            path: to.to_owned(),
            place,
            folder,
            disk,
            end,
            bytes: good.bytes,
            pending: None,
            looked: Instant::now(),
            keeper: Some(keeper),
            _name: name,
        };
        Ok((part, good))
    }

    /// Bytes that can be appended at once; 0 until [`make_room`](Self::make_room) was called.
    pub(super) fn room(&self) -> usize {
        self.end.room()
    }

    /// Gets memory for more; waits while the disk has all of it.
    pub(super) fn make_room(&mut self) -> Result<(), Error> {
        self.end.make_room(&mut self.disk).map_err(|source| self.failed(source))
    }

    /// The next `length` bytes, to be written by the caller; there is room.
    pub(super) fn extend(&mut self, length: usize) -> &mut [u8] {
        self.bytes += length as u64;
        self.end.extend(length)
    }

    /// Appends bytes, however many.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes += bytes.len() as u64;
        self.end.write(&mut self.disk, bytes).map_err(|source| self.failed(source))
    }

    /// Marks the appended bytes as `samples` samples per channel.
    pub(super) fn note(&mut self, samples: u64) {
        match self.pending {
            Some(mark) if self.end.file().good_bytes() >= mark.bytes => {
                if let Some(keeper) = &self.keeper {
                    let _ = keeper.marks.send(mark);
                }
                self.pending = None;
            }
            None if self.looked.elapsed() > NOTE_EVERY => {
                self.looked = Instant::now();
                self.pending = Some(Mark { bytes: self.bytes, samples });
            }
            _ => {}
        }
    }

    /// Leaves the part for a later run, at `samples` samples per channel.
    pub(super) fn leave(mut self, samples: u64) {
        self.end.finish(&self.disk);
        self.end.file().settle();
        let mark = Mark { bytes: self.bytes, samples };
        if self.end.file().good_bytes() >= mark.bytes
            && let Some(keeper) = &self.keeper
        {
            let _ = keeper.marks.send(mark);
        }
    }

    /// Removes it: the same again would fail again.
    pub(super) fn remove(mut self) {
        self.settle();
        let _ = fs::remove_dir_all(&self.folder);
    }

    /// Gives the file, which is complete, its name once it is on the disk.
    pub(super) fn publish(mut self) -> Result<(), Error> {
        self.end.finish(&self.disk);
        let file = self.end.file().clone();
        file.settle();
        if let Some(source) = file.failure() {
            return Err(self.failed(source));
        }
        file.close(self.bytes).map_err(|source| self.failed(source))?;
        self.keeper.take().map(Keeper::join);
        fs::rename(file.path(), &self.place).map_err(Error::file("create", &self.path))?;
        // The remaining files are empty.
        let _ = fs::remove_dir_all(&self.folder);
        if cfg!(unix) {
            // Makes the name survive a loss of power, if the system can.
            let folder = self.place.parent().filter(|folder| !folder.as_os_str().is_empty());
            let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }

    fn failed(&self, source: io::Error) -> Error {
        let good_samples = self.keeper.as_ref().map_or(0, Keeper::noted_samples);
        Error::Write { path: self.path.clone(), source, good_samples }
    }

    /// Waits for pending writes and for the note; returns the sample up to which the note guarantees the data.
    fn settle(&mut self) -> Option<u64> {
        self.end.finish(&self.disk);
        let file = self.end.file();
        file.settle();
        if file.path().exists() {
            // Returns the reserved room. If that fails, a later run can use it.
            let _ = file.file().set_len(file.good_bytes());
        }
        self.keeper.take().map(Keeper::join)
    }

    #[cfg(test)]
    pub(super) fn limit(&self, bytes: u64) {
        self.end.file().limit(bytes);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.settle() == Some(0) {
            // Nothing to resume.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

impl Note {
    fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.join(NOTE)).ok()?).ok()
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        let beside = folder.join(".note.json");
        let mut file = File::create(&beside)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.sync_all()?;
        fs::rename(&beside, folder.join(NOTE))
    }
}

impl Keeper {
    /// Begins, once the file is there.
    fn start(folder: PathBuf, mut note: Note) -> impl FnOnce(Arc<DiskFile>) -> io::Result<Self> {
        move |file| {
            let (marks, inbox) = channel();
            let noted_samples = Arc::new(AtomicU64::new(note.good.samples));
            let noted = noted_samples.clone();
            let keep = move || {
                while let Ok(mark) = inbox.recv() {
                    note.good = inbox.try_iter().last().unwrap_or(mark);
                    // A failed note is retried later. Without it, less of the part counts as good.
                    if file.sync().is_ok() && note.write(&folder).is_ok() {
                        noted.store(note.good.samples, Ordering::Relaxed);
                    }
                }
            };
            let thread = std::thread::Builder::new().name("converter's note".into()).spawn(keep)?;
            Ok(Self { marks, thread, noted_samples })
        }
    }

    fn noted_samples(&self) -> u64 {
        self.noted_samples.load(Ordering::Relaxed)
    }

    /// Waits until all is noted; how many samples per channel are.
    fn join(self) -> u64 {
        drop(self.marks);
        // A panic of the thread is already printed; its notes stay.
        let _ = self.thread.join();
        self.noted_samples.load(Ordering::Relaxed)
    }
}

/// Creates the folder, or finds a resumable conversion in it.
fn open_folder(folder: &Path, made_from: &Value, overwrite: bool) -> Result<Mark, Error> {
    let failed = Error::file("create", folder);
    let refused = |what: String| Err(Error::Content { path: folder.into(), what });
    match fs::create_dir(folder) {
        Ok(()) => return Ok(Mark::default()),
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        Err(_) => {}
    }
    match Note::read(folder) {
        Some(note) if note.made_from == *made_from => Ok(note.good),
        Some(_) if overwrite => {
            fs::remove_dir_all(folder).and_then(|()| fs::create_dir(folder)).map_err(failed)?;
            Ok(Mark::default())
        }
        Some(note) => refused(format!(
            "was started from {}, with other options or other content: remove it, or start again with --overwrite",
            note.origin()
        )),
        // As one leaves it that was killed at once.
        None if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none()) => Ok(Mark::default()),
        None => {
            refused("exists, and is not a part of a conversion: move it, or choose another name".to_owned())
        }
    }
}

impl Note {
    /// The file that it is made from, for a person.
    fn origin(&self) -> String {
        let path = &self.made_from["files"][0]["path"];
        path.as_str().map_or_else(|| "something else".to_owned(), str::to_owned)
    }
}

/// A name around that of a file.
pub(super) fn beside(place: &Path, before: &str, behind: &str) -> PathBuf {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    place.with_file_name(format!("{before}{name}{behind}"))
}

const NOTE: &str = "note.json";
/// Covers a disk stall of about a second.
const BUFFER_BYTES: usize = 128 << 20;
/// Bounds the loss of a killed converter. Each note waits until all written data are on the disk, which takes
/// half a second at the disk's full rate.
const NOTE_EVERY: Duration = Duration::from_secs(2);
/// Every alignment divides it.
const TAIL_BYTES_MAX: u64 = 64 << 10;
