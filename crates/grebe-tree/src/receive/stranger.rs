//! Limits for a sender without a login here: its offer, and the rules of this end.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::name::{PARTIAL, check, os_name};
use crate::offering::{Accept, Offer};
use crate::options::{Fsync, Options};
use crate::receive::destination::look;
use crate::system::Directory;
use crate::wire::{Entry, EntryKind, FrameWriter, Hello, Kind, OfferedNames, Role};

/// Rules for receiving from any holder of the other end. They override whatever the sender asks for. Accepted
/// are new files and directories, their times, and their modes minus this user's mask. Links, owners,
/// attributes, deletions and anything beyond the offer are not.
#[derive(Clone)]
pub struct Reception {
    /// An existing directory that receives everything.
    pub directory: PathBuf,
    /// Replaces existing files and adds to existing directories. Otherwise both stay unchanged.
    pub overwrite: bool,
    /// Gets the offer and decides whether to accept it; `None` accepts everything.
    pub accept: Option<Arc<Accept>>,
    /// The sender waits for `accept`, which may ask a user. Otherwise names leave with the offer, one round
    /// trip earlier, and content too if the directory is empty. Data that arrives before acceptance stays in
    /// memory, as much as the stream holds.
    pub sender_waits: bool,
}

/// The sender of a copy.
pub(super) struct Stranger {
    pub(super) overwrite: bool,
    offered: OfferedNames,
    tops: HashSet<Box<[u8]>>,
}

/// Amount of the offer listed so far.
#[derive(Debug, Default)]
pub(super) struct ListedSoFar {
    files: u64,
    bytes: u64,
}

impl Reception {
    /// Fixed options for both ends.
    pub(super) fn options() -> Options {
        Options { recursive: true, short_hashes: true, fsync: Fsync::Batch, ..Options::default() }
    }

    /// First message to the sender, which may go ahead of the stream: [`receive_offer`](crate::receive_offer)
    /// then gets it too. Empty if the directory cannot be read.
    #[must_use]
    pub fn greeting(&self) -> Vec<u8> {
        let mut frame = FrameWriter::new(Vec::new());
        let written = self.hello().and_then(|hello| frame.write(Kind::Hello, &hello.encode()));
        written.map_or_else(|_| Vec::new(), |()| frame.into_stream())
    }

    /// A sender without a login learns only that this end exists, if a user must decide first.
    pub(super) fn hello(&self) -> Result<Hello> {
        Ok(Hello {
            is_offer: true,
            is_taken: !self.sender_waits,
            is_fresh: !self.sender_waits && look(&self.directory)?.is_fresh(),
            replaces: self.overwrite,
            ..Hello::new(Role::Receiver)
        })
    }

    /// Asks whether to accept the offer, if there is room for it. Also returns whether nothing of it, or of
    /// an earlier session, exists.
    pub(super) fn take(&self, offered: OfferedNames) -> Result<(Stranger, bool)> {
        let directory = &self.directory;
        let failed = |source| Error::File { action: "open", path: directory.clone(), source };
        let open = Directory::open(directory).map_err(failed)?;
        let tops: HashSet<_> = offered.tops.iter().cloned().collect();
        let is_any_there = tops.iter().any(|name| check(name).is_ok() && open.metadata(name).is_ok());
        // Existing files need not be sent, and their size is not known yet.
        let is_new = !is_any_there && open.metadata(PARTIAL).is_err();
        if let Some(free_bytes) = open.free_bytes().filter(|free_bytes| is_new && *free_bytes < offered.bytes)
        {
            return Err(Error::TooMuch { path: directory.clone(), free_bytes, needed_bytes: offered.bytes });
        }
        if self.accept.as_ref().is_some_and(|accept| !accept(&Offer::from(&offered))) {
            return Err(Error::Declined);
        }
        Ok((Stranger { overwrite: self.overwrite, offered, tops }, is_new))
    }
}

impl std::fmt::Debug for Reception {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { directory, overwrite, .. } = self;
        f.debug_struct("Reception").field("directory", directory).field("overwrite", overwrite).finish()
    }
}

impl Stranger {
    /// Reason for refusing a name.
    pub(super) fn refuses(&self, is_top: bool, name: &[u8], kind: &EntryKind) -> Option<&'static str> {
        match kind {
            _ if is_top && !self.tops.contains(name) => Some("it was not offered"),
            EntryKind::Symlink { .. } | EntryKind::HardLink { .. } => Some("a link: such are not taken"),
            _ => None,
        }
    }

    /// Holds a sender to its offered totals.
    pub(super) fn count(&self, so_far: &mut ListedSoFar, entry: &Entry) -> Result<()> {
        match entry.kind {
            EntryKind::Itself => {
                Err(Error::Malformed { what: "the contents of a directory that it has not offered" })
            }
            EntryKind::File { bytes, .. } => {
                so_far.files = so_far.files.saturating_add(1);
                so_far.bytes = so_far.bytes.saturating_add(bytes);
                if so_far.files > self.offered.files || so_far.bytes > self.offered.bytes {
                    return Err(Error::Malformed { what: "more than it has offered" });
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Present paths of the offered names.
    pub(super) fn paths(&self, directory: &Path, left_out: &[crate::LeftOut]) -> Vec<PathBuf> {
        let left_out: HashSet<&[u8]> = left_out.iter().map(|left| &left.name[..]).collect();
        let tops =
            self.offered.tops.iter().filter(|name| !left_out.contains(&name[..]) && check(name).is_ok());
        let paths = tops.filter_map(|name| Some(directory.join(os_name(name)?)));
        paths.filter(|path| path.symlink_metadata().is_ok()).collect()
    }
}

/// Reason for refusing a file that exceeds the offer.
pub(super) fn is_too_much() -> io::Error {
    io::Error::other("it is larger than the offer")
}

/// Reason for refusing a name that exists.
pub(super) fn is_in_the_way() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, EXISTS)
}

pub(super) const EXISTS: &str = "it exists: move it away, or let it be replaced (--overwrite)";
