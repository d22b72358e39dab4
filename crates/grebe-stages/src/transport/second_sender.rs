//! Who else sends to the port of a source over UDP.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Who sends to a port beside the sender whose stream is taken. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct SecondSender(Arc<Mutex<Option<SocketAddr>>>);

impl SecondSender {
    /// The last one that was heard; `None` while there is but one sender. How many of its datagrams were left out, the stage's
    /// counter `foreign_datagrams` says.
    pub fn address(&self) -> Option<SocketAddr> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose stream is taken from now on is left out no more.
    pub(crate) fn forget(&self, first: SocketAddr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take_if(|second| *second == first);
    }

    pub(crate) fn note(&self, from: SocketAddr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(from);
    }
}
