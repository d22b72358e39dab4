//! The viewer's end: sends requests, and builds pictures from the answers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use grebe_frame::Description;
use serde_json::{Map, Value};

use super::bytes::{Malformed, Reader};
use super::control::{SourceControls, Wishes};
use super::finding::Finds;
use super::items::ReceivedItems;
use super::picture::{Before, Drawn};
use super::pieces::Joiner;
use super::replies::{ChannelMeaning, Facts, Reply};
use super::requests::{Hello, RemoteViewport, Request};
use super::{PICTURE, PIECES, PROTOCOL, ScopeMessage};
use crate::data::finding::Finder;
use crate::data::link::{RemoteSide, ScopeLink};
use crate::data::picture::Picture;
use crate::data::status::SourceStatus;
use crate::data::viewport::Viewport;

/// A scope on another host, which a front end here shows through a [`ScopeLink`].
///
/// The owner of the connection calls [`connected`](RemoteScope::connected), passes each message to
/// [`take`](RemoteScope::take), and sends the messages of [`next`](RemoteScope::next).
#[derive(Debug)]
pub struct RemoteScope {
    side: RemoteSide,
    program: String,
    source: usize,
    outgoing: VecDeque<Request>,
    is_connected: bool,
    is_welcome: bool,
    /// Recent viewports by number, the newest last.
    asked: VecDeque<(u64, Viewport)>,
    viewport_number: u64,
    asked_ns: u64,
    answered: u64,
    before: Before,
    joiner: Joiner,
    shelf: ReceivedItems,
    facts_keys: Map<String, Value>,
    facts: Facts,
    description: Option<Arc<Description>>,
    newest: Option<Newest>,
    clock: Clock,
    pinged_ns: u64,
    /// When the last message came; 0: none yet.
    heard_ns: u64,
    words: Words,
    wishes: Wishes,
    finds: Finds,
}

/// The newest picture.
#[derive(Debug)]
struct Newest {
    drawn: Drawn,
    received_ns: u64,
}

/// Offset of the server's clock, from answers to pings.
#[derive(Debug, Default)]
struct Clock {
    /// Minimum recent round trip time, the clock offset of that ping, and its time.
    best: Option<(u64, i64, u64)>,
}

/// State of the source and of the connection. Clones share one state.
#[derive(Debug, Clone, Default)]
struct Words(Arc<Mutex<Known>>);

/// Fields of [`Words`].
#[derive(Debug, Default)]
struct Known {
    status: SourceStatus,
    /// Why the connection is down.
    cut: Option<String>,
    /// Warning that the server is silent.
    silent: Option<String>,
    /// Note that the picture does not answer the newest request yet.
    waits: Option<String>,
    /// The server's message, and the time until which it is shown.
    said: Option<(String, u64)>,
    channels: Vec<ChannelMeaning>,
    sources: Vec<String>,
}

