//! The server's end of one page: its model, its texts, and the next messages. No socket and no clock.

use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::drawn::Drawn;
use super::panes::xy_cells;
use super::requests::{Deed, Numbered, PageRequest, Sizes, bounded};
use super::view::{restore, view_of};
use super::words::Words;
use crate::data::extract::WantedExtract;
use crate::data::finding::{Finder, Finding};
use crate::data::link::{RemoteSide, ScopeLink};
use crate::data::listening::{HeardBox, Listener, Listening, Playing, Sound};
use crate::data::status::SourceStatus;
use crate::model::action::{Action, Step};
use crate::model::channel::ChannelSetup;
use crate::model::keeper::Annotator;
use crate::model::keys::{all_keys, key_action};
use crate::model::options::ViewOptions;
use crate::model::options::{Opened, SourceMenu};
use crate::model::view_model::ViewModel;
use crate::model::widget::Press;
use crate::png;
use crate::remote::items::SAMPLES_MAX;
use crate::remote::requests::bounded as bounded_viewport;
use crate::remote::{ChannelMeaning, Greeting, Refusal, Right, ScopeMessage, ScopeOffer, ViewerSession};

/// The session of an accepted page.
pub struct PageSession {
    /// Carries pictures and pieces.
    far: ViewerSession,
    /// The model's scope, as the model sees it.
    side: RemoteSide,
    model: ViewModel,
    sizes: Sizes,
    hover: Option<f64>,
    /// The newest action, and the newest that changed the viewport.
    done: u64,
    asked: u64,
    /// All texts sent so far, by key.
    told: Map<String, Value>,
    view: String,
    outgoing: VecDeque<ScopeMessage>,
    /// Whether an action waits for its visible effect.
    is_urgent: bool,
    status_ns: u64,
    /// Time of the last saved file.
    saved_ns: u64,
    shared: Arc<Shared>,
}

/// State that the model's options share with the session.
#[derive(Default)]
struct Shared {
    status: Mutex<SourceStatus>,
    /// Saved files that wait to be sent.
    files: Mutex<VecDeque<(String, Vec<u8>)>>,
    /// A finished sound, or live sound, that waits to be sent.
    sound: Mutex<Option<Sound>>,
    /// Another source, counted from 0, for the page to open.
    goes_to: Mutex<Option<usize>>,
    /// The model's pending switch of sources. It gets no answer, because the page connects again.
    opened: Mutex<Option<Sender<Opened>>>,
    /// Description of the last change to the source.
    changed: Arc<Mutex<Option<String>>>,
    now_ns: Mutex<u64>,
}

impl Shared {
    /// Adds a piece of live sound. If the page is too slow for it, the oldest is lost.
    fn add_live(&self, piece: Sound) {
        let mut waiting = lock(&self.sound);
        match &mut *waiting {
            Some(before) if before.is_live && before.rate_hz == piece.rate_hz => {
                before.samples.extend(piece.samples);
                let lost = before.samples.len().saturating_sub(LIVE_SECONDS_MAX * before.rate_hz as usize);
                before.samples.drain(..lost);
            }
            _ => *waiting = Some(piece),
        }
    }
}

impl PageSession {
    /// A session for one page. `link` is its own, from [`ScopeLink::another`].
    pub fn new(
        link: ScopeLink,
        greeting: &Greeting,
        offer: &ScopeOffer,
        right: Right,
        now_ns: u64,
    ) -> PageSession {
        let (side, here) = RemoteSide::new(|| {});
        let there = link.clone();
        here.on_picture(move || there.wake());
        let shared = Arc::new(Shared::default());
        let options = options(greeting, offer, right, &shared);
        let mut model = ViewModel::new(here, options, png::encode);
        let page = greeting.page.clone().unwrap_or_default();
        restore(&mut model, &page.view, page.is_light);
        let far = ViewerSession::of_pictures(link, greeting, offer, right, now_ns);
        let mut session = PageSession {
            far,
            side,
            model,
            sizes: Sizes::default(),
            hover: None,
            done: 0,
            asked: 0,
            told: Map::new(),
            view: String::new(),
            outgoing: VecDeque::new(),
            is_urgent: true,
            status_ns: 0,
            saved_ns: 0,
            shared,
        };
        let welcome = json!({"welcome": {
            "source": greeting.source,
            "keys": keys(),
        }});
        session.outgoing.push_back(ScopeMessage::Text(welcome.to_string()));
        session
    }

