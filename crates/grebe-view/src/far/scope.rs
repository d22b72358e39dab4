//! The viewer's end: asks for what a front end wants to see, and puts together what comes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use grebe_frame::Description;
use serde_json::{Map, Value};

use super::asked::{Asked, FarViewport, Hello};
use super::bytes::{Malformed, Reader};
use super::control::{SourceControls, Wishes};
use super::finding::Finds;
use super::items::Shelf;
use super::picture::{Before, Drawn};
use super::pieces::Joiner;
use super::told::{ChannelMeaning, Facts, Said};
use super::{FarMessage, PICTURE, PIECES, PROTOCOL};
use crate::data::finding::Finder;
use crate::data::link::{FarSide, ScopeLink};
use crate::data::picture::Picture;
use crate::data::status::SourceStatus;
use crate::data::viewport::Viewport;

/// A scope that is somewhere else, as a front end here sees it through a [`ScopeLink`].
///
/// Whoever has the connection calls [`connected`](FarScope::connected), then gives what comes to [`take`](FarScope::take) and sends
/// what [`next`](FarScope::next) gives.
#[derive(Debug)]
pub struct FarScope {
    side: FarSide,
    program: String,
    source: usize,
    outgoing: VecDeque<Asked>,
    is_connected: bool,
    is_welcome: bool,
    /// What was asked for, by its number, the newest last.
    asked: VecDeque<(u64, Viewport)>,
    viewport_number: u64,
    asked_ns: u64,
    answered: u64,
    before: Before,
    joiner: Joiner,
    shelf: Shelf,
    facts_keys: Map<String, Value>,
    facts: Facts,
    description: Option<Arc<Description>>,
    newest: Option<Newest>,
    clock: Clock,
    pinged_ns: u64,
    /// When something came last; 0: nothing yet.
    heard_ns: u64,
    words: Words,
    wishes: Wishes,
    finds: Finds,
}

/// What came last.
#[derive(Debug)]
struct Newest {
    drawn: Drawn,
    received_ns: u64,
}

/// The other machine's clock, by answers to pings.
#[derive(Debug, Default)]
struct Clock {
    /// The least round trip lately, this clock less the other one by it, and when that was.
    best: Option<(u64, i64, u64)>,
}

/// What is known of the source and of the way to it. Clones share it.
#[derive(Debug, Clone, Default)]
struct Words(Arc<Mutex<Known>>);

/// The parts of it.
#[derive(Debug, Default)]
struct Known {
    status: SourceStatus,
    /// Why there is no connection.
    cut: Option<String>,
    /// For how long nothing has come, where that is too long.
    silent: Option<String>,
    /// That what is shown is not yet what was asked for.
    waits: Option<String>,
    /// What the server said, and until when it is shown.
    said: Option<(String, u64)>,
    channels: Vec<ChannelMeaning>,
    sources: Vec<String>,
}

impl FarScope {
    /// A scope that calls `wake` whenever its front end asks for something else, and the link of that front end. `program` is what
    /// this program calls itself, `name` the source until it says its own.
    pub fn new(program: &str, name: &str, wake: impl Fn() + Send + Sync + 'static) -> (FarScope, ScopeLink) {
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(wake);
        let (wishes, finds) = (Wishes::new(Arc::clone(&wake)), Finds::new(Arc::clone(&wake)));
        let (side, link) = FarSide::new(move || wake());
        let words = Words::default();
        words.with(|it| it.status.name = name.to_owned());
        let scope = FarScope {
            side,
            program: program.to_owned(),
            source: 1,
            outgoing: VecDeque::new(),
            is_connected: false,
            is_welcome: false,
            asked: VecDeque::new(),
            viewport_number: 0,
            asked_ns: 0,
            answered: 0,
            before: Before::default(),
            joiner: Joiner::default(),
            shelf: Shelf::default(),
            facts_keys: Map::new(),
            facts: Facts::default(),
            description: None,
            newest: None,
            clock: Clock::default(),
            pinged_ns: 0,
            heard_ns: 0,
            words,
            wishes,
            finds,
        };
        (scope, link)
    }

