//! What all connections of a server know, and what a person beside it is told.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grebe_view::{FarOffer, Refusal, Right, ScopeLink, SourceStatus};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::gate::{Gate, Token};

/// Something that a person beside the server may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServeEvent {
    /// A viewer was let in.
    Came {
        /// Its address.
        from: SocketAddr,
        /// The source that it looks at, from 1.
        source: usize,
        /// How many there are now.
        viewers: usize,
    },
    /// A viewer is gone.
    Left {
        /// Its address.
        from: SocketAddr,
        /// How many there are now.
        viewers: usize,
        /// Why it was sent away; `None`: it went.
        why: Option<String>,
    },
    /// A viewer changed something at the source.
    Changed {
        /// Its address.
        from: SocketAddr,
        /// The source that it looks at, from 1.
        source: usize,
        /// In words.
        what: String,
    },
    /// Somebody was not let in.
    Refused {
        /// Their address.
        from: SocketAddr,
        /// In words.
        why: String,
    },
}

/// What all connections of a server know.
pub(crate) struct Shared {
    pub(crate) sources: Vec<Source>,
    pub(crate) gate: Gate,
    pub(crate) token: Token,
    /// Lets its holder change what the source makes, too.
    pub(crate) control: Option<Token>,
    pub(crate) ends: watch::Sender<bool>,
    pub(crate) viewers: Arc<AtomicUsize>,
    pub(crate) viewers_max: usize,
    pub(crate) tell: Box<dyn Fn(ServeEvent) + Send + Sync>,
    /// Connections that were not let in yet, the oldest first.
    pub(crate) strangers: Mutex<VecDeque<(u64, AbortHandle)>>,
}

type Look = Box<dyn Fn() -> SourceStatus + Send>;

/// A source, as all connections know it.
pub(crate) struct Source {
    pub(crate) link: ScopeLink,
    pub(crate) offer: FarOffer,
    /// Who asks is told how it is at that moment: no picture is newer.
    pub(crate) status: Mutex<Look>,
}

/// A place of a viewer, given back when it is dropped.
pub(crate) struct Seat(Arc<AtomicUsize>);

impl Shared {
    /// The source of that number, from 1.
    pub(crate) fn source(&self, number: usize) -> Result<&Source, Refusal> {
        let found = number.checked_sub(1).and_then(|place| self.sources.get(place));
        found.ok_or_else(|| {
            let names = (1..).zip(&self.sources).map(|(number, it)| format!("{number} {}", it.offer.name));
            let names = names.collect::<Vec<_>>().join(", ");
            Refusal(format!("there is no source {number} here; there are: {names}"))
        })
    }

    /// What the holder of a word may do; `None`: not even come in.
    pub(crate) fn right_of(&self, word: &str) -> Option<Right> {
        // Both are compared, whatever the first says.
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

    /// A place for one more viewer.
    pub(crate) fn seat(&self) -> Result<Seat, Refusal> {
        // All viewers are on one thread: nobody comes between.
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
    /// What is known of it.
    pub(crate) fn status(&self) -> SourceStatus {
        (self.status.lock().unwrap_or_else(PoisonError::into_inner))()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
