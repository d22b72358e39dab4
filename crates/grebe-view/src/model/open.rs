//! Open lists, prompts and searches, and pending requests.

use std::sync::mpsc::Receiver;

use grebe_frame::{AnnotationEdit, StreamAnnotation};

use super::action::{Question, SaveWhat};
use super::find_form::FindForm;
use super::options::Opened;
use super::setting::Setting;
use crate::data::finding::{Finding, FoundEvent};
use crate::data::listening::{Listening, Playing};

/// Open dialogs over the picture, and pending requests.
#[derive(Default)]
pub(crate) struct Open {
    /// Whether the source's controls are open, in front ends with a panel for them.
    pub(crate) is_source_open: bool,
    /// Purpose of the requested samples.
    pub(super) asked: Option<ExtractReason>,
    /// Scroll positions of the help, in lines, and of the tables below the traces, in pages.
    pub(crate) help_from: usize,
    pub(crate) table_page: usize,
    /// The search form, if it is open.
    pub(crate) find_form: Option<FindForm>,
    /// The running search, or the last one.
    pub(crate) found: Option<Found>,
    /// Another source that is being opened: its place in the menu, and the pending result.
    pub(super) opening: Option<(usize, Receiver<Opened>)>,
    /// The sound of the box that is being made, the one that plays here, and the chosen modulation.
    pub(super) listening: Option<Listening>,
    pub(super) playing: Option<Playing>,
    pub(super) modulation: Option<usize>,
    /// State of the annotations: their table, the selected one.
    pub(crate) annotations: OpenAnnotations,
    /// Pending outcomes of saves and of annotation changes.
    pub(super) keeping: Vec<Receiver<String>>,
    /// The open list.
    pub(super) list: Option<OpenList>,
    /// The open prompt.
    pub(crate) prompt: Option<Prompt>,
    /// Whether the front end must still handle the change to another source.
    pub(super) is_replaced: bool,
    /// A temporary message, and its start.
    pub(super) message: Option<(String, u64)>,
}

/// The table of annotations, and the selected one.
#[derive(Debug, Default)]
pub(crate) struct OpenAnnotations {
    pub(crate) is_open: bool,
    /// Filter words of the list.
    pub(crate) filter: String,
    pub(crate) chosen: Option<StreamAnnotation>,
    /// An annotation whose text is being typed.
    pub(super) draft: Option<StreamAnnotation>,
    /// Changes so far, the last at the end.
    pub(super) done: Vec<AnnotationEdit>,
}

/// One line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) text: String,
    /// Whether it is on.
    pub(crate) is_on: bool,
}

/// The open list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenList {
    pub(crate) setting: Setting,
    /// The line under the keys.
    pub(crate) marked: usize,
    /// When the list closes by itself, if it only shows a key's effect.
    pub(super) closes_ns: Option<u64>,
}

/// The open prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) question: Question,
    pub(crate) text: String,
    /// Why the answer was rejected.
    pub(crate) refused: Option<String>,
}

/// Purpose of requested samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ExtractReason {
    Save(SaveWhat),
    Autoset {
        /// Number of the newest samples.
        samples: u64,
    },
}

/// A person's search.
pub(crate) struct Found {
    /// Its text.
    pub(crate) words: String,
    pub(super) finding: Finding,
    /// In the order of the stream.
    pub(crate) events: Vec<FoundEvent>,
    /// Number of all found events, listed or not.
    pub(super) count: u64,
    pub(super) searched: (u64, u64),
    pub(super) ended: Option<String>,
}

impl Found {
    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// Progress, in words.
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