    /// What a front end asks for a few times a second: what is known of the source, and of the way to it.
    pub fn status(&self) -> impl Fn() -> SourceStatus + Send + 'static {
        let words = self.words.clone();
        move || {
            words.with(|it| {
                let notice = it.cut.clone().or_else(|| it.silent.clone()).or_else(|| it.waits.clone());
                let notice = notice.or_else(|| it.said.as_ref().map(|(words, _)| words.clone()));
                SourceStatus { notice: notice.or_else(|| it.status.notice.clone()), ..it.status.clone() }
            })
        }
    }

    /// What the numbers of the channels mean, as far as the server was told.
    pub fn channels(&self) -> Vec<ChannelMeaning> {
        self.words.with(|it| it.channels.clone())
    }

    /// What each of the sources is called that the server shows, where there are several.
    pub fn sources(&self) -> Vec<String> {
        self.words.with(|it| it.sources.clone())
    }

    /// What of the source can be changed from here, once the server has let this viewer in. Who may not is told so when he tries.
    pub fn controls(&self) -> SourceControls {
        self.wishes.controls()
    }

    /// Searches all that is held there.
    pub fn finder(&self) -> Finder {
        self.finds.finder()
    }

    /// Whether the server let this viewer in.
    pub fn is_welcome(&self) -> bool {
        self.is_welcome
    }

    /// Whether the front end is gone.
    pub fn is_closed(&self) -> bool {
        self.side.is_closed()
    }

    /// There is a connection, to which nothing was said yet. `token` is what lets this viewer in, `source` the one of the server's
    /// sources that it looks at, from 1.
    pub fn connected(&mut self, token: &str, source: usize, pictures_per_s: f64) {
        self.source = source;
        self.outgoing.clear();
        self.outgoing.push_back(Asked::Hello(Hello {
            protocol: PROTOCOL,
            token: token.to_owned(),
            program: self.program.clone(),
            pictures_per_s,
            source,
            page: None,
        }));
        (self.is_connected, self.is_welcome) = (true, false);
        (self.before, self.joiner, self.shelf) = Default::default();
        (self.facts_keys, self.facts, self.description) = Default::default();
        (self.clock, self.pinged_ns, self.heard_ns) = Default::default();
        self.asked.clear();
        if let Some(viewport) = self.side.viewport() {
            // Asked again, by a number of its own: what is shown stays until it is answered.
            self.side.changed_viewport();
            self.put_viewport(viewport, 0);
        }
    }

    /// There is no connection any more: what is shown stays, and `why` says what of it is not new.
    pub fn lost(&mut self, why: &str) {
        self.is_connected = false;
        self.wishes.close();
        self.finds.close();
        self.words.with(|it| (it.cut, it.silent) = (Some(why.to_owned()), None));
        self.side.wake();
    }

    /// Takes a message of the server.
    ///
    /// # Errors
    /// It cannot be read, or it refuses this viewer: the connection is of no use any more.
    pub fn take(&mut self, message: &FarMessage, now_ns: u64) -> Result<(), FarError> {
        self.heard_ns = now_ns;
        match message {
            FarMessage::Text(text) => self.hear(text, now_ns),
            FarMessage::Binary(bytes) => Ok(self.see(bytes, now_ns)?),
        }
    }

    /// What is to be sent now; to be called until there is nothing, whenever something came, the front end asked, or once a second.
    pub fn next(&mut self, now_ns: u64) -> Option<FarMessage> {
        if !self.is_connected {
            return None;
        }
        if self.is_welcome && now_ns.saturating_sub(self.pinged_ns) >= PING_INTERVAL_NS {
            self.pinged_ns = now_ns;
            self.outgoing.push_back(Asked::Ping { at: now_ns as f64 });
        }
        if let Some(viewport) = self.side.changed_viewport() {
            self.put_viewport(viewport, now_ns);
        }
        if let Some(range) = self.side.wanted_range() {
            self.outgoing.push_back(Asked::Extract {
                number: self.viewport_number,
                from: range.start,
                to: range.end,
            });
        }
        self.look(now_ns);
        if self.is_welcome
            && let Some(wish) = self.wishes.next()
        {
            self.outgoing.push_back(Asked::Control(wish));
        }
        if self.is_welcome
            && let Some(sought) = self.finds.next()
        {
            self.outgoing.push_back(Asked::Find(sought));
        }
        let asked = self.outgoing.pop_front()?;
        // Names and numbers: it cannot fail.
        Some(FarMessage::Text(serde_json::to_string(&asked).unwrap_or_default()))
    }

    fn put_viewport(&mut self, viewport: Viewport, now_ns: u64) {
        self.viewport_number += 1;
        self.asked_ns = now_ns;
        // The newest is what counts.
        self.outgoing.retain(|asked| !matches!(asked, Asked::Viewport(_)));
        self.outgoing.push_back(Asked::Viewport(Box::new(FarViewport::new(self.viewport_number, &viewport))));
        if self.asked.len() == ASKED_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back((self.viewport_number, viewport));
    }

    /// Says that what is shown is not yet what was asked for, or that nothing comes any more, where that takes long enough to be seen. For
    /// a while in which nothing can be sent, and [`next`](FarScope::next), which does it too, is not called.
    pub fn look(&mut self, now_ns: u64) {
        let waits = self.answered < self.viewport_number
            && self.is_welcome
            && now_ns.saturating_sub(self.asked_ns) > WAITS_NS;
        let is_other = self.words.with(|it| {
            it.said.take_if(|(_, until_ns)| now_ns > *until_ns);
            let words = waits.then(|| "on its way: what is shown is what was asked for before".to_owned());
            // A server answers a ping a second.
            let silent_ns = now_ns.saturating_sub(self.heard_ns);
            let is_silent =
                self.is_connected && self.is_welcome && self.heard_ns > 0 && silent_ns > SILENT_NS;
            let silent = is_silent.then(|| {
                format!(
                    "nothing has come from the server for {} s: is the link down?",
                    silent_ns / 1_000_000_000
                )
            });
            let is_other = (&it.waits, &it.silent) != (&words, &silent);
            (it.waits, it.silent) = (words, silent);
            is_other
        });
        if is_other {
            self.side.wake();
        }
    }

    fn hear(&mut self, text: &str, now_ns: u64) -> Result<(), FarError> {
        let said =
            serde_json::from_str(text).map_err(|_| Malformed("it is no JSON that this version knows"))?;
        match said {
            // An older server has one source, and does not look at which is asked for.
            Said::Welcome(welcome) if welcome.source != self.source => {
                return Err(FarError::Refused(format!("it shows one source, and no source {}", self.source)));
            }
            Said::Welcome(welcome) => {
                self.is_welcome = true;
                self.wishes.open(welcome.may_control, welcome.controls);
                self.finds.open(welcome.finds);
                self.words.with(|it| {
                    (it.cut, it.said) = (None, None);
                    (it.channels, it.sources) = (welcome.channels, welcome.sources);
                    it.status.name = welcome.name;
                });
            }
            Said::Refused(why) => return Err(FarError::Refused(why)),
            Said::Pong { at, server_ns } => self.clock.look(at as u64, server_ns, now_ns),
            Said::Status(status) => {
                self.wishes.is_tuned(status.tuned);
                self.words.with(|it| it.status = status.source.clone());
                self.side.wake();
            }
            Said::Told(keys) => {
                self.facts_keys.extend(keys);
                let facts = serde_json::from_value(Value::Object(self.facts_keys.clone()));
                let facts: Facts =
                    facts.map_err(|_| Malformed("what is told of the stream is no such thing"))?;
                if facts.description != self.facts.description {
                    self.description = facts.description();
                }
                self.facts = facts;
                self.show();
            }
            Said::Note { words } => {
                self.words.with(|it| it.said = Some((words, now_ns + SAID_NS)));
                self.side.wake();
            }
            Said::Kept { number, words } => {
                self.wishes.kept(number, words);
                self.side.wake();
            }
        }
        Ok(())
    }

    fn see(&mut self, bytes: &[u8], now_ns: u64) -> Result<(), Malformed> {
        let from = &mut Reader::new(bytes);
        let kind = from.u8()?;
        let number = from.varint()?;
        let mut is_other = kind == PICTURE;
        match kind {
            PICTURE => {
                let drawn = self.before.read(from, &self.asked)?;
                self.answered = self.answered.max(drawn.viewport);
                self.clock.guess(drawn.server_ns, now_ns);
                self.newest = Some(Newest { drawn, received_ns: now_ns });
            }
            PIECES => {}
            _ => return Err(Malformed("it is of an unknown kind")),
        }
        while !from.is_empty() {
            if let Some((item, bytes)) = self.joiner.read(from)? {
                self.shelf.take_in(item, &bytes, &self.asked)?;
                is_other = true;
            }
        }
        self.outgoing.retain(|asked| !matches!(asked, Asked::Ack(_)));
        self.outgoing.push_front(Asked::Ack(number));
        if let Some((_, extract)) = self.shelf.samples.take() {
            self.side.give(extract);
        }
        if let Some((number, news)) = self.shelf.found.take() {
            self.finds.found(number, news);
        }
        if is_other {
            self.show();
        }
        Ok(())
    }

    /// Shows what came last with all that is known of it by now.
    fn show(&mut self) {
        let Some(newest) = &self.newest else { return };
        let mut picture: Picture = newest.drawn.picture.clone();
        self.facts.put_into(&mut picture, newest.drawn.triggered);
        picture.description.clone_from(&self.description);
        self.shelf.put_into(&mut picture);
        picture.clock_ahead_ns = self.clock.ahead_ns();
        if picture.newest_arrival_ns > 0 {
            // By the clock here, as front ends have it.
            let here = (picture.newest_arrival_ns as i64).wrapping_add(picture.clock_ahead_ns);
            picture.newest_arrival_ns = (here.max(1) as u64).min(newest.received_ns.max(1));
        }
        self.side.show(picture);
    }
}

