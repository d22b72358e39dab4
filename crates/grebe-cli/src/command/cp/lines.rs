//! Task and events of a copy, as they travel through `ssh`.

use grebe_remote::{Call, Ready};
use grebe_tree::Fsync;
use serde::{Deserialize, Serialize};

use super::figures::{Figures, Outcome};
use super::path_text::PathText;
use crate::cli::Selection;

/// The other end of a copy.
pub(super) const COPIES: Call = Call {
    arguments: "cp --serve",
    protocol: 1,
    does: "copies",
    instead: "install this one with --bootstrap",
    can_bootstrap: true,
};

/// Task of the other end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CopyTask {
    pub(super) task: Task,
    /// Options, for an end that a third machine started.
    pub(super) what: Option<CopyOptions>,
    /// Events to report; the data does not pass through the end that reads them.
    pub(super) tells: ReportLevel,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Task {
    Send {
        sources: Vec<PathText>,
        /// One file of a recording selects all of them, and recordings get summaries.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        recordings: bool,
        /// The receiver has reported that the destination is empty.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_fresh: bool,
    },
    Receive {
        destination: PathText,
        /// Name that a single source keeps in an existing directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<PathText>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ReportLevel {
    /// Failures only.
    Failures,
    /// Progress and outcome.
    Figures,
    /// Each file, too.
    Files,
}

/// Options that both ends need, see [`Selection`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct CopyOptions {
    pub(super) recursive: bool,
    pub(super) archive: bool,
    pub(super) xattrs: bool,
    pub(super) exclude: Vec<String>,
    pub(super) dry_run: bool,
    pub(super) checksum: bool,
    pub(super) delete: bool,
    pub(super) whole_file: bool,
    #[serde(rename = "also-look-in")]
    pub(super) also_search: Vec<PathText>,
    pub(super) index: bool,
    /// Flush everything before the end; with `fsync_file` also contents before names.
    pub(super) fsync: bool,
    /// Flush each file before reporting it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) fsync_file: bool,
    pub(super) force: bool,
    pub(super) one_file_system: bool,
    pub(super) progressive: bool,
    pub(super) only_wanted: bool,
    pub(super) first: Vec<String>,
    /// Both ends support short hashes.
    pub(super) short_hashes: bool,
}

/// Event of the other end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Event {
    Progress(Figures),
    File(FileDone),
    Result(Outcome),
}

/// Result for one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileDone {
    pub(super) name: PathText,
    /// `copied`, `same`, `made`, `removed`, `left out`.
    pub(super) done: String,
    pub(super) bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) why: Option<String>,
}

impl CopyOptions {
    pub(super) fn of(what: &Selection) -> Self {
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
            also_search: what.also_search.iter().map(|path| PathText::of_path(path)).collect(),
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

    /// Whether the other end must support an order.
    pub(super) fn has_order(&self) -> bool {
        self.progressive || !self.first.is_empty()
    }

    pub(super) fn without_order(&mut self) {
        self.progressive = false;
        self.first.clear();
    }
}

/// Capabilities of this program that older ones lack.
pub(super) fn ready(is_fresh: bool) -> Ready {
    let ready = Ready::of(COPIES.protocol).with(KNOWS_ORDER, true);
    ready.with(KNOWS_SHORT_HASHES, true).with(KNOWS_FSYNC_FILE, true).with(IS_FRESH, is_fresh)
}

/// Order of files and their parts.
pub(super) const KNOWS_ORDER: &str = "knows_order";
/// Short hashes in signatures.
pub(super) const KNOWS_SHORT_HASHES: &str = "knows_short_hashes";
/// Flush per file.
pub(super) const KNOWS_FSYNC_FILE: &str = "knows_fsync_file";
/// The receiver's destination is empty and stays so: content need not wait for its first message.
pub(super) const IS_FRESH: &str = "is_fresh";
/// The source is a single directory.
pub(super) const SENDS_DIRECTORY: &str = "sends_directory";
/// The source goes into an existing directory, under a name that is not there yet.
pub(super) const RECEIVES_INSIDE: &str = "receives_inside";

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
            what: Some(CopyOptions {
                delete: true,
                exclude: vec!["*.o".to_owned()],
                ..CopyOptions::default()
            }),
            tells: ReportLevel::Figures,
        };
        let terms = Terms { via: Via::Auto, mode: Mode::Fair, limit_bits_per_s: None };
        let hello = Hello::new(&COPIES, Meet::Here, terms, task);
        let line = serde_json::to_string(&hello).unwrap();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(serde_json::from_str::<Hello<CopyTask>>(&line).unwrap(), hello);
    }
}
