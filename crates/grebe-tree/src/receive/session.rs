//! A copy at the receiving end: wanted files, their destinations, and the reports to both ends.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crossbeam_channel::Sender;
use grebe_packet::Cancel;

use crate::delta::SharedIndex;
use crate::directories::{Directories, Place};
use crate::error::{Error, Result};
use crate::exclude::Exclude;
use crate::handover::Handover;
use crate::options::Options;
use crate::progress::{Done, Progress, add};
use crate::receive::destination::Destination;
use crate::receive::partial::{Partial, Temporary};
use crate::receive::pending::{Held, Pending};
use crate::receive::rates::Measured;
use crate::receive::stranger::{Stranger, is_in_the_way};
use crate::receive::volumes::{Abilities, Volume, Volumes, try_it};
use crate::report::{LeftOutList, Report};
use crate::system::{Directory, is_full, reason};
use crate::wire::{Attribute, EntryId, Kind, Note};

pub(super) struct Session {
    pub(super) options: Options,
    pub(super) exclude: Exclude,
    pub(super) destination: Destination,
    pub(super) directories: Directories,
    /// Name at the source that is renamed here.
    named: OnceLock<Box<[u8]>>,
    pub(super) partial: Partial,
    pub(super) handover: Option<Handover>,
    /// The sender does not wait for answers.
    pub(super) is_fresh: bool,
    pub(super) keeps_owners: bool,
    pub(super) progress: Arc<Progress>,
    pub(super) cancel: Cancel,
    pub(super) left_out: LeftOutList,
    /// A name is missing, or lacks its content.
    pub(super) is_lacking: AtomicBool,
    pub(super) done: Counters,
    to_sender: Sender<Option<(Kind, Vec<u8>)>>,
    pub(super) abilities: Abilities,
    pub(super) volumes: Volumes,
    held_bytes: Arc<AtomicUsize>,
    pub(super) index: SharedIndex,
    pub(super) measured: Arc<Measured>,
    /// The sender, if it has no login here.
    pub(super) stranger: Option<Stranger>,
    /// Complete files with further names to come.
    good: Mutex<HashSet<EntryId>>,
    stopped: AtomicBool,
    failure: Mutex<Option<Error>>,
}

/// Counters of results.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) files_copied: AtomicU64,
    pub(super) bytes_copied: AtomicU64,
    pub(super) files_same: AtomicU64,
    pub(super) bytes_same: AtomicU64,
    pub(super) directories_made: AtomicU64,
    pub(super) links_made: AtomicU64,
    pub(super) deleted: AtomicU64,
    pub(super) data_bytes: AtomicU64,
    pub(super) disk_us: AtomicU64,
}

impl Session {
    #[allow(clippy::too_many_arguments, reason = "called once, with all parts of the session")]
    pub(super) fn new(
        options: Options,
        destination: Destination,
        directories: Directories,
        is_fresh: bool,
        handover: Option<Handover>,
        progress: Arc<Progress>,
        cancel: Cancel,
        to_sender: Sender<Option<(Kind, Vec<u8>)>>,
        measured: Arc<Measured>,
        stranger: Option<Stranger>,
    ) -> Result<Self> {
        let exclude = Exclude::new(&options.exclude)?;
        let root = directories.open(crate::wire::TOP).map_err(|source| Error::File {
            action: "open",
            path: destination.path.clone(),
            source,
        })?;
        Ok(Self {
            keeps_owners: options.owners && crate::system::is_root(),
            partial: Partial::new(root),
            exclude,
            options,
            destination,
            directories,
            named: OnceLock::new(),
            handover,
            is_fresh,
            progress,
            cancel,
            left_out: LeftOutList::default(),
            is_lacking: AtomicBool::new(false),
            done: Counters::default(),
            to_sender,
            abilities: Abilities::default(),
            volumes: Volumes::default(),
            held_bytes: Arc::default(),
            index: SharedIndex::default(),
            measured,
            stranger,
            good: Mutex::default(),
            stopped: AtomicBool::new(false),
            failure: Mutex::new(None),
        })
    }

