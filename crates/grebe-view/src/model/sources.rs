//! The other sources of the same server.

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

    /// Starts to open another source, which replaces this one when it is ready. The last selection counts.
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

    /// A note that another source is being opened.
    pub(super) fn opening_words(&self) -> Option<String> {
        let (place, _) = self.open.opening.as_ref()?;
        let name = self.options.sources.as_ref().and_then(|menu| menu.names.get(*place))?;
        Some(format!("going to {name} \u{2026}; showing the previous source; & goes to another"))
    }

    /// Shows a newly opened source, or the reason of the failure; returns whether there was a result.
    pub(super) fn look_at_opened(&mut self) -> bool {
        let Some((_, opened)) = &self.open.opening else { return false };
        let opened = match opened.try_recv() {
            Ok(opened) => opened,
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => Err("the outcome is unknown".into()),
        };
        self.open.opening = None;
        match opened {
            Ok((link, options)) => self.replace(link, options),
            Err(why) => self.say(format!("not shown: {why}")),
        }
        true
    }
}
