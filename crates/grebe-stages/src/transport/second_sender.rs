//! Other senders to the port of a UDP source.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The address of a sender other than the stream's. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct SecondSender(Arc<Mutex<Option<SocketAddr>>>);

impl SecondSender {
    /// The most recent one. `None` while there is one sender. The stage's counter `foreign_datagrams` counts its
    /// dropped datagrams.
    pub fn address(&self) -> Option<SocketAddr> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream's new sender is no longer foreign.
    pub(crate) fn forget(&self, first: SocketAddr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take_if(|second| *second == first);
    }

    pub(crate) fn note(&self, from: SocketAddr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(from);
    }
}
