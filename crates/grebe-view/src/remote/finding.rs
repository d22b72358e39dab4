//! Searches between a viewer and its server: one per viewer, and a new search replaces the old one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::items::LatestItems;
use super::requests::Search;
use crate::data::finding::{Finder, Finding, FindingNews, FindingSide, Sought};
use crate::data::lane::CHANNELS_MAX;
use crate::data::link::ScopeLink;

/// Limits a search to the cost of one viewer.
fn bounded(mut sought: Sought) -> Sought {
    sought.scales.truncate(CHANNELS_MAX);
    if let Some((end, _)) = sought.words.char_indices().nth(WORDS_MAX) {
        sought.words.truncate(end);
    }
    sought
}

/// The searches of one viewer, at the server.
#[derive(Debug, Default)]
pub(super) struct Searches {
    finder: Option<Finder>,
    /// The next search; `Some(None)` cancels the present one.
    wanted: Option<Option<Search>>,
    began_ns: Option<u64>,
    running: Option<(u64, Finding)>,
}

impl Searches {
    pub(super) fn by(finder: Option<Finder>) -> Searches {
        Searches { finder, ..Searches::default() }
    }

    pub(super) fn ask(&mut self, sought: Option<Search>) {
        self.wanted = Some(sought);
    }

    /// Starts the requested search and passes on its results. `link` wakes the caller.
    pub(super) fn look(&mut self, link: &ScopeLink, stock: &mut LatestItems, now_ns: u64) {
        if self.due_ns().is_some_and(|due_ns| now_ns >= due_ns)
            && let Some(sought) = self.wanted.take()
        {
            self.running = None;
            self.began_ns = Some(now_ns);
            self.running = sought.map(|sought| {
                let number = sought.number;
                let finding = match &self.finder {
                    Some(finder) => finder.find(bounded(sought.sought)),
                    None => refused("nothing can be searched here"),
                };
                let link = link.clone();
                finding.on_news(move || link.wake());
                (number, finding)
            });
        }
        if let Some((number, finding)) = &self.running
            && let Some(news) = finding.take_news()
        {
            let is_over = news.ended.is_some();
            stock.put_found(*number, news);
            if is_over {
                self.running = None;
            }
        }
    }

    /// When the next search may begin, if one waits.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.wanted.as_ref().map(|_| self.began_ns.map_or(0, |began_ns| began_ns + BEGIN_INTERVAL_NS))
    }
}

/// The searches of a front end here, on their way to the server. Clones share one state.
#[derive(Clone)]
pub(super) struct Finds {
    shared: Arc<Mutex<SearchState>>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct SearchState {
    is_open: bool,
    /// Whether the server can search.
    can_find: bool,
    number: u64,
    wanted: Option<Search>,
    side: Option<(u64, FindingSide)>,
}

impl Finds {
    pub(super) fn new(wake: Arc<dyn Fn() + Send + Sync>) -> Finds {
        Finds { shared: Arc::default(), wake }
    }

    /// The finder for a front end.
    pub(super) fn finder(&self) -> Finder {
        let finds = self.clone();
        Finder::new(move |sought| finds.begin(sought))
    }

    fn begin(&self, sought: Sought) -> Finding {
        let mut asked = self.lock();
        if !asked.is_open {
            return refused("no connection to the server: search again when it is back");
        }
        if !asked.can_find {
            return refused("the server cannot search: it is an older one");
        }
        let (side, finding) = Finding::begin();
        asked.number += 1;
        asked.wanted = Some(Search { number: asked.number, sought });
        asked.side = Some((asked.number, side));
        drop(asked);
        (self.wake)();
        finding
    }

    /// The next message to the server: a search, or a cancellation.
    pub(super) fn next(&self) -> Option<Option<Search>> {
        let mut asked = self.lock();
        if asked.wanted.is_some() {
            return Some(asked.wanted.take());
        }
        asked.side.take_if(|(_, side)| !side.is_wanted()).map(|_| None)
    }

    /// Called when the server has let this viewer in.
    pub(super) fn open(&self, can_find: bool) {
        let mut asked = self.lock();
        (asked.is_open, asked.can_find) = (true, can_find);
    }

    /// Called when the connection is lost.
    pub(super) fn close(&self) {
        let mut asked = self.lock();
        (asked.is_open, asked.wanted) = (false, None);
        if let Some((_, side)) = asked.side.take() {
            side.end("the connection was cut: search again when it is back");
        }
    }

    /// Takes new results, or the end of a search.
    pub(super) fn found(&self, number: u64, news: FindingNews) {
        let mut asked = self.lock();
        let Some((_, side)) = asked.side.as_ref().filter(|(it, _)| *it == number) else { return };
        let is_over = news.ended.is_some();
        side.pass_on(news);
        if is_over {
            asked.side = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, SearchState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Finds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Finds").finish_non_exhaustive()
    }
}

fn refused(words: &str) -> Finding {
    let (side, finding) = Finding::begin();
    side.end(&format!("not searched: {words}"));
    finding
}

/// Minimum time between the starts of two searches of one viewer.
const BEGIN_INTERVAL_NS: u64 = 200_000_000;
const WORDS_MAX: usize = 1000;
