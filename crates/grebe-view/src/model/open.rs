//! What a person has opened, and what is under way: lists, prompts, searches.

use std::sync::mpsc::Receiver;

use grebe_frame::{AnnotationEdit, StreamAnnotation};

use super::action::{Question, SaveWhat};
use super::find_form::FindForm;
use super::options::Opened;
use super::setting::Setting;
use crate::data::finding::{Finding, FoundEvent};

/// What stands open over the picture, or is waited for.
#[derive(Default)]
pub(crate) struct Open {
    /// Whether what can be changed at the source is shown, where that has a panel.
    pub(crate) is_source_open: bool,
    /// What is to be done with the samples that the history was asked for.
    pub(super) asked: Option<Asked>,
    /// How far the help, and the tables below the traces, are scrolled where they are higher than their room: lines, and pages.
    pub(crate) help_from: usize,
    pub(crate) table_page: usize,
    /// What is to be searched, where its form is open.
    pub(crate) find_form: Option<FindForm>,
    /// The search that goes on, or the last.
    pub(crate) found: Option<Found>,
    /// Another source that is being opened: its place in the menu, and what becomes of it.
    pub(super) opening: Option<(usize, Receiver<Opened>)>,
    /// The annotations: their table, the chosen one.
    pub(crate) annotations: OpenAnnotations,
    /// What will be said of stretches that are being kept, and of changed annotations.
    pub(super) keeping: Vec<Receiver<String>>,
    /// The list to choose from.
    pub(super) list: Option<OpenList>,
    /// The line that is typed.
    pub(crate) prompt: Option<Prompt>,
    /// Whether a front end has still to notice that another source is shown.
    pub(super) is_replaced: bool,
    /// A message to be shown for a while, and since when.
    pub(super) message: Option<(String, u64)>,
}

/// The table of annotations, and the one that is worked on.
#[derive(Debug, Default)]
pub(crate) struct OpenAnnotations {
    pub(crate) is_open: bool,
    /// Words of those that are listed.
    pub(crate) filter: String,
    pub(crate) chosen: Option<StreamAnnotation>,
    /// One whose words are being asked for.
    pub(super) draft: Option<StreamAnnotation>,
    /// What was changed, the last at the end.
    pub(super) done: Vec<AnnotationEdit>,
}

/// One line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) text: String,
    /// Whether it is set.
    pub(crate) is_on: bool,
}

/// The list that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenList {
    pub(crate) setting: Setting,
    /// The line that the keys are on.
    pub(crate) marked: usize,
    /// A list that only shows what a key does closes by itself.
    pub(super) closes_ns: Option<u64>,
}

/// The line that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) question: Question,
    pub(crate) text: String,
    /// Why the answer was refused.
    pub(crate) refused: Option<String>,
}

/// Why samples were asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Asked {
    Save(SaveWhat),
    Autoset {
        /// So many of the newest.
        samples: u64,
    },
}

/// A search that a person asked for.
pub(crate) struct Found {
    /// What was asked.
    pub(crate) words: String,
    pub(super) finding: Finding,
    /// In the order of the stream.
    pub(crate) events: Vec<FoundEvent>,
    /// All that was found, listed or not.
    pub(super) count: u64,
    pub(super) searched: (u64, u64),
    pub(super) ended: Option<String>,
}

impl Found {
    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// How far it came, in words.
    pub(crate) fn state_words(&self) -> String {
        let (done, all) = self.searched;
        let found = match self.count {
            listed if listed == self.events.len() as u64 => format!("{listed} found"),
            count => format!("{count} found, the first {} listed", self.events.len()),
        };
        match &self.ended {
            Some(why) if all == 0 => why.clone(),
            Some(why) => format!("{found}: {why}"),
            None if all == 0 => "searching \u{2026}".into(),
            None => format!("{found}, {} % searched \u{2026}", done.saturating_mul(100) / all),
        }
    }
}

pub(super) const NO_FINDER: &str = "this stream cannot be searched from here";
