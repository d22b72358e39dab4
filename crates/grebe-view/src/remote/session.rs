//! The server's end of one viewer: its requests, the metadata that it has, and the next messages. No socket and no clock.

mod facts;
mod pictures;

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError};

use serde_json::{Map, Value};

use super::ScopeMessage;
use super::bytes::Writer;
use super::control::{MAY_NOT, Right, SharedControls, Wish};
use super::finding::Searches;
use super::greeting::{Greeting, Refusal};
use super::items::{LatestItems, SAMPLES_MAX};
use super::pace::Pace;
use super::picture::Before;
use super::pieces::Pieces;
use super::replies::{ChannelMeaning, EncodedFacts, RemoteStatus, Reply, Welcome};
use super::requests::{PICTURES_PER_S_MAX, Request};
use super::{PICTURE, PIECES, PROTOCOL};
use crate::data::extract::WantedExtract;
use crate::data::finding::Finder;
use crate::data::link::ScopeLink;
use crate::data::listening::Listener;
use crate::data::picture::Picture;
use crate::data::status::SourceStatus;
use crate::data::viewport::Viewport;

/// A server's offer to each viewer.
#[derive(Debug, Clone, Default)]
pub struct ScopeOffer {
    /// The source, as the person named it.
    pub name: String,
    /// This program and its version.
    pub program: String,
    /// The meaning of the channels' numbers, as far as it is known.
    pub channels: Vec<ChannelMeaning>,
    /// Controls of the source, for viewers with [`Right::Control`].
    pub controls: SharedControls,
    /// Names of this server's sources, if it has several.
    pub sources: Vec<String>,
    /// Searches the source's whole history, if it can be searched.
    pub finder: Option<Finder>,
    /// Makes sound of boxes, for pages.
    pub listener: Option<Listener>,
}

/// The session of a viewer that was let in.
#[derive(Debug)]
pub struct ViewerSession {
    link: ScopeLink,
    outgoing: VecDeque<Reply>,
    pace: Pace,
    interval_ns: u64,
    /// The requested viewport, until it is passed to the link.
    wanted: Option<(u64, Viewport)>,
    is_wanted_new: bool,
    wanted_ns: u64,
    /// Recent viewports, by number.
    asked: VecDeque<(u64, Viewport)>,
    /// Whether a picture is due, and since when.
    is_asked: bool,
    asked_ns: u64,
    /// The next picture, held back until its metadata is sent.
    next: Option<Picture>,
    sent_ns: u64,
    picture_ns: u64,
    number: u64,
    before: Before,
    stock: LatestItems,
    pieces: Pieces,
    facts: Map<String, Value>,
    encoded: EncodedFacts,
    /// Metadata that changed and was not sent yet.
    untold: Map<String, Value>,
    /// The viewport number of the last picture with metadata, and whether the stream had ended.
    told_of: (u64, bool),
    told_ns: u64,
    told_bytes: usize,
    status: Option<RemoteStatus>,
    status_ns: u64,
    is_status_wanted: bool,
    /// Whether the last picture was of an ended stream.
    is_ended: bool,
    /// The number of the pending request for samples.
    samples: Option<u64>,
    right: Right,
    controls: SharedControls,
    searches: Searches,
    /// Ranges that are being saved, by number.
    keeping: Vec<(u64, Receiver<String>)>,
    /// Description of the last change to the source.
    changed: Option<String>,
    is_over: bool,
    /// The last picture being sent, for pages, which show texts instead of metadata.
    shown: Option<Option<Picture>>,
    /// Remaining allowance of messages from the viewer, and when it was last updated.
    may_come: (f64, u64),
}

