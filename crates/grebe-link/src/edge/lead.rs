//! Which connection has a link just now.

use std::sync::{Arc, Mutex};

use super::buffer::locked;
use super::outbox::Outbox;

/// What leads to the other end of a link: the outbox of one connection and, once its two hosts have another way to each other, that of another.
///
/// The stage at this end holds on to it, whoever knows of the ways [turns](Self::turn) it.
#[derive(Debug)]
pub struct Lead {
    link: u16,
    to: Mutex<Arc<Outbox>>,
}

impl Lead {
    /// Of a link that goes over this connection until it is [turned](Self::turn).
    pub fn new(link: u16, to: Arc<Outbox>) -> Self {
        Self { link, to: Mutex::new(to) }
    }

    /// The link goes over another connection from here on. What was under way from here is counted, as it may have arrived or not; the stage
    /// goes on once that link is [joined](Outbox::join) there.
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

    /// Whether it leads there.
    pub fn is(&self, to: &Arc<Outbox>) -> bool {
        Arc::ptr_eq(&locked(&self.to), to)
    }

    pub(super) fn link(&self) -> u16 {
        self.link
    }

    /// What it leads to at this moment: for who waits, since it can be turned meanwhile.
    pub(super) fn now(&self) -> Arc<Outbox> {
        locked(&self.to).clone()
    }

    /// Says something there, and is not turned meanwhile.
    pub(super) fn say(&self, words: impl FnOnce(&Outbox, u16)) {
        words(&locked(&self.to), self.link);
    }
}
