//! Connects the thread that carries data with those that draw: requests in one direction, pictures in the other.
//!
//! ```text
//!   DataSide --- Viewers (who looks; the scope itself, once its stream is over)
//!      |---- Shared of one viewer ---- ScopeLink and its clones
//!      |---- Shared of another    ---- ScopeLink ...
//! ```
//!
//! Each side holds a lock only to exchange a few words, and the data side never waits for one: it tries, and answers at the next batch.

mod after_end;
mod edits;
mod reader;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::Thread;

use grebe_flow::{Waker, monotonic_ns};
use grebe_frame::AnnotationEdit;

use crate::data::core::ScopeCore;
use crate::data::extract::{Extract, WantedExtract};
use crate::data::history::Viewer;
use crate::data::picture::Picture;
use crate::data::viewport::{Viewport, Window};
pub use after_end::AfterEnd;
pub use reader::HistoryReader;

/// The front end's side: asks for viewports and takes the newest picture. All clones share one state.
#[derive(Clone)]
pub struct ScopeLink {
    own: Arc<Own>,
}

/// One viewer, as long as anybody holds its link.
struct Own {
    shared: Arc<Shared>,
    viewers: Arc<Viewers>,
}

/// What one viewer and the data side exchange.
#[derive(Default)]
struct Shared {
    viewer: Viewer,
    state: Mutex<State>,
    /// Whether the front end waits for a picture: read once per batch, without the lock.
    is_wanted: AtomicBool,
    is_gone: AtomicBool,
    is_closed: AtomicBool,
    pictures_taken: AtomicU64,
}

#[derive(Default)]
struct State {
    viewport: Option<Viewport>,
    /// Whether the viewport differs from the one answered last.
    is_changed: bool,
    newest: Option<Picture>,
    on_picture: Option<Arc<dyn Fn() + Send + Sync>>,
    wanted_extract: Option<WantedExtract>,
    extract: Option<Extract>,
}

type Wake = Box<dyn Fn() + Send + Sync>;

/// All who look at one scope.
#[derive(Default)]
struct Viewers {
    list: Mutex<Vec<Arc<Shared>>>,
    /// Whether the list is another than the data side has.
    is_changed: AtomicBool,
    next: AtomicU64,
    is_parked: AtomicBool,
    /// The scope itself, once its stream is over: from then on the threads of the front ends answer.
    parked: Mutex<Option<ScopeCore>>,
    /// A thread that answers then instead of them, and whether it is its turn.
    after_end: Mutex<Option<Thread>>,
    is_handed_over: AtomicBool,
    /// Wakes the data side; set once that runs.
    data_side: OnceLock<Wake>,
    /// Changes to what is labelled, until the data side makes them.
    edits: Mutex<Vec<AnnotationEdit>>,
    has_edits: AtomicBool,
}

impl ScopeLink {
    fn new(viewers: Arc<Viewers>) -> ScopeLink {
        let viewer = Viewer(viewers.next.fetch_add(1, Ordering::Relaxed));
        let shared = Arc::new(Shared { viewer, ..Shared::default() });
        viewers.list().push(Arc::clone(&shared));
        viewers.is_changed.store(true, Ordering::Release);
        ScopeLink { own: Arc::new(Own { shared, viewers }) }
    }

    /// A link for somebody else who looks at the same stream: with a viewport, a trigger and pictures of their own, over the one
    /// history that there is. What it costs is given back when the last clone of it is dropped.
    pub fn another(&self) -> ScopeLink {
        ScopeLink::new(Arc::clone(&self.own.viewers))
    }

    /// Asks to see `viewport` from now on; returns whether it differs from the one before. A picture of it follows, and
    /// then one whenever data changed it and [`take`](ScopeLink::take) took the one before.
    pub fn request(&self, viewport: Viewport) -> bool {
        let mut state = self.state();
        let is_another = state.viewport.as_ref() != Some(&viewport);
        state.is_changed |= is_another;
        state.viewport = Some(viewport);
        drop(state);
        self.ask();
        is_another
    }

