//! Present connection of a link.

use std::sync::{Arc, Mutex};

use super::buffer::locked;
use super::outbox::Outbox;

/// Path to the other end of a link: the outbox of its connection. It changes if the two hosts get a new
/// route.
///
/// The stage at this end holds it; the code that manages routes [turns](Self::turn) it.
#[derive(Debug)]
pub struct LinkRoute {
    link: u16,
    to: Mutex<Arc<Outbox>>,
}

impl LinkRoute {
    /// Makes a lead of a link over this connection until it is [turned](Self::turn).
    pub fn new(link: u16, to: Arc<Outbox>) -> Self {
        Self { link, to: Mutex::new(to) }
    }

    /// Moves the link to another connection. Counts the data in flight, which may or may not have arrived.
    /// The stage continues once the link is [joined](Outbox::join) there.
    pub fn turn(&self, to: &Arc<Outbox>) {
        let mut now = locked(&self.to);
        if Arc::ptr_eq(&now, to) {
            return;
        }
        if let Some(producer) = now.release(self.link) {
            to.take_over(self.link, producer);
        }
        now.clone_from(to);
    }

    /// Whether it uses that outbox.
    pub fn is(&self, to: &Arc<Outbox>) -> bool {
        Arc::ptr_eq(&locked(&self.to), to)
    }

    pub(super) fn link(&self) -> u16 {
        self.link
    }

    /// Present outbox, for a waiter, because it may turn meanwhile.
    pub(super) fn now(&self) -> Arc<Outbox> {
        locked(&self.to).clone()
    }

    /// Sends something there, without turning meanwhile.
    pub(super) fn say(&self, words: impl FnOnce(&Outbox, u16)) {
        words(&locked(&self.to), self.link);
    }
}
