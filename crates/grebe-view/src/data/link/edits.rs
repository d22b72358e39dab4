//! Changes that viewers make to the annotations.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use grebe_frame::AnnotationEdit;

use super::{ScopeLink, Viewers};
use crate::data::core::ScopeCore;

impl ScopeLink {
    /// Changes the annotations for all viewers. The change stays, even if the stream repeats the old annotation.
    pub fn annotate(&self, edit: AnnotationEdit) {
        let viewers = &self.own.viewers;
        viewers.edits.lock().unwrap_or_else(PoisonError::into_inner).push(edit);
        viewers.has_edits.store(true, Ordering::Release);
        if let Some(core) = viewers.parked().as_mut() {
            viewers.make_edits(core);
        }
        if viewers.is_parked.load(Ordering::Acquire) {
            let list = viewers.list().clone();
            for shared in list {
                shared.state().is_changed = true;
                shared.wake();
            }
        }
        self.ask();
    }
}

impl Viewers {
    /// Applies the waiting changes; returns whether there were any.
    pub(super) fn make_edits(&self, core: &mut ScopeCore) -> bool {
        // Read once per picture, without the lock.
        if !self.has_edits.load(Ordering::Acquire) {
            return false;
        }
        let Ok(mut edits) = self.edits.try_lock() else { return false };
        self.has_edits.store(false, Ordering::Release);
        edits.drain(..).for_each(|edit| core.annotate(&edit));
        true
    }
}
