//! Compares listings with existing files on its own thread, so that content does not wait.
//!
//! Creates directories and links at once. For each file, answers whether and how it is wanted.

mod directories;
mod files;
mod symlinks;

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};

use crate::directories::Place;
use crate::error::{Error, Result};
use crate::name::{self, printable};
use crate::receive::adopting::Elsewhere;
use crate::receive::basis::ToSign;
use crate::receive::deleting::Deletions;
use crate::receive::linking::Links;
use crate::receive::one_name::{Met, are_one};
use crate::receive::pending::Pending;
use crate::receive::shared::Receiving;
use crate::receive::small::Batch;
use crate::receive::stranger::{ListedSoFar, Stranger};
use crate::system::{self, Directory, Kind, Metadata, reason};
use crate::wire::{self, Answer, AnswerWriter, Entry, EntryId, EntryKind, Listing, Owner, TOP};

/// State for the end of the copy.
pub(super) struct Chosen {
    /// Directories by number.
    pub(super) facts: Vec<Facts>,
    pub(super) links: Links,
    pub(super) deletions: Deletions,
    /// Directories at the top that were started under new names.
    pub(super) begun: Vec<Box<[u8]>>,
}

/// Final state of a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub(super) state: State,
    /// Final attributes, if it is a part of the copy.
    pub(super) finally: Option<Finally>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Created by this copy, or by the real one in a dry run.
    New,
    /// Existed, with this mode.
    There { mode: u16 },
    /// Refused, with everything in it.
    Refused,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Finally {
    pub(super) modified_ns: i64,
    pub(super) mode: u16,
    pub(super) owner: Option<Owner>,
}

/// Maximum wait for more answers before sending the pending ones.
const ANSWER_AFTER: Duration = Duration::from_millis(50);

/// Maximum empty files per job.
const EMPTY_FILES: usize = 128;

/// Maximum attribute bytes of such a job.
const EMPTY_ATTRIBUTE_BYTES: usize = 1 << 20;

pub(super) struct Choosing<'a> {
    receiving: &'a Receiving,
    /// Queue of small files to create.
    small: Sender<Batch>,
    /// Queue of changed files to sign.
    to_sign: Sender<ToSign>,
    elsewhere: Elsewhere,
    next: EntryId,
    chosen: Chosen,
    /// Names of the present directory, if the rest will be deleted.
    listed: Option<Listed>,
    /// Names of the present directory that the file system may confuse.
    met: Met,
    empty: Vec<Pending>,
    empty_attribute_bytes: usize,
    answers: AnswerWriter,
    answered: Instant,
    /// Amount listed so far, compared with the offer.
    so_far: ListedSoFar,
}

impl<'a> Choosing<'a> {
    pub(super) fn new(
        receiving: &'a Receiving,
        small: Sender<Batch>,
        to_sign: Sender<ToSign>,
    ) -> Result<Self> {
        let state = if receiving.destination.is_new { State::New } else { State::There { mode: 0o755 } };
        Ok(Self {
            receiving,
            small,
            to_sign,
            elsewhere: Elsewhere::new(receiving),
            next: 0,
            chosen: Chosen {
                facts: vec![Facts { state, finally: None }],
                links: Links::default(),
                deletions: Deletions::default(),
                begun: Vec::new(),
            },
            listed: None,
            met: Met::default(),
            empty: Vec::new(),
            empty_attribute_bytes: 0,
            answers: AnswerWriter::default(),
            answered: Instant::now(),
            so_far: ListedSoFar::default(),
        })
    }

    /// Runs until no more names arrive.
    pub(super) fn run(mut self, listings: &Receiver<Vec<u8>>) -> Option<Chosen> {
        for body in listings {
            if self.receiving.is_stopped() {
                return None;
            }
            if let Err(error) = self.listing(&body) {
                self.receiving.fail(error);
                return None;
            }
            self.receiving.pending.listing_done(self.next);
        }
        (!self.receiving.is_stopped()).then_some(self.chosen)
    }

    fn listing(&mut self, body: &[u8]) -> Result<()> {
        let listing = Listing::decode(body, self.next)?;
        let place = listing.directory;
        let Some(facts) = self.chosen.facts.get(place as usize).copied() else {
            return Err(Error::Malformed { what: "a directory that was not listed" });
        };
        let directory = match facts.state {
            State::Refused => None,
            State::New if self.receiving.options.dry_run => None,
            _ => Some(self.receiving.directories.open(place)),
        };
        let directory = match directory.transpose() {
            Ok(directory) => directory,
            Err(error) => {
                let path = self.receiving.directories.path(place);
                self.receiving.leave_out(path, format!("the directory cannot be opened: {}", reason(&error)));
                self.chosen.facts[place as usize].state = State::Refused;
                None
            }
        };
        let at = At { place, state: self.chosen.facts[place as usize].state, directory };
        self.note_listed(&at, &listing)?;
        for entry in listing.entries {
            let id = self.next;
            self.next += 1;
            self.entry(&at, id, entry)?;
            if self.answered.elapsed() >= ANSWER_AFTER {
                self.send_answers();
            }
            if self.receiving.is_stopped() {
                return Ok(());
            }
        }
        self.make_empty();
        self.send_answers();
        Ok(())
    }

