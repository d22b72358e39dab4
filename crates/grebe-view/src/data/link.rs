//! Connects the thread that carries data with the threads that draw: requests in one direction, pictures in the other.
//!
//! ```text
//!   DataSide --- Viewers (who looks; the scope itself, once its stream is over)
//!      |---- Shared of one viewer ---- ScopeLink and its clones
//!      |---- Shared of another    ---- ScopeLink ...
//! ```
//!
//! Each side holds a lock for an instant only. The data side never waits for it: it tries, and answers at the next batch.

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

/// The front end's side: requests viewports and takes the newest picture. All clones share one state.
#[derive(Clone)]
pub struct ScopeLink {
    own: Arc<Own>,
}

/// One viewer, while any clone of its link exists.
struct Own {
    shared: Arc<Shared>,
    viewers: Arc<Viewers>,
}

/// State that one viewer and the data side share.
#[derive(Default)]
struct Shared {
    viewer: Viewer,
    state: Mutex<State>,
    /// Whether the front end waits for a picture. Read once per batch, without the lock.
    is_wanted: AtomicBool,
    is_gone: AtomicBool,
    is_closed: AtomicBool,
    pictures_taken: AtomicU64,
}

#[derive(Default)]
struct State {
    viewport: Option<Viewport>,
    /// Whether the viewport differs from the last answered one.
    is_changed: bool,
    newest: Option<Picture>,
    on_picture: Option<Arc<dyn Fn() + Send + Sync>>,
    wanted_extract: Option<WantedExtract>,
    extract: Option<Extract>,
}

type Wake = Box<dyn Fn() + Send + Sync>;

/// All viewers of one scope.
#[derive(Default)]
struct Viewers {
    list: Mutex<Vec<Arc<Shared>>>,
    /// Whether the list differs from the data side's copy.
    is_changed: AtomicBool,
    next: AtomicU64,
    is_parked: AtomicBool,
    /// The scope itself, after the end of its stream. From then on the threads of the front ends answer.
    parked: Mutex<Option<ScopeCore>>,
    /// A thread that answers instead of them, and whether it is its turn.
    after_end: Mutex<Option<Thread>>,
    is_handed_over: AtomicBool,
    /// Wakes the data side; set when that starts.
    data_side: OnceLock<Wake>,
    /// Changes to annotations that the data side has not applied yet.
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

    /// A link for another viewer of the same stream, with its own viewport, trigger and pictures, but the same
    /// history. Its memory is freed when its last clone is dropped.
    pub fn another(&self) -> ScopeLink {
        ScopeLink::new(Arc::clone(&self.own.viewers))
    }

    /// Requests `viewport` from now on; returns whether it differs from the previous one. A picture of it follows,
    /// then another one whenever the data changed and [`take`](ScopeLink::take) took the last.
    pub fn request(&self, viewport: Viewport) -> bool {
        let mut state = self.state();
        let is_another = state.viewport.as_ref() != Some(&viewport);
        state.is_changed |= is_another;
        state.viewport = Some(viewport);
        drop(state);
        self.ask();
        is_another
    }

    /// Requests `viewport`. A picture follows even if nothing in it changed, because the description of the stream did.
    pub(crate) fn request_anew(&self, viewport: Viewport) {
        let mut state = self.state();
        state.is_changed = true;
        state.viewport = Some(viewport);
        drop(state);
        self.ask();
    }

    /// Takes the newest picture; `None` until there is a new one.
    pub fn take(&self) -> Option<Picture> {
        let taken = self.poll();
        if taken.is_some() {
            self.ask();
        }
        taken
    }

    /// As [`take`](ScopeLink::take), but the next picture is made only after [`ask`](ScopeLink::ask): for viewers
    /// that show fewer pictures than the scope can make, each as new as possible.
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

    /// Asks for one picture of the viewport, if it changed.
    pub fn ask(&self) {
        self.own.shared.is_wanted.store(true, Ordering::Release);
        let viewers = &self.own.viewers;
        if viewers.is_handed_over.load(Ordering::Acquire) {
            viewers.after_end().iter().for_each(Thread::unpark);
        } else if let Some(wake) = viewers.data_side.get() {
            wake();
        }
    }

    /// Requests the samples of a range. [`take_extract`](ScopeLink::take_extract) returns them later.
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