    /// Whether an error occurred, or the copy was cancelled.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire) || self.cancel.is_cancelled()
    }

    /// Whether a file replaces an existing one of its name.
    pub(super) fn replaces(&self) -> bool {
        self.stranger.as_ref().is_none_or(|stranger| stranger.overwrite)
    }

    /// Gives a complete file its name.
    pub(super) fn give_name(
        &self,
        temporary: &mut Temporary,
        into: &Directory,
        name: &[u8],
    ) -> io::Result<()> {
        if self.replaces() {
            return temporary.rename(into, name);
        }
        temporary.rename_to_free(into, name).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => is_in_the_way(),
            _ => error,
        })
    }

    /// Whether a table with names of this many bytes, however they were listed, takes too much memory.
    pub(super) fn are_too_many(&self, names_bytes: usize) -> bool {
        names_bytes > if self.stranger.is_some() { STRANGERS_NAMES_BYTES_MAX } else { NAMES_BYTES_MAX }
    }

    /// Whether this much of a file exceeds the offer.
    pub(super) fn is_too_much(&self, file: &Pending, end: u64) -> bool {
        self.stranger.is_some() && end > file.bytes
    }

    /// Ends the copy. The first reason is reported.
    pub(super) fn fail(&self, error: Error) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stopped.store(true, Ordering::Release);
    }

    /// Reason for the end.
    pub(super) fn failure(&self) -> Option<Error> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.or_else(|| self.cancel.is_cancelled().then_some(Error::Cancelled))
    }

    /// Sends a message to the sender, if it is still there.
    pub(super) fn say(&self, kind: Kind, body: Vec<u8>) {
        let _ = self.to_sender.send(Some((kind, body)));
    }

    /// Sends the last message, or none.
    pub(super) fn say_last(&self, message: Option<(Kind, Vec<u8>)>) {
        if message.is_some() {
            let _ = self.to_sender.send(message);
        }
        let _ = self.to_sender.send(None);
    }

    /// Keeps the attributes of a file until it arrives. Senders of earlier versions may exceed the room.
    pub(super) fn hold(&self, attributes: Vec<Attribute>, name: impl FnOnce() -> Vec<u8>) -> Arc<Held> {
        let (held, fits) = Held::new(attributes, &self.held_bytes);
        if !fits {
            let why =
                "its attributes are not set: those of all files that wait take too much memory; copy again";
            self.blemish(name(), why.to_owned());
            return Arc::default();
        }
        Arc::new(held)
    }

    /// File system of a directory, if it has this device number. Without a probe it counts as capable.
    pub(super) fn volume(&self, device: u64, place: Place) -> Arc<Volume> {
        self.volumes.of(device, || {
            let directory = self.partial.beside(&self.directories.open(place)?)?;
            try_it(&directory, &self.partial.name(), self.keeps_owners)
        })
    }

    /// Skips a name; both ends report it.
    pub(super) fn leave_out(&self, name: Vec<u8>, why: String) {
        self.is_lacking.store(true, Ordering::Release);
        self.blemish(name, why);
    }

    /// Reports at both ends that a name lacks some of its attributes.
    pub(super) fn blemish(&self, name: Vec<u8>, why: String) {
        let note = Note { name, words: why };
        self.say(Kind::LeftOut, note.encode());
        self.left_out.add(&self.progress, note.name, note.words);
    }

    /// Handles a failure of one name. A full disk ends the whole copy.
    pub(super) fn name_failed(&self, place: Place, name: &[u8], what: &str, error: &io::Error) {
        if is_full(error) {
            self.fail(Error::NoRoom { path: self.destination.path.clone() });
        } else {
            self.leave_out(self.directories.path_of(place, name), format!("{what}: {}", reason(error)));
        }
    }

    pub(super) fn file_failed(&self, file: &Pending, error: &io::Error) {
        self.name_failed(file.place, &file.name, "it cannot be written", error);
    }

    /// Notes the name of the source that is renamed here.
    pub(super) fn note_named(&self, name: &[u8]) {
        let _ = self.named.set(name.into());
    }

    /// Path at the source, because exclude patterns refer to names there.
    pub(super) fn path_at_source<'a>(&self, path: &'a [u8]) -> Cow<'a, [u8]> {
        let (Some(new), Some(named)) = (&self.destination.new_name, self.named.get()) else {
            return Cow::Borrowed(path);
        };
        match path.strip_prefix(&**new) {
            Some(rest) if rest.first().is_none_or(|next| *next == b'/') => Cow::Owned([named, rest].concat()),
            _ => Cow::Borrowed(path),
        }
    }

    /// Reports a file that has its name and was flushed as required.
    pub(super) fn copied(&self, file: &Pending, bytes: u64) {
        self.note_good(file);
        add(&self.done.files_copied, 1);
        add(&self.done.bytes_copied, bytes);
        add(&self.progress.files_done, 1);
        self.tell(file.place, &file.name, Done::Copied, bytes);
    }

    /// Reports a file that existed already.
    pub(super) fn same(&self, file: &Pending) {
        self.note_good(file);
        let bytes = file.bytes;
        for (ours, shown, more) in [
            (&self.done.files_same, &self.progress.files_same, 1),
            (&self.done.bytes_same, &self.progress.bytes_same, bytes),
        ] {
            add(ours, more);
            add(shown, more);
        }
        add(&self.progress.files_done, 1);
        add(&self.progress.bytes_done, bytes);
        self.tell(file.place, &file.name, Done::Same, bytes);
    }

    /// Notes that a file has its content, so that it may get further names.
    pub(super) fn note_good(&self, file: &Pending) {
        if file.is_linked {
            self.good.lock().unwrap_or_else(PoisonError::into_inner).insert(file.id);
        }
    }

    /// Whether a file with further names is complete.
    pub(super) fn is_good(&self, id: EntryId) -> bool {
        self.good.lock().unwrap_or_else(PoisonError::into_inner).contains(&id)
    }

    pub(super) fn tell(&self, place: Place, name: &[u8], done: Done<'_>, bytes: u64) {
        if self.progress.is_told() {
            self.progress.tell(&self.directories.path_of(place, name), done, bytes);
        }
    }
}

/// Maximum bytes of the names of directories, of hard links, and of the names of one directory.
const NAMES_BYTES_MAX: usize = 1 << 30;
const STRANGERS_NAMES_BYTES_MAX: usize = 256 << 20;

impl Counters {
    pub(super) fn report(&self) -> Report {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Report {
            files_copied: read(&self.files_copied),
            bytes_copied: read(&self.bytes_copied),
            files_same: read(&self.files_same),
            bytes_same: read(&self.bytes_same),
            directories_made: read(&self.directories_made),
            links_made: read(&self.links_made),
            deleted: read(&self.deleted),
            data_bytes: read(&self.data_bytes),
            ..Report::default()
        }
    }
}
