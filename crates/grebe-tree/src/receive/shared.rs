//! Shared state of a receiver's threads.

use std::ops::Deref;

use crate::error::Result;
use crate::receive::basis::Bases;
use crate::receive::flushing::Flushing;
use crate::receive::laying::Along;
use crate::receive::pending::{Pending, PendingFiles};
use crate::receive::session::Session;
use crate::receive::viewed_parts::ViewedParts;
use crate::wire::EntryId;

/// The copy, and the files at each stage of it.
pub(super) struct Receiving {
    session: Session,
    pub(super) pending: PendingFiles,
    pub(super) bases: Bases,
    pub(super) along: Along,
    pub(super) viewed_parts: ViewedParts,
    pub(super) flushing: Flushing,
}

impl Receiving {
    pub(super) fn new(session: Session) -> Self {
        Self {
            pending: PendingFiles::default(),
            bases: Bases::default(),
            along: Along::default(),
            viewed_parts: ViewedParts::default(),
            flushing: Flushing::new(session.options.fsync),
            session,
        }
    }

    /// Takes the file for received content; `None` if it is refused.
    pub(super) fn take(&self, id: EntryId) -> Result<Option<Pending>> {
        self.pending.take(id, || self.is_stopped())
    }
}

impl Deref for Receiving {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}
