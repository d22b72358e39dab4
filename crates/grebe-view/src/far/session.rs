//! One viewer, as its server has it: what it asked for, what it knows, and what it is sent next. No socket and no clock.

mod facts;
mod pictures;

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError};

use serde_json::{Map, Value};

use super::FarMessage;
use super::asked::{Asked, PICTURES_PER_S_MAX};
use super::bytes::Writer;
use super::control::{MAY_NOT, Right, SharedControls, Wish};
use super::finding::Searches;
use super::greeting::{Greeting, Refusal};
use super::items::{SAMPLES_MAX, Stock};
use super::pace::Pace;
use super::picture::Before;
use super::pieces::Pieces;
use super::told::{ChannelMeaning, EncodedFacts, FarStatus, Said, Welcome};
use super::{PICTURE, PIECES, PROTOCOL};
use crate::data::extract::WantedExtract;
use crate::data::finding::Finder;
use crate::data::link::ScopeLink;
use crate::data::picture::Picture;
use crate::data::status::SourceStatus;
use crate::data::viewport::Viewport;

/// What a server tells each viewer of itself.
#[derive(Debug, Clone, Default)]
pub struct FarOffer {
    /// The source, as a person named it.
    pub name: String,
    /// This program and its version.
    pub program: String,
    /// What the numbers of the channels mean, as far as somebody said.
    pub channels: Vec<ChannelMeaning>,
    /// What of the source viewers with [`Right::Control`] can change.
    pub controls: SharedControls,
    /// What each of the sources is called that this server shows, where there are several.
    pub sources: Vec<String>,
    /// What searches all that is held of the source, where something does.
    pub finder: Option<Finder>,
}

/// A viewer that was let in.
#[derive(Debug)]
pub struct FarSession {
    link: ScopeLink,
    outgoing: VecDeque<Said>,
    pace: Pace,
    interval_ns: u64,
    /// What it wants to see, and whether that was not asked for yet.
    wanted: Option<(u64, Viewport)>,
    is_wanted_new: bool,
    wanted_ns: u64,
    /// What was asked for lately, by its number.
    asked: VecDeque<(u64, Viewport)>,
    /// Whether a picture is being waited for, and since when.
    is_asked: bool,
    asked_ns: u64,
    /// The next picture, before whose message something is to be told.
    next: Option<Picture>,
    sent_ns: u64,
    picture_ns: u64,
    number: u64,
    before: Before,
    stock: Stock,
    pieces: Pieces,
    facts: Map<String, Value>,
    encoded: EncodedFacts,
    /// What is known by now and was not told yet.
    untold: Map<String, Value>,
    /// The viewport of the last picture that something was told of, and whether the stream was over.
    told_of: (u64, bool),
    told_ns: u64,
    told_bytes: usize,
    status: Option<FarStatus>,
    status_ns: u64,
    is_status_wanted: bool,
    /// Whether the last picture was of what is over.
    is_ended: bool,
    /// The number of a request for samples that are being waited for.
    samples: Option<u64>,
    right: Right,
    controls: SharedControls,
    searches: Searches,
    /// Stretches that are being kept, by their numbers.
    keeping: Vec<(u64, Receiver<String>)>,
    /// What was changed at the source, in words.
    changed: Option<String>,
    is_over: bool,
    /// The last picture that is being sent, for who says what it shows in words: such a viewer is told nothing else.
    shown: Option<Option<Picture>>,
    /// Messages of it that may come still, and since when they were counted.
    may_come: (f64, u64),
}

impl FarSession {
    /// A viewer of `link`, which is its own: [`ScopeLink::another`].
    pub fn new(
        link: ScopeLink,
        greeting: &Greeting,
        offer: &FarOffer,
        right: Right,
        now_ns: u64,
    ) -> FarSession {
        let welcome = Welcome {
            protocol: PROTOCOL,
            program: offer.program.clone(),
            name: offer.name.clone(),
            may_control: right == Right::Control,
            controls: offer.controls.offered(),
            channels: offer.channels.clone(),
            source: greeting.source,
            sources: offer.sources.clone(),
            finds: offer.finder.is_some(),
        };
        let pictures_per_s = greeting.pictures_per_s.clamp(1.0, PICTURES_PER_S_MAX);
        FarSession {
            link,
            outgoing: VecDeque::from([Said::Welcome(welcome)]),
            pace: Pace::default(),
            interval_ns: (1e9 / pictures_per_s) as u64,
            wanted: None,
            is_wanted_new: false,
            wanted_ns: 0,
            asked: VecDeque::new(),
            is_asked: false,
            asked_ns: 0,
            next: None,
            sent_ns: 0,
            picture_ns: 0,
            number: 0,
            before: Before::default(),
            stock: Stock::default(),
            pieces: Pieces::default(),
            facts: Map::new(),
            encoded: EncodedFacts::default(),
            untold: Map::new(),
            told_of: (0, false),
            told_ns: 0,
            told_bytes: 0,
            status: None,
            status_ns: 0,
            is_status_wanted: false,
            is_ended: false,
            samples: None,
            right,
            controls: offer.controls.clone(),
            searches: Searches::by(offer.finder.clone()),
            keeping: Vec::new(),
            changed: None,
            is_over: false,
            shown: None,
            may_come: (MESSAGES_AT_ONCE, now_ns),
        }
    }