impl RemoteScope {
    /// Creates a scope and the link of its front end. `wake` is called whenever the front end asks for something
    /// else. `program` is the name of this program; `name` stands for the source until the server names it.
    pub fn new(
        program: &str,
        name: &str,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> (RemoteScope, ScopeLink) {
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(wake);
        let (wishes, finds) = (Wishes::new(Arc::clone(&wake)), Finds::new(Arc::clone(&wake)));
        let (side, link) = RemoteSide::new(move || wake());
        let words = Words::default();
        words.with(|it| it.status.name = name.to_owned());
        let scope = RemoteScope {
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
            shelf: ReceivedItems::default(),
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

    /// The front end calls this a few times a second for the state of the source and of the connection.
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

    /// The meaning of the channels' numbers, as far as the server knows it.
    pub fn channels(&self) -> Vec<ChannelMeaning> {
        self.words.with(|it| it.channels.clone())
    }

    /// Names of the server's sources, if it has several.
    pub fn sources(&self) -> Vec<String> {
        self.words.with(|it| it.sources.clone())
    }

    /// Controls of the source, once the server has let this viewer in. A viewer without the right gets an error from each.
    pub fn controls(&self) -> SourceControls {
        self.wishes.controls()
    }

    /// Searches the server's whole history.
    pub fn finder(&self) -> Finder {
        self.finds.finder()
    }

    /// Whether the server has let this viewer in.
    pub fn is_welcome(&self) -> bool {
        self.is_welcome
    }

    /// Whether the front end is gone.
    pub fn is_closed(&self) -> bool {
        self.side.is_closed()
    }

    /// Starts a new connection. `token` authorizes this viewer; `source` is the number of the server's source to show,
    /// from 1.
    pub fn connected(&mut self, token: &str, source: usize, pictures_per_s: f64) {
        self.source = source;
        self.outgoing.clear();
        self.outgoing.push_back(Request::Hello(Hello {
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
            // The request gets a new number; the old picture stays until the answer arrives.
            self.side.changed_viewport();
            self.put_viewport(viewport, 0);
        }
    }

    /// Ends the connection. The picture stays, with `why` as its note.
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
    /// If the message is malformed, or the server rejects this viewer. The connection is then useless.
    pub fn take(&mut self, message: &ScopeMessage, now_ns: u64) -> Result<(), RemoteScopeError> {
        self.heard_ns = now_ns;
        match message {
            ScopeMessage::Text(text) => self.hear(text, now_ns),
            ScopeMessage::Binary(bytes) => Ok(self.see(bytes, now_ns)?),
        }
    }

    /// The next message to send. Call it until `None`: after each message, each wake-up of the front end, and once a
    /// second.
    pub fn next(&mut self, now_ns: u64) -> Option<ScopeMessage> {
        if !self.is_connected {
            return None;
        }
        if self.is_welcome && now_ns.saturating_sub(self.pinged_ns) >= PING_INTERVAL_NS {
            self.pinged_ns = now_ns;
            self.outgoing.push_back(Request::Ping { at: now_ns as f64 });
        }
        if let Some(viewport) = self.side.changed_viewport() {
            self.put_viewport(viewport, now_ns);
        }
        if let Some(range) = self.side.wanted_range() {
            self.outgoing.push_back(Request::Extract {
                number: self.viewport_number,
                from: range.start,
                to: range.end,
            });
        }
        self.look(now_ns);
        if self.is_welcome
            && let Some(wish) = self.wishes.next()
        {
            self.outgoing.push_back(Request::Control(wish));
        }
        if self.is_welcome
            && let Some(sought) = self.finds.next()
        {
            self.outgoing.push_back(Request::Find(sought));
        }
        let asked = self.outgoing.pop_front()?;
        // Names and numbers always serialize.
        Some(ScopeMessage::Text(serde_json::to_string(&asked).unwrap_or_default()))
    }

    fn put_viewport(&mut self, viewport: Viewport, now_ns: u64) {
        self.viewport_number += 1;
        self.asked_ns = now_ns;
        // The newest viewport replaces older ones.
        self.outgoing.retain(|asked| !matches!(asked, Request::Viewport(_)));
        self.outgoing
            .push_back(Request::Viewport(Box::new(RemoteViewport::new(self.viewport_number, &viewport))));
        if self.asked.len() == ASKED_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back((self.viewport_number, viewport));
    }

    /// Updates the notes about late pictures and a silent server. [`next`](RemoteScope::next) includes it; call it alone
    /// while nothing can be sent.
    pub fn look(&mut self, now_ns: u64) {
        let waits = self.answered < self.viewport_number
            && self.is_welcome
            && now_ns.saturating_sub(self.asked_ns) > WAITS_NS;
        let is_other = self.words.with(|it| {
            it.said.take_if(|(_, until_ns)| now_ns > *until_ns);
            let words = waits.then(|| "waiting for the server; showing the previous view".to_owned());
            // The server answers one ping per second.
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

    fn hear(&mut self, text: &str, now_ns: u64) -> Result<(), RemoteScopeError> {
        let said = serde_json::from_str(text).map_err(|_| Malformed("unknown or invalid JSON message"))?;
        match said {
            // An older server has one source, and ignores the requested number.
            Reply::Welcome(welcome) if welcome.source != self.source => {
                return Err(RemoteScopeError::Refused(format!(
                    "it shows one source, and no source {}",
                    self.source
                )));
            }
            Reply::Welcome(welcome) => {
                self.is_welcome = true;
                self.wishes.open(welcome.may_control, welcome.controls);
                self.finds.open(welcome.finds);
                self.words.with(|it| {
                    (it.cut, it.said) = (None, None);
                    (it.channels, it.sources) = (welcome.channels, welcome.sources);
                    it.status.name = welcome.name;
                });
            }
            Reply::Refused(why) => return Err(RemoteScopeError::Refused(why)),
            Reply::Pong { at, server_ns } => self.clock.look(at as u64, server_ns, now_ns),
            Reply::Status(status) => {
                self.wishes.is_tuned(status.tuned);
                self.words.with(|it| it.status = status.source.clone());
                self.side.wake();
            }
            Reply::Told(keys) => {
                self.facts_keys.extend(keys);
                let facts = serde_json::from_value(Value::Object(self.facts_keys.clone()));
                let facts: Facts = facts.map_err(|_| Malformed("invalid stream metadata"))?;
                if facts.description != self.facts.description {
                    self.description = facts.description();
                }
                self.facts = facts;
                self.show();
            }
            Reply::Note { words } => {
                self.words.with(|it| it.said = Some((words, now_ns + SAID_NS)));
                self.side.wake();
            }
            Reply::Kept { number, words } => {
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
        self.outgoing.retain(|asked| !matches!(asked, Request::Ack(_)));
        self.outgoing.push_front(Request::Ack(number));
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

    /// Shows the newest picture with the current metadata.
    fn show(&mut self) {
        let Some(newest) = &self.newest else { return };
        let mut picture: Picture = newest.drawn.picture.clone();
        self.facts.put_into(&mut picture, newest.drawn.triggered);
        picture.description.clone_from(&self.description);
        self.shelf.put_into(&mut picture);
        picture.clock_ahead_ns = self.clock.ahead_ns();
        if picture.newest_arrival_ns > 0 {
            // Front ends expect times of the local clock.
            let here = (picture.newest_arrival_ns as i64).wrapping_add(picture.clock_ahead_ns);
            picture.newest_arrival_ns = (here.max(1) as u64).min(newest.received_ns.max(1));
        }
        self.side.show(picture);
    }
}

impl Drop for RemoteScope {
    /// Frees everyone who waits for an answer of the server.
    fn drop(&mut self) {
        self.wishes.close();
        self.finds.close();
    }
}

/// Reason why a connection is useless.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteScopeError {
    /// The server rejected this viewer, or closed its session.
    #[error("{0}")]
    Refused(String),
    /// The server sent a malformed message.
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

    /// Estimates the offset before the first answer, as if a picture took no time.
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
/// Clocks drift, so the minimum round trip time expires.
const CLOCK_HOLDS_NS: u64 = 30_000_000_000;
/// Longer than most paths need for a picture, and shorter than a person waits without wondering.
const WAITS_NS: u64 = 300_000_000;
/// Pings and answers may be late on a slow path.
const SILENT_NS: u64 = 3_000_000_000;
/// How long a message of the server is shown.
const SAID_NS: u64 = 8_000_000_000;
const ASKED_MAX: usize = 64;