    /// Asks to see `viewport`, of which a picture follows in each case: where nothing of it changed, what is known of the stream has.
    pub(crate) fn request_anew(&self, viewport: Viewport) {
        let mut state = self.state();
        state.is_changed = true;
        state.viewport = Some(viewport);
        drop(state);
        self.ask();
    }

    /// Takes the newest picture; `None` until there is another.
    pub fn take(&self) -> Option<Picture> {
        let taken = self.poll();
        if taken.is_some() {
            self.ask();
        }
        taken
    }

    /// As [`take`](ScopeLink::take), but no other picture is made until [`ask`](ScopeLink::ask): for who shows fewer than there
    /// could be, and wants each as new as it can be.
    pub fn poll(&self) -> Option<Picture> {
        let mut state = self.state();
        let is_parked = state.is_changed && self.own.viewers.is_parked.load(Ordering::Acquire);
        if let Some(viewport) = state.viewport.clone().filter(|_| is_parked) {
            state.is_changed = false;
            drop(state);
            let viewer = self.own.shared.viewer;
            let mut parked = self.own.viewers.parked();
            let picture = parked.as_mut().map(|core| core.answer_for(viewer, &viewport, monotonic_ns()));
            drop(parked);
            state = self.state();
            state.newest = picture.or(state.newest.take());
        }
        let taken = state.newest.take();
        drop(state);
        if taken.is_some() {
            self.own.shared.pictures_taken.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// Asks for one picture of the viewport, if it is another by then.
    pub fn ask(&self) {
        self.own.shared.is_wanted.store(true, Ordering::Release);
        let viewers = &self.own.viewers;
        if viewers.is_handed_over.load(Ordering::Acquire) {
            viewers.after_end().iter().for_each(Thread::unpark);
        } else if let Some(wake) = viewers.data_side.get() {
            wake();
        }
    }

    /// Asks for the samples of a stretch: [`take_extract`](ScopeLink::take_extract) gives them a little later.
    pub(crate) fn request_extract(&self, wanted: impl Into<WantedExtract>) {
        self.state().wanted_extract = Some(wanted.into());
        self.ask();
    }

    pub(crate) fn take_extract(&self) -> Option<Extract> {
        let mut state = self.state();
        if self.own.viewers.is_parked.load(Ordering::Acquire)
            && let Some(wanted) = state.wanted_extract.take()
        {
            drop(state);
            let viewer = self.own.shared.viewer;
            return self.own.viewers.parked().as_mut().map(|core| core.extract(viewer, wanted));
        }
        state.extract.take()
    }

    /// Forgets what was asked before: a front end that begins gets a picture even of what another one saw.
    pub(crate) fn begin_viewing(&self) {
        self.state().viewport = None;
    }

    /// Calls `wake` from the data side's thread whenever there is a new picture.
    pub fn on_picture(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.state().on_picture = Some(Arc::new(wake));
    }

    /// Wakes the front end: what it shows is another, though no picture came.
    pub(crate) fn wake(&self) {
        self.own.shared.wake();
    }

    /// Pictures taken so far: the base of a frame rate.
    pub fn pictures_taken(&self) -> u64 {
        self.own.shared.pictures_taken.load(Ordering::Relaxed)
    }

    /// Ends the front end. Can be called from any thread.
    pub fn close(&self) {
        self.own.shared.is_closed.store(true, Ordering::Release);
        self.own.shared.wake();
    }

    /// Whether someone called [`close`](ScopeLink::close).
    pub fn is_closed(&self) -> bool {
        self.own.shared.is_closed.load(Ordering::Acquire)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.own.shared.state()
    }
}

/// Where samples are: answers all who look.
#[derive(Default)]
pub(crate) struct DataSide {
    viewers: Arc<Viewers>,
    seats: Vec<Seat>,
    /// The seat whose turn it is.
    turn: usize,
}

/// A viewer, as the data side knows it.
struct Seat {
    shared: Arc<Shared>,
    /// Whether data came since its last picture.
    has_news: bool,
    answered_ns: u64,
}

impl DataSide {
    /// A link for the first who looks.
    pub(crate) fn link(&self) -> ScopeLink {
        ScopeLink::new(Arc::clone(&self.viewers))
    }

    pub(crate) fn wake_with(&self, waker: impl FnOnce() -> Waker) {
        if self.viewers.data_side.get().is_none() {
            let waker = waker();
            // Two calls at once would set the same.
            let _ = self.viewers.data_side.set(Box::new(move || waker.wake()));
        }
    }

    /// Data came: every picture of the newest samples would be another.
    pub(crate) fn note_news(&mut self) {
        self.seats.iter_mut().for_each(|seat| seat.has_news = true);
    }

    /// Makes at most one picture, if somebody waits for one whose turn it is: samples that come meanwhile do not wait for those of
    /// all who look. Returns whether it did.
    pub(crate) fn answer_one(&mut self, core: &mut ScopeCore, interval_ns: u64, now_ns: u64) -> bool {
        self.look_who_is_there(core);
        if self.viewers.make_edits(core) {
            self.renew();
        }
        let seats = self.seats.len();
        for _ in 0..seats {
            self.turn = (self.turn + 1) % seats;
            let seat = &mut self.seats[self.turn];
            if seat.shared.is_wanted.load(Ordering::Acquire)
                && now_ns.saturating_sub(seat.answered_ns) >= interval_ns
                && seat.answer(core, now_ns)
            {
                return true;
            }
        }
        false
    }

    /// Makes the pictures of all who wait for one.
    pub(crate) fn answer_all(&mut self, core: &mut ScopeCore, interval_ns: u64, now_ns: u64) {
        for _ in 0..self.seats.len().max(1) {
            if !self.answer_one(core, interval_ns, now_ns) {
                return;
            }
        }
    }

    /// The stream is over: from now on the threads of the front ends answer viewports, or the one that is there for it.
    pub(crate) fn park(&mut self, mut core: ScopeCore) {
        self.look_who_is_there(&mut core);
        let viewers = &self.viewers;
        viewers.make_edits(&mut core);
        *viewers.parked() = Some(core);
        viewers.is_parked.store(true, Ordering::Release);
        viewers.hand_over();
        for shared in viewers.list().iter() {
            shared.state().is_changed = true;
            shared.wake();
        }
    }

    /// Pictures of what was asked for would be others now, also where they are held.
    pub(crate) fn renew(&self) {
        self.seats.iter().for_each(|seat| seat.shared.state().is_changed = true);
    }

    fn look_who_is_there(&mut self, core: &mut ScopeCore) {
        if !self.viewers.is_changed.load(Ordering::Acquire) {
            return;
        }
        let mut list = match self.viewers.list.try_lock() {
            Ok(list) => list,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        self.viewers.is_changed.store(false, Ordering::Release);
        list.retain(|shared| !shared.is_gone.load(Ordering::Acquire));
        self.seats.retain(|seat| {
            let is_gone = seat.shared.is_gone.load(Ordering::Acquire);
            if is_gone {
                core.forget(seat.shared.viewer);
            }
            !is_gone
        });
        for shared in list.iter() {
            if !self.seats.iter().any(|seat| Arc::ptr_eq(&seat.shared, shared)) {
                self.seats.push(Seat { shared: Arc::clone(shared), has_news: true, answered_ns: 0 });
            }
        }
    }
}

impl Seat {
    /// Makes a picture of the viewport if that or the data changed; returns whether it did. Never waits for the lock: where the
    /// front end holds it, the next call answers.
    fn answer(&mut self, core: &mut ScopeCore, now_ns: u64) -> bool {
        let mut state = match self.shared.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        if let Some(wanted) = state.wanted_extract.take() {
            drop(state);
            let extract = core.extract(self.shared.viewer, wanted);
            self.shared.state().extract = Some(extract);
            self.shared.wake();
            return false;
        }
        // New data does not change a held picture.
        let is_latest = state.viewport.as_ref().is_some_and(|viewport| viewport.window == Window::Latest);
        let is_another = state.is_changed || (self.has_news && is_latest);
        let Some(viewport) = state.viewport.clone().filter(|_| is_another) else { return false };
        self.shared.is_wanted.store(false, Ordering::Release);
        state.is_changed = false;
        drop(state);
        let picture = core.answer_for(self.shared.viewer, &viewport, now_ns);
        self.shared.state().newest = Some(picture);
        self.shared.wake();
        self.has_news = false;
        // On a schedule: blocks that come every 10 ms make 60 pictures per second, not one every 20 ms.
        let due_ns = self.answered_ns + SIXTIETH_NS;
        let is_late = now_ns.saturating_sub(due_ns) > SIXTIETH_NS;
        self.answered_ns = if is_late { now_ns } else { due_ns.min(now_ns) };
        true
    }
}

/// In place of a data side: what samples there are is known elsewhere, and comes as pictures.
#[derive(Debug)]
pub(crate) struct FarSide(ScopeLink);

impl FarSide {
    /// One that `wake` tells when it is asked for something, and the link of its front end.
    pub(crate) fn new(wake: impl Fn() + Send + Sync + 'static) -> (FarSide, ScopeLink) {
        let link = ScopeLink::new(Arc::default());
        let _ = link.own.viewers.data_side.set(Box::new(wake));
        (FarSide(link.clone()), link)
    }

    /// What is to be seen, if that is another since the last call.
    pub(crate) fn changed_viewport(&self) -> Option<Viewport> {
        let mut state = self.0.state();
        if !std::mem::take(&mut state.is_changed) {
            return None;
        }
        state.viewport.clone()
    }

    /// What is to be seen, changed or not.
    pub(crate) fn viewport(&self) -> Option<Viewport> {
        self.0.state().viewport.clone()
    }

    pub(crate) fn wanted_range(&self) -> Option<Range<u64>> {
        self.0.state().wanted_extract.take().map(|wanted| wanted.range)
    }

    pub(crate) fn show(&self, picture: Picture) {
        self.0.state().newest = Some(picture);
        self.0.own.shared.wake();
    }

    pub(crate) fn give(&self, extract: Extract) {
        self.0.state().extract = Some(extract);
        self.0.own.shared.wake();
    }

    /// What is said of the source is another.
    pub(crate) fn wake(&self) {
        self.0.own.shared.wake();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl Shared {
    /// Wakes the front end.
    fn wake(&self) {
        let wake = self.state().on_picture.clone();
        if let Some(wake) = wake {
            wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change leaves the state valid, so a panic of the other side does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Viewers {
    fn list(&self) -> MutexGuard<'_, Vec<Arc<Shared>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the thread answer that is there for it, where the stream is over.
    fn hand_over(&self) {
        if let Some(thread) = &*self.after_end()
            && self.is_parked.swap(false, Ordering::AcqRel)
        {
            self.is_handed_over.store(true, Ordering::Release);
            thread.unpark();
        }
    }

    fn after_end(&self) -> MutexGuard<'_, Option<Thread>> {
        self.after_end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parked(&self) -> MutexGuard<'_, Option<ScopeCore>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.shared.is_gone.store(true, Ordering::Release);
        if self.viewers.is_parked.load(Ordering::Acquire) {
            self.viewers.list().retain(|shared| !Arc::ptr_eq(shared, &self.shared));
            if let Some(core) = self.viewers.parked().as_mut() {
                core.forget(self.shared.viewer);
            }
        }
        self.viewers.is_changed.store(true, Ordering::Release);
    }
}

impl std::fmt::Debug for ScopeLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScopeLink").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for DataSide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataSide").field("seats", &self.seats.len()).finish_non_exhaustive()
    }
}

const SIXTIETH_NS: u64 = 16_666_667;
