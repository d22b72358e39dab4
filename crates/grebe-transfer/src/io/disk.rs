//! The disks at both ends: files as one stream of groups, each with its hash.
//!
//! ```text
//!  sending     source (which files) -> reader (groups, hashed) -> outgoing (what is sent, and sent again)
//!  receiving   writer (gathers groups) -> group_store (checks, writes) -> target (files) and journal (what is safe)
//! ```

mod directory;
mod group_store;
pub(super) mod groups;
mod journal;
pub(super) mod outgoing;
mod reader;
pub(crate) mod source;
mod system;
mod target;
pub(super) mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::proto::index::{Index, printable};

pub(super) use self::journal::key as journal_key;
pub(super) use self::target::Named;

/// A file or directory that was not transferred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Where it lies at the sender, or would lie at the receiver.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// A file or directory that has another name here, since this system cannot have the sender's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// The sender's name, with the directories that it is in; letters that would move a terminal's cursor are escape sequences.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

/// What a sender has for a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// The files and directories that the sender named; letters that would move a terminal's cursor are escape sequences.
    pub names: Vec<String>,
    /// All files in them.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Says whether an offer is taken.
pub type Accept = Arc<dyn Fn(&Offered) -> bool + Send + Sync>;

/// Where files are put, and how.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) directory: PathBuf,
    /// Journals are believed with it.
    pub(super) key: [u8; 32],
    pub(super) overwrite: bool,
    pub(super) accept: Option<Accept>,
    pub(super) asks: bool,
}

impl Place {
    fn offer(&self, index: &Index) -> Result<()> {
        let tops = index.entries.iter().filter(|entry| entry.is_top());
        let names = tops.map(|entry| printable(&entry.name)).collect();
        let offered = Offered { names, files: index.files(), bytes: index.file_bytes() };
        if self.accept.as_ref().is_none_or(|accept| accept(&offered)) { Ok(()) } else { Err(Error::Declined) }
    }
}

/// What became of a file at the sender: a byte at the end of the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileStatus {
    Good,
    Changed,
    Unreadable,
}

impl FileStatus {
    fn of(byte: u8) -> Self {
        match byte {
            0 => Self::Good,
            1 => Self::Changed,
            _ => Self::Unreadable,
        }
    }

    fn why(self) -> &'static str {
        match self {
            Self::Good => "",
            Self::Changed => "it changed while it was sent: send it again",
            Self::Unreadable => "the sender could not read it",
        }
    }
}

/// Whether threads that wait for each other are faster than one that does everything: each end of a transfer needs one core, and
/// both ends may be on this machine.
fn has_cores_to_spare() -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() >= 4)
}

/// How long a disk may hold up the network before it gets a thread of its own.
struct Patience(Duration);

impl Patience {
    fn new() -> Self {
        // Several times: that another process had the core once says nothing about the disk.
        Self(5 * SLOW)
    }

    #[cfg(test)]
    fn none() -> Self {
        Self(Duration::ZERO)
    }

    /// Takes how long one group took, and returns whether the patience is over.
    fn is_over(&mut self, took: Duration) -> bool {
        if took > SLOW {
            self.0 = self.0.saturating_sub(took);
        }
        self.0.is_zero()
    }
}

/// What the peer sends meanwhile waits in the receiver's socket.
const SLOW: Duration = Duration::from_millis(20);
