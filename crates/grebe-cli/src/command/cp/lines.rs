//! The task and the events of a copy, as they pass through `ssh`.

use grebe_remote::{Call, Ready};
use grebe_tree::Fsync;
use serde::{Deserialize, Serialize};

use super::figures::{Figures, Outcome};
use super::path_text::PathText;
use crate::cli::What;

/// The other end of a copy.
pub(super) const COPIES: Call = Call {
    arguments: "cp --serve",
    protocol: 1,
    does: "copies",
    instead: "bring this one along: --bootstrap",
    can_bootstrap: true,
};

/// What the other end is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CopyTask {
    pub(super) task: Task,
    /// Where neither end of the data is the one that was told.
    pub(super) what: Option<Wishes>,
    /// What it is to say while it copies: the data does not pass by this end.
    pub(super) tells: Tells,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Task {
    Send {
        sources: Vec<PathText>,
        /// One file of a recording stands for all of it, and recordings get their summaries.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        recordings: bool,
        /// The receiver has said that nothing is there.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_fresh: bool,
    },
    Receive {
        destination: PathText,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Tells {
    /// Only what fails.
    Failures,
    /// How far it is, and what came of it.
    Figures,
    /// Each file, too.
    Files,
}

/// What both ends have to know of what is copied, see [`What`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct Wishes {
    pub(super) recursive: bool,
    pub(super) archive: bool,
    pub(super) xattrs: bool,
    pub(super) exclude: Vec<String>,
    pub(super) dry_run: bool,
    pub(super) checksum: bool,
    pub(super) delete: bool,
    pub(super) whole_file: bool,
    pub(super) also_look_in: Vec<PathText>,
    pub(super) index: bool,
    /// Everything is on the disk before the end, and since there is `fsync_file` contents before they get their names.
    pub(super) fsync: bool,
    /// Each file before it is told, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) fsync_file: bool,
    pub(super) force: bool,
    pub(super) one_file_system: bool,
    pub(super) progressive: bool,
    pub(super) only_wanted: bool,
    pub(super) first: Vec<String>,
    /// Each end that copies knows of them.
    pub(super) short_hashes: bool,
}

/// What the other end says while it copies, and at its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Event {
    Progress(Figures),
    File(FileDone),
    Result(Outcome),
}

/// What was done with a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileDone {
    pub(super) name: PathText,
    /// `copied`, `same`, `made`, `removed`, `left out`.
    pub(super) done: String,
    pub(super) bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) why: Option<String>,
}

impl Wishes {
    pub(super) fn of(what: &What) -> Self {
        let what = what.clone();
        Self {
            recursive: what.recursive || what.archive,
            archive: what.archive,
            xattrs: what.xattrs,
            exclude: what.exclude,
            dry_run: what.dry_run,
            checksum: what.checksum,
            delete: what.delete,
            whole_file: what.whole_file,
            also_look_in: what.also_look_in.iter().map(|path| PathText::of_path(path)).collect(),
            index: what.index,
            fsync: what.fsync != Fsync::Never,
            fsync_file: what.fsync == Fsync::File,
            force: what.force,
            one_file_system: what.one_file_system,
            progressive: what.progressive,
            only_wanted: false,
            first: what.first,
            short_hashes: true,
        }
    }

    /// Whether it needs an end that knows of an order.
    pub(super) fn has_order(&self) -> bool {
        self.progressive || !self.first.is_empty()
    }

    pub(super) fn without_order(&mut self) {
        self.progressive = false;
        self.first.clear();
    }
}

/// What this program can do that older ones cannot.
pub(super) fn ready(is_fresh: bool) -> Ready {
    let ready = Ready::of(COPIES.protocol).with(KNOWS_ORDER, true);
    ready.with(KNOWS_SHORT_HASHES, true).with(KNOWS_FSYNC_FILE, true).with(IS_FRESH, is_fresh)
}

/// Orders in which files and their parts are sent.
pub(super) const KNOWS_ORDER: &str = "knows_order";
/// Short hashes in signatures.
pub(super) const KNOWS_SHORT_HASHES: &str = "knows_short_hashes";
/// Flushing each file.
pub(super) const KNOWS_FSYNC_FILE: &str = "knows_fsync_file";
/// It is to receive, nothing is there, and it answers for that: content need not wait for its first message.
pub(super) const IS_FRESH: &str = "is_fresh";

#[cfg(test)]
mod tests {
    use grebe_connection::Mode;
    use grebe_remote::{Hello, Meet, Terms, Via};

    use super::*;

    #[test]
    fn a_task_is_read_as_it_was_written() {
        let task = CopyTask {
            task: Task::Send {
                sources: vec![PathText::of(b"a b"), PathText::of(b"\xff\n")],
                recordings: true,
                is_fresh: false,
            },
            what: Some(Wishes { delete: true, exclude: vec!["*.o".to_owned()], ..Wishes::default() }),
            tells: Tells::Figures,
        };
        let terms = Terms { via: Via::Auto, mode: Mode::Fair, limit_bits_per_s: None };
        let hello = Hello::new(&COPIES, Meet::Here, terms, task);
        let line = serde_json::to_string(&hello).unwrap();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(serde_json::from_str::<Hello<CopyTask>>(&line).unwrap(), hello);
    }
}
