//! Creates directories as they are listed, before their contents.

use std::io;
use std::sync::Arc;

use super::{At, Choosing, Facts, Finally, State, finally};
use crate::directories::Place;
use crate::error::{Error, Result};
use crate::name::DEPTH_MAX;
use crate::progress::{Done, add};
use crate::receive::partial::{is_unfinished, note_new};
use crate::receive::stranger::EXISTS;
use crate::system::{self, Directory, Kind, Metadata, reason};
use crate::wire::{Attribute, Entry, TOP};

/// Maximum directories that fit into memory comfortably.
const DIRECTORIES_MAX: usize = 1 << 24;

impl Choosing<'_> {
    pub(super) fn directory(
        &mut self,
        at: &At,
        name: &[u8],
        entry: &Entry,
        there: Option<Metadata>,
    ) -> Result<()> {
        let receiving = self.receiving;
        let is_there = there.is_some_and(|there| there.kind == Kind::Directory);
        if receiving.directories.depth(at.place) >= DEPTH_MAX {
            let path = receiving.directories.path_of(at.place, name);
            receiving.leave_out(path, "too many directories inside one another".to_owned());
            return self.add_directory(at, name, State::Refused, None);
        }
        if !self.make_room(at, name, there, true) {
            return self.add_directory(at, name, State::Refused, None);
        }
        let finally = Some(finally(entry, receiving.keeps_owners));
        let Some(directory) = at.directory.as_ref().filter(|_| !receiving.options.dry_run) else {
            if !is_there {
                self.made_directory(at, name);
            }
            let state = if is_there { State::There { mode: 0o755 } } else { State::New };
            return self.add_directory(at, name, state, finally);
        };
        let begun = || is_unfinished(directory, name).unwrap_or(false);
        if is_there && at.place == TOP && !receiving.replaces() && !begun() {
            receiving.leave_out(receiving.directories.path_of(at.place, name), EXISTS.to_owned());
            return self.add_directory(at, name, State::Refused, None);
        }
        if is_there && at.place == TOP && self.marks_new() && begun() {
            self.chosen.begun.push(name.into());
        }
        if let Some(there) = there.filter(|_| is_there) {
            // Without access nothing could be created in it. At the end it gets its old mode, or the
            // source's.
            let must_open = there.mode & 0o700 != 0o700 && !system::is_root();
            let opened = match must_open {
                true => directory.open_below(name).and_then(|below| below.set_own_mode(there.mode | 0o700)),
                false => Ok(()),
            };
            if let Err(error) = opened {
                receiving.name_failed(at.place, name, "nothing can be put into it", &error);
                return self.add_directory(at, name, State::Refused, None);
            }
            let place = self.chosen.facts.len() as Place;
            self.add_directory(at, name, State::There { mode: there.mode }, finally)?;
            self.attributes_of_directory(place, None, &entry.attributes);
            return Ok(());
        }
        if let Err(error) = self.make_directory(at, directory, name, entry.mode | 0o700) {
            receiving.name_failed(at.place, name, "the directory cannot be made", &error);
            return self.add_directory(at, name, State::Refused, None);
        }
        self.made_directory(at, name);
        let place = self.chosen.facts.len() as Place;
        self.add_directory(at, name, State::New, finally)?;
        self.attributes_of_directory(place, None, &entry.attributes);
        Ok(())
    }

    fn make_directory(&mut self, at: &At, directory: &Directory, name: &[u8], mode: u16) -> io::Result<()> {
        if at.place != TOP || !self.marks_new() {
            directory.create_directory(name, mode)?;
        } else {
            self.chosen.begun.push(name.into());
            let mark = self.receiving.partial.begin_new(name)?;
            directory.create_directory(name, mode)?;
            note_new(&mark, directory, name)?;
        }
        self.receiving.flushing.made_directory(self.receiving, at.place);
        Ok(())
    }

    /// Whether to mark new directories at the top, so that only a copy like this one resumes in them.
    fn marks_new(&self) -> bool {
        self.receiving.destination.new_name.is_some() || self.receiving.stranger.is_some()
    }

    fn made_directory(&self, at: &At, name: &[u8]) {
        add(&self.receiving.done.directories_made, 1);
        self.receiving.tell(at.place, name, Done::Made, 0);
    }

    pub(super) fn add_directory(
        &mut self,
        at: &At,
        name: &[u8],
        state: State,
        finally: Option<Finally>,
    ) -> Result<()> {
        let directories = &self.receiving.directories;
        if self.chosen.facts.len() >= DIRECTORIES_MAX
            || self.receiving.are_too_many(directories.names_bytes())
        {
            return Err(Error::Malformed { what: "more directories than are taken" });
        }
        directories.add(at.place, name);
        self.chosen.facts.push(Facts { state, finally });
        Ok(())
    }

    pub(super) fn attributes_of_directory(
        &self,
        place: Place,
        directory: Option<&Arc<Directory>>,
        attributes: &[Attribute],
    ) {
        let receiving = self.receiving;
        if !receiving.options.attributes || receiving.options.dry_run {
            return;
        }
        let set = match directory {
            Some(directory) => directory.set_own_attributes(attributes),
            None => receiving.directories.open(place).and_then(|open| open.set_own_attributes(attributes)),
        };
        if let Err(error) = set {
            let path = receiving.directories.path(place);
            receiving.blemish(path, format!("its attributes cannot be set: {}", reason(&error)));
        }
    }
}
