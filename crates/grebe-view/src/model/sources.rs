//! The other sources that are served beside the one that is shown.

use super::choices::Entry;
use super::view_model::ViewModel;
use crate::data::link::ScopeLink;
use crate::model::options::ViewOptions;

/// The sources of which one is shown, and the way to the others.
pub struct SourceMenu {
    /// What each is called.
    pub names: Vec<String>,
    /// Which of them is shown, from 0.
    pub shown: usize,
    /// Opens another in place of it: its link and its options, or one line for a person. The link that it replaces is closed.
    pub open: Box<dyn Fn(usize) -> Opened + Send>,
}

/// A source that was opened, or why not.
type Opened = Result<(ScopeLink, ViewOptions), String>;

impl ViewModel {
    /// Whether another source could be shown.
    pub(crate) fn has_sources(&self) -> bool {
        self.options.sources.as_ref().is_some_and(|menu| menu.names.len() > 1)
    }

    pub(super) fn source_entries(&self) -> Vec<Entry> {
        let Some(menu) = self.options.sources.as_ref().filter(|menu| menu.names.len() > 1) else {
            return Vec::new();
        };
        let entry = |(place, name): (usize, &String)| Entry {
            text: format!("{} {name}", place + 1),
            is_on: place == menu.shown,
        };
        menu.names.iter().enumerate().map(entry).collect()
    }

    /// Shows another source in place of this one; says why where it cannot.
    pub(super) fn show_source(&mut self, place: usize) {
        let Some(menu) = &self.options.sources else { return };
        if place == menu.shown || place >= menu.names.len() {
            return;
        }
        match (menu.open)(place) {
            Ok((link, options)) => self.replace(link, options),
            Err(why) => self.say(format!("not shown: {why}")),
        }
    }
}
