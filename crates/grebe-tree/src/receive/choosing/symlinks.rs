//! Creates symbolic links as they are listed, because they need no content. Follows none.

use std::io;
use std::sync::Arc;

use super::{At, Choosing};
use crate::progress::{Done, add};
use crate::system::{Directory, Kind, Metadata};
use crate::wire::Entry;

impl Choosing<'_> {
    pub(super) fn symlink(
        &self,
        at: &At,
        name: &[u8],
        entry: &Entry,
        target: &[u8],
        there: Option<Metadata>,
    ) {
        let receiving = self.receiving;
        if !self.make_room(at, name, there, false) {
            return;
        }
        if target.is_empty() || target.contains(&0) {
            let path = receiving.directories.path_of(at.place, name);
            return receiving.leave_out(path, "a link to nothing".to_owned());
        }
        let is_there = there.is_some_and(|there| there.kind == Kind::Symlink);
        let Some(directory) = &at.directory else {
            return self.made_link(at, name);
        };
        if is_there && directory.read_link(name).is_ok_and(|old| old == target) {
            return;
        }
        if !receiving.options.dry_run {
            let made = self.make_symlink(directory, name, entry, target, there.is_some());
            if let Err(error) = made {
                return receiving.name_failed(at.place, name, "the link cannot be made", &error);
            }
        }
        self.made_link(at, name);
    }

    fn make_symlink(
        &self,
        directory: &Arc<Directory>,
        name: &[u8],
        entry: &Entry,
        target: &[u8],
        replaces: bool,
    ) -> io::Result<()> {
        let receiving = self.receiving;
        let finish = |at: &Directory, name: &[u8]| {
            if let Some(owner) = entry.owner.filter(|_| receiving.keeps_owners) {
                at.set_link_owner(name, owner)?;
            }
            at.set_link_modified(name, entry.modified_ns)
        };
        if !replaces {
            directory.symlink(target, name)?;
            return finish(directory, name);
        }
        let mut temporary = receiving.partial.reserve(directory)?;
        temporary.directory.symlink(target, &temporary.name)?;
        finish(&temporary.directory, &temporary.name)?;
        temporary.rename(directory, name)
    }

    fn made_link(&self, at: &At, name: &[u8]) {
        self.receiving.flushing.names_changed(self.receiving, at.place);
        add(&self.receiving.done.links_made, 1);
        self.receiving.tell(at.place, name, Done::Made, 0);
    }
}
