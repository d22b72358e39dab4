//! Connects the thread that carries data with the thread that draws: requests in one direction, pictures in the other.
//!
//! Either side holds the lock only to exchange a few words, and the data side never waits for it: it tries, and answers at the next batch.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};

use grebe_flow::{Waker, monotonic_ns};

use crate::data::core::ScopeCore;
use crate::data::extract::Extract;
use crate::data::picture::Picture;
use crate::data::viewport::{Viewport, Window};

/// The front end's side: asks for viewports and takes the newest picture. All clones share one state.
#[derive(Clone, Default)]
pub struct ScopeLink {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Whether the front end waits for a picture: read once per batch, without the lock.
    is_wanted: AtomicBool,
    is_closed: AtomicBool,
    pictures_taken: AtomicU64,
    /// Wakes the data side; set once that runs.
    data_side: OnceLock<Waker>,
}

#[derive(Default)]
struct State {
    viewport: Option<Viewport>,
    /// Whether the viewport differs from the one answered last.
    is_changed: bool,
    newest: Option<Picture>,
    on_picture: Option<Arc<dyn Fn() + Send + Sync>>,
    /// The scope itself, once its stream is over: from then on the front end's thread answers.
    parked: Option<ScopeCore>,
    wanted_range: Option<Range<u64>>,
    extract: Option<Extract>,
}

impl ScopeLink {
    pub(crate) fn new() -> ScopeLink {
        ScopeLink::default()
    }

    /// Asks to see `viewport` from now on; returns whether it differs from the one before. A picture of it follows, and
    /// then one whenever data changed it and [`take`](ScopeLink::take) took the one before.
    pub fn request(&self, viewport: Viewport) -> bool {
        let mut state = self.state();
        let is_another = state.viewport.as_ref() != Some(&viewport);
        state.is_changed |= is_another;
        state.viewport = Some(viewport);
        drop(state);
        self.want();
        is_another
    }

    /// Takes the newest picture; `None` until there is another.
    pub fn take(&self) -> Option<Picture> {
        let mut guard = self.state();
        let state = &mut *guard;
        if let (Some(core), Some(viewport), true) = (&mut state.parked, &state.viewport, state.is_changed) {
            state.newest = Some(core.answer(viewport, monotonic_ns()));
            state.is_changed = false;
        }
        let taken = state.newest.take();
        drop(guard);
        if taken.is_some() {
            self.shared.pictures_taken.fetch_add(1, Ordering::Relaxed);
            self.want();
        }
        taken
    }

    /// Asks for the samples of a stretch: [`take_extract`](ScopeLink::take_extract) gives them a little later.
    pub(crate) fn request_extract(&self, range: Range<u64>) {
        let mut state = self.state();
        if let Some(core) = &mut state.parked {
            let extract = core.extract(range);
            state.extract = Some(extract);
            return;
        }
        state.wanted_range = Some(range);
        drop(state);
        self.want();
    }

    pub(crate) fn take_extract(&self) -> Option<Extract> {
        self.state().extract.take()
    }

    /// Forgets what was asked before: a front end that begins gets a picture even of what another one saw.
    pub(crate) fn begin_viewing(&self) {
        self.state().viewport = None;
    }

    /// Calls `wake` from the data side's thread whenever there is a new picture.
    pub fn on_picture(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.state().on_picture = Some(Arc::new(wake));
    }

    /// Pictures taken so far: the base of a frame rate.
    pub fn pictures_taken(&self) -> u64 {
        self.shared.pictures_taken.load(Ordering::Relaxed)
    }

    /// Ends the front end. Can be called from any thread.
    pub fn close(&self) {
        self.shared.is_closed.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether someone called [`close`](ScopeLink::close).
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Acquire)
    }

    pub(crate) fn wake_with(&self, waker: impl FnOnce() -> Waker) {
        if self.shared.data_side.get().is_none() {
            // Two calls at once would set the same.
            let _ = self.shared.data_side.set(waker());
        }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.shared.is_wanted.load(Ordering::Acquire)
    }

    /// Makes a picture of the viewport if one is wanted and it changed; returns whether it did. Never waits for the lock:
    /// where the front end holds it, the next call answers.
    pub(crate) fn answer(&self, core: &mut ScopeCore, has_news: bool, now_ns: u64) -> bool {
        let mut state = match self.shared.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        if let Some(range) = state.wanted_range.take() {
            drop(state);
            let extract = core.extract(range);
            self.state().extract = Some(extract);
            self.wake();
            return false;
        }
        // New data does not change a held picture.
        let has_news =
            has_news && state.viewport.as_ref().is_some_and(|viewport| viewport.window == Window::Latest);
        let viewport = state.viewport.as_ref().filter(|_| has_news || state.is_changed);
        let Some(viewport) = viewport.cloned() else { return false };
        self.shared.is_wanted.store(false, Ordering::Release);
        state.is_changed = false;
        drop(state);
        let picture = core.answer(&viewport, now_ns);
        self.state().newest = Some(picture);
        self.wake();
        true
    }

    /// Takes over the scope of a stream that is over: from now on the front end's thread answers viewports.
    pub(crate) fn park(&self, mut core: ScopeCore) {
        let mut state = self.state();
        if let Some(range) = state.wanted_range.take() {
            state.extract = Some(core.extract(range));
        }
        state.parked = Some(core);
        state.is_changed = true;
        drop(state);
        self.wake();
    }

    /// A picture of what was asked for would be another now, also where it is held.
    pub(crate) fn renew(&self) {
        self.state().is_changed = true;
    }

    /// Wakes the front end.
    fn wake(&self) {
        let wake = self.state().on_picture.clone();
        if let Some(wake) = wake {
            wake();
        }
    }

    fn want(&self) {
        self.shared.is_wanted.store(true, Ordering::Release);
        if let Some(waker) = self.shared.data_side.get() {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change leaves the state valid, so a panic of the other side does no harm.
        self.shared.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl std::fmt::Debug for ScopeLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScopeLink").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}