    /// Takes a message of the page.
    ///
    /// # Errors
    /// If the message is unknown, or the page sends too many: close it with this reason.
    pub fn take(&mut self, text: &str, now_ns: u64) -> Result<(), Refusal> {
        self.far.admit(now_ns)?;
        *lock(&self.shared.now_ns) = now_ns;
        let said = serde_json::from_str(text);
        match said.map_err(|error| Refusal(format!("a message was not understood: {error}")))? {
            PageRequest::Ack(number) => self.far.acknowledged(number, now_ns)?,
            PageRequest::Ping { at } => self.far.pong(at, now_ns),
            PageRequest::Do(Numbered { number, what }) => {
                self.done = self.done.max(number);
                self.do_it(what);
                self.is_urgent = true;
                self.exchange();
            }
        }
        Ok(())
    }

    /// Takes the description of this page's last change to the source.
    pub fn take_changed(&mut self) -> Option<String> {
        lock(&self.shared.changed).take()
    }

    /// The next message to send. Call it until `None`: after each message, each wake-up of the link, and at
    /// [`wake_ns`](PageSession::wake_ns). `status` returns the state of the source.
    pub fn next(&mut self, now_ns: u64, status: impl FnOnce() -> SourceStatus) -> Option<ScopeMessage> {
        *lock(&self.shared.now_ns) = now_ns;
        if self.status_ns == 0 || now_ns.saturating_sub(self.status_ns) >= STATUS_INTERVAL_NS {
            *lock(&self.shared.status) = status();
            self.status_ns = now_ns;
        }
        if let Some(message) = self.outgoing.pop_front() {
            return Some(message);
        }
        self.exchange();
        if self.far.takes_sound()
            && let Some(sound) = lock(&self.shared.sound).take()
        {
            self.far.put_sound(sound);
        }
        match self.far.next(now_ns, SourceStatus::default) {
            Some(ScopeMessage::Binary(bytes)) => {
                let Some(picture) = self.far.take_shown() else { return Some(ScopeMessage::Binary(bytes)) };
                self.side.show(picture);
                self.model.refresh();
                let words = self.words(now_ns);
                self.exchange();
                // Axes and scales go before their picture.
                self.outgoing.extend(words.is_some().then(|| ScopeMessage::Binary(bytes.clone())));
                Some(words.unwrap_or(ScopeMessage::Binary(bytes)))
            }
            Some(text) => Some(text),
            None => self.words_alone(now_ns).or_else(|| self.file(now_ns)).or_else(|| self.go()),
        }
    }

    /// When [`next`](PageSession::next) may have a message without another event.
    pub fn wake_ns(&mut self, now_ns: u64) -> u64 {
        let due_ns = if self.is_urgent { now_ns } else { self.far.told_due_ns(now_ns) };
        self.far.wake_ns(now_ns).min(due_ns.max(now_ns + WAKE_NS_MIN))
    }

    /// Checks whether the page still reads.
    ///
    /// # Errors
    /// If it does not: the reason, for the person there.
    pub fn check(&self, now_ns: u64) -> Result<(), Refusal> {
        self.far.check(now_ns)
    }

    fn do_it(&mut self, deed: Deed) {
        let model = &mut self.model;
        match deed {
            Deed::Size(sizes) => {
                self.sizes = sizes;
                model.overview_columns = (sizes.overview > 0).then_some(sizes.overview);
                model.xy_size = xy_cells(&sizes);
            }
            Deed::Key(key) => {
                let has_list = model.list().is_some();
                key_action(&key, has_list).into_iter().for_each(|action| self.act(action));
            }
            Deed::Press(Press::Act(action)) => self.act(action),
            Deed::Press(press) => model.press(press),
            Deed::Show { ending, samples } if samples > 0.0 => {
                model.controls.time.show_stretch(&model.seen.picture, ending, samples);
            }
            Deed::Show { .. } => {}
            Deed::Zoom { is_shorter, at } => model.zoom(is_shorter, at.clamp(0.0, 1.0)),
            Deed::Scale { lane, is_finer } => {
                model.act(Action::Select(lane));
                model.act(Action::Vertical(if is_finer { Step::Down } else { Step::Up }));
            }
            Deed::Level(height) => model.drag_level(height.clamp(0.0, 1.0)),
            Deed::Place(at) => model.controls.trigger.settings.position = at.clamp(0.0, 1.0),
            Deed::Cursor { which, at } => {
                let (start, end, _) = model.axis();
                model.controls.cursors.set_time(which % 2, start + at.clamp(0.0, 1.0) * (end - start));
            }
            Deed::ValueCursor { which, at } => {
                if let Some(range) = model.controls.lanes.range(model.selected()) {
                    model.controls.cursors.set_value(which % 2, range.at(at.clamp(0.0, 1.0)));
                }
            }
            Deed::Marker { which, at } => model.drag_marker(which % 2, at),
            Deed::Frequencies(from, to) if from >= 0.0 && to <= 1.0 && to - from >= 1e-4 => {
                model.controls.spectrum_zoom = (from, to);
            }
            Deed::Frequencies(..) => {}
            Deed::Hover(at) => self.hover = at.filter(|at| (0.0..=1.0).contains(at)),
            Deed::Answer(text) => {
                model.type_text(|typed| *typed = text);
                model.answer();
            }
            Deed::Field { field, text } => {
                if let Err(why) = model.set_field(field, &text) {
                    model.say(why);
                }
            }
        }
        self.model.refresh();
    }