impl Drop for FarScope {
    /// Whoever waits for what was asked there waits no more.
    fn drop(&mut self) {
        self.wishes.close();
        self.finds.close();
    }
}

/// Why a connection is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FarError {
    /// The server does not let this viewer in, or sends it away.
    #[error("{0}")]
    Refused(String),
    /// It says what cannot be.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl Clock {
    /// Takes the answer to a ping.
    fn look(&mut self, at_ns: u64, server_ns: u64, now_ns: u64) {
        let Some(round_trip_ns) = now_ns.checked_sub(at_ns) else { return };
        let is_old = |seen_ns: u64| now_ns.saturating_sub(seen_ns) > CLOCK_HOLDS_NS;
        if self.best.is_none_or(|(least_ns, _, seen_ns)| round_trip_ns <= least_ns || is_old(seen_ns)) {
            let middle_ns = at_ns + round_trip_ns / 2;
            self.best = Some((round_trip_ns, (middle_ns as i64).wrapping_sub(server_ns as i64), now_ns));
        }
    }

    /// Before a ping was answered: as if a picture had taken no time.
    fn guess(&mut self, server_ns: u64, now_ns: u64) {
        if self.best.is_none() {
            self.best = Some((u64::MAX, (now_ns as i64).wrapping_sub(server_ns as i64), now_ns));
        }
    }

    fn ahead_ns(&self) -> i64 {
        self.best.map_or(0, |(_, ahead_ns, _)| ahead_ns)
    }
}

impl Words {
    fn with<T>(&self, work: impl FnOnce(&mut Known) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

const PING_INTERVAL_NS: u64 = 1_000_000_000;
/// Another clock drifts: the least round trip is looked for anew.
const CLOCK_HOLDS_NS: u64 = 30_000_000_000;
/// Longer than a picture takes over most paths, and shorter than a person waits without wondering.
const WAITS_NS: u64 = 300_000_000;
/// Pings and their answers may be late on a slow path.
const SILENT_NS: u64 = 3_000_000_000;
/// How long what the server said is shown.
const SAID_NS: u64 = 8_000_000_000;
const ASKED_MAX: usize = 64;