    fn entry(&mut self, at: &At, id: EntryId, entry: Entry) -> Result<()> {
        let is_file = matches!(entry.kind, EntryKind::File { bytes, .. } if bytes > 0);
        let name: Box<[u8]> = match &self.receiving.destination.new_name {
            Some(new) if at.place == TOP => {
                self.receiving.note_named(&entry.name);
                new.clone()
            }
            _ => entry.name.clone().into(),
        };
        let stranger = self.receiving.stranger.as_ref();
        if let Some(stranger) = stranger {
            stranger.count(&mut self.so_far, &entry)?;
        }
        let refused = match &entry.kind {
            EntryKind::Itself if at.place != TOP => {
                return Err(Error::Malformed { what: "a directory that describes itself" });
            }
            EntryKind::Itself => {
                self.itself(at, &entry);
                return Ok(());
            }
            _ if at.state == State::Refused => Some(None),
            kind => {
                let why = name::check(&name).and_then(|()| system::can_hold(&name)).err();
                let refuses = |it: &Stranger| it.refuses(at.place == TOP, &name, kind);
                why.or_else(|| stranger.and_then(refuses)).map(Some)
            }
        };
        if let Some(why) = refused {
            if let Some(why) = why {
                self.receiving.leave_out(self.receiving.directories.path_of(at.place, &name), why.to_owned());
            }
            if entry.kind == EntryKind::Directory {
                self.add_directory(at, &name, State::Refused, None)?;
            }
            if is_file {
                self.answer(Answer::Refused);
            }
            return Ok(());
        }
        if let Some(first) = self.one_with(at, &name)? {
            let path = self.receiving.directories.path_of(at.place, &name);
            let why = format!(
                "{} was copied, and the file system there takes both for one name",
                printable(&first)
            );
            self.receiving.leave_out(path, why);
            return self.refuse(at, &name, &entry.kind);
        }
        let there = match (at.state, &at.directory) {
            (State::There { .. }, Some(directory)) => match directory.metadata(&name) {
                Ok(metadata) => Some(metadata),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => {
                    self.receiving.name_failed(at.place, &name, "it cannot be looked at", &error);
                    return self.refuse(at, &name, &entry.kind);
                }
            },
            _ => None,
        };
        let is_our_folder = |there: &Metadata| at.place == TOP && self.receiving.partial.is_folder(there);
        if there.is_some_and(|there| there.kind == Kind::Directory && is_our_folder(&there)) {
            let path = self.receiving.directories.path_of(at.place, &name);
            self.receiving.leave_out(path, name::OWN.to_owned());
            return self.refuse(at, &name, &entry.kind);
        }
        match entry.kind {
            EntryKind::Directory => self.directory(at, &name, &entry, there),
            EntryKind::File { bytes, is_linked, touched } => {
                // No further names of it are taken from a stranger.
                let is_linked = is_linked && stranger.is_none();
                if is_linked {
                    self.chosen.links.remember(self.receiving, id, at.place, &name)?;
                }
                let listed = ListedFile { id, bytes, touched, is_linked };
                self.file(at, name, entry, there, listed)
            }
            EntryKind::Symlink { ref target } => {
                self.symlink(at, &name, &entry, target, there);
                Ok(())
            }
            EntryKind::HardLink { to } => {
                if self.make_room(at, &name, there, false) {
                    self.chosen.links.add(self.receiving, to, at.place, &name)?;
                }
                Ok(())
            }
            EntryKind::Itself => Ok(()),
        }
    }

    /// Earlier name in the same directory that denotes the same file there. A dry run creates no files and
    /// cannot know.
    fn one_with(&mut self, at: &At, name: &[u8]) -> Result<Option<Box<[u8]>>> {
        let receiving = self.receiving;
        let keeps_all = at.place == TOP && receiving.destination.of_several;
        let first = self.met.meet(at.place, name, keeps_all);
        if receiving.are_too_many(self.met.bytes()) {
            return Err(TOO_MANY_NAMES);
        }
        let directory = at.directory.as_ref().filter(|_| !receiving.options.dry_run);
        let Some((first, directory)) = first.zip(directory) else { return Ok(None) };
        let are_one = are_one(directory, &receiving.partial.name(), &first, name).unwrap_or(false);
        Ok(are_one.then_some(first))
    }

