//! Makes hard links once their files exist.

use std::collections::HashMap;
use std::io;

use crate::directories::Place;
use crate::error::{Error, Result};
use crate::progress::{Done, add};
use crate::receive::session::Session;
use crate::receive::shared::Receiving;
use crate::system::{Kind, Metadata};
use crate::wire::EntryId;

/// Files with further names, and those names.
#[derive(Debug, Default)]
pub(super) struct Links {
    firsts: HashMap<EntryId, (Place, Box<[u8]>)>,
    links: Vec<Link>,
    names_bytes: usize,
}

#[derive(Debug)]
struct Link {
    to: EntryId,
    place: Place,
    name: Box<[u8]>,
}

/// Maximum links that fit into memory comfortably.
const LINKS_MAX: usize = 1 << 24;

impl Links {
    /// Remembers a file with further names.
    pub(super) fn remember(
        &mut self,
        session: &Session,
        id: EntryId,
        place: Place,
        name: &[u8],
    ) -> Result<()> {
        self.firsts.insert(id, (place, name.into()));
        self.check(session, name)
    }

    pub(super) fn add(&mut self, session: &Session, to: EntryId, place: Place, name: &[u8]) -> Result<()> {
        self.links.push(Link { to, place, name: name.into() });
        self.check(session, name)
    }

    /// Makes the links, only to files that this copy created or verified.
    pub(super) fn make(&self, receiving: &Receiving) {
        for link in &self.links {
            if receiving.is_stopped() {
                return;
            }
            let first = self.firsts.get(&link.to).filter(|_| receiving.is_good(link.to));
            let Some((place, name)) = first else {
                let path = receiving.directories.path_of(link.place, &link.name);
                receiving.leave_out(path, "the file that it is another name of was not copied".to_owned());
                continue;
            };
            match link.make(receiving, *place, name) {
                Ok(false) => {}
                Ok(true) => {
                    receiving.flushing.names_changed(receiving, link.place);
                    add(&receiving.done.links_made, 1);
                    receiving.tell(link.place, &link.name, Done::Made, 0);
                }
                Err(error) => {
                    receiving.name_failed(link.place, &link.name, "the hard link cannot be made", &error);
                }
            }
        }
    }

    fn check(&mut self, session: &Session, name: &[u8]) -> Result<()> {
        self.names_bytes += name.len();
        if self.firsts.len() + self.links.len() > LINKS_MAX || session.are_too_many(self.names_bytes) {
            return Err(Error::Malformed { what: "more hard links than are taken" });
        }
        Ok(())
    }
}

impl Link {
    /// Whether the link is there already.
    fn is_made(&self, receiving: &Receiving, place: Place, name: &[u8]) -> bool {
        let at = |place, name: &[u8]| receiving.directories.open(place).and_then(|it| it.metadata(name)).ok();
        let (target, there) = (at(place, name), at(self.place, &self.name));
        target.zip(there).is_some_and(|(target, there)| is_same(&target, &there))
    }

    /// Makes one link. Returns whether it is new.
    fn make(&self, receiving: &Receiving, place: Place, name: &[u8]) -> io::Result<bool> {
        if receiving.options.dry_run {
            return Ok(!self.is_made(receiving, place, name));
        }
        let (from, into) = (receiving.directories.open(place)?, receiving.directories.open(self.place)?);
        let target = from.metadata(name)?;
        if target.kind != Kind::File {
            return Err(io::Error::other("something else has the name of the file"));
        }
        match into.metadata(&self.name) {
            Ok(there) if is_same(&there, &target) => return Ok(false),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                into.hard_link(&from, name, &self.name)?;
                return Ok(true);
            }
            Err(error) => return Err(error),
        }
        let mut temporary = receiving.partial.reserve(&into)?;
        temporary.directory.hard_link(&from, name, &temporary.name)?;
        temporary.rename(&into, &self.name)?;
        Ok(true)
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.device, one.inode) == (other.device, other.inode)
}