impl ViewerSession {
    /// A session for one viewer. `link` is its own, from [`ScopeLink::another`].
    pub fn new(
        link: ScopeLink,
        greeting: &Greeting,
        offer: &ScopeOffer,
        right: Right,
        now_ns: u64,
    ) -> ViewerSession {
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
        ViewerSession {
            link,
            outgoing: VecDeque::from([Reply::Welcome(welcome)]),
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
            stock: LatestItems::default(),
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
    /// If the viewer sends too many messages: close it with this reason.
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
    /// If that message was never sent.
    pub(crate) fn acknowledged(&mut self, number: u64, now_ns: u64) -> Result<(), Refusal> {
        if number > self.number {
            return Err(Refusal("a message was acknowledged that was never sent".into()));
        }
        self.pace.acknowledged(number, now_ns);
        Ok(())
    }

    /// Answers a ping. A new ping replaces one that still waits.
    pub(crate) fn pong(&mut self, at: f64, now_ns: u64) {
        self.outgoing.retain(|said| !matches!(said, Reply::Pong { .. }));
        self.outgoing.push_back(Reply::Pong { at, server_ns: now_ns });
    }

    /// Sets the viewport. Its pictures carry the number.
    pub(crate) fn see(&mut self, number: u64, viewport: Viewport) {
        self.wanted = Some((number, viewport));
        self.is_wanted_new = true;
    }

    /// Takes a message of the viewer.
    ///
    /// # Errors
    /// If the message is unknown, or the viewer sends too many: close it with this reason.
    pub fn take(&mut self, text: &str, now_ns: u64) -> Result<(), Refusal> {
        self.admit(now_ns)?;
        let asked = serde_json::from_str(text);
        match asked.map_err(|error| Refusal(format!("a message was not understood: {error}")))? {
            Request::Hello(_) => return Err(Refusal("a second hello".into())),
            Request::Viewport(viewport) => self.see(viewport.number, viewport.viewport()),
            Request::Ack(number) => self.acknowledged(number, now_ns)?,
            Request::Ping { at } => self.pong(at, now_ns),
            Request::Extract { number, from, to } => {
                self.samples = Some(number);
                self.link.request_extract(WantedExtract { range: from..to, samples_max: SAMPLES_MAX as u64 });
            }
            Request::Control(wish) => self.control(&wish),
            Request::Find(sought) => self.searches.ask(sought),
        }
        Ok(())
    }

    /// Takes the description of this viewer's last change to the source.
    pub fn take_changed(&mut self) -> Option<String> {
        self.changed.take()
    }

    /// The next message to send. Call it until `None`: after each message, each wake-up of the link, and at
    /// [`wake_ns`](ViewerSession::wake_ns). `status` returns the state of the source.
    pub fn next(&mut self, now_ns: u64, status: impl FnOnce() -> SourceStatus) -> Option<ScopeMessage> {
        self.look_at_kept();
        if let Some(said) = self.outgoing.pop_front() {
            return Some(said.message());
        }
        let is_due = now_ns.saturating_sub(self.status_ns) >= STATUS_INTERVAL_NS;
        if is_due || self.is_status_wanted || self.status.is_none() {
            (self.status_ns, self.is_status_wanted) = (now_ns, false);
            let status = RemoteStatus { source: status(), tuned: self.controls.tuned() };
            let is_told = self.shown.is_none();
            if self.status.replace(status.clone()).as_ref() != Some(&status) && is_told {
                return Some(Reply::Status(Box::new(status)).message());
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
            // The metadata must not be older than the end of the stream: of a file, it includes the amount read.
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
            // A requested picture goes first, and carries pieces.
            None => match self.tell_later(now_ns) {
                None if now_ns >= self.pieces_ns() => self.pieces_alone(now_ns),
                told => told,
            },
        }
    }

    /// When [`next`](ViewerSession::next) may have a message without another event.
    pub fn wake_ns(&mut self, now_ns: u64) -> u64 {
        let mut wake_ns = if self.is_status_wanted { now_ns } else { self.status_ns + STATUS_INTERVAL_NS };
        if self.is_wanted_new {
            wake_ns = wake_ns.min(self.wanted_ns + ASK_INTERVAL_NS);
        }
        wake_ns = wake_ns.min(self.searches.due_ns().unwrap_or(u64::MAX));
        // On a full path, an acknowledgement comes first.
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

    /// Checks whether the viewer still reads.
    ///
    /// # Errors
    /// If it does not: the reason, for the person there.
    pub fn check(&self, now_ns: u64) -> Result<(), Refusal> {
        if self.pace.waits_ns(now_ns) < STALLED_NS {
            return Ok(());
        }
        Err(Refusal(format!("nothing was acknowledged for {} s", STALLED_NS / 1_000_000_000)))
    }

    /// Changes the source, if this viewer has the right.
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
                self.outgoing.push_back(Reply::Kept { number, words: format!("not done: {why}") });
            }
            (Err(words), None) => {
                // The newest note replaces older ones.
                self.outgoing.retain(|said| !matches!(said, Reply::Note { .. }));
                self.outgoing.push_back(Reply::Note { words });
            }
        }
    }

    fn look_at_kept(&mut self) {
        let outgoing = &mut self.outgoing;
        self.keeping.retain(|(number, told)| {
            let words = match told.try_recv() {
                Ok(words) => words,
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => "the outcome is unknown".into(),
            };
            outgoing.push_back(Reply::Kept { number: *number, words });
            false
        });
    }

    /// When pieces no longer wait for a picture.
    fn pieces_ns(&self) -> u64 {
        self.asked_ns.max(self.picture_ns) + PIECES_WAIT_NS
    }

    /// Requests the next picture when one may be sent, so that it is new.
    fn ask(&mut self, now_ns: u64) {
        let Some((number, viewport)) = &self.wanted else { return };
        if self.is_wanted_new && now_ns.saturating_sub(self.wanted_ns) >= ASK_INTERVAL_NS {
            (self.is_wanted_new, self.wanted_ns, self.asked_ns) = (false, now_ns, now_ns);
            // On a live stream, an exact analysis would delay all other viewers.
            let viewport = Viewport { is_exact: viewport.is_exact && self.is_over, ..viewport.clone() };
            if self.asked.len() == ASKED_MAX {
                self.asked.pop_front();
            }
            self.asked.push_back((*number, viewport.clone()));
            // A picture must follow, even if it equals the last one.
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

    fn picture(&mut self, mut picture: Picture, viewport: u64, now_ns: u64) -> ScopeMessage {
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

    fn pieces_alone(&mut self, now_ns: u64) -> Option<ScopeMessage> {
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

    fn send(&mut self, bytes: Vec<u8>, now_ns: u64) -> ScopeMessage {
        self.pace.sent(self.number, bytes.len(), now_ns);
        // Keeps to a schedule as far as the path allows.
        let due_ns = self.sent_ns + self.interval_ns;
        self.sent_ns =
            if now_ns.saturating_sub(due_ns) > self.interval_ns { now_ns } else { due_ns.min(now_ns) };
        ScopeMessage::Binary(bytes)
    }
}

const STATUS_INTERVAL_NS: u64 = 250_000_000;
/// If no picture comes for this long, pieces get messages of their own.
const PIECES_WAIT_NS: u64 = 50_000_000;
const WAKE_NS_MIN: u64 = 1_000_000;
/// Minimum time between two viewports of one viewer.
const ASK_INTERVAL_NS: u64 = 16_000_000;
const ASKED_MAX: usize = 64;
/// A viewer that reads nothing for this long is gone or suspended.
const STALLED_NS: u64 = 20_000_000_000;
/// Maximum ranges of one viewer that are saved at a time.
const KEEPING_MAX: usize = 4;
const MESSAGES_PER_S: f64 = 400.0;
const MESSAGES_AT_ONCE: f64 = 1000.0;
