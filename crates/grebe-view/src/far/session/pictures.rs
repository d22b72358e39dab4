//! A session that carries only pictures and pieces, for a page, whose session sends texts in place of metadata.

use std::collections::VecDeque;

use super::{FarOffer, FarSession};
use crate::data::link::ScopeLink;
use crate::data::picture::Picture;
use crate::far::bytes::Writer;
use crate::far::control::Right;
use crate::far::greeting::Greeting;
use crate::far::{FILE, FarMessage};

impl FarSession {
    /// Creates such a session. The caller sends the rest.
    pub(crate) fn of_pictures(
        link: ScopeLink,
        greeting: &Greeting,
        offer: &FarOffer,
        right: Right,
        now_ns: u64,
    ) -> FarSession {
        let session = FarSession::new(link, greeting, offer, right, now_ns);
        FarSession { outgoing: VecDeque::new(), shown: Some(None), ..session }
    }

    /// The picture of the message that [`next`](FarSession::next) returned, before that is sent.
    pub(crate) fn take_shown(&mut self) -> Option<Picture> {
        self.shown.as_mut().and_then(Option::take)
    }

    pub(crate) fn link(&self) -> &ScopeLink {
        &self.link
    }

    /// A file for the viewer, as a message.
    pub(crate) fn file(&mut self, name: &str, content: &[u8], now_ns: u64) -> FarMessage {
        let mut out = Writer::default();
        self.number += 1;
        out.u8(FILE);
        out.varint(self.number);
        out.counted(name.as_bytes());
        out.bytes.extend_from_slice(content);
        self.send(out.bytes, now_ns)
    }

    /// Words were sent: more are due after a pause, so that a part of a slow path is for pictures.
    pub(crate) fn note_words(&mut self, bytes: usize, now_ns: u64) {
        (self.told_ns, self.told_bytes) = (now_ns, bytes);
    }
}
