//! Deletes names at the destination that the source lacks.

use std::collections::HashSet;
use std::io;

use crate::directories::Place;
use crate::name::{is_own, join};
use crate::progress::{Done, add};
use crate::receive::one_name::spare_listed;
use crate::receive::shared::Receiving;
use crate::system::{Directory, Kind};
use crate::wire::{self, Note};

/// Names to remove at the end. Each takes 8 bytes and its name.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    names: Vec<u8>,
}

impl Deletions {
    /// Notes the names in a directory that were not listed.
    pub(super) fn look(
        &mut self,
        receiving: &Receiving,
        place: Place,
        directory: &Directory,
        listed: &HashSet<Box<[u8]>>,
    ) {
        let there = match directory.names() {
            Ok(there) => there,
            Err(error) => {
                return receiving.name_failed(place, b"", "what is in it cannot be read", &error);
            }
        };
        let is_unlisted = |name: &&[u8]| !listed.contains(*name) && !is_own(name);
        let unlisted = there.iter().map(|name| &*name.bytes).filter(is_unlisted);
        let mut unlisted: Vec<Box<[u8]>> = unlisted.map(Box::from).collect();
        if unlisted.is_empty() {
            return;
        }
        match spare_listed(directory, &there, listed, &mut unlisted) {
            Ok(true) => {}
            Ok(false) => {
                let why = "nothing is removed in it: some of it was copied, and has other names there";
                return receiving.blemish(receiving.directories.path(place), why.to_owned());
            }
            Err(error) => {
                return receiving.name_failed(place, b"", "what is in it cannot be read", &error);
            }
        }
        for name in unlisted {
            self.names.extend_from_slice(&place.to_ne_bytes());
            self.names.extend_from_slice(&(name.len() as u32).to_ne_bytes());
            self.names.extend_from_slice(&name);
        }
    }

    /// Whether there is nothing to remove.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Removes the noted names.
    pub(super) fn remove(&self, receiving: &Receiving) {
        let mut rest = &self.names[..];
        while let Some((place, after)) = rest.split_first_chunk::<4>()
            && let Some((length, after)) = after.split_first_chunk::<4>()
            && let Some((name, after)) = after.split_at_checked(u32::from_ne_bytes(*length) as usize)
        {
            rest = after;
            if receiving.is_stopped() {
                return;
            }
            let place = Place::from_ne_bytes(*place);
            let path = receiving.directories.path_of(place, name);
            let removed = receiving
                .directories
                .open(place)
                .and_then(|directory| remove_but_excluded(receiving, &directory, name, &path));
            match removed {
                Ok(_) => receiving.flushing.names_changed(receiving, place),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => receiving.name_failed(place, name, "it cannot be removed", &error),
            }
        }
    }
}

/// Removes a tree except for excluded names and their directories. Returns whether all of it is gone.
fn remove_but_excluded(
    receiving: &Receiving,
    directory: &Directory,
    name: &[u8],
    path: &[u8],
) -> io::Result<bool> {
    let is_directory = directory.metadata(name)?.kind == Kind::Directory;
    if is_own(name) || receiving.exclude.matches(&receiving.path_at_source(path), is_directory) {
        return Ok(false);
    }
    if is_directory {
        let below = directory.open_below(name)?;
        let mut is_empty = true;
        for inner in below.names()? {
            is_empty &= remove_but_excluded(receiving, &below, &inner.bytes, &join(path, &inner.bytes))?;
        }
        if !is_empty {
            return Ok(false);
        }
    }
    if !receiving.options.dry_run {
        if is_directory {
            directory.remove_directory(name)?
        } else {
            directory.remove_file(name)?
        };
    }
    add(&receiving.done.deleted, 1);
    receiving.progress.tell(path, Done::Deleted, 0);
    receiving.say(wire::Kind::Deleted, Note { name: path.to_vec(), words: String::new() }.encode());
    Ok(true)
}

/// Removes a directory and everything in it, without following links.
pub(super) fn remove_all(directory: &Directory, name: &[u8]) -> io::Result<()> {
    if directory.metadata(name)?.kind != Kind::Directory {
        return directory.remove_file(name);
    }
    let below = directory.open_below(name)?;
    for inner in below.names()? {
        remove_all(&below, &inner.bytes)?;
    }
    directory.remove_directory(name)
}