    /// Forgets the last request, so that a new front end gets a picture even of an unchanged viewport.
    pub(crate) fn begin_viewing(&self) {
        self.state().viewport = None;
    }

    /// Calls `wake` on the data side's thread for each new picture.
    pub fn on_picture(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.state().on_picture = Some(Arc::new(wake));
    }

    /// Wakes the front end without a new picture, because other state changed.
    pub(crate) fn wake(&self) {
        self.own.shared.wake();
    }

    /// Pictures taken so far, to compute a frame rate.
    pub fn pictures_taken(&self) -> u64 {
        self.own.shared.pictures_taken.load(Ordering::Relaxed)
    }

    /// Ends the front end. Any thread may call it.
    pub fn close(&self) {
        self.own.shared.is_closed.store(true, Ordering::Release);
        self.own.shared.wake();
    }

    /// Whether a thread called [`close`](ScopeLink::close).
    pub fn is_closed(&self) -> bool {
        self.own.shared.is_closed.load(Ordering::Acquire)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.own.shared.state()
    }
}

/// The side of the samples: answers all viewers.
#[derive(Default)]
pub(crate) struct DataSide {
    viewers: Arc<Viewers>,
    seats: Vec<Seat>,
    /// The seat that is next.
    turn: usize,
}

/// A viewer, on the data side.
struct Seat {
    shared: Arc<Shared>,
    /// Whether data came since its last picture.
    has_news: bool,
    answered_ns: u64,
}

impl DataSide {
    /// The link for the first viewer.
    pub(crate) fn link(&self) -> ScopeLink {
        ScopeLink::new(Arc::clone(&self.viewers))
    }

    pub(crate) fn wake_with(&self, waker: impl FnOnce() -> Waker) {
        if self.viewers.data_side.get().is_none() {
            let waker = waker();
            // Two calls at once would set the same waker.
            let _ = self.viewers.data_side.set(Box::new(move || waker.wake()));
        }
    }

    /// Notes new data, which changes all pictures of the newest samples.
    pub(crate) fn note_news(&mut self) {
        self.seats.iter_mut().for_each(|seat| seat.has_news = true);
    }

    /// Makes at most one picture, for the next viewer that waits. So samples do not wait for the pictures of all
    /// viewers. Returns whether it made one.
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

    /// Makes the pictures of all viewers that wait.
    pub(crate) fn answer_all(&mut self, core: &mut ScopeCore, interval_ns: u64, now_ns: u64) {
        for _ in 0..self.seats.len().max(1) {
            if !self.answer_one(core, interval_ns, now_ns) {
                return;
            }
        }
    }

    /// Ends the stream: from now on the threads of the front ends answer viewports, or the thread of [`AfterEnd`].
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

    /// Marks all pictures as outdated, even those of a held window.
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
    /// Makes a picture if the viewport or the data changed; returns whether it did. Never waits for the lock: if the
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
        // A schedule: with blocks every 10 ms, it gives 60 pictures per second, not one every 20 ms.
        let due_ns = self.answered_ns + SIXTIETH_NS;
        let is_late = now_ns.saturating_sub(due_ns) > SIXTIETH_NS;
        self.answered_ns = if is_late { now_ns } else { due_ns.min(now_ns) };
        true
    }
}

/// Stands in for a data side whose samples are on another host, and arrive as pictures.
#[derive(Debug)]
pub(crate) struct RemoteSide(ScopeLink);

impl RemoteSide {
    /// Creates the stand-in and the link of its front end. `wake` is called for each request.
    pub(crate) fn new(wake: impl Fn() + Send + Sync + 'static) -> (RemoteSide, ScopeLink) {
        let link = ScopeLink::new(Arc::default());
        let _ = link.own.viewers.data_side.set(Box::new(wake));
        (RemoteSide(link.clone()), link)
    }

    /// The viewport, if it changed since the last call.
    pub(crate) fn changed_viewport(&self) -> Option<Viewport> {
        let mut state = self.0.state();
        if !std::mem::take(&mut state.is_changed) {
            return None;
        }
        state.viewport.clone()
    }

    /// The viewport, changed or not.
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

    /// Wakes the front end because the state of the source changed.
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

    /// After the end of the stream, lets the thread of [`AfterEnd`] answer.
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
