//! The session of a connection: pictures and metadata for a viewer with its own model, or for a page, whose model is here.

use grebe_flow::monotonic_ns;
use grebe_view::{
    Greeting, PageSession, Refusal, Right, ScopeLink, ScopeMessage, ScopeOffer, SourceStatus, ViewerSession,
};

pub(crate) enum Session {
    Viewer(Box<ViewerSession>),
    Page(Box<PageSession>),
}

impl Session {
    pub(crate) fn new(link: ScopeLink, greeting: &Greeting, offer: &ScopeOffer, right: Right) -> Session {
        let now_ns = monotonic_ns();
        match greeting.is_page() {
            true => Session::Page(Box::new(PageSession::new(link, greeting, offer, right, now_ns))),
            false => Session::Viewer(Box::new(ViewerSession::new(link, greeting, offer, right, now_ns))),
        }
    }

    pub(crate) fn take(&mut self, text: &str, now_ns: u64) -> Result<(), Refusal> {
        match self {
            Session::Viewer(session) => session.take(text, now_ns),
            Session::Page(session) => session.take(text, now_ns),
        }
    }

    pub(crate) fn take_changed(&mut self) -> Option<String> {
        match self {
            Session::Viewer(session) => session.take_changed(),
            Session::Page(session) => session.take_changed(),
        }
    }

    pub(crate) fn next(
        &mut self,
        now_ns: u64,
        status: impl FnOnce() -> SourceStatus,
    ) -> Option<ScopeMessage> {
        match self {
            Session::Viewer(session) => session.next(now_ns, status),
            Session::Page(session) => session.next(now_ns, status),
        }
    }

    pub(crate) fn wake_ns(&mut self, now_ns: u64) -> u64 {
        match self {
            Session::Viewer(session) => session.wake_ns(now_ns),
            Session::Page(session) => session.wake_ns(now_ns),
        }
    }

    pub(crate) fn check(&self, now_ns: u64) -> Result<(), Refusal> {
        match self {
            Session::Viewer(session) => session.check(now_ns),
            Session::Page(session) => session.check(now_ns),
        }
    }
}