    /// Counts a message of the viewer.
    ///
    /// # Errors
    /// There are too many: the viewer is to be sent away with these words.
    pub(crate) fn admit(&mut self, now_ns: u64) -> Result<(), Refusal> {
        let (left, since_ns) = self.may_come;
        let more = now_ns.saturating_sub(since_ns) as f64 * 1e-9 * MESSAGES_PER_S;
        let left = (left + more).min(MESSAGES_AT_ONCE) - 1.0;
        self.may_come = (left, now_ns);
        if left >= 0.0 {
            return Ok(());
        }
        Err(Refusal(format!("more than {MESSAGES_PER_S} messages a second came from the viewer")))
    }

    /// Takes an acknowledgement.
    ///
    /// # Errors
    /// It is of what was never sent.
    pub(crate) fn acknowledged(&mut self, number: u64, now_ns: u64) -> Result<(), Refusal> {
        if number > self.number {
            return Err(Refusal("a message was acknowledged that was never sent".into()));
        }
        self.pace.acknowledged(number, now_ns);
        Ok(())
    }

    /// Answers a sign of life: the newest, as one that waits still would say less.
    pub(crate) fn pong(&mut self, at: f64, now_ns: u64) {
        self.outgoing.retain(|said| !matches!(said, Said::Pong { .. }));
        self.outgoing.push_back(Said::Pong { at, server_ns: now_ns });
    }

    /// What is to be seen from now on; pictures of it bear the number.
    pub(crate) fn see(&mut self, number: u64, viewport: Viewport) {
        self.wanted = Some((number, viewport));
        self.is_wanted_new = true;
    }

    /// Takes a message of the viewer.
    ///
    /// # Errors
    /// It is none that there is, or there are too many: the viewer is to be sent away with these words.
    pub fn take(&mut self, text: &str, now_ns: u64) -> Result<(), Refusal> {
        self.admit(now_ns)?;
        let asked = serde_json::from_str(text);
        match asked.map_err(|error| Refusal(format!("a message was not understood: {error}")))? {
            Asked::Hello(_) => return Err(Refusal("a second hello came".into())),
            Asked::Viewport(viewport) => self.see(viewport.number, viewport.viewport()),
            Asked::Ack(number) => self.acknowledged(number, now_ns)?,
            Asked::Ping { at } => self.pong(at, now_ns),
            Asked::Extract { number, from, to } => {
                self.samples = Some(number);
                self.link.request_extract(WantedExtract { range: from..to, samples_max: SAMPLES_MAX as u64 });
            }
            Asked::Control(wish) => self.control(&wish),
            Asked::Find(sought) => self.searches.ask(sought),
        }
        Ok(())
    }

    /// What this viewer has changed at the source, in words for who sits there; once.
    pub fn take_changed(&mut self) -> Option<String> {
        self.changed.take()
    }

