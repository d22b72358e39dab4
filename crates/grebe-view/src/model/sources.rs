//! The other sources that are served beside the one that is shown.

use std::sync::mpsc::TryRecvError;

use super::open::Entry;
use super::view_model::ViewModel;

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

    /// Begins to open another source, which takes the place of this one when it is there; the source that is chosen last does.
    pub(super) fn show_source(&mut self, place: usize) {
        let Some(menu) = &self.options.sources else { return };
        if place >= menu.names.len() {
            return;
        }
        self.open.opening = (place != menu.shown).then(|| (place, (menu.open)(place)));
    }

    /// Whether another source is on its way.
    pub(crate) fn is_opening(&self) -> bool {
        self.open.opening.is_some()
    }

    /// Says that another source is on its way, where one is.
    pub(super) fn opening_words(&self) -> Option<String> {
        let (place, _) = self.open.opening.as_ref()?;
        let name = self.options.sources.as_ref().and_then(|menu| menu.names.get(*place))?;
        Some(format!("going to {name} \u{2026}; what is shown is the source before, and & goes to another"))
    }

    /// Shows a source that was opened meanwhile, or says why it is not; whether anything became of it.
    pub(super) fn look_at_opened(&mut self) -> bool {
        let Some((_, opened)) = &self.open.opening else { return false };
        let opened = match opened.try_recv() {
            Ok(opened) => opened,
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => Err("what became of it was not said".into()),
        };
        self.open.opening = None;
        match opened {
            Ok((link, options)) => self.replace(link, options),
            Err(why) => self.say(format!("not shown: {why}")),
        }
        true
    }
}