    /// Applies an action, within the rights of a page.
    fn act(&mut self, action: Action) {
        let now_ns = *lock(&self.shared.now_ns);
        let is_soon = now_ns.saturating_sub(self.saved_ns) < FILE_INTERVAL_NS && self.saved_ns > 0;
        match bounded(action) {
            // Checked before anything is drawn or written, because all pages share one thread.
            Some(Action::Save(_) | Action::Keep) if is_soon => {
                self.model.say("one file a second can be saved from here".into());
            }
            Some(action) => {
                if let Action::Save(_) | Action::Keep = action {
                    self.saved_ns = now_ns;
                }
                self.model.act(action);
            }
            None => {}
        }
    }

    /// Forwards the model's requests to its scope, and samples from the scope to the model.
    fn exchange(&mut self) {
        if self.sizes.columns == 0 {
            return;
        }
        self.model.request(self.sizes.columns);
        if let Some(viewport) = self.side.changed_viewport() {
            self.asked = self.done;
            self.far.see(self.asked, bounded_viewport(viewport));
        }
        if let Some(range) = self.side.wanted_range() {
            let samples_max = SAMPLES_MAX as u64;
            self.far.link().request_extract(WantedExtract { range, samples_max });
        }
        if let Some(extract) = self.far.link().take_extract() {
            self.side.give(extract);
            self.model.refresh();
            self.is_urgent = true;
        }
    }

    /// The texts to send before a picture: always those that columns need, the rest when it is due.
    fn words(&mut self, now_ns: u64) -> Option<ScopeMessage> {
        let mut keys = keys_of(&Drawn::of(&mut self.model, &self.sizes));
        let is_due = self.is_urgent || now_ns >= self.far.told_due_ns(now_ns);
        if is_due {
            self.is_urgent = false;
            let words = Words::of(&mut self.model, &self.sizes, self.hover);
            keys.extend(keys_of(&words));
            let view = view_of(&self.model);
            if view != self.view {
                keys.insert("view".into(), view.clone().into());
                self.view = view;
            }
        }
        keys.insert("done".into(), self.done.into());
        keys.insert("asked".into(), self.asked.into());
        keys.retain(|key, value| self.told.get(key) != Some(value));
        if is_due {
            // Also without news, so that the next check waits.
            self.far.note_words(0, now_ns);
        }
        if keys.is_empty() {
            return None;
        }
        self.told.extend(keys.iter().map(|(key, value)| (key.clone(), value.clone())));
        let text = json!({ "shown": keys }).to_string();
        if is_due {
            self.far.note_words(text.len(), now_ns);
        }
        Some(ScopeMessage::Text(text))
    }

    fn words_alone(&mut self, now_ns: u64) -> Option<ScopeMessage> {
        if !self.is_urgent && now_ns < self.far.told_due_ns(now_ns) {
            return None;
        }
        self.model.refresh();
        self.words(now_ns)
    }

    fn file(&mut self, now_ns: u64) -> Option<ScopeMessage> {
        let (name, content) = lock(&self.shared.files).pop_front()?;
        Some(self.far.file(&name, &content, now_ns))
    }

    fn go(&mut self) -> Option<ScopeMessage> {
        let place = lock(&self.shared.goes_to).take()?;
        Some(ScopeMessage::Text(json!({"go": {"source": place.saturating_add(1)}}).to_string()))
    }
}

