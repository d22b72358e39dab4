//! State shared by all connections of a server, and its events.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grebe_view::{Refusal, Right, ScopeLink, ScopeOffer, SourceStatus};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::gate::{Gate, Token};

/// An event for the person at the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServeEvent {
    /// A viewer was accepted.
    Came {
        /// Its address.
        from: SocketAddr,
        /// The number of its source, from 1.
        source: usize,
        /// Number of viewers now.
        viewers: usize,
    },
    /// A viewer is gone.
    Left {
        /// Its address.
        from: SocketAddr,
        /// Number of viewers now.
        viewers: usize,
        /// Why the server closed it; `None`: it left.
        why: Option<String>,
    },
    /// A viewer changed something at the source.
    Changed {
        /// Its address.
        from: SocketAddr,
        /// The number of its source, from 1.
        source: usize,
        /// The change, in words.
        what: String,
    },
    /// A viewer was rejected.
    Refused {
        /// Its address.
        from: SocketAddr,
        /// The reason, in words.
        why: String,
    },
}

/// State shared by all connections of a server.
pub(crate) struct Shared {
    pub(crate) sources: Vec<Source>,
    pub(crate) gate: Gate,
    pub(crate) token: Token,
    /// Also allows to control the source.
    pub(crate) control: Option<Token>,
    pub(crate) ends: watch::Sender<bool>,
    pub(crate) viewers: Arc<AtomicUsize>,
    pub(crate) viewers_max: usize,
    pub(crate) tell: Box<dyn Fn(ServeEvent) + Send + Sync>,
    /// Connections without access, the oldest first.
    pub(crate) strangers: Mutex<VecDeque<(u64, AbortHandle)>>,
}

type StatusQuery = Box<dyn Fn() -> SourceStatus + Send>;

/// A source, shared by all connections.
pub(crate) struct Source {
    pub(crate) link: ScopeLink,
    pub(crate) offer: ScopeOffer,
    /// Read at each request, because no picture must be newer than it.
    pub(crate) status: Mutex<StatusQuery>,
}

/// The place of a viewer, freed on drop.
pub(crate) struct Seat(Arc<AtomicUsize>);

impl Shared {
    /// The source with this number, from 1.
    pub(crate) fn source(&self, number: usize) -> Result<&Source, Refusal> {
        let found = number.checked_sub(1).and_then(|place| self.sources.get(place));
        found.ok_or_else(|| {
            let names = (1..).zip(&self.sources).map(|(number, it)| format!("{number} {}", it.offer.name));
            let names = names.collect::<Vec<_>>().join(", ");
            Refusal(format!("no source {number} here; available: {names}"))
        })
    }

    /// The right of a token's holder; `None`: no access.
    pub(crate) fn right_of(&self, word: &str) -> Option<Right> {
        // Compare both, so that the time does not depend on the first.
        let (may_look, may_control) =
            (self.token.is(word), self.control.as_ref().is_some_and(|it| it.is(word)));
        match (may_look, may_control) {
            (_, true) => Some(Right::Control),
            (true, false) => Some(Right::Look),
            (false, false) => None,
        }
    }

    pub(crate) fn token_for(&self, right: Right) -> Option<&Token> {
        match right {
            Right::Look => Some(&self.token),
            Right::Control => self.control.as_ref(),
        }
    }

    pub(crate) fn viewers(&self) -> usize {
        self.viewers.load(Ordering::Relaxed)
    }

    pub(crate) fn tell(&self, event: ServeEvent) {
        (self.tell)(event);
    }

    /// Reserves a place for one more viewer.
    pub(crate) fn seat(&self) -> Result<Seat, Refusal> {
        // All viewers share one thread, so this cannot race.
        if self.viewers() >= self.viewers_max {
            return Err(Refusal(format!(
                "{} viewers look already, as many as this server lets in (--viewers)",
                self.viewers_max
            )));
        }
        self.viewers.fetch_add(1, Ordering::Relaxed);
        Ok(Seat(Arc::clone(&self.viewers)))
    }

    pub(crate) fn strangers(&self) -> MutexGuard<'_, VecDeque<(u64, AbortHandle)>> {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_no_stranger(&self, number: u64) {
        self.strangers().retain(|(it, _)| *it != number);
    }
}

impl Source {
    /// Its present state.
    pub(crate) fn status(&self) -> SourceStatus {
        (self.status.lock().unwrap_or_else(PoisonError::into_inner))()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