    /// What is to be sent now; to be called until there is nothing, whenever something came, the link woke, or at
    /// [`wake_ns`](FarSession::wake_ns). `status` says what is known of the source.
    pub fn next(&mut self, now_ns: u64, status: impl FnOnce() -> SourceStatus) -> Option<FarMessage> {
        self.look_at_kept();
        if let Some(said) = self.outgoing.pop_front() {
            return Some(said.message());
        }
        let is_due = now_ns.saturating_sub(self.status_ns) >= STATUS_INTERVAL_NS;
        if is_due || self.is_status_wanted || self.status.is_none() {
            (self.status_ns, self.is_status_wanted) = (now_ns, false);
            let status = FarStatus { source: status(), tuned: self.controls.tuned() };
            let is_told = self.shown.is_none();
            if self.status.replace(status.clone()).as_ref() != Some(&status) && is_told {
                return Some(Said::Status(Box::new(status)).message());
            }
        }
        self.ask(now_ns);
        if let Some(number) = self.samples
            && let Some(extract) = self.link.take_extract()
        {
            self.samples = None;
            self.stock.put_samples(number, extract);
        }
        self.searches.look(&self.link, &mut self.stock, now_ns);
        if !self.pace.may_send(now_ns) {
            return None;
        }
        if self.next.is_none() && self.is_asked {
            self.next = self.link.poll();
            self.is_asked &= self.next.is_none();
        }
        match self.next.take() {
            // What is known of the source is not to be older than its end: of a file, how much of it was read.
            Some(picture) if picture.is_ended && !self.is_ended && self.shown.is_none() => {
                (self.is_ended, self.is_status_wanted) = (true, true);
                self.next = Some(picture);
                None
            }
            Some(picture) => {
                self.is_ended = picture.is_ended;
                let viewport = self.answered(&picture);
                let told = self.told(&picture, viewport, now_ns);
                if told.is_some() {
                    self.next = Some(picture);
                    return told;
                }
                Some(self.picture(picture, viewport, now_ns))
            }
            // A picture that was asked for goes first, and pieces ride with it.
            None => match self.tell_later(now_ns) {
                None if now_ns >= self.pieces_ns() => self.pieces_alone(now_ns),
                told => told,
            },
        }
    }

    /// When [`next`](FarSession::next) may have something although nothing happened.
    pub fn wake_ns(&mut self, now_ns: u64) -> u64 {
        let mut wake_ns = if self.is_status_wanted { now_ns } else { self.status_ns + STATUS_INTERVAL_NS };
        if self.is_wanted_new {
            wake_ns = wake_ns.min(self.wanted_ns + ASK_INTERVAL_NS);
        }
        wake_ns = wake_ns.min(self.searches.due_ns().unwrap_or(u64::MAX));
        // Where the path is full, an acknowledgement comes first.
        if self.pace.may_send(now_ns) {
            if !self.is_asked && !self.asked.is_empty() {
                wake_ns = wake_ns.min(self.sent_ns + self.interval_ns);
            }
            if !self.untold.is_empty() {
                wake_ns = wake_ns.min(self.told_due_ns(now_ns));
            }
            if self.pieces.is_under_way() || self.stock.has_answers() {
                wake_ns = wake_ns.min(self.pieces_ns());
            }
        }
        wake_ns.max(now_ns + WAKE_NS_MIN)
    }

    /// Why the viewer is to be sent away: it takes nothing in.
    ///
    /// # Errors
    /// In words for the person there.
    pub fn check(&self, now_ns: u64) -> Result<(), Refusal> {
        if self.pace.waits_ns(now_ns) < STALLED_NS {
            return Ok(());
        }
        Err(Refusal(format!("nothing was acknowledged for {} s", STALLED_NS / 1_000_000_000)))
    }

    /// Has the source changed, where this viewer may.
    fn control(&mut self, wish: &Wish) {
        let kept = match wish {
            Wish::Keep(stretch) => Some(stretch.number),
            Wish::Annotate(edit) => Some(edit.number),
            _ => None,
        };
        let done = match self.right {
            Right::Look => Err(MAY_NOT.to_owned()),
            Right::Control if kept.is_some() && self.keeping.len() == KEEPING_MAX => {
                Err("others are being kept still".into())
            }
            Right::Control => self.controls.obey(wish),
        };
        match (done, kept) {
            (Ok(told), _) => {
                self.changed = Some(wish.words());
                self.keeping.extend(kept.zip(told));
            }
            (Err(why), Some(number)) => {
                self.outgoing.push_back(Said::Kept { number, words: format!("not done: {why}") });
            }
            (Err(words), None) => {
                // The newest is what a person waits for.
                self.outgoing.retain(|said| !matches!(said, Said::Note { .. }));
                self.outgoing.push_back(Said::Note { words });
            }
        }
    }

    fn look_at_kept(&mut self) {
        let outgoing = &mut self.outgoing;
        self.keeping.retain(|(number, told)| {
            let words = match told.try_recv() {
                Ok(words) => words,
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => "what became of it was not said".into(),
            };
            outgoing.push_back(Said::Kept { number: *number, words });
            false
        });
    }

