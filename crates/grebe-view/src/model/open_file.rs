//! Opens a file in place of the present source: a typed path with completion, or a dropped file.

use std::path::Path;

use super::options::ViewOptions;
use super::paths::path_of;
use super::view_model::ViewModel;
use crate::data::link::ScopeLink;

impl ViewModel {
    /// Shows a file in place of the stream.
    ///
    /// # Errors
    /// One line for a person; the previous source stays.
    pub(crate) fn open_file(&mut self, typed: &str) -> Result<(), String> {
        let path = path_of(typed);
        if typed.trim().is_empty() || path.is_dir() {
            return Err("type the name of a file: tab completes it".into());
        }
        let Some(open) = &self.options.open else { return Err("no file can be opened from here".into()) };
        let (link, mut options) = open(&path)?;
        // The function that opens files serves the next one too.
        options.open = options.open.or(self.options.open.take());
        self.replace(link, options);
        Ok(())
    }

    /// Shows another source in place of this one, whose settings are kept when it is dropped.
    pub(super) fn replace(&mut self, link: ScopeLink, mut options: ViewOptions) {
        options.initial.theme = Some(self.controls.theme);
        self.link.close();
        let is_source_open = self.open.is_source_open;
        *self = ViewModel::new(link, options, self.draw_png);
        self.open.is_source_open = is_source_open;
        self.open.is_replaced = true;
    }

    /// Opens a dropped file; shows a message if it cannot.
    pub(crate) fn drop_file(&mut self, path: &Path) {
        if let Err(why) = self.open_file(&path.to_string_lossy()) {
            self.say(format!("not opened: {why}"));
        }
    }

    /// Whether the source was replaced since the last call.
    pub(crate) fn take_replaced(&mut self) -> bool {
        std::mem::take(&mut self.open.is_replaced)
    }
}