/// The model's options: they define the rights of this page.
fn options(greeting: &Greeting, offer: &ScopeOffer, right: Right, shared: &Arc<Shared>) -> ViewOptions {
    let status = Arc::clone(shared);
    let mut options = ViewOptions::new(move || lock(&status.status).clone());
    options.initial.channels = offer.channels.iter().map(setup_of).collect();
    let controls = offer.controls.for_viewer(right, &shared.changed);
    (options.generator, options.receiver, options.keeper) =
        (controls.generator, controls.receiver, controls.keeper);
    options.annotator = controls.annotator.or_else(|| Some(Annotator::refusing()));
    options.finder = offer.finder.clone().map(|finder| unhurried(finder, Arc::clone(shared)));
    options.listener = offer.listener.clone().map(|listener| unhurried_sound(listener, Arc::clone(shared)));
    let heard = Arc::clone(shared);
    options.hear = Some(Box::new(move |sound| {
        *lock(&heard.sound) = Some(sound);
        None
    }));
    if let Some(listener) = offer.listener.clone().filter(Listener::has_live) {
        options.hear_live = Some(unhurried_live(listener, Arc::clone(shared)));
    }
    let files = Arc::clone(shared);
    options.store = Some(Box::new(move |name, content| {
        if content.len() > FILE_BYTES_MAX {
            return Err("it is too large for a page: show less time, or use grebe view".into());
        }
        lock(&files.files).push_back((name.to_owned(), content));
        Ok(())
    }));
    if offer.sources.len() > 1 {
        let goes = Arc::clone(shared);
        let open = move |place| {
            let (tell, opened) = channel();
            (*lock(&goes.goes_to), *lock(&goes.opened)) = (Some(place), Some(tell));
            opened
        };
        options.sources = Some(SourceMenu {
            names: offer.sources.clone(),
            shown: greeting.source.saturating_sub(1),
            open: Box::new(open),
        });
    }
    options
}

pub(super) fn setup_of(meaning: &ChannelMeaning) -> ChannelSetup {
    let ChannelMeaning { name, unit, scale, offset } = meaning.clone();
    ChannelSetup { name, unit, scale, offset, ..ChannelSetup::default() }
}

/// A finder that pauses between searches, because a page may send any number of requests.
fn unhurried(finder: Finder, shared: Arc<Shared>) -> Finder {
    let began_ns = Mutex::default();
    Finder::new(move |sought| {
        if is_soon(&began_ns, &shared) {
            let (side, finding) = Finding::begin();
            side.end("not searched: another search has just begun");
            return finding;
        }
        finder.find(sought)
    })
}

/// The same for sound.
fn unhurried_sound(listener: Listener, shared: Arc<Shared>) -> Listener {
    let began_ns = Mutex::default();
    Listener::new(listener.modulations.clone(), move |heard| {
        if is_soon(&began_ns, &shared) {
            let (side, listening) = Listening::begin();
            side.end(Err("another sound has just begun".into()));
            return listening;
        }
        listener.listen(heard)
    })
}

/// The same for live sound.
fn unhurried_live(
    listener: Listener,
    shared: Arc<Shared>,
) -> Box<dyn Fn(HeardBox) -> Option<Playing> + Send> {
    let began_ns = Mutex::default();
    Box::new(move |heard| {
        if is_soon(&began_ns, &shared) {
            return Some(Playing::new(|| Some("another sound has just begun".into())));
        }
        let to = Arc::clone(&shared);
        listener.listen_live(heard, Box::new(move |piece| to.add_live(piece)))
    })
}

/// Whether the last thread began too recently; if not, another begins now.
fn is_soon(began_ns: &Mutex<Option<u64>>, shared: &Shared) -> bool {
    let now_ns = *lock(&shared.now_ns);
    let mut began_ns = lock(began_ns);
    let is_soon = began_ns.is_some_and(|began_ns| now_ns.saturating_sub(began_ns) < THREAD_INTERVAL_NS);
    if !is_soon {
        *began_ns = Some(now_ns);
    }
    is_soon
}

/// The bound keys, and the effects that a page can show before the picture arrives.
fn keys() -> Vec<(&'static str, &'static str)> {
    let ahead = |action| match action {
        Action::Shorter => "shorter",
        Action::Longer => "longer",
        Action::Earlier => "earlier",
        Action::Later => "later",
        _ => "",
    };
    all_keys().map(|(name, action)| (name, ahead(action))).collect()
}

fn keys_of(words: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(words) {
        Ok(Value::Object(keys)) => keys,
        // Names and numbers always serialize.
        _ => Map::new(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change leaves the state valid, so a panic elsewhere does no harm.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for PageSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageSession").finish_non_exhaustive()
    }
}

const STATUS_INTERVAL_NS: u64 = 250_000_000;
const WAKE_NS_MIN: u64 = 1_000_000;
const THREAD_INTERVAL_NS: u64 = 200_000_000;
const FILE_INTERVAL_NS: u64 = 1_000_000_000;
const FILE_BYTES_MAX: usize = 4 << 20;
/// Live sound that waits for a slow page.
const LIVE_SECONDS_MAX: usize = 1;