    fn refuse(&mut self, at: &At, name: &[u8], kind: &EntryKind) -> Result<()> {
        match kind {
            EntryKind::Directory => self.add_directory(at, name, State::Refused, None),
            EntryKind::File { bytes, .. } if *bytes > 0 => {
                self.answer(Answer::Refused);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Handles the directory whose contents were named as a source.
    fn itself(&mut self, at: &At, entry: &Entry) {
        let keeps_owners = self.receiving.keeps_owners;
        if let (State::There { .. }, Some(directory)) = (at.state, &at.directory)
            && let Ok(metadata) = directory.own_metadata()
        {
            self.chosen.facts[TOP as usize].state = State::There { mode: metadata.mode };
        }
        self.chosen.facts[TOP as usize].finally = Some(finally(entry, keeps_owners));
        self.attributes_of_directory(at.place, at.directory.as_ref(), &entry.attributes);
    }

    /// Whether the name is free for the new entry. A directory yields to nothing else, and nothing else
    /// yields to a directory. Devices, sockets and named pipes never yield. `force` overrides this.
    fn make_room(&self, at: &At, name: &[u8], there: Option<Metadata>, for_directory: bool) -> bool {
        let receiving = self.receiving;
        let is_in_way = |there: &Metadata| match there.kind {
            Kind::Directory => !for_directory,
            Kind::File | Kind::Symlink => for_directory,
            Kind::Special => true,
        };
        let Some(there) = there.filter(is_in_way) else { return true };
        let is_directory = there.kind == Kind::Directory;
        if !receiving.options.force {
            let what = match there.kind {
                Kind::Directory => "a directory",
                Kind::File | Kind::Symlink => "something that is not a directory",
                Kind::Special => "a device, a socket or a named pipe",
            };
            let path = receiving.directories.path_of(at.place, name);
            // Never for a sender without a login.
            let or_else = if receiving.stranger.is_some() { "" } else { ", or let it be removed (--force)" };
            receiving.leave_out(path, format!("{what} has its name there; remove it{or_else}"));
            return false;
        }
        let Some(directory) = at.directory.as_ref().filter(|_| !receiving.options.dry_run) else {
            return true;
        };
        let removed = if is_directory {
            super::deleting::remove_all(directory, name)
        } else {
            directory.remove_file(name)
        };
        if let Err(error) = &removed {
            receiving.name_failed(at.place, name, "what has its name there cannot be removed", error);
        }
        removed.is_ok()
    }

    /// Collects the names of a directory, then finds the other existing ones.
    fn note_listed(&mut self, at: &At, listing: &Listing) -> Result<()> {
        let receiving = self.receiving;
        let is_itself = |entry: &Entry| entry.kind == EntryKind::Itself;
        // At the top, only if the contents of a source were named.
        let counts = at.place != TOP
            || self.chosen.facts[TOP as usize].finally.is_some()
            || listing.entries.iter().any(is_itself);
        if !receiving.options.delete || !matches!(at.state, State::There { .. }) || !counts {
            return Ok(());
        }
        let listed = match self.listed.take().filter(|listed| listed.place == at.place) {
            Some(listed) => listed,
            None => Listed { place: at.place, ..Listed::default() },
        };
        let listed = self.listed.insert(listed);
        for Entry { name, .. } in &listing.entries {
            listed.names_bytes += name.len();
            listed.names.insert(Box::from(&name[..]));
        }
        if receiving.are_too_many(listed.names_bytes) {
            return Err(TOO_MANY_NAMES);
        }
        if listing.is_last
            && let Some(listed) = self.listed.take()
            && let (false, Some(directory)) = (listing.is_incomplete, &at.directory)
        {
            self.chosen.deletions.look(receiving, at.place, directory, &listed.names);
        }
        Ok(())
    }

    fn make_empty(&mut self) {
        self.empty_attribute_bytes = 0;
        if !self.empty.is_empty() {
            let _ = self.small.send(Batch::empty(std::mem::take(&mut self.empty)));
        }
    }

    fn answer(&mut self, answer: Answer) {
        if !self.receiving.is_fresh {
            self.answers.add(answer);
        }
    }

    fn send_answers(&mut self) {
        self.answered = Instant::now();
        if self.answers.answers() > 0 {
            self.receiving.say(wire::Kind::Answers, self.answers.take());
        }
    }
}

/// The present directory.
struct At {
    place: Place,
    state: State,
    /// `None` if there is nothing to compare with.
    directory: Option<Arc<Directory>>,
}

/// Names of one directory that a sender has listed.
#[derive(Default)]
struct Listed {
    place: Place,
    names: HashSet<Box<[u8]>>,
    names_bytes: usize,
}

const TOO_MANY_NAMES: Error = Error::Malformed { what: "more names of one directory than are taken" };

/// Fields that only files have.
struct ListedFile {
    id: EntryId,
    bytes: u64,
    touched: u64,
    is_linked: bool,
}

fn finally(entry: &Entry, keeps_owners: bool) -> Finally {
    let owner = entry.owner.filter(|_| keeps_owners);
    Finally { modified_ns: entry.modified_ns, mode: entry.mode, owner }
}