    /// When pieces need no longer wait for a picture.
    fn pieces_ns(&self) -> u64 {
        self.asked_ns.max(self.picture_ns) + PIECES_WAIT_NS
    }

    /// Asks for the next picture when one may be sent: it is made then, and not before.
    fn ask(&mut self, now_ns: u64) {
        let Some((number, viewport)) = &self.wanted else { return };
        if self.is_wanted_new && now_ns.saturating_sub(self.wanted_ns) >= ASK_INTERVAL_NS {
            (self.is_wanted_new, self.wanted_ns, self.asked_ns) = (false, now_ns, now_ns);
            // Of a live stream, an analysis of all that is held would hold up whoever else looks.
            let viewport = Viewport { is_exact: viewport.is_exact && self.is_over, ..viewport.clone() };
            if self.asked.len() == ASKED_MAX {
                self.asked.pop_front();
            }
            self.asked.push_back((*number, viewport.clone()));
            // A picture of it follows, also where it is what was seen before.
            self.link.begin_viewing();
            self.link.request(viewport);
            self.is_asked = true;
        }
        let is_due = now_ns.saturating_sub(self.sent_ns) >= self.interval_ns;
        if is_due
            && !self.is_asked
            && self.next.is_none()
            && !self.asked.is_empty()
            && self.pace.may_send(now_ns)
        {
            self.link.ask();
            (self.is_asked, self.asked_ns) = (true, now_ns);
        }
    }

    /// The number of the viewport that a picture answers.
    fn answered(&self, picture: &Picture) -> u64 {
        let number = self.asked.iter().rev().find(|(_, viewport)| picture.answers.as_ref() == Some(viewport));
        number.or(self.asked.front()).map_or(0, |(number, _)| *number)
    }

    fn picture(&mut self, mut picture: Picture, viewport: u64, now_ns: u64) -> FarMessage {
        if picture.is_ended != self.is_over {
            self.is_over = picture.is_ended;
            self.is_wanted_new |= self.wanted.as_ref().is_some_and(|(_, viewport)| viewport.is_exact);
        }
        self.stock.take_in(&picture, viewport);
        if let Some(shown) = &mut self.shown {
            *shown = Some(picture.clone());
        }
        let mut out = Writer::default();
        self.number += 1;
        out.u8(PICTURE);
        out.varint(self.number);
        self.before.write(&mut picture, viewport, now_ns, &mut out);
        let since_ns = now_ns.saturating_sub(self.picture_ns);
        let piece_bytes = self.pace.piece_bytes(since_ns, now_ns);
        self.pieces.write(&mut self.stock, piece_bytes, &mut out);
        self.picture_ns = now_ns;
        self.send(out.bytes, now_ns)
    }

    fn pieces_alone(&mut self, now_ns: u64) -> Option<FarMessage> {
        let mut out = Writer::default();
        out.u8(PIECES);
        out.varint(self.number + 1);
        let piece_bytes = self.pace.piece_bytes(PIECES_WAIT_NS, now_ns);
        if !self.pieces.write(&mut self.stock, piece_bytes, &mut out) {
            return None;
        }
        self.number += 1;
        Some(self.send(out.bytes, now_ns))
    }

    fn send(&mut self, bytes: Vec<u8>, now_ns: u64) -> FarMessage {
        self.pace.sent(self.number, bytes.len(), now_ns);
        // On a schedule, as far as the path lets it.
        let due_ns = self.sent_ns + self.interval_ns;
        self.sent_ns =
            if now_ns.saturating_sub(due_ns) > self.interval_ns { now_ns } else { due_ns.min(now_ns) };
        FarMessage::Binary(bytes)
    }
}

const STATUS_INTERVAL_NS: u64 = 250_000_000;
/// Where no picture comes for so long, pieces have messages of their own.
const PIECES_WAIT_NS: u64 = 50_000_000;
const WAKE_NS_MIN: u64 = 1_000_000;
/// Another viewport is looked at as often at most.
const ASK_INTERVAL_NS: u64 = 16_000_000;
const ASKED_MAX: usize = 64;
/// A viewer that takes in nothing for so long is gone, or was stopped.
const STALLED_NS: u64 = 20_000_000_000;
/// Stretches of one viewer that are being kept at once.
const KEEPING_MAX: usize = 4;
const MESSAGES_PER_S: f64 = 400.0;
const MESSAGES_AT_ONCE: f64 = 1000.0;
