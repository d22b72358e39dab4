//! Between the thread that carries data and the one a person looks at: requests one way, pictures the other.
//!
//! Either side holds the lock for the exchange of a few words only; the data side does not even wait for that.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};

use grebe_flow::{Waker, monotonic_ns};

use crate::data::core::ScopeCore;
use crate::data::extract::Extract;
use crate::data::picture::Picture;
use crate::data::viewport::{Viewport, Window};

/// A face's end: asks for viewports, takes the newest picture. Clones are the same end.
#[derive(Clone, Default)]
pub struct ScopeLink {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Whether the face wants a picture, or was closed: looked at once a batch, without the lock.
    is_wanted: AtomicBool,
    is_closed: AtomicBool,
    pictures_taken: AtomicU64,
    /// Wakes the data side; there once it runs.
    data_side: OnceLock<Waker>,
}

#[derive(Default)]
struct State {
    viewport: Option<Viewport>,
    /// Whether the viewport is another than the one last answered.
    is_changed: bool,
    newest: Option<Picture>,
    on_picture: Option<Arc<dyn Fn() + Send + Sync>>,
    /// The scope itself, when its stream is over: from then on the face's thread answers.
    parked: Option<ScopeCore>,
    /// A stretch whose samples are wanted, and those samples.
    wanted_range: Option<Range<u64>>,
    extract: Option<Extract>,
}

impl ScopeLink {
    /// A link to nobody yet.
    pub(crate) fn new() -> ScopeLink {
        ScopeLink::default()
    }

    /// Asks to see `viewport` from now on; whether that is another one than before. A picture of it follows, and then
    /// one whenever data changed it and [`take`](ScopeLink::take) took the one before.
    pub fn request(&self, viewport: Viewport) -> bool {
        let mut state = self.state();
        let is_another = state.viewport != Some(viewport);
        state.is_changed |= is_another;
        state.viewport = Some(viewport);
        drop(state);
        self.want();
        is_another
    }

    /// The newest picture, once.
    pub fn take(&self) -> Option<Picture> {
        let mut guard = self.state();
        let state = &mut *guard;
        if let (Some(core), Some(viewport), true) = (&mut state.parked, state.viewport, state.is_changed) {
            state.newest = Some(core.answer(&viewport, monotonic_ns()));
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
    pub fn request_extract(&self, range: Range<u64>) {
        let mut state = self.state();
        if let Some(core) = &state.parked {
            let extract = core.extract(range);
            state.extract = Some(extract);
            return;
        }
        state.wanted_range = Some(range);
        drop(state);
        self.want();
    }

    /// The samples that were asked for, once.
    pub fn take_extract(&self) -> Option<Extract> {
        self.state().extract.take()
    }

    /// A face begins: it gets a picture even of what another one saw before.
    pub(crate) fn begin_viewing(&self) {
        self.state().viewport = None;
    }

    /// Calls `wake` from the data side's thread whenever there is a new picture.
    pub fn on_picture(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.state().on_picture = Some(Arc::new(wake));
    }

    /// Pictures taken so far: what a person saw, for a frame rate.
    pub fn pictures_taken(&self) -> u64 {
        self.shared.pictures_taken.load(Ordering::Relaxed)
    }

    /// Ends the face, from whichever thread.
    pub fn close(&self) {
        self.shared.is_closed.store(true, Ordering::Release);
        let wake = self.state().on_picture.clone();
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Whether someone called [`close`](ScopeLink::close).
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Acquire)
    }

    /// Lets requests wake the data side.
    pub(crate) fn wake_with(&self, waker: impl FnOnce() -> Waker) {
        if self.shared.data_side.get().is_none() {
            // Set twice by two calls at once would be set to the same.
            let _ = self.shared.data_side.set(waker());
        }
    }

    /// Whether the face waits for a picture.
    pub(crate) fn is_wanted(&self) -> bool {
        self.shared.is_wanted.load(Ordering::Acquire)
    }

    /// Answers the face's viewport where it waits for that; says whether there is a new picture. Does not wait for
    /// the face: where it is just looking, the next call answers.
    pub(crate) fn answer(&self, core: &mut ScopeCore, has_news: bool, now_ns: u64) -> bool {
        let mut state = match self.shared.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        if let Some(range) = state.wanted_range.take() {
            let wake = state.on_picture.clone();
            drop(state);
            let extract = core.extract(range);
            self.state().extract = Some(extract);
            if let Some(wake) = wake {
                wake();
            }
            return false;
        }
        // What is held does not change by what arrives.
        let has_news = has_news && state.viewport.is_some_and(|viewport| viewport.window == Window::Latest);
        let Some(viewport) = state.viewport.filter(|_| has_news || state.is_changed) else { return false };
        self.shared.is_wanted.store(false, Ordering::Release);
        state.is_changed = false;
        let wake = state.on_picture.clone();
        drop(state);
        let picture = core.answer(&viewport, now_ns);
        self.state().newest = Some(picture);
        if let Some(wake) = wake {
            wake();
        }
        true
    }

    /// Leaves the scope to the face, which from now on answers its viewports itself.
    pub(crate) fn park(&self, core: ScopeCore) {
        let mut state = self.state();
        if let Some(range) = state.wanted_range.take() {
            state.extract = Some(core.extract(range));
        }
        state.parked = Some(core);
        state.is_changed = true;
        let wake = state.on_picture.clone();
        drop(state);
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
        // Each change leaves the state good, so a panic elsewhere spoils nothing.
        self.shared.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl std::fmt::Debug for ScopeLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScopeLink").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}
