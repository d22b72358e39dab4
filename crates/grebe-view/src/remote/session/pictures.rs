//! A session that carries only pictures and pieces, for a page, whose session sends texts in place of metadata.

use std::collections::VecDeque;

use super::{ScopeOffer, ViewerSession};
use crate::data::link::ScopeLink;
use crate::data::listening::Sound;
use crate::data::picture::Picture;
use crate::remote::bytes::Writer;
use crate::remote::control::Right;
use crate::remote::greeting::Greeting;
use crate::remote::{FILE, ScopeMessage};

impl ViewerSession {
    /// Creates such a session. The caller sends the rest.
    pub(crate) fn of_pictures(
        link: ScopeLink,
        greeting: &Greeting,
        offer: &ScopeOffer,
        right: Right,
        now_ns: u64,
    ) -> ViewerSession {
        let session = ViewerSession::new(link, greeting, offer, right, now_ns);
        ViewerSession { outgoing: VecDeque::new(), shown: Some(None), ..session }
    }

    /// The picture of the message that [`next`](ViewerSession::next) returned, before that is sent.
    pub(crate) fn take_shown(&mut self) -> Option<Picture> {
        self.shown.as_mut().and_then(Option::take)
    }

    pub(crate) fn link(&self) -> &ScopeLink {
        &self.link
    }

    /// A file for the viewer, as a message.
    pub(crate) fn file(&mut self, name: &str, content: &[u8], now_ns: u64) -> ScopeMessage {
        let mut out = Writer::default();
        self.number += 1;
        out.u8(FILE);
        out.varint(self.number);
        out.counted(name.as_bytes());
        out.bytes.extend_from_slice(content);
        self.send(out.bytes, now_ns)
    }

    /// Whether the last sound has been sent.
    pub(crate) fn takes_sound(&self) -> bool {
        self.stock.takes_sound()
    }

    /// Sends a sound, in pieces.
    pub(crate) fn put_sound(&mut self, sound: Sound) {
        self.stock.put_sound(sound);
    }

    /// Words were sent: more are due after a pause, so that a part of a slow path is for pictures.
    pub(crate) fn note_words(&mut self, bytes: usize, now_ns: u64) {
        (self.told_ns, self.told_bytes) = (now_ns, bytes);
    }
}
